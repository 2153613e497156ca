//! Requests: the filter before an op is given, and the op.
//!
//! Per request: one seal of 240 bytes, two copies of the header (window, record), none of the body.

use pawl_wire::entry::{ENTRY_VERSION, EntryHeader, EntryKind};

use crate::effect::{Effect, Effects};
use crate::input::{LogSpace, Request};
use crate::machine::{Judgement, Machine};
use crate::outcome::{NotAccepted, Outcome, Refusal, Terminal};

use super::Replica;

impl<M: Machine> Replica<M> {
    /// Admits a request and prepares it, or answers it at once.
    pub(super) fn on_request(&mut self, request: Request, effects: &mut Effects<M::Effect>) {
        let ticket = request.ticket;
        let proposal = self.proposal(&request.header);
        let outcome = match self.admit(&proposal, request.body.len()) {
            Ok(Judgement::Propose) => {
                let Request { body, now, .. } = request;
                return self.append_prepared(proposal, body, now, Some(ticket), effects);
            }
            Ok(Judgement::Answer(frame)) => Outcome::Answer {
                applied: self.applied,
                frame,
            },
            Err(refusal) => Outcome::Refused(refusal),
        };
        effects.push(Effect::Reply { ticket, outcome });
    }

    /// The gateway's part of the header; all that the log decides is zero.
    fn proposal(&self, header: &EntryHeader) -> EntryHeader {
        EntryHeader {
            checksum: 0,
            parent: 0,
            cluster: self.config.cluster,
            op: 0,
            timestamp: 0,
            view: 0,
            replica: 0,
            version: ENTRY_VERSION,
            reserved_tail_kind: [0; 4],
            reserved: [0; 40],
            ..*header
        }
    }

    /// The filter (law 6). What is certain without the state comes first, so that it takes no place
    /// in the pipeline and has the same answer in every status (spec ANS-13); a cached reply is
    /// given even when the pipeline is full.
    fn admit(&self, proposal: &EntryHeader, body_bytes: usize) -> Result<Judgement, Refusal> {
        let kind = self.accepts_form(proposal, body_bytes as u64)?;
        self.caught_up()?;
        if self.config.replicas == 1 {
            // A cluster of one is its own quorum: nobody else can have decided anything newer.
            // With more replicas the log decides every request, since a primary that was deposed
            // without noticing would answer from an old state (spec CON-29).
            if let Judgement::Answer(frame) = self.machine.judge(proposal) {
                return Ok(Judgement::Answer(frame));
            }
        }
        if self.space == LogSpace::Low && !admitted_when_space_is_low(kind) {
            return Err(NotAccepted::LogSpaceLow.into());
        }
        self.accepts_pipeline(proposal)?;
        Ok(Judgement::Propose)
    }

    /// What does not depend on any state.
    fn accepts_form(&self, proposal: &EntryHeader, body: u64) -> Result<EntryKind, Terminal> {
        let kind = match EntryKind::from_u8(proposal.kind) {
            // spec CON-15: Genesis is op 1 and no other. A no-op is the primary's own.
            None | Some(EntryKind::Genesis | EntryKind::Noop) => {
                return Err(Terminal::Kind {
                    kind: proposal.kind,
                });
            }
            Some(kind) => kind,
        };
        if body > u64::from(self.config.body_bytes_max) {
            return Err(Terminal::BodyBytes {
                bytes: body,
                bytes_max: self.config.body_bytes_max,
            });
        }
        if body != u64::from(proposal.body_bytes) {
            return Err(Terminal::BodyLength {
                header: proposal.body_bytes,
                body,
            });
        }
        Ok(kind)
    }

    /// Whether another op fits (spec CON-14).
    fn accepts_pipeline(&self, proposal: &EntryHeader) -> Result<(), NotAccepted> {
        let ops = self.log.op_head().0 - self.applied.0;
        let ops_max = self.config.pipeline_ops_max;
        if ops >= u64::from(ops_max) {
            return Err(NotAccepted::PipelineOps {
                ops: ops as u32,
                ops_max,
            });
        }
        let bytes = self.log.body_bytes();
        let bytes_max = self.config.pipeline_bytes_max;
        // A body above the limit travels alone rather than never.
        if ops > 0 && bytes + u64::from(proposal.body_bytes) > bytes_max {
            return Err(NotAccepted::PipelineBytes { bytes, bytes_max });
        }
        Ok(())
    }
}

/// Whether a request frees space, or is needed to ask for it (spec ANS-28, REC-32).
fn admitted_when_space_is_low(kind: EntryKind) -> bool {
    use EntryKind::*;
    match kind {
        Register | Logout | Release => true,
        DeleteStream | PurgeStream | DeleteTopic | PurgeTopic | DeletePartitions
        | DeleteSegments | DeleteConsumerGroup | DeleteUser | DeleteToken | DeleteOffset
        | LeaveConsumerGroup => true,
        CreateStream | UpdateStream | CreateTopic | UpdateTopic | CreatePartitions
        | CreateConsumerGroup | CreateUser | UpdateUser | ChangePassword | UpdatePermissions
        | CreateToken | JoinConsumerGroup | SendMessages | StoreOffset => false,
        Genesis | Noop => false,
    }
}
