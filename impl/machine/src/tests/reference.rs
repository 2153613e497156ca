//! The client table against a second, naive definition of the same rules: lists, scans, and nothing
//! that is remembered twice. Random logs over few clients, with table, ring and tombstones so small
//! that everything overflows.

use std::collections::{BTreeMap, BTreeSet};

use pawl_wire::commands::streams::DeleteStream;
use pawl_wire::entry_arguments::SendMessagesArguments;
use pawl_wire::ids::{PartitionId, PartitionUid, StreamId, TopicId};
use pawl_wire::primitives::Identifier;
use pawl_wire::topic_options::TopicOptions;
use proptest::prelude::*;

use super::*;
use crate::catalog::{NewTopic, PartitionSlot};
use crate::partitions::{PartitionPlace, PartitionState};

/// What a client was told, without the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Epoch(u64),
    Evicted,
    Fenced,
    NotOwner,
    /// Number reused, or epoch from nowhere.
    Violation,
    /// Executed at this op, now or before.
    ExecutedAt(u64),
    Earlier(u64),
    LoggedOut,
    Nothing,
}

#[derive(Clone, Debug)]
enum Event {
    Register {
        client: u128,
        user: u32,
        stamp: u128,
        /// Which epoch the login's context names.
        remembers: Option<Which>,
    },
    Request {
        client: u128,
        which: Which,
        number: u64,
        checksum: u128,
        kind: EntryKind,
    },
    Logout {
        client: u128,
        which: Which,
    },
    Release {
        client: u128,
        which: Which,
    },
    Pass {
        us: u64,
    },
}

/// Which epoch a client sends.
#[derive(Clone, Copy, Debug)]
enum Which {
    Granted(u8),
    Invented(u64),
}

#[derive(Clone, Debug)]
struct NaiveClient {
    epoch: u64,
    /// Every epoch of this history.
    history: Vec<u64>,
    stamp: u128,
    user: u32,
    watermark: u64,
    watermark_checksum: u128,
    replies: Vec<(u64, u128, EntryKind, u64)>,
    latest: u64,
    released: Option<u64>,
    /// `Some` for a tombstone: when it was made, and whether by logout.
    gone: Option<(u64, bool)>,
}

#[derive(Clone, Default, Debug)]
struct Naive {
    op: u64,
    clients: BTreeMap<u128, NaiveClient>,
    clients_max: usize,
    tombstones_max: usize,
    ring: usize,
    grace: u64,
}

impl Naive {
    fn bury(&mut self, client: u128, by_logout: bool) {
        let op = self.op;
        let entry = self.clients.get_mut(&client).expect("it is there");
        entry.gone = Some((op, by_logout));
        entry.replies.clear();
        let gone = self
            .clients
            .iter()
            .filter_map(|(c, e)| e.gone.map(|(at, _)| (at, *c)));
        let gone: BTreeSet<_> = gone.collect();
        if gone.len() > self.tombstones_max {
            let (_, oldest) = gone.first().expect("there are some");
            self.clients.remove(oldest);
        }
    }

    fn begin_op(&mut self, op: u64, time: u64) {
        self.op = op;
        let mut over: Vec<_> = self
            .clients
            .iter()
            .filter(|(_, e)| e.gone.is_none())
            .filter_map(|(c, e)| e.released.map(|at| (at, *c)))
            .filter(|(at, _)| at + self.grace <= time)
            .collect();
        over.sort();
        over.into_iter()
            .for_each(|(_, client)| self.bury(client, false));
    }

    fn register(&mut self, client: u128, user: u32, stamp: u128, named: Option<u64>) -> Told {
        let op = self.op;
        let known = self.clients.get(&client).cloned();
        let logged_out = known
            .as_ref()
            .is_some_and(|e| matches!(e.gone, Some((_, true))));
        if let Some(known) = &known
            && known.user != user
            && !logged_out
        {
            return Told::NotOwner;
        }
        let mine = known.filter(|known| known.user == user);
        let history = mine
            .as_ref()
            .map_or(Vec::new(), |mine| mine.history.clone());
        let spans = |e| history.first() <= Some(&e) && Some(&e) <= history.last();
        if named.is_some_and(|named| !spans(named)) {
            return Told::Evicted;
        }
        if mine.as_ref().is_none_or(|mine| mine.gone.is_some()) {
            self.clients.remove(&client);
            let live = self.clients.iter().filter(|(_, e)| e.gone.is_none());
            let mut live: Vec<_> = live
                .map(|(c, e)| (e.released.is_none(), e.latest, *c))
                .collect();
            live.sort();
            if live.len() >= self.clients_max {
                self.bury(live[0].2, false);
            }
        }
        let epoch = match &mine {
            Some(mine) if mine.stamp == stamp => mine.epoch,
            _ => op,
        };
        let entry = NaiveClient {
            epoch,
            history: [history, vec![epoch]].concat(),
            stamp,
            user,
            watermark: mine.as_ref().map_or(0, |mine| mine.watermark),
            watermark_checksum: mine.as_ref().map_or(0, |mine| mine.watermark_checksum),
            replies: mine.map_or(Vec::new(), |mine| mine.replies),
            latest: op,
            released: None,
            gone: None,
        };
        self.clients.insert(client, entry);
        Told::Epoch(epoch)
    }

    fn request(
        &mut self,
        client: u128,
        epoch: u64,
        number: u64,
        checksum: u128,
        kind: EntryKind,
    ) -> Told {
        let (op, ring) = (self.op, self.ring);
        let entry = self.clients.get_mut(&client).filter(|e| e.gone.is_none());
        let Some(entry) = entry else {
            return Told::Evicted;
        };
        if epoch < entry.epoch {
            return Told::Fenced;
        }
        if epoch > entry.epoch {
            return Told::Violation;
        }
        let clash = |kept: u128| kept != 0 && checksum != 0 && kept != checksum;
        let is_send = kind == EntryKind::SendMessages;
        if is_send && checksum == 0 {
            entry.latest = op;
            return Told::ExecutedAt(op);
        }
        if number > entry.watermark {
            entry.latest = op;
            entry.watermark = number;
            entry.watermark_checksum = checksum;
            entry.replies.push((number, checksum, kind, op));
            if entry.replies.len() > ring {
                entry.replies.remove(0);
            }
            return Told::ExecutedAt(op);
        }
        for (n, kept, of, at) in &entry.replies {
            if *n == number {
                return match clash(*kept) || *of != kind {
                    true => Told::Violation,
                    false => Told::ExecutedAt(*at),
                };
            }
        }
        match number == entry.watermark && clash(entry.watermark_checksum) {
            true => Told::Violation,
            false => Told::Earlier(entry.watermark),
        }
    }

    fn logout(&mut self, client: u128, epoch: u64) -> Told {
        match self.clients.get(&client).filter(|e| e.gone.is_none()) {
            None => Told::LoggedOut,
            Some(entry) if epoch < entry.epoch => Told::Fenced,
            Some(entry) if epoch > entry.epoch => Told::Violation,
            Some(_) => {
                self.bury(client, true);
                Told::LoggedOut
            }
        }
    }

    fn release(&mut self, client: u128, epoch: u64, time: u64) -> Told {
        let entry = self.clients.get_mut(&client).filter(|e| e.gone.is_none());
        if let Some(entry) = entry
            && entry.epoch == epoch
            && entry.released.is_none()
        {
            entry.released = Some(time);
        }
        Told::Nothing
    }
}

fn told(said: Said, kind: EntryKind) -> Told {
    match (said, kind) {
        (Said::Nothing, _) => Told::Nothing,
        (Said::Evicted(EvictionReason::NoSession), _) => Told::Evicted,
        (Said::Evicted(EvictionReason::SessionTooLow), _) => Told::Fenced,
        (Said::Evicted(EvictionReason::SessionError), _) => Told::NotOwner,
        (Said::Done(header, _), EntryKind::Register) => Told::Epoch(header.op),
        (Said::Done(..), EntryKind::Logout) => Told::LoggedOut,
        (Said::Refused(header, 59), _) => Told::Earlier(header.context as u64),
        (Said::Refused(header, 3), _) if header.op == 0 => Told::Violation,
        (Said::Done(header, _) | Said::Refused(header, _), _) => Told::ExecutedAt(header.op),
        (said, kind) => panic!("{kind:?} was told {said:?}"),
    }
}

/// Both definitions, and what is known of the run.
struct Pair {
    log: Log,
    naive: Naive,
    /// Where sends go.
    uid: PartitionUid,
    /// Epochs granted, by client.
    granted: BTreeMap<u128, Vec<u64>>,
}

impl Pair {
    fn new(tombstones_max: u32) -> Pair {
        let mut log = Log::with(ClusterConstants {
            clients_max: 2,
            tombstones_max,
            reply_ring: 2,
            release_grace_us: 6,
            ..ClusterConstants::default()
        });
        log.add_user("bob", None);
        let (op, now) = (log.op(), Timestamp(log.time));
        let stream = log.machine.catalog.insert_stream("s", op, now).id;
        let uid = PartitionUid::new(op, 0);
        let slot = PartitionSlot {
            uid,
            created_at: now,
        };
        let topic = NewTopic {
            name: "t",
            op,
            now,
            options: TopicOptions::default(),
            partitions: [slot].into(),
        };
        let place = PartitionPlace {
            stream,
            topic: log.machine.catalog.insert_topic(stream, topic),
            partition: PartitionId(0),
            segment_size: TopicOptions::default().segment_size,
        };
        log.machine
            .partitions
            .insert(uid, PartitionState::empty(place, op));
        let naive = Naive {
            clients_max: 2,
            tombstones_max: tombstones_max as usize,
            ring: 2,
            grace: 6,
            ..Naive::default()
        };
        Pair {
            log,
            naive,
            uid,
            granted: BTreeMap::new(),
        }
    }

    fn epoch(&self, client: u128, which: Which) -> u64 {
        let granted = self.granted.get(&client).map_or(&[][..], |granted| granted);
        match which {
            Which::Granted(back) if !granted.is_empty() => {
                granted[granted.len().saturating_sub(1 + back as usize)]
            }
            Which::Granted(_) => 1,
            Which::Invented(ahead) => self.log.op().0 + ahead,
        }
    }

    fn session(&self, client: u128, which: Which) -> Session {
        Session {
            client,
            epoch: self.epoch(client, which),
        }
    }

    fn step(&mut self, event: &Event) -> (Told, Told) {
        let op = self.log.op().0 + 1;
        let passes = match event {
            Event::Pass { us } => *us,
            _ => 0,
        };
        let time = self.log.time + passes + 1;
        self.naive.begin_op(op, time);
        match *event {
            Event::Register {
                client,
                user,
                stamp,
                remembers,
            } => {
                let named = remembers.map(|which| self.epoch(client, which));
                let context = named.map_or(String::new(), |e| format!("pawl/1 epoch={e}"));
                let context = context.as_bytes();
                let said = self.log.register(client, UserId(user), stamp, context);
                let expected = self.naive.register(client, user, stamp, named);
                if let Told::Epoch(epoch) = expected {
                    self.granted.entry(client).or_default().push(epoch);
                }
                (told(said, EntryKind::Register), expected)
            }
            Event::Request {
                client,
                which,
                number,
                checksum,
                kind,
            } => {
                let session = self.session(client, which);
                let mut header = EntryHeader {
                    request_checksum: checksum,
                    ..session.header(kind, number)
                };
                if kind == EntryKind::SendMessages {
                    header.arguments = send_to(self.uid);
                }
                let body = DeleteStream {
                    stream: Identifier::Numeric(9),
                };
                let said = self.log.apply(header, &body.encode());
                let naive = &mut self.naive;
                let expected = naive.request(client, session.epoch, number, checksum, kind);
                (told(said, kind), expected)
            }
            Event::Logout { client, which } => {
                let session = self.session(client, which);
                let said = self.log.logout(session);
                (
                    told(said, EntryKind::Logout),
                    self.naive.logout(client, session.epoch),
                )
            }
            Event::Release { client, which } => {
                let session = self.session(client, which);
                let said = self.log.release(session);
                let expected = self.naive.release(client, session.epoch, time);
                (told(said, EntryKind::Release), expected)
            }
            Event::Pass { us } => {
                self.log.pass(us);
                (Told::Nothing, Told::Nothing)
            }
        }
    }
}

fn send_to(uid: PartitionUid) -> [u8; 64] {
    let arguments = SendMessagesArguments {
        partition_uid: uid,
        message_count: 1,
        stream: StreamId(0),
        topic: TopicId(0),
        partition: PartitionId(0),
        batch_length: 305,
        batch_position: 26,
        origin_timestamp: Timestamp(0),
    };
    arguments.encode()
}

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![
        8 => Just(Which::Granted(0)),
        2 => (1..3u8).prop_map(Which::Granted),
        1 => (0..3u64).prop_map(Which::Invented),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let client = 1..5u128;
    let kind = prop_oneof![
        Just(EntryKind::DeleteStream),
        Just(EntryKind::PurgeStream),
        Just(EntryKind::SendMessages),
    ];
    let register = (
        client.clone(),
        prop_oneof![4 => Just(0u32), 1 => Just(1)],
        1..4u128,
        prop_oneof![5 => Just(None), 1 => which().prop_map(Some)],
    );
    let request = (client.clone(), which(), 1..7u64, 0..3u128, kind);
    prop_oneof![
        4 => register.prop_map(|(client, user, stamp, remembers)| Event::Register {
            client, user, stamp, remembers,
        }),
        8 => request.prop_map(|(client, which, number, checksum, kind)| Event::Request {
            client, which, number, checksum, kind,
        }),
        1 => (client.clone(), which()).prop_map(|(client, which)| Event::Logout { client, which }),
        2 => (client, which()).prop_map(|(client, which)| Event::Release { client, which }),
        1 => (1..10u64).prop_map(|us| Event::Pass { us }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    // spec SES-1, SES-3, SES-5, SES-8, SES-12 to SES-14, SES-17 to SES-29, DED-1 to DED-11, DED-19
    #[test]
    fn table_and_naive_reference_agree(events in prop::collection::vec(event(), 0..120)) {
        let mut pair = Pair::new(2);
        for event in &events {
            let (found, expected) = pair.step(event);
            prop_assert_eq!(found, expected, "{:?}", event);
        }
    }

    // Each number of a client's life is executed at most once, and epochs rise (law 3, law 4).
    #[test]
    fn numbers_are_executed_at_most_once(events in prop::collection::vec(event(), 0..120)) {
        let mut pair = Pair::new(64);
        let mut executed = BTreeSet::new();
        let mut owners = BTreeMap::new();
        for event in &events {
            let op = pair.log.op().0 + 1;
            let (found, expected) = pair.step(event);
            prop_assert_eq!(found, expected, "{:?}", event);
            match (event, found) {
                (Event::Register { client, user, .. }, Told::Epoch(epoch)) => {
                    let granted = &pair.granted[client];
                    let earlier = &granted[..granted.len() - 1];
                    let highest = earlier.iter().max().copied().unwrap_or(0);
                    prop_assert!(epoch == op || epoch == highest, "epochs never fall");
                    // Another owner after a logout: a new life of the client (spec SES-25).
                    if owners.insert(*client, *user) != Some(*user) {
                        executed.retain(|(of, _)| of != client);
                    }
                }
                (Event::Request { client, number, checksum, kind, .. }, Told::ExecutedAt(at)) => {
                    let numbered = *kind != EntryKind::SendMessages || *checksum != 0;
                    if numbered && at == op {
                        prop_assert!(executed.insert((*client, *number)), "executed twice");
                    }
                    if numbered && at != op {
                        prop_assert!(executed.contains(&(*client, *number)));
                    }
                }
                _ => (),
            }
        }
    }
}

// What the two properties above rest on: the random logs reach every answer.
#[test]
fn random_logs_reach_every_answer() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let strategy = prop::collection::vec(event(), 120);
    let mut reached = BTreeSet::new();
    for _ in 0..40 {
        let events = strategy
            .new_tree(&mut runner)
            .expect("vectors can be made")
            .current();
        let mut pair = Pair::new(2);
        for event in &events {
            let now = pair.log.op().0 + 1;
            let (found, _) = pair.step(event);
            reached.insert(match found {
                Told::Epoch(epoch) if epoch == now => "new epoch",
                Told::Epoch(_) => "same epoch",
                Told::Evicted => "evicted",
                Told::Fenced => "fenced",
                Told::NotOwner => "not the owner",
                Told::Violation => "violation",
                Told::ExecutedAt(at) if at == now => "executed",
                Told::ExecutedAt(_) => "repeat",
                Told::Earlier(_) => "applied earlier",
                Told::LoggedOut => "logged out",
                Told::Nothing => "nothing",
            });
        }
    }
    assert_eq!(reached.len(), 11, "{reached:?}");
}
