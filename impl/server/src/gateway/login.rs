//! Signing in and out.
//!
//! A login is judged in this order (spec ANS-18): the prefix, the protocol version, the body as one
//! with a password, the body as one with a token. The password is checked on the hashing threads
//! against the published catalog; apply compares the credential version (spec SES-11), so that a
//! password that was changed meanwhile does not bind.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use pawl_vsr::Outcome;
use pawl_wire::commands::session::{LoginBody, LoginRegister, accepts_version};
use pawl_wire::commands::users::UserStatus;
use pawl_wire::entry::{EntryHeader, EntryKind};
use pawl_wire::entry_arguments::RegisterArguments;
use pawl_wire::error_code::ErrorCode;
use pawl_wire::headers::{EvictionReason, RequestHeader};
use pawl_wire::ids::{ClientId, Epoch, UserId};
use pawl_wire::reply::Answer as ReplyAnswer;

use super::answer::Answered;
use super::connection::Connection;
use super::frames::Request;
use crate::clients::Binding;
use crate::shard::InDoubt;

/// A user whose password matched, as of this version of its credentials.
struct Verified {
    user: UserId,
    credential_version: u64,
}

/// What became of the password form of a login.
enum PasswordForm {
    Matches(Verified),
    Wrong,
    /// Too many checks wait.
    Busy,
}

impl Connection {
    /// Signs in.
    pub(super) async fn login(&mut self, request: &Request) -> Answered {
        let malformed = Answered::Evicted(EvictionReason::MalformedLogin);
        if !request.whole {
            return malformed;
        }
        let Ok(body) = LoginBody::decode(&request.body) else {
            return malformed;
        };
        if !accepts_version(body.version.protocol_version) {
            return Answered::Evicted(EvictionReason::IncompatibleProtocol);
        }
        if let Some(login) = &body.password {
            match self.check_password(login).await {
                PasswordForm::Matches(verified) => {
                    return self.register(request, login.context.0, verified).await;
                }
                PasswordForm::Busy => return self.login_not_accepted(&request.header),
                PasswordForm::Wrong => {}
            }
        }
        // Tokens cannot be created yet, so that none is valid. A body that fits both forms is one
        // with an empty password.
        match (body.password.is_some(), body.token.is_some()) {
            (true, _) => Answered::Evicted(EvictionReason::InvalidCredentials),
            (false, true) => Answered::Evicted(EvictionReason::InvalidToken),
            (false, false) => malformed,
        }
    }

    /// An unknown or inactive user costs the same time as a wrong password, and gets its answer.
    async fn check_password(&self, login: &LoginRegister<'_>) -> PasswordForm {
        let node = &self.shard.node;
        let user = {
            let catalog = node.catalog.load();
            catalog.user_by_name(login.username.as_str()).cloned()
        };
        let user = user.filter(|user| user.status == UserStatus::Active);
        let hash = user.as_ref().map(|user| user.password_hash.0.clone());
        match node.hashers.verify(login.password.0, hash).await {
            Err(_) => PasswordForm::Busy,
            Ok(false) => PasswordForm::Wrong,
            Ok(true) => match user {
                Some(user) => PasswordForm::Matches(Verified {
                    user: user.id,
                    credential_version: user.credential_version,
                }),
                None => PasswordForm::Wrong,
            },
        }
    }

    /// Commits a Register and binds the epoch that its own answer names (spec SES-2).
    async fn register(&mut self, request: &Request, context: &str, user: Verified) -> Answered {
        let node = self.shard.node.clone();
        // Neither password nor token may stand in the log (spec SES-30).
        let body = Bytes::copy_from_slice(context.as_bytes());
        let mut header = EntryHeader::new(EntryKind::Register);
        header.client = request.header.client;
        header.request_checksum = node.keyed_checksum(request.header.request_checksum);
        header.user = user.user.0;
        header.arguments = RegisterArguments {
            credential_version: user.credential_version,
            stamp: node.stamp(self.registration.number(), self.attempt),
        }
        .encode();
        let outcome = self.shard.propose(header, body).await;
        let frame = match outcome {
            Ok(Outcome::Reply { frame, .. } | Outcome::Answer { frame, .. }) => frame,
            Ok(Outcome::Refused(refusal)) => return self.refused(&request.header, &refusal),
            Err(InDoubt) => return self.in_doubt(&request.header),
        };
        // The client has its answer: the next Register is another one (spec SES-4).
        self.attempt = self.attempt.wrapping_add(1);
        let frame = with_client_checksum(frame, &request.header);
        if let Ok(ReplyAnswer::Payload(header, _)) = ReplyAnswer::decode(&frame) {
            let client = ClientId(request.header.client);
            let binding = Binding::new(client, Epoch(header.op), user.user);
            self.bind(binding).await;
        }
        Answered::machine(frame)
    }

    fn login_not_accepted(&self, header: &RequestHeader) -> Answered {
        let code = ErrorCode::TransientNotAccepted;
        Answered::Refused(self.reply_to(header).refused(code), code)
    }

    /// Signs out (spec SES-23).
    pub(super) async fn logout(
        &mut self,
        request: &RequestHeader,
        bound: &Arc<Binding>,
    ) -> Answered {
        let mut header = EntryHeader::new(EntryKind::Logout);
        header.client = bound.client.0;
        header.epoch = bound.epoch.0;
        header.user = bound.user.0;
        header.request = request.request;
        header.request_checksum = request.request_checksum;
        match self.shard.propose(header, Bytes::new()).await {
            Ok(Outcome::Reply { frame, .. } | Outcome::Answer { frame, .. }) => {
                if matches!(ReplyAnswer::decode(&frame), Ok(ReplyAnswer::Payload(..))) {
                    self.unbind();
                }
                Answered::machine(frame)
            }
            Ok(Outcome::Refused(refusal)) => self.refused(request, &refusal),
            Err(InDoubt) => self.in_doubt(request),
        }
    }
}

/// The machine keeps a keyed checksum of what holds a secret, and leaves the client's own one out
/// of the reply.
pub(super) fn with_client_checksum(frame: Bytes, request: &RequestHeader) -> Bytes {
    let Some(head) = frame.first_chunk::<256>() else {
        return frame;
    };
    if head[60] != pawl_wire::headers::COMMAND_REPLY {
        return frame;
    }
    let mut patched = BytesMut::from(&frame[..]);
    patched[128..144].copy_from_slice(&request.request_checksum.to_le_bytes());
    patched.freeze()
}
