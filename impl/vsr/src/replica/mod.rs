//! The replica: one copy of the log and of the machine.
//!
//! Invariants, checked by `Replica::invariants` after every step of a debug build:
//!
//! 1. `log_view <= view`, and both are those of the latest vote that was handed to the log.
//! 2. `applied <= commit <= op_head`, and `applied <= durable_op`: what is applied is decided and
//!    held durably here.
//! 3. A normal replica's latest vote is durable, and its log view is its view.
//! 4. Nobody is told of anything that is not durable: while the latest vote is not, the replica is
//!    restarting or between views, and prepares, acknowledges and commits nothing.
//! 5. Only an op that is not applied carries a ticket, at the normal primary that prepared it;
//!    `tickets` counts them.
//! 6. Records are numbered by one counter: `durable <= lsn_last`, and no held entry has a number
//!    above `lsn_last`.
//! 7. At most one checkpoint is being written; one more may wait, and it is the latest due. Both
//!    are at applied ops.
//! 8. A stopped replica holds no ticket.
//! 9. A normal primary's newest op is at most `pipeline_ops_max` above what it has applied, or
//!    inherited.
//! 10. A replica alone keeps no applied entry in memory: nobody will ask for one.

mod checkpoints;
mod durable;
mod request;
mod timers;

use std::collections::VecDeque;

use bytes::Bytes;
use pawl_wire::entry::{EntryHeader, EntryId, EntryKind};
use pawl_wire::ids::{Lsn, Op, Timestamp, View};

use crate::config::{Config, ConfigError, REPLICAS_MAX};
use crate::effect::{Effect, Effects, Fatal, Record};
use crate::ignored::{IgnoreReason, Ignored};
use crate::input::{Input, LogSpace, Ticket};
use crate::log::{HeldEntry, Log, Position};
use crate::machine::Machine;
use crate::outcome::{NotAccepted, Outcome, UnknownOutcome};
use crate::recovery::{Recovered, RestartError};
use crate::vote::{DurableVote, VoteRecord};

use self::checkpoints::Checkpoints;
use self::timers::Jitter;

/// What a replica is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// Started, and its vote of this start is not yet durable. It takes part in nothing.
    Restarting,
    /// It takes part in its view.
    Normal,
    /// It has left a view and the next one has not started for it.
    ViewChange,
    /// It has stopped for good.
    Stopped,
}

/// One copy of the log and of the machine. See the invariants at the top of this file.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Replica<M> {
    config: Config,
    machine: M,
    status: Status,
    view: View,
    log_view: View,
    log: Log,
    /// The highest op known to be decided.
    commit: Op,
    applied: Op,
    /// The newest op when this view started: a primary is caught up when it has applied it.
    inherited: Op,
    /// The last record handed to the log.
    lsn_last: Lsn,
    /// Every record up to this one is durable.
    durable: Lsn,
    /// Up to which op each replica holds the log of this view durably, as this primary was told.
    acknowledged: [u64; REPLICAS_MAX as usize],
    votes: Votes,
    checkpoints: Checkpoints,
    tickets: u32,
    space: LogSpace,
    jitter: Jitter,
    ignored: Ignored,
}

/// The votes of a replica: the latest durable one, and those on their way to the disk.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Votes {
    durable: Option<DurableVote>,
    pending: VecDeque<(Lsn, VoteRecord)>,
}

impl Votes {
    /// Moves to `durable` what the durable position covers. Returns whether the latest vote has
    /// just become durable.
    fn advance(&mut self, durable: Lsn) -> bool {
        let mut advanced = false;
        while self.pending.front().is_some_and(|(lsn, _)| *lsn <= durable) {
            let (lsn, vote) = self.pending.pop_front().expect("the front was looked at");
            self.durable = DurableVote::new(lsn, vote, durable);
            advanced = true;
        }
        advanced && self.pending.is_empty()
    }

    /// The latest vote that was handed to the log, durable or not.
    fn latest(&self) -> &VoteRecord {
        match (self.pending.back(), &self.durable) {
            (Some((_, vote)), _) => vote,
            (None, Some(durable)) => durable.vote(),
            (None, None) => unreachable!("a replica starts by handing out a vote"),
        }
    }
}

impl<M: Machine> Replica<M> {
    /// Begins a new log, whose op 1 is Genesis with this body (spec CON-15). `machine` is the state
    /// before op 1. Only the primary of view 0 prepares op 1; the others start with an empty log.
    pub fn format(
        config: Config,
        machine: M,
        genesis: Bytes,
        now: Timestamp,
        effects: &mut Effects<M::Effect>,
    ) -> Result<Replica<M>, ConfigError> {
        config.check()?;
        let mut replica = Replica::new(config, machine, Position::default(), Lsn(0));
        replica.append_vote(effects);
        if replica.is_primary() {
            let mut header = EntryHeader::new(EntryKind::Genesis);
            header.set_body(&genesis);
            header.cluster = replica.config.cluster;
            replica.append_prepared(header, genesis, now, None, effects);
            replica.inherited = replica.log.op_head();
        }
        replica.check_invariants();
        Ok(replica)
    }

    /// Starts again from what the store found. `machine` is the state before op 1; a checkpoint
    /// replaces it.
    ///
    /// The replica is normal, and alone has applied all that its log holds, when the vote that this
    /// hands to the log is durable (spec CON-21, CON-22).
    pub fn restart(
        config: Config,
        machine: M,
        recovered: Recovered,
        effects: &mut Effects<M::Effect>,
    ) -> Result<Replica<M>, RestartError> {
        let replayed = crate::replay::replay(&config, machine, recovered)?;
        let base = *replayed.log.base();
        let mut replica = Replica::new(config, replayed.machine, base, replayed.lsn_last);
        replica.log = replayed.log;
        replica.view = replayed.vote.view;
        replica.log_view = replayed.vote.log_view;
        replica.commit = replica.commit.max(replayed.vote.commit);
        if replica.config.replicas == 1 {
            replica.view = replica.view.next();
            replica.log_view = replica.view;
            // Alone, everything that is held is decided once it is durable (spec CON-22).
            replica.commit = replica.log.op_head();
        }
        replica.inherited = replica.log.op_head();
        replica.append_vote(effects);
        replica.check_invariants();
        Ok(replica)
    }

    fn new(config: Config, machine: M, base: Position, lsn_last: Lsn) -> Replica<M> {
        Replica {
            machine,
            status: Status::Restarting,
            view: View(0),
            log_view: View(0),
            log: Log::above(base),
            commit: base.op,
            applied: base.op,
            inherited: base.op,
            lsn_last,
            durable: Lsn(0),
            acknowledged: [0; REPLICAS_MAX as usize],
            votes: Votes::default(),
            checkpoints: Checkpoints::after(base.op),
            tickets: 0,
            space: LogSpace::Ample,
            jitter: Jitter::new(config.seed),
            ignored: Ignored::default(),
            config,
        }
    }

    /// Takes one fact and appends orders. Total: no input makes it panic.
    pub fn step(&mut self, input: Input, effects: &mut Effects<M::Effect>) {
        match input {
            Input::Request(request) => self.on_request(request, effects),
            _ if self.status == Status::Stopped => self.ignore(IgnoreReason::Stopped),
            // spec CON-37: what several replicas need beyond this border is ignored by name.
            Input::Peer { .. } => self.ignore(IgnoreReason::NotSupported),
            Input::Timer(_) => self.ignore(IgnoreReason::TimerNotArmed),
            Input::Durable(lsn) => self.on_durable(lsn, effects),
            Input::Loaded { .. } => self.ignore(IgnoreReason::NotAsked),
            Input::SnapshotWritten { op } => self.on_snapshot_written(op, effects),
            Input::SnapshotFailed { op } => self.on_snapshot_failed(op, effects),
            Input::LogSpace(space) => self.space = space,
            Input::DiskFailed => {
                let durable = self.durable;
                self.stop(Fatal::DiskFailed { durable }, effects);
            }
        }
        self.check_invariants();
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What it is about.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The view it is in, or on its way to.
    pub fn view(&self) -> View {
        self.view
    }

    /// The last view in which it was normal.
    pub fn log_view(&self) -> View {
        self.log_view
    }

    /// The newest op it holds.
    pub fn op_head(&self) -> Op {
        self.log.op_head()
    }

    /// Identity of the entry at `op_head`, which fixes the whole log.
    pub fn head(&self) -> EntryId {
        self.log.head().id
    }

    /// Every op up to this one is held and durable here.
    pub fn durable_op(&self) -> Op {
        self.log.durable_op()
    }

    /// The highest op known to be decided.
    pub fn commit(&self) -> Op {
        self.commit
    }

    /// The last op that the machine has applied.
    pub fn applied(&self) -> Op {
        self.applied
    }

    /// The last record that was handed to the log.
    pub fn lsn_last(&self) -> Lsn {
        self.lsn_last
    }

    /// The machine, after exactly the ops 1 to `applied`.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// Whether this replica is the primary of its view.
    pub fn is_primary(&self) -> bool {
        self.view.primary(self.config.replicas) == self.config.replica
    }

    /// Requests that have an op and no answer yet.
    pub fn requests_in_flight(&self) -> u32 {
        self.tickets
    }

    /// How often each kind of input was ignored.
    pub fn ignored(&self) -> &Ignored {
        &self.ignored
    }

    /// Whether the replica may give ops and terminal answers, and serve reads of the machine:
    /// normal, primary, and with all it inherited applied (spec CON-13, CON-28). A refusal says why
    /// not.
    pub fn caught_up(&self) -> Result<(), NotAccepted> {
        match self.status {
            Status::Restarting => return Err(NotAccepted::Restarting),
            Status::ViewChange => return Err(NotAccepted::ViewChange { view: self.view }),
            Status::Stopped => return Err(NotAccepted::Stopped),
            Status::Normal => {}
        }
        if !self.is_primary() {
            return Err(NotAccepted::NotPrimary {
                view: self.view,
                primary: self.view.primary(self.config.replicas),
            });
        }
        if self.applied < self.inherited {
            return Err(NotAccepted::NotCaughtUp {
                applied: self.applied,
                inherited: self.inherited,
            });
        }
        Ok(())
    }

    fn ignore(&mut self, reason: IgnoreReason) {
        self.ignored.add(reason);
    }

    /// Hands a record to the log under the next number.
    fn append(&mut self, record: Record, effects: &mut Effects<M::Effect>) -> Lsn {
        self.lsn_last = self.lsn_last.next();
        effects.push(Effect::Append {
            lsn: self.lsn_last,
            record,
        });
        self.lsn_last
    }

    /// Hands a vote of the current view, log view and log to the log.
    fn append_vote(&mut self, effects: &mut Effects<M::Effect>) {
        let vote = VoteRecord {
            cluster: self.config.cluster,
            replica: self.config.replica,
            view: self.view,
            log_view: self.log_view,
            commit: self.commit,
            op_head: self.log.op_head(),
            head: self.log.head().id,
            suffix: Vec::new(),
        };
        assert_eq!(
            vote.check(),
            Ok(()),
            "a vote of our own keeps its invariants"
        );
        let lsn = self.append(Record::View(vote.clone()), effects);
        self.votes.pending.push_back((lsn, vote));
    }

    /// Gives the next op to a proposal and hands the entry to the log.
    fn append_prepared(
        &mut self,
        mut header: EntryHeader,
        body: Bytes,
        now: Timestamp,
        ticket: Option<Ticket>,
        effects: &mut Effects<M::Effect>,
    ) {
        let head = self.log.head();
        header.op = head.op.next().0;
        header.view = self.view.0;
        header.parent = head.id.0;
        header.replica = self.config.replica.0;
        // spec CON-12: log time never goes back, whatever the clock says.
        header.timestamp = now.max(head.timestamp).0;
        header.seal();
        let record = Record::Entry {
            header,
            body: body.clone(),
        };
        let lsn = self.append(record, effects);
        self.tickets += u32::from(ticket.is_some());
        self.log.push(HeldEntry {
            header,
            body,
            lsn,
            ticket,
        });
    }

    /// Answers everything that waits with "unknown outcome" and stops for good (spec CON-38).
    fn stop(&mut self, fatal: Fatal, effects: &mut Effects<M::Effect>) {
        let mut op = self.applied;
        while op < self.log.op_head() {
            op = op.next();
            if let Some(ticket) = self.log.take_ticket(op) {
                self.tickets -= 1;
                let refusal = UnknownOutcome::LogFailed { op };
                let outcome = Outcome::Refused(refusal.into());
                effects.push(Effect::Reply { ticket, outcome });
            }
        }
        self.status = Status::Stopped;
        effects.push(Effect::Fatal(fatal));
    }

    fn check_invariants(&self) {
        if cfg!(debug_assertions) {
            self.invariants();
        }
    }

    /// Checks the invariants at the top of this file; panics with the number of a broken one.
    pub fn invariants(&self) {
        self.log.invariants(self.durable);
        let vote = self.votes.latest();
        assert!(self.log_view <= self.view, "replica 1");
        assert_eq!(
            (vote.view, vote.log_view),
            (self.view, self.log_view),
            "replica 1"
        );
        assert!(self.applied <= self.commit, "replica 2");
        assert!(self.commit <= self.log.op_head(), "replica 2");
        assert!(self.applied <= self.log.durable_op(), "replica 2");
        assert!(self.log.base().op <= self.applied, "replica 2");
        if self.config.replicas == 1 {
            assert_eq!(self.log.base().op, self.applied, "replica 10");
        }
        if self.status == Status::Normal {
            assert!(self.votes.pending.is_empty(), "replica 3");
            assert_eq!(self.log_view, self.view, "replica 3");
        }
        if !self.votes.pending.is_empty() {
            assert_ne!(self.status, Status::Normal, "replica 4");
        }
        let mut tickets = 0;
        for (op, slot) in self.log.from(Op(0)) {
            if let Some(held) = slot.held() {
                assert!(held.lsn <= self.lsn_last, "replica 6");
                if held.ticket.is_some() {
                    assert!(op > self.applied, "replica 5");
                    assert!(self.is_primary(), "replica 5");
                    tickets += 1;
                }
            }
        }
        assert_eq!(tickets, self.tickets, "replica 5");
        assert!(self.durable <= self.lsn_last, "replica 6");
        self.checkpoints.invariants(self.applied);
        if self.status == Status::Stopped {
            assert_eq!(self.tickets, 0, "replica 8");
        }
        if self.status == Status::Normal && self.is_primary() {
            let end = self.config.pipeline_end(self.applied).max(self.inherited);
            assert!(self.log.op_head() <= end, "replica 9");
        }
    }
}
