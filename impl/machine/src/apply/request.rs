//! Requests with an epoch: judged by the client table, executed at most once.

use bytes::Bytes;
use pawl_wire::entry::{EntryHeader, EntryKind};
use pawl_wire::error_code::ErrorCode;
use pawl_wire::headers::EvictionReason;
use pawl_wire::ids::{Op, RequestNumber};
use pawl_wire::reply::Reply;

use super::session::eviction_of;
use crate::catalog::rights::Action;
use crate::check::holds_secret;
use crate::clients::verdict::is_partition_write;
use crate::clients::{CachedReply, Verdict};
use crate::effect::Effect;
use crate::machine::PawlMachine;

/// A request that is being executed.
pub(super) struct Execution<'a> {
    pub header: &'a EntryHeader,
    pub body: &'a [u8],
    pub reply: Reply,
    pub effects: &'a mut Vec<Effect>,
}

/// The whole reply frame of a success, or the code of a refusal. A refusal has changed nothing.
pub(super) type Executed = Result<Bytes, ErrorCode>;

impl PawlMachine {
    /// Judges a request and executes it if it is new.
    pub(super) fn request(
        &mut self,
        header: &EntryHeader,
        body: &[u8],
        effects: &mut Vec<Effect>,
    ) -> Bytes {
        let verdict = self.clients.verdict(header);
        let numbered = match verdict {
            Verdict::New => true,
            Verdict::Unnumbered => false,
            verdict => {
                let refusal = refusal(verdict, header, self.applied);
                return refusal.expect("what is not executed has an answer");
            }
        };
        let execution = Execution {
            header,
            body,
            reply: reply_to(header),
            effects,
        };
        let frame = self.execute(execution);
        // A refusal by the state is an outcome too (spec DED-2).
        let kept = numbered.then(|| CachedReply {
            request: header.request(),
            checksum: header.request_checksum,
            kind: header.entry_kind(),
            frame: frame.clone(),
        });
        let ring_max = self.constants.reply_ring;
        self.clients
            .executed(header.client(), header.op(), kept, ring_max);
        frame
    }

    fn execute(&mut self, execution: Execution<'_>) -> Bytes {
        let (kind, reply) = (execution.header.entry_kind(), execution.reply);
        let executed = self.execute_kind(kind, execution);
        match executed {
            Ok(frame) => frame,
            // spec ANS-8
            Err(code) if is_partition_write(kind) => reply.denied(code),
            Err(code) => reply.rejected(code),
        }
    }

    fn execute_kind(&mut self, kind: EntryKind, execution: Execution<'_>) -> Executed {
        match kind {
            EntryKind::SendMessages => self.send_messages(execution),
            EntryKind::StoreOffset => self.store_offset(execution),
            EntryKind::DeleteOffset => self.delete_offset(execution),
            EntryKind::CreateStream => self.create_stream(execution),
            EntryKind::UpdateStream => self.update_stream(execution),
            EntryKind::DeleteStream => self.delete_stream(execution),
            EntryKind::PurgeStream => self.purge_stream(execution),
            EntryKind::CreateTopic => self.create_topic(execution),
            EntryKind::UpdateTopic => self.update_topic(execution),
            EntryKind::DeleteTopic => self.delete_topic(execution),
            EntryKind::PurgeTopic => self.purge_topic(execution),
            EntryKind::CreatePartitions => self.create_partitions(execution),
            EntryKind::DeletePartitions => self.delete_partitions(execution),
            EntryKind::DeleteSegments => self.delete_segments(execution),
            EntryKind::CreateConsumerGroup => self.create_group(execution),
            EntryKind::DeleteConsumerGroup => self.delete_group(execution),
            EntryKind::JoinConsumerGroup => self.join_group(execution),
            EntryKind::LeaveConsumerGroup => self.leave_group(execution),
            // spec ANS-15
            EntryKind::CreateUser
            | EntryKind::UpdateUser
            | EntryKind::DeleteUser
            | EntryKind::ChangePassword
            | EntryKind::UpdatePermissions
            | EntryKind::CreateToken
            | EntryKind::DeleteToken => Err(ErrorCode::FeatureUnavailable),
            EntryKind::Register
            | EntryKind::Logout
            | EntryKind::Genesis
            | EntryKind::Noop
            | EntryKind::Release => unreachable!("apply hands these to other functions"),
        }
    }

    /// Whether the owner of the session, whatever the header says of the user, may do this at this
    /// op.
    // spec SES-10, SES-31
    pub(super) fn authorise(&self, header: &EntryHeader, action: Action) -> Result<(), ErrorCode> {
        let entry = self.clients.get(header.client());
        let owner = entry
            .expect("a request that is executed has an entry")
            .owner;
        let user = self.catalog.user_by_id(owner.user);
        match user {
            Some(user) if user.identity() == owner && user.may(action) => Ok(()),
            _ => Err(ErrorCode::Unauthorized),
        }
    }
}

/// The answer to a request that is not executed; `None` for one that is. `applied` is an op that is
/// committed and applied here.
pub(super) fn refusal(verdict: Verdict<'_>, header: &EntryHeader, applied: Op) -> Option<Bytes> {
    Some(match verdict {
        Verdict::New | Verdict::Unnumbered => return None,
        Verdict::Evicted => eviction_of(header, EvictionReason::NoSession),
        Verdict::Fenced => eviction_of(header, EvictionReason::SessionTooLow),
        Verdict::Repeat(frame) => frame.clone(),
        Verdict::EpochFromNowhere | Verdict::NumberReused => {
            denial_of(header, applied).denied(ErrorCode::InvalidCommand)
        }
        Verdict::AppliedEarlier(watermark) => applied_earlier(header, applied, watermark),
    })
}

/// Code 59, with the watermark in the header's context.
// spec DED-7
fn applied_earlier(header: &EntryHeader, applied: Op, watermark: RequestNumber) -> Bytes {
    let reply = Reply {
        context: watermark.0 as u128,
        ..denial_of(header, applied)
    };
    match is_partition_write(header.entry_kind()) {
        true => reply.denied(ErrorCode::RequestAlreadyApplied),
        false => reply.refused(ErrorCode::RequestAlreadyApplied),
    }
}

/// A reply that no op stands behind.
// spec ANS-10
fn denial_of(header: &EntryHeader, applied: Op) -> Reply {
    Reply {
        op: 0,
        commit: applied.0,
        timestamp: 0,
        view: 0,
        replica: 0,
        ..reply_to(header)
    }
}

/// The reply to an entry. The checksum of a request with secrets is left to the gateway, since the
/// log keeps a keyed hash of it.
// spec ANS-9, DED-12
pub(super) fn reply_to(header: &EntryHeader) -> Reply {
    let reply = Reply::to_entry(header).expect("the kinds of clients are operations");
    match holds_secret(header.entry_kind()) {
        true => Reply {
            request_checksum: 0,
            ..reply
        },
        false => reply,
    }
}
