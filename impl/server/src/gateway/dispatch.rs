//! What becomes of a request: the order of judgement, and who answers.
//!
//! | the request | not signed in | signed in |
//! | --- | --- | --- |
//! | its checksum does not match | status 4 | status 4 |
//! | its header breaks a rule | status 3 | status 3 |
//! | sign-in | served | served |
//! | sign-in of an older dialect | Eviction 15 | Eviction 15 |
//! | ping | served | served |
//! | logout | success | served |
//! | another read, known or not | status 40 | served, or its refusal |
//! | a replicated operation | Eviction 1 | served, or its refusal |
//! | an internal operation | Eviction 1 | Eviction 4 |
//!
//! spec ANS-14, ANS-16, ANS-19, ANS-22

use std::sync::Arc;

use pawl_wire::command::{CommandCode, Target};
use pawl_wire::error_code::ErrorCode;
use pawl_wire::headers::{EvictionReason, RequestHeader};
use pawl_wire::operation::Operation;
use pawl_wire::reply::Reply;

use super::answer::Answered;
use super::connection::Connection;
use super::frames::Request;
use crate::clients::Binding;
use crate::metrics::CommandName;

impl Connection {
    /// Answers a request, and says under which name it is counted.
    pub(super) async fn answer(&mut self, request: &Request) -> (CommandName, Answered) {
        let target = request.header.target();
        let name = command_name(&target);
        if !request.covered {
            return (name, self.denied(&request.header, ErrorCode::InvalidFormat));
        }
        let answered = match target {
            Err(error) => self.denied(&request.header, error.code()),
            Ok(Target::Register) => self.login(request).await,
            Ok(Target::OldLogin(_)) => Answered::Evicted(EvictionReason::MalformedLogin),
            Ok(Target::Command(CommandCode::Ping)) => self.empty(&request.header),
            Ok(target) => match self.standing(&request.header) {
                Ok(binding) => self.answer_signed_in(request, target, &binding).await,
                Err(Standing::SignedOut) => self.answer_signed_out(&request.header, target),
                Err(Standing::Ended(reason)) => Answered::Evicted(reason),
            },
        };
        (name, answered)
    }

    fn answer_signed_out(&self, header: &RequestHeader, target: Target) -> Answered {
        match target {
            Target::Command(CommandCode::Logout) => self.empty(header),
            _ if header.operation == Operation::NonReplicated as u8 => {
                self.denied(header, ErrorCode::Unauthenticated)
            }
            _ => Answered::Evicted(EvictionReason::NoSession),
        }
    }

    async fn answer_signed_in(
        &mut self,
        request: &Request,
        target: Target,
        binding: &Arc<Binding>,
    ) -> Answered {
        let header = &request.header;
        let command = match target {
            Target::Command(command) => command,
            Target::Internal(_) => {
                return Answered::Evicted(EvictionReason::InvalidRequestOperation);
            }
            Target::UnknownCode(_)
            | Target::ReplicatedCode(_)
            | Target::Register
            | Target::OldLogin(_) => {
                let code = target.refusal().unwrap_or(ErrorCode::InvalidCommand);
                return self.denied(header, code);
            }
        };
        if header.operation != Operation::NonReplicated as u8
            && let Err(refusal) = self.speaks_for_its_session(header, binding)
        {
            return refusal;
        }
        match serving(command) {
            Serving::System => self.system(request, command, binding).await,
            Serving::Catalog => self.catalog_read(request, command, binding).await,
            Serving::Metadata => self.metadata_write(request, command, binding).await,
            Serving::Send => self.send(request, binding).await,
            Serving::Poll => self.poll(request, binding).await,
            Serving::Groups => self.group_read(request, command, binding).await,
            Serving::Offsets => self.offsets(request, command, binding).await,
            Serving::Logout => self.logout(header, binding).await,
            Serving::NotYet => self.not_served(header),
        }
    }

    /// A header is a claim; the connection speaks for the session bound to it (spec SES-15).
    fn speaks_for_its_session(
        &self,
        header: &RequestHeader,
        binding: &Binding,
    ) -> Result<(), Answered> {
        if header.client != binding.client.0 {
            return Err(Answered::Evicted(EvictionReason::NoSession));
        }
        match header.session.cmp(&binding.epoch.0) {
            std::cmp::Ordering::Less => Err(Answered::Evicted(EvictionReason::SessionTooLow)),
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => Err(self.denied(header, ErrorCode::InvalidCommand)),
        }
    }

    /// The session under which a request is judged.
    fn standing(&self, header: &RequestHeader) -> Result<Arc<Binding>, Standing> {
        let Some(binding) = &self.binding else {
            return Err(Standing::SignedOut);
        };
        // A logout of a session that has ended is answered by apply, as success or fenced.
        match binding.ended() {
            Some(reason) if header.operation != Operation::Logout as u8 => {
                Err(Standing::Ended(reason))
            }
            _ => Ok(binding.clone()),
        }
    }

    /// What this release does not carry out yet, in the channel that the command has (spec ANS-15).
    fn not_served(&self, header: &RequestHeader) -> Answered {
        let code = ErrorCode::FeatureUnavailable;
        Answered::Refused(self.reply_to(header).refused(code), code)
    }

    /// A reply that echoes the request, with the last op that this node has applied.
    pub(super) fn reply_to(&self, header: &RequestHeader) -> Reply {
        Reply::to_request(header, self.shard.node.index.applied_op().0)
    }

    /// Success without a payload.
    pub(super) fn empty(&self, header: &RequestHeader) -> Answered {
        Answered::Frame(self.reply_to(header).empty())
    }

    /// A refusal as a status.
    pub(super) fn denied(&self, header: &RequestHeader, code: ErrorCode) -> Answered {
        let mut reply = self.reply_to(header);
        if reply.client == 0 {
            reply.client = 1; // Clients take 0 for damage.
        }
        Answered::Refused(reply.denied(code), code)
    }
}

/// Why a connection has no session.
enum Standing {
    SignedOut,
    Ended(EvictionReason),
}

/// Which part of the gateway serves a command.
enum Serving {
    System,
    Catalog,
    Metadata,
    Send,
    Poll,
    Offsets,
    Groups,
    Logout,
    NotYet,
}

fn serving(command: CommandCode) -> Serving {
    use CommandCode::*;
    match command {
        Ping | GetStats | GetClusterMetadata | DescribeOptions | GetMe | GetClient | GetClients => {
            Serving::System
        }
        // On a node alone the routes lead nowhere else, and a parent session is not needed.
        AttachConsumerSession | GetPollRoute | GetOffsetRoute => Serving::System,
        GetStream | GetStreams | GetTopic | GetTopics => Serving::Catalog,
        CreateStream | DeleteStream | UpdateStream | PurgeStream | CreateTopic | DeleteTopic
        | UpdateTopic | PurgeTopic | CreatePartitions | DeletePartitions | CreateGroup
        | DeleteGroup | JoinGroup | LeaveGroup => Serving::Metadata,
        SendMessages => Serving::Send,
        PollMessages | PollOnPrimary => Serving::Poll,
        GetOffset | StoreOffset | DeleteOffset => Serving::Offsets,
        GetGroup | GetGroups | SyncGroup => Serving::Groups,
        Logout => Serving::Logout,
        LoginRegister | LoginRegisterWithToken => Serving::NotYet,
        GetSnapshot | FlushUnsaved | GetUser | GetUsers | CreateUser | DeleteUser | UpdateUser
        | UpdatePermissions | ChangePassword | GetTokens | CreateToken | DeleteToken
        | DeleteSegments => Serving::NotYet,
    }
}

fn command_name(target: &Result<Target, pawl_wire::headers::HeaderError>) -> CommandName {
    match target {
        Ok(Target::Command(command) | Target::ReplicatedCode(command)) => {
            CommandName::Command(*command)
        }
        Ok(Target::Register) => CommandName::Login,
        Ok(Target::OldLogin(_) | Target::UnknownCode(_) | Target::Internal(_)) | Err(_) => {
            CommandName::Unknown
        }
    }
}
