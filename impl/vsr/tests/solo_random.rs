//! Random lives of a node alone: requests, partial flushes, checkpoints that fail, crashes that
//! keep part of what was not flushed (spec CON-10, CON-12, CON-17, CON-22, CON-35, REC-1, REC-10,
//! REC-11, REC-13, REC-14, REC-19).

mod util;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use pawl_vsr::{Effect, Input, LogSpace, Machine, Outcome, Record, Status, Ticket};
use pawl_wire::entry::{ENTRY_HEADER_BYTES, EntryHeader};
use pawl_wire::ids::{Lsn, Op};
use util::node::{Node, config, request};
use util::toy::{Counted, Toy};

#[derive(Clone, Debug)]
enum Action {
    /// A client's next request, with a body of so many bytes at this time.
    Next {
        client: u128,
        bytes: usize,
        now: u64,
    },
    /// A client's last request again.
    Again {
        client: u128,
    },
    /// A flush that covers this part of what is written, in 1/16.
    Flush {
        part: u64,
    },
    SnapshotWritten,
    SnapshotFailed,
    Space {
        low: bool,
    },
    /// A crash that keeps this part of what is not flushed, in 1/16, and a restart.
    Crash {
        kept: u64,
    },
    /// Two restarts, the first of which dies before its vote is durable.
    CrashTwice {
        kept: u64,
    },
}

fn action() -> impl Strategy<Value = Action> {
    let bytes = prop_oneof![9 => 0..64usize, 1 => 1000..8000usize];
    prop_oneof![
        8 => (1..4u128, bytes, 0..1000u64)
            .prop_map(|(client, bytes, now)| Action::Next { client, bytes, now }),
        2 => (1..4u128).prop_map(|client| Action::Again { client }),
        6 => (0..=16u64).prop_map(|part| Action::Flush { part }),
        2 => Just(Action::SnapshotWritten),
        1 => Just(Action::SnapshotFailed),
        1 => any::<bool>().prop_map(|low| Action::Space { low }),
        1 => (0..=16u64).prop_map(|kept| Action::Crash { kept }),
        1 => (0..=16u64).prop_map(|kept| Action::CrashTwice { kept }),
    ]
}

/// What must hold over the whole life of the node, whatever it forgets.
struct Life {
    node: Node,
    /// The same node, which gets the same inputs.
    twin: Node,
    tickets: u64,
    numbers: BTreeMap<u128, u64>,
    /// Requests that wait for an answer of this start.
    waiting: BTreeMap<Ticket, (u128, u64)>,
    answered: BTreeSet<Ticket>,
    /// What was acknowledged: the op and reply of each request.
    acknowledged: BTreeMap<(u128, u64), Op>,
    /// The entry at every op that was ever applied.
    applied: BTreeMap<Op, EntryHeader>,
    /// What apply ordered at each op, the first time.
    ordered: BTreeMap<Op, Vec<Counted>>,
    /// Every checkpoint that was ever taken and handed out.
    checkpoints: BTreeMap<Op, Vec<u8>>,
}

impl Life {
    fn new() -> Life {
        let node = Node::format(config(1, 0));
        let mut life = Life {
            twin: node.clone(),
            node,
            tickets: 0,
            numbers: BTreeMap::new(),
            waiting: BTreeMap::new(),
            answered: BTreeSet::new(),
            acknowledged: BTreeMap::new(),
            applied: BTreeMap::new(),
            ordered: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
        };
        life.flush(16);
        life
    }

    fn live(&mut self, action: &Action) {
        match *action {
            Action::Next { client, bytes, now } => {
                let number = self.numbers.entry(client).or_insert(0);
                *number += 1;
                self.request(client, bytes, now);
            }
            Action::Again { client } => self.request(client, 4, 0),
            Action::Flush { part } => self.flush(part),
            Action::SnapshotWritten => self.both(Node::finish_snapshot),
            Action::SnapshotFailed => self.both(|node| {
                if let Some((op, _)) = node.writing.take() {
                    node.step(Input::SnapshotFailed { op });
                }
            }),
            Action::Space { low } => {
                let space = if low { LogSpace::Low } else { LogSpace::Ample };
                self.both(|node| node.step(Input::LogSpace(space)));
            }
            Action::Crash { kept } => self.crash(kept, false),
            Action::CrashTwice { kept } => self.crash(kept, true),
        }
    }

    fn request(&mut self, client: u128, bytes: usize, now: u64) {
        let Some(number) = self.numbers.get(&client).copied() else {
            return;
        };
        self.tickets += 1;
        let ticket = self.tickets;
        self.waiting.insert(Ticket(ticket), (client, number));
        let request = request(ticket, client, number, &vec![7; bytes], now);
        self.both(|node| node.step(Input::Request(request.clone())));
    }

    fn flush(&mut self, part: u64) {
        let last = self.node.replica().lsn_last().0;
        let flushed = self.node.flushed.0;
        let lsn = Lsn(flushed + (last - flushed) * part / 16);
        self.both(|node| node.flush_to(lsn));
    }

    fn crash(&mut self, kept: u64, twice: bool) {
        let last = self.node.replica().lsn_last().0;
        let flushed = self.node.flushed.0;
        let kept = Lsn(flushed + (last - flushed) * kept / 16);
        self.waiting.clear();
        self.both(|node| node.crash(kept));
        if twice {
            self.both(|node| node.restart().expect("what was flushed is enough to start"));
            self.both(|node| node.crash(kept));
        }
        self.both(|node| node.restart().expect("what was flushed is enough to start"));
        assert_eq!(self.node.replica().status(), Status::Restarting);
        self.flush(16);
        assert_eq!(self.node.replica().caught_up(), Ok(()));
        let head = self.node.replica().op_head();
        assert_eq!(
            self.node.replica().applied(),
            head,
            "alone, all that is held is decided"
        );
    }

    /// The same to the node and its twin; then everything is looked at.
    fn both(&mut self, does: impl Fn(&mut Node)) {
        does(&mut self.node);
        does(&mut self.twin);
        // spec CON-35: equal inputs give equal effects and equal states.
        assert_eq!(self.node.words, self.twin.words);
        assert_eq!(self.node.replica, self.twin.replica);
        self.twin.answers.clear();
        self.twin.applied.clear();
        self.look();
    }

    fn look(&mut self) {
        self.look_at_entries();
        self.look_at_answers();
        for (op, effect) in std::mem::take(&mut self.node.applied) {
            let ordered = self.ordered.entry(op).or_default();
            if ordered.is_empty() {
                ordered.push(effect);
            } else {
                assert_eq!(*ordered, [effect], "a replay orders the same");
            }
        }
        if let Some((op, bytes)) = &self.node.writing {
            self.look_at_checkpoint(*op, &bytes.clone());
        }
    }

    /// What is applied is durable, and stays as it is for ever.
    fn look_at_entries(&mut self) {
        let Some(replica) = &self.node.replica else {
            return;
        };
        let applied = replica.applied();
        for (lsn, record) in &self.node.records {
            let Record::Entry { header, .. } = record else {
                continue;
            };
            if header.op() <= applied {
                assert!(*lsn <= self.node.flushed, "{} is applied", header.op());
                let known = self.applied.entry(header.op()).or_insert(*header);
                assert_eq!(known, header, "what is decided stays");
            }
        }
        let machine = replica.machine();
        assert_eq!(machine.applied, applied.0);
        for ((client, number), op) in &self.acknowledged {
            if *op <= applied {
                let watermark = machine.clients[client].watermark;
                assert!(watermark >= *number, "what was acknowledged is there");
            }
        }
    }

    fn look_at_answers(&mut self) {
        for (ticket, outcome) in std::mem::take(&mut self.node.answers) {
            assert!(self.answered.insert(ticket), "{ticket} is answered once");
            let request = self.waiting.remove(&ticket);
            let request = request.expect("only what waits is answered");
            match outcome {
                Outcome::Reply { op, frame } => {
                    assert!(
                        self.applied.contains_key(&op),
                        "a reply is of an applied op"
                    );
                    self.acknowledge(request, op, &frame);
                }
                Outcome::Answer { applied, frame } => {
                    assert_eq!(applied, self.node.replica().applied());
                    let text = String::from_utf8_lossy(&frame).into_owned();
                    let original = self.acknowledged.get(&request);
                    if let Some(op) = original {
                        assert!(text.ends_with(&format!("at {}", op.0)), "{text}");
                    }
                }
                Outcome::Refused(_) => {}
            }
        }
    }

    /// One execution a request: every acknowledgement names the same op.
    fn acknowledge(&mut self, request: (u128, u64), op: Op, frame: &[u8]) {
        let text = String::from_utf8_lossy(frame).into_owned();
        let executed: u64 = text
            .rsplit(' ')
            .next()
            .and_then(|op| op.parse().ok())
            .expect("a reply ends with the op that executed it");
        assert!(executed <= op.0);
        let known = *self.acknowledged.entry(request).or_insert(Op(executed));
        assert_eq!(known, Op(executed), "a request is executed once");
    }

    /// A checkpoint is at an op that is a function of the log, and is the fold of the log up to it.
    fn look_at_checkpoint(&mut self, op: Op, bytes: &[u8]) {
        if self.checkpoints.contains_key(&op) {
            return;
        }
        assert!(
            due_ops(&self.applied, &self.node).contains(&op),
            "{op} is not due"
        );
        let (header, length) =
            pawl_vsr::CheckpointHeader::decode(bytes).expect("it was just encoded");
        let machine = Toy::restore(&bytes[length..]).expect("it was just written");
        assert_eq!(machine.digest(), header.digest);
        assert_eq!(machine.applied, op.0);
        self.checkpoints.insert(op, bytes.to_vec());
    }

    fn end(mut self) {
        self.flush(16);
        assert_eq!(self.node.replica().requests_in_flight(), 0);
        assert!(
            self.waiting.is_empty(),
            "every request of this start has its answer"
        );
        let before = self.node.replica().machine().clone();
        self.crash(16, false);
        assert_eq!(
            *self.node.replica().machine(),
            before,
            "a replay gives the same machine"
        );
        self.crash(0, true);
        assert_eq!(*self.node.replica().machine(), before, "and once more");
    }
}

/// The ops at which checkpoints are due, from the log alone.
fn due_ops(applied: &BTreeMap<Op, EntryHeader>, node: &Node) -> BTreeSet<Op> {
    let mut due = BTreeSet::new();
    let (mut ops, mut bytes) = (0, 0);
    for (op, header) in applied {
        ops += 1;
        bytes += ENTRY_HEADER_BYTES as u64 + u64::from(header.body_bytes);
        if ops >= node.config.checkpoint_ops_interval
            || bytes >= node.config.checkpoint_log_bytes_interval
        {
            due.insert(*op);
            (ops, bytes) = (0, 0);
        }
    }
    due
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_node_alone_keeps_its_promises(
        actions in prop::collection::vec(action(), 1..160),
    ) {
        let mut life = Life::new();
        for action in &actions {
            life.live(action);
        }
        life.end();
    }
}

/// Where a reply stands among the effects of its op: after what apply ordered.
#[test]
fn a_reply_comes_after_what_its_op_ordered() {
    let mut node = Node::format(config(1, 0));
    node.flush();
    node.step(Input::Request(request(1, 1, 1, b"x", 1)));
    let mut effects = pawl_vsr::Effects::new();
    let lsn = node.replica().lsn_last();
    let mut replica = node.replica().clone();
    replica.step(Input::Durable(lsn), &mut effects);
    let order: Vec<_> = effects.iter().collect();
    assert!(matches!(
        order.as_slice(),
        [
            Effect::Apply { op: Op(2), .. },
            Effect::Reply {
                ticket: Ticket(1),
                ..
            }
        ]
    ));
}
