//! A node in memory: a replica with a disk that loses what was not flushed.

use bytes::Bytes;
use pawl_vsr::{
    CheckpointHeader, Config, Effect, Effects, Fatal, Input, Message, Outcome, Record, Recovered,
    Replica, Request, RestartError, Ticket, Timer,
};
use pawl_wire::entry::{EntryHeader, EntryKind};
use pawl_wire::ids::{Lsn, Op, ReplicaIndex, Timestamp};

use super::toy::{Counted, Toy};

/// A replica, its disk, and what it ordered.
#[derive(Clone)]
pub struct Node {
    pub config: Config,
    pub replica: Option<Replica<Toy>>,
    /// Records written and not reclaimed.
    pub records: Vec<(Lsn, Record)>,
    /// The last record that is flushed.
    pub flushed: Lsn,
    /// The checkpoint that the anchor names.
    pub anchor: Option<Bytes>,
    /// The checkpoint that is being written.
    pub writing: Option<(Op, Bytes)>,
    pub answers: Vec<(Ticket, Outcome)>,
    pub applied: Vec<(Op, Counted)>,
    pub sent: Vec<(ReplicaIndex, Message)>,
    pub timers: Vec<(Timer, u32)>,
    pub loads: Vec<Op>,
    pub fatal: Option<Fatal>,
    /// Every effect of the last step, in words.
    pub words: Vec<String>,
}

/// A request of client `client` with number `number`.
pub fn request(ticket: u64, client: u128, number: u64, body: &[u8], now: u64) -> Request {
    let mut header = EntryHeader::new(EntryKind::SendMessages);
    header.client = client;
    header.request = number;
    header.set_body(body);
    Request {
        ticket: Ticket(ticket),
        header,
        body: Bytes::copy_from_slice(body),
        now: Timestamp(now),
    }
}

/// A cluster's settings with small intervals, as replica `index` sees them.
pub fn config(replicas: u8, index: u8) -> Config {
    Config {
        replicas,
        replica: ReplicaIndex(index),
        checkpoint_ops_interval: 8,
        checkpoint_log_bytes_interval: 8 << 10,
        pipeline_ops_max: 6,
        pipeline_bytes_max: 4 << 10,
        body_bytes_max: 8 << 10,
        seed: index.into(),
        ..Config::solo(0xc1)
    }
}

impl Node {
    /// A node with an empty disk, formatted.
    pub fn format(config: Config) -> Node {
        let mut node = Node {
            config: config.clone(),
            replica: None,
            records: Vec::new(),
            flushed: Lsn(0),
            anchor: None,
            writing: None,
            answers: Vec::new(),
            applied: Vec::new(),
            sent: Vec::new(),
            timers: Vec::new(),
            loads: Vec::new(),
            fatal: None,
            words: Vec::new(),
        };
        let mut effects = Effects::new();
        let genesis = Bytes::from_static(b"genesis");
        let replica = Replica::format(config, Toy::default(), genesis, Timestamp(50), &mut effects);
        node.replica = Some(replica.expect("the configuration can work"));
        node.carry_out(effects);
        node
    }

    pub fn replica(&self) -> &Replica<Toy> {
        self.replica.as_ref().expect("the node runs")
    }

    /// One step, with its effects carried out.
    pub fn step(&mut self, input: Input) {
        let mut effects = Effects::new();
        let replica = self.replica.as_mut().expect("the node runs");
        replica.step(input, &mut effects);
        self.carry_out(effects);
    }

    /// Flushes what is written and reports it.
    pub fn flush(&mut self) {
        self.flush_to(self.replica().lsn_last());
    }

    /// Flushes up to `lsn` and reports it.
    pub fn flush_to(&mut self, lsn: Lsn) {
        self.flushed = lsn;
        self.step(Input::Durable(lsn));
    }

    /// The checkpoint that is being written is durable.
    pub fn finish_snapshot(&mut self) {
        if let Some((op, bytes)) = self.writing.take() {
            self.anchor = Some(bytes);
            self.step(Input::SnapshotWritten { op });
        }
    }

    /// The process ends; of what was not flushed, the records up to `kept` happen to survive.
    pub fn crash(&mut self, kept: Lsn) {
        assert!(
            kept >= self.flushed,
            "a crash takes nothing that was flushed"
        );
        self.records.retain(|(lsn, _)| *lsn <= kept);
        self.replica = None;
        self.writing = None;
        self.timers.clear();
        self.loads.clear();
    }

    /// What a store would find.
    pub fn recovered(&self) -> Recovered {
        let checkpoint = self.anchor.as_ref().map(|bytes| {
            CheckpointHeader::split(bytes).expect("the anchor names a whole checkpoint")
        });
        let covered = checkpoint
            .as_ref()
            .map_or(Lsn(0), |(header, _)| Lsn(header.replay_from.0 - 1));
        Recovered {
            checkpoint,
            records: self.records.clone(),
            lsn_last: self.records.last().map_or(covered, |(lsn, _)| *lsn),
        }
    }

    /// Starts from what is on disk.
    pub fn restart(&mut self) -> Result<(), RestartError> {
        let mut effects = Effects::new();
        let recovered = self.recovered();
        let replica =
            Replica::restart(self.config.clone(), Toy::default(), recovered, &mut effects)?;
        self.replica = Some(replica);
        self.carry_out(effects);
        Ok(())
    }

    fn carry_out(&mut self, mut effects: Effects<Counted>) {
        self.words = effects.iter().map(ToString::to_string).collect();
        for effect in effects.drain() {
            match effect {
                Effect::Append { lsn, record } => {
                    let last = self.records.last().map(|(last, _)| last.next());
                    assert!(last.is_none_or(|next| next == lsn), "records have no hole");
                    self.records.push((lsn, record));
                }
                Effect::Send { to, message } => self.sent.push((to, message)),
                Effect::Arm { timer, ticks } => {
                    self.timers.retain(|(armed, _)| *armed != timer);
                    self.timers.push((timer, ticks));
                }
                Effect::Disarm(timer) => self.timers.retain(|(armed, _)| *armed != timer),
                Effect::Load { op } => self.loads.push(op),
                Effect::Apply { op, effect } => self.applied.push((op, effect)),
                Effect::Reply { ticket, outcome } => self.answers.push((ticket, outcome)),
                Effect::Checkpoint { header, snapshot } => {
                    assert!(
                        self.writing.is_none(),
                        "one checkpoint is written at a time"
                    );
                    self.writing = Some((header.op, Bytes::from(header.join(&snapshot))));
                }
                Effect::Reclaim { replay_from, .. } => {
                    self.records.retain(|(lsn, _)| *lsn >= replay_from);
                }
                Effect::Fatal(fatal) => self.fatal = Some(fatal),
            }
        }
    }
}
