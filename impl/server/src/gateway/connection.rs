//! One connection: reads a request, has it answered, writes the answer, and again.
//!
//! Requests of a connection are handled strictly one after the other (spec ANS-2), and each gets
//! exactly one answer (spec ANS-1). When the connection ends, its session is released (spec
//! SES-26).

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use pawl_vsr::{Outcome, Refusal};
use pawl_wire::entry::{EntryHeader, EntryKind};
use pawl_wire::headers::EvictionReason;
use tokio::net::TcpStream;

use super::answer::{Answered, write_answer};
use super::frames::{End, FrameReader};
use crate::clients::{Binding, Registration};
use crate::shard::{InDoubt, Shard};

/// How often a release that was not accepted is tried again, and how long is waited in between.
const RELEASE_ATTEMPTS: u32 = 100;
const RELEASE_PAUSE: Duration = Duration::from_millis(50);

/// One connection.
#[derive(Debug)]
pub struct Connection {
    pub(super) shard: Rc<Shard>,
    pub(super) registration: Registration,
    pub(super) binding: Option<Arc<Binding>>,
    /// Number of the sign-in attempt that the next Register belongs to (spec SES-4).
    pub(super) attempt: u32,
}

impl Connection {
    /// Serves a connection until it ends.
    pub async fn serve(shard: Rc<Shard>, mut stream: TcpStream, address: SocketAddr) {
        let registration = shard.node.clients.connect(address);
        tracing::debug!(connection = registration.number(), %address, "connected");
        let mut connection = Connection {
            shard: shard.clone(),
            registration,
            binding: None,
            attempt: 1,
        };
        let end = connection.run(&mut stream).await;
        shard.node.metrics.closed(end.reason());
        tracing::debug!(
            connection = connection.registration.number(),
            reason = %end,
            "connection ended"
        );
        drop(stream);
        connection.end_session().await;
    }

    async fn run(&mut self, stream: &mut TcpStream) -> End {
        if let Err(error) = stream.set_nodelay(true) {
            return End::Io(error);
        }
        let mut reader = FrameReader::default();
        let shard = self.shard.clone();
        loop {
            let signed_in = self.binding.is_some();
            let request = match reader.next(stream, &shard.read, signed_in).await {
                Ok(request) => request,
                Err(end) => return end,
            };
            let _busy = shard.begin_request();
            let (command, answered) = self.answer(&request).await;
            shard.meter.count(command, &answered);
            if let Answered::Evicted(reason) = answered {
                shard.node.metrics.refused(eviction_name(reason));
                self.end_session().await;
            }
            if let Err(error) = write_answer(stream, answered, &request.header).await {
                return End::Io(error);
            }
        }
    }

    /// Binds a session; the one before it is released.
    pub(super) async fn bind(&mut self, binding: Arc<Binding>) {
        let former = self.binding.replace(binding.clone());
        self.registration.bind(binding.clone());
        // The same client's former epoch is fenced by the new one: there is nothing to release.
        if let Some(former) = former.filter(|former| former.client != binding.client) {
            release(&self.shard, &former).await;
        }
    }

    /// The session left by a committed logout; nothing is to be released.
    pub(super) fn unbind(&mut self) {
        self.binding = None;
        self.registration.unbind();
    }

    /// The connection speaks for nobody any more: its session is released, if it has one.
    async fn end_session(&mut self) {
        let Some(binding) = self.binding.take() else {
            return;
        };
        self.registration.unbind();
        if binding.ended().is_none() {
            release(&self.shard, &binding).await;
        }
    }
}

/// Proposes the release of a session until it is in the log (spec SES-26, SES-27). A stop of the
/// node leaves it out: the client's entry stays as it is.
async fn release(shard: &Shard, binding: &Binding) {
    let mut header = EntryHeader::new(EntryKind::Release);
    header.client = binding.client.0;
    header.epoch = binding.epoch.0;
    header.user = binding.user.0;
    for _ in 0..RELEASE_ATTEMPTS {
        match shard.propose(header, bytes::Bytes::new()).await {
            Ok(Outcome::Refused(Refusal::NotAccepted(_))) if !shard.is_stopping() => {
                tokio::time::sleep(RELEASE_PAUSE).await;
            }
            // One whose outcome is in doubt is in the log, or the node has other worries.
            Ok(Outcome::Reply { .. } | Outcome::Answer { .. } | Outcome::Refused(_)) => return,
            Err(InDoubt) => return,
        }
    }
    tracing::warn!(client = %binding.client, "the session of a closed connection was not released");
}

/// A word for the metrics.
fn eviction_name(reason: EvictionReason) -> &'static str {
    match reason {
        EvictionReason::NoSession => "evicted_no_session",
        EvictionReason::SessionTooLow => "evicted_fenced",
        EvictionReason::InvalidCredentials => "evicted_invalid_credentials",
        EvictionReason::InvalidToken => "evicted_invalid_token",
        EvictionReason::UserInactive => "evicted_user_inactive",
        EvictionReason::SessionError => "evicted_not_the_owner",
        EvictionReason::IncompatibleProtocol => "evicted_incompatible_protocol",
        EvictionReason::MalformedLogin => "evicted_malformed_login",
        EvictionReason::InvalidRequestOperation => "evicted_internal_operation",
        EvictionReason::ReleaseTooLow
        | EvictionReason::ReleaseTooHigh
        | EvictionReason::InvalidRequestBody
        | EvictionReason::InvalidRequestBodySize
        | EvictionReason::SessionReleaseMismatch
        | EvictionReason::StaleClient => "evicted",
    }
}
