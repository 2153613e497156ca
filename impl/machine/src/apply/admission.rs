//! Admission: what is certain already, and needs no op. Judges nothing, changes nothing.
//!
//! An answer here must be one that no op in the pipeline can make wrong: an older epoch stays
//! older, a kept reply stays true, an owner stays the owner until a logout of its own. Everything
//! else is proposed.

use pawl_vsr::machine::Judgement;
use pawl_wire::entry::{EntryHeader, EntryKind};
use pawl_wire::entry_arguments::RegisterArguments;
use pawl_wire::headers::EvictionReason;
use pawl_wire::ids::Epoch;

use super::request::refusal;
use super::session::eviction_of;
use crate::clients::Verdict;
use crate::machine::PawlMachine;

impl PawlMachine {
    // spec SES-6
    pub(super) fn admission(&self, header: &EntryHeader) -> Judgement {
        match header.entry_kind() {
            EntryKind::Genesis | EntryKind::Noop | EntryKind::Release => Judgement::Propose,
            EntryKind::Register => self.admission_register(header),
            EntryKind::Logout => self.admission_logout(header),
            _ => self.admission_request(header),
        }
    }

    /// A sign-in binds through the log only; what is certain is that it does not bind.
    // spec SES-2, SES-8
    fn admission_register(&self, header: &EntryHeader) -> Judgement {
        let Ok(arguments) = RegisterArguments::decode(&header.arguments) else {
            return Judgement::Propose;
        };
        // Without credentials in force the refusal is another one, which apply gives.
        let owner = self.admitted_owner(header, &arguments);
        match owner {
            Some(owner) if self.is_foreign(header.client(), owner) => {
                Judgement::Answer(eviction_of(header, EvictionReason::SessionError))
            }
            _ => Judgement::Propose,
        }
    }

    fn admission_logout(&self, header: &EntryHeader) -> Judgement {
        let entry = self.clients.get(header.client());
        match entry {
            Some(entry) if entry.epoch() > header.epoch() => {
                Judgement::Answer(eviction_of(header, EvictionReason::SessionTooLow))
            }
            _ => Judgement::Propose,
        }
    }

    fn admission_request(&self, header: &EntryHeader) -> Judgement {
        let verdict = self.clients.verdict(header);
        let certain = match verdict {
            Verdict::Evicted => self.stays_evicted(header),
            // Whoever names an epoch of the future may name one that is in the pipeline.
            Verdict::EpochFromNowhere => false,
            Verdict::New | Verdict::Unnumbered => false,
            Verdict::Fenced
            | Verdict::Repeat(_)
            | Verdict::NumberReused
            | Verdict::AppliedEarlier(_) => true,
        };
        match refusal(verdict, header, self.applied) {
            Some(answer) if certain => Judgement::Answer(answer),
            _ => Judgement::Propose,
        }
    }

    /// Whether no Register in the pipeline can make a request of an absent client good: one under
    /// another stamp gets an epoch of its own op, one under the tombstone's stamp gets its epoch
    /// back.
    fn stays_evicted(&self, header: &EntryHeader) -> bool {
        let fence = self.clients.tombstones().get(header.client());
        let revivable = fence.map(|fence| fence.epoch);
        let of_the_past = header.epoch() <= Epoch(self.applied.0);
        of_the_past && revivable != Some(header.epoch())
    }
}
