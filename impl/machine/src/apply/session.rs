//! Register, Logout, Release, and the end of a grace.

use bytes::Bytes;
use pawl_wire::commands::session::{LoginReply, PROTOCOL_VERSION};
use pawl_wire::entry::EntryHeader;
use pawl_wire::entry_arguments::RegisterArguments;
use pawl_wire::error_code::ErrorCode;
use pawl_wire::headers::EvictionReason;
use pawl_wire::ids::ClientId;
use pawl_wire::operation::Operation;
use pawl_wire::primitives::Name;
use pawl_wire::reply::{Reply, eviction};

use crate::catalog::UserIdentity;
use crate::clients::table::Leave;
use crate::clients::{Entry, Registration, Tombstone};
use crate::context::LoginContext;
use crate::effect::Effect;
use crate::machine::PawlMachine;

/// What a login is told about the server. A constant of the dialect and not of the release: replies
/// are a function of the log, and replicas of two releases must make the same.
const SERVER_VERSION: &str = "0.11.0";

/// What is known of a Register's client besides its credentials.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    /// An entry of this owner, made by the same Register.
    SameRegister,
    /// An entry of this owner.
    Owned,
    /// A tombstone of this owner; holds whether the same Register made it.
    Tombstone { same_register: Option<Registration> },
    /// Nothing that binds this owner, and nothing that anybody else owns.
    Nobody,
    /// A tombstone that another user left by a logout (spec SES-25).
    LoggedOut,
    /// Another user's.
    Foreign,
}

impl PawlMachine {
    /// A sign-in whose password was found right when it was proposed.
    pub(super) fn register(
        &mut self,
        header: &EntryHeader,
        context: &[u8],
        effects: &mut Vec<Effect>,
    ) -> Bytes {
        let client = header.client();
        let Ok(arguments) = RegisterArguments::decode(&header.arguments) else {
            return eviction_of(header, EvictionReason::MalformedLogin);
        };
        let Some(owner) = self.admitted_owner(header, &arguments) else {
            return eviction_of(header, EvictionReason::InvalidCredentials);
        };
        let fresh = Registration::of(header, arguments.stamp);
        let known = self.known(client, owner, &arguments, header);
        let earlier = LoginContext::parse(context).epoch;
        let forgotten = earlier.is_some_and(|e| !self.clients.remembers(client, owner, e));
        match known {
            Known::Foreign => return eviction_of(header, EvictionReason::SessionError),
            // The client asks for a history that is gone (spec SES-22).
            _ if forgotten => return eviction_of(header, EvictionReason::NoSession),
            Known::SameRegister => {
                let registration = self.entry(client).registration;
                self.clients.rebind(client, registration, header.op());
            }
            Known::Owned => {
                let epoch = self.entry(client).epoch();
                self.clients.rebind(client, fresh, header.op());
                self.end_memberships(client, effects);
                effects.push(Effect::ClientFenced { client, epoch });
            }
            Known::Tombstone { same_register } => {
                let registration = same_register.unwrap_or(fresh);
                let fence = self.clients.take_fence(client);
                self.admit(header, registration, owner, fence, effects);
            }
            Known::LoggedOut => {
                // What another user left behind is not carried over (spec SES-25).
                self.clients.take_fence(client);
                self.admit(header, fresh, owner, None, effects);
            }
            Known::Nobody => {
                self.admit(header, fresh, owner, None, effects);
            }
        }
        register_reply(header, self.entry(client))
    }

    /// Who signs in: the user whose credentials were judged, if they are still in force.
    // spec SES-11
    pub(super) fn admitted_owner(
        &self,
        header: &EntryHeader,
        arguments: &RegisterArguments,
    ) -> Option<UserIdentity> {
        let user = self.catalog.user_by_id(header.user())?;
        let admitted = user.admits(arguments.credential_version);
        admitted.then(|| user.identity())
    }

    /// Whether another user owns the client, so that no Register of `owner` binds it.
    // spec SES-8, SES-25
    pub(super) fn is_foreign(&self, client: ClientId, owner: UserIdentity) -> bool {
        if let Some(entry) = self.clients.get(client) {
            return entry.owner != owner;
        }
        let fence = self.clients.tombstones().get(client);
        fence.is_some_and(|fence| fence.owner != owner && !fence.by_logout)
    }

    fn known(
        &self,
        client: ClientId,
        owner: UserIdentity,
        arguments: &RegisterArguments,
        header: &EntryHeader,
    ) -> Known {
        if self.is_foreign(client, owner) {
            return Known::Foreign;
        }
        if let Some(entry) = self.clients.get(client) {
            return match entry.registration.stamp == arguments.stamp {
                true => Known::SameRegister,
                false => Known::Owned,
            };
        }
        match self.clients.tombstones().get(client) {
            Some(fence) if fence.owner == owner => {
                let same_register = (fence.stamp == arguments.stamp).then(|| Registration {
                    epoch: fence.epoch,
                    ..Registration::of(header, arguments.stamp)
                });
                Known::Tombstone { same_register }
            }
            Some(_) => Known::LoggedOut,
            None => Known::Nobody,
        }
    }

    fn entry(&self, client: ClientId) -> &Entry {
        let entry = self.clients.get(client);
        entry.expect("a granted Register leaves an entry")
    }

    /// A new entry, in a place that is made for it.
    fn admit(
        &mut self,
        header: &EntryHeader,
        registration: Registration,
        owner: UserIdentity,
        fence: Option<Tombstone>,
        effects: &mut Vec<Effect>,
    ) {
        self.make_place(effects);
        let (client, op) = (header.client(), header.op());
        self.clients.admit(client, registration, owner, op, fence);
    }

    /// Evicts until one more entry fits.
    // spec SES-17, SES-19
    fn make_place(&mut self, effects: &mut Vec<Effect>) {
        while self.clients.len() >= self.constants.clients_max as usize {
            let client = self.clients.victim().expect("a full table has a victim");
            self.clients
                .leave(client, Leave::Evicted, self.applied, &self.constants);
            self.end_memberships(client, effects);
            effects.push(Effect::ClientEvicted { client });
        }
    }

    /// The client says that it is done.
    // spec SES-23, SES-24
    pub(super) fn logout(&mut self, header: &EntryHeader, effects: &mut Vec<Effect>) -> Bytes {
        let client = header.client();
        let reply = super::request::reply_to(header);
        let Some(epoch) = self.clients.get(client).map(Entry::epoch) else {
            return reply.empty();
        };
        if epoch > header.epoch() {
            return eviction_of(header, EvictionReason::SessionTooLow);
        }
        if epoch < header.epoch() {
            return reply.denied(ErrorCode::InvalidCommand);
        }
        self.clients
            .leave(client, Leave::Logout, header.op(), &self.constants);
        self.end_memberships(client, effects);
        reply.empty()
    }

    /// The client's connection ended without a logout.
    // spec SES-26, SES-27
    pub(super) fn release(&mut self, header: &EntryHeader, effects: &mut Vec<Effect>) -> Bytes {
        let client = header.client();
        let entry = self.clients.get(client);
        if entry.is_some_and(|e| e.epoch() == header.epoch() && e.released_at.is_none()) {
            self.clients.release(client, header.timestamp());
            self.end_memberships(client, effects);
        }
        Bytes::new()
    }

    /// Released entries whose grace is over at this op's time become tombstones, before the op is
    /// judged.
    // spec SES-28
    pub(super) fn end_graces(&mut self, effects: &mut Vec<Effect>) {
        let grace = self.constants.release_grace_us;
        while let Some(client) = self.clients.grace_over(self.log_time, grace) {
            self.clients
                .leave(client, Leave::GraceOver, self.applied, &self.constants);
            self.end_memberships(client, effects);
        }
    }
}

/// The end of the session of a request's client.
pub(super) fn eviction_of(header: &EntryHeader, reason: EvictionReason) -> Bytes {
    // The door refuses client 0 (spec SES-16); should one get here, it has no session either.
    eviction(header.client.max(1), reason)
}

/// The reply to a granted Register: a function of the registration, so that a repeat gets the same
/// bytes.
// spec SES-3
fn register_reply(header: &EntryHeader, entry: &Entry) -> Bytes {
    let registration = entry.registration;
    let epoch = registration.epoch.0;
    let reply = Reply {
        operation: Operation::Register,
        client: header.client,
        request: header.request,
        // What the log keeps is a keyed hash (spec DED-12); the gateway writes the client's own.
        request_checksum: 0,
        context: 0,
        op: epoch,
        commit: epoch,
        timestamp: registration.timestamp.0,
        cluster: header.cluster,
        view: registration.view,
        replica: registration.replica,
    };
    reply.success(&LoginReply {
        user_id: entry.owner.user.0,
        session: epoch,
        server_protocol_version: PROTOCOL_VERSION,
        server_version: Name::new(SERVER_VERSION).expect("the version is a name"),
    })
}
