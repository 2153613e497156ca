//! From durable to decided to applied.

use pawl_wire::entry::ENTRY_HEADER_BYTES;
use pawl_wire::ids::{Lsn, Op};

use crate::effect::{Effect, Effects, Fatal};
use crate::ignored::IgnoreReason;
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::quorum;

use super::{Replica, Status};

impl<M: Machine> Replica<M> {
    /// Every record up to `lsn` is durable.
    pub(super) fn on_durable(&mut self, lsn: Lsn, effects: &mut Effects<M::Effect>) {
        if lsn > self.lsn_last {
            // spec CON-36
            let fatal = Fatal::DurableAhead {
                reported: lsn,
                last: self.lsn_last,
            };
            return self.stop(fatal, effects);
        }
        if lsn <= self.durable {
            return self.ignore(IgnoreReason::DurableNotNew);
        }
        self.durable = lsn;
        self.log.advance_durable(lsn);
        if self.votes.advance(lsn) {
            self.on_vote_durable();
        }
        if self.status == Status::Normal {
            self.commit_quorum_prefix();
            self.apply_committed(effects);
        }
    }

    /// The latest vote is durable: the replica is what the vote says.
    fn on_vote_durable(&mut self) {
        assert_eq!(
            self.log_view, self.view,
            "a replica alone votes for the view that it starts"
        );
        self.status = Status::Normal;
        self.inherited = self.log.op_head();
    }

    /// Moves the commit of a primary to what a majority holds durably (spec CON-3, CON-7).
    fn commit_quorum_prefix(&mut self) {
        if !self.is_primary() {
            return;
        }
        let own = usize::from(self.config.replica.0);
        self.acknowledged[own] = self.log.durable_op().0;
        let decided = Op(quorum::decided(&self.acknowledged, self.config.replicas));
        self.commit = self.commit.max(decided);
    }

    /// Applies what is decided and durable here, in order (spec CON-10).
    ///
    /// A replica whose own disk lags behind a majority waits for it: then a snapshot never covers
    /// an op that its own log could lose (spec REC-14).
    fn apply_committed(&mut self, effects: &mut Effects<M::Effect>) {
        let end = self.commit.min(self.log.durable_op());
        while self.applied < end {
            self.apply_next(effects);
        }
        self.log.count_above(self.applied);
        self.log.release_through(self.applied);
    }

    fn apply_next(&mut self, effects: &mut Effects<M::Effect>) {
        let op = self.applied.next();
        let slot = self
            .log
            .get(op)
            .expect("the window holds every op above applied");
        let held = slot.held().expect("a durable op is held");
        let mut ordered = std::mem::take(&mut effects.applied);
        let frame = self.machine.apply(&held.header, &held.body, &mut ordered);
        let bytes = (ENTRY_HEADER_BYTES + held.header.body_bytes as usize) as u64;
        for effect in ordered.drain(..) {
            effects.push(Effect::Apply { op, effect });
        }
        effects.applied = ordered;
        self.applied = op;
        if let Some(ticket) = self.log.take_ticket(op) {
            self.tickets -= 1;
            let outcome = Outcome::Reply { op, frame };
            effects.push(Effect::Reply { ticket, outcome });
        }
        self.count_for_checkpoint(bytes, effects);
    }
}
