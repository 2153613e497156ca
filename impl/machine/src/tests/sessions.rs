//! Registration, fencing, ownership, eviction, logout, release: clause by clause.

use pawl_wire::commands::session::LoginReply;
use pawl_wire::commands::streams::CreateStream;
use pawl_wire::commands::users::UserStatus;
use pawl_wire::options::Options;
use pawl_wire::primitives::Name;

use super::*;

fn create(name: &str) -> CreateStream<'_> {
    CreateStream {
        name: Name::new(name).expect("a name"),
        options: Options::EMPTY,
    }
}

fn small() -> Log {
    Log::with(ClusterConstants {
        clients_max: 2,
        tombstones_max: 2,
        reply_ring: 2,
        release_grace_us: 1_000,
        ..ClusterConstants::default()
    })
}

fn watermark(log: &Log, client: u128) -> Option<u64> {
    log.machine
        .client(ClientId(client))
        .map(|view| view.watermark.0)
}

// spec SES-1
#[test]
fn the_epoch_is_the_op_of_the_register_and_the_reply_says_so() {
    let mut log = Log::new();
    let said = log.register(5, UserId(0), 1, b"");
    assert_eq!(said.header().op, log.op().0);
    assert_eq!(said.header().commit, log.op().0);
    assert_eq!(said.header().view, 3);
    let reply = LoginReply::decode(said.payload()).expect("a login record");
    assert_eq!((reply.user_id, reply.session), (0, log.op().0));
    assert_eq!(reply.server_protocol_version, 11264);
    assert_eq!(log.epoch(5), Some(Epoch(log.op().0)));
}

// spec SES-3
#[test]
fn the_same_register_keeps_its_epoch_and_its_reply() {
    let mut log = Log::new();
    log.register(5, UserId(0), 1, b"");
    let first = log.frame.clone();
    log.pass(10);
    let epoch = log.epoch(5);
    log.register(5, UserId(0), 1, b"");
    assert_eq!(log.frame, first);
    assert_eq!(log.epoch(5), epoch);
    assert!(log.effects.is_empty(), "nobody is fenced");
}

// spec SES-5
#[test]
fn a_rebind_keeps_watermark_and_ring_and_fences_the_old_session() {
    let mut log = Log::new();
    let old = log.sign_in(5);
    log.request(old, 7, EntryKind::CreateStream, &create("s"));
    let first = log.frame.clone();
    let new = log.sign_in(5);
    let fenced = Effect::ClientFenced {
        client: ClientId(5),
        epoch: Epoch(old.epoch),
    };
    assert_eq!(log.effects, [fenced]);
    assert_eq!(watermark(&log, 5), Some(7));
    log.request(new, 7, EntryKind::CreateStream, &create("s"));
    assert_eq!(log.frame, first);
    let said = log.request(old, 8, EntryKind::CreateStream, &create("t"));
    assert_eq!(said, Said::Evicted(EvictionReason::SessionTooLow));
}

// spec SES-8, SES-9
#[test]
fn another_user_cannot_bind_a_client_and_leaves_it_untouched() {
    let mut log = small();
    let bob = log.add_user("bob", None);
    let session = log.sign_in(5);
    for state in 0..3 {
        if state == 1 {
            log.release(session);
        }
        if state == 2 {
            log.pass(2_000);
            assert!(log.machine.clients.tombstones().get(ClientId(5)).is_some());
        }
        let before = (log.machine.clients.clone(), log.machine.partitions.clone());
        let said = log.register(5, bob, 99, b"");
        assert_eq!(said, Said::Evicted(EvictionReason::SessionError));
        assert_eq!(
            (log.machine.clients.clone(), log.machine.partitions.clone()),
            before
        );
    }
}

// spec SES-10
#[test]
fn a_new_user_with_the_number_of_a_deleted_one_owns_nothing_of_it() {
    let mut log = Log::new();
    let bob = log.add_user("bob", None);
    assert!(log.register(5, bob, 1, b"").is_done());
    log.pass(1);
    let born = log.op();
    log.change_user(bob, |user| {
        user.created_op = born;
        user.credential_version = born.0;
    });
    let said = log.register(5, bob, 2, b"");
    assert_eq!(said, Said::Evicted(EvictionReason::SessionError));
}

// spec SES-11
#[test]
fn a_register_needs_the_credentials_in_force_when_it_is_applied() {
    let mut log = Log::new();
    let bob = log.add_user("bob", None);
    let refused = Said::Evicted(EvictionReason::InvalidCredentials);
    let judged_before = log.register_header(5, bob, 1);
    log.change_user(bob, |user| user.credential_version += 1);
    assert_eq!(log.apply(judged_before, b""), refused);
    log.change_user(bob, |user| user.status = UserStatus::Inactive);
    assert_eq!(log.register(5, bob, 1, b""), refused);
    assert_eq!(log.register(5, UserId(9), 1, b""), refused);
    assert_eq!(log.epoch(5), None);
}

// spec SES-12, SES-13, SES-14
#[test]
fn requests_are_judged_by_entry_and_epoch_first_and_a_refused_one_changes_nothing() {
    let mut log = Log::new();
    let old = log.sign_in(5);
    let new = log.sign_in(5);
    let cases = [
        (
            Session { client: 6, ..old },
            Some(EvictionReason::NoSession),
        ),
        (old, Some(EvictionReason::SessionTooLow)),
        (Session { epoch: 99, ..new }, None),
    ];
    for (session, reason) in cases {
        let before = log.machine.clients.clone();
        let said = log.request(session, 9, EntryKind::CreateStream, &create("s"));
        match reason {
            Some(reason) => assert_eq!(said, Said::Evicted(reason)),
            None => {
                assert!(said.is(ErrorCode::InvalidCommand));
                assert_eq!(said.header().status, 3, "a violation is a status");
                assert_eq!(said.header().op, 0);
            }
        }
        assert_eq!(log.machine.clients, before);
        assert_eq!(log.machine.catalog.streams().len(), 0);
    }
}

// spec SES-17
#[test]
fn released_entries_leave_first_and_then_the_longest_quiet() {
    let mut log = small();
    let first = log.sign_in(5);
    let second = log.sign_in(6);
    log.release(second);
    log.request(second, 1, EntryKind::CreateStream, &create("s"));
    log.sign_in(7);
    assert_eq!(
        log.effects,
        [Effect::ClientEvicted {
            client: ClientId(6)
        }]
    );
    assert_eq!(log.epoch(5), Some(Epoch(first.epoch)));
    log.request(first, 1, EntryKind::CreateStream, &create("t"));
    log.sign_in(8);
    assert_eq!(
        log.effects,
        [Effect::ClientEvicted {
            client: ClientId(7)
        }]
    );
}

// spec SES-18
#[test]
fn executed_requests_and_granted_registers_count_as_activity_and_replays_do_not() {
    let mut log = small();
    let quiet = log.sign_in(5);
    log.request(quiet, 1, EntryKind::CreateStream, &create("s"));
    let latest = |log: &Log| {
        log.machine
            .client(ClientId(5))
            .map(|view| view.latest_commit)
    };
    let executed_at = log.op();
    assert_eq!(latest(&log), Some(executed_at));
    log.request(quiet, 1, EntryKind::CreateStream, &create("s"));
    assert_eq!(latest(&log), Some(executed_at), "a replay is no activity");
    // spec DED-10: a produce without checksum is, even one that is refused by the state.
    log.apply(quiet.header(EntryKind::SendMessages, 1), b"");
    assert_eq!(latest(&log), Some(log.op()));
    log.register(5, UserId(0), 1, b"");
    assert_eq!(
        latest(&log),
        Some(log.op()),
        "a repeat of a granted Register is"
    );
}

// spec SES-19, SES-20, known fault 2.1
#[test]
fn an_evicted_client_comes_back_and_its_old_request_does_not_run_again() {
    let mut log = small();
    let session = log.sign_in(5);
    log.request(session, 7, EntryKind::CreateStream, &create("s"));
    log.sign_in(6);
    log.sign_in(7);
    assert_eq!(log.epoch(5), None);
    let said = log.request(session, 7, EntryKind::CreateStream, &create("s"));
    assert_eq!(said, Said::Evicted(EvictionReason::NoSession));
    let back = log.sign_in(5);
    assert!(back.epoch > session.epoch);
    let said = log.request(back, 7, EntryKind::CreateStream, &create("s"));
    assert!(said.is(ErrorCode::RequestAlreadyApplied));
    assert_eq!(said.header().context, 7);
    assert_eq!(log.machine.catalog.streams().len(), 1);
    assert!(
        log.request(back, 8, EntryKind::CreateStream, &create("t"))
            .is_done()
    );
}

// spec SES-3, SES-20
#[test]
fn the_same_register_over_a_tombstone_gives_the_epoch_back() {
    let mut log = small();
    log.register(5, UserId(0), 500, b"");
    let epoch = log.epoch(5);
    log.sign_in(6);
    log.sign_in(7);
    assert_eq!(log.epoch(5), None);
    assert_eq!(
        log.register(5, UserId(0), 500, b"").header().op,
        epoch.expect("it had one").0
    );
    assert_eq!(log.epoch(5), epoch);
}

// spec SES-21
#[test]
fn the_oldest_tombstone_is_forgotten_first() {
    let mut log = small();
    for client in 1..=5 {
        log.sign_in(client);
    }
    let fenced: Vec<u128> = log
        .machine
        .clients
        .tombstones()
        .iter()
        .map(|(c, _)| c.0)
        .collect();
    assert_eq!(fenced, [2, 3]);
}

// spec SES-20, SES-21
#[test]
fn a_client_that_comes_back_is_not_pushed_out_by_the_one_who_makes_room() {
    let mut log = small();
    let session = log.sign_in(1);
    log.request(session, 7, EntryKind::CreateStream, &create("s"));
    for client in 2..=4 {
        log.sign_in(client);
    }
    // Client 1 is the oldest tombstone of two; its return evicts client 3, which makes a third.
    let back = log.sign_in(1);
    assert_eq!(
        log.effects,
        [Effect::ClientEvicted {
            client: ClientId(3)
        }]
    );
    let said = log.request(back, 7, EntryKind::CreateStream, &create("s"));
    assert!(said.is(ErrorCode::RequestAlreadyApplied));
    assert_eq!(log.machine.clients.tombstones().len(), 2);
}

// spec SES-22
#[test]
fn a_login_that_asks_for_a_forgotten_history_is_told_so() {
    let mut log = small();
    let session = log.sign_in(1);
    let context = format!("pawl/1 incarnation=2 epoch={}", session.epoch);
    let second = log.sign_in(2);
    for client in 3..=5 {
        log.sign_in(client);
    }
    let said = log.register(1, UserId(0), 900, context.as_bytes());
    assert_eq!(said, Said::Evicted(EvictionReason::NoSession));
    assert_eq!(log.epoch(1), None);
    // A tombstone is left of client 2: its history can be told.
    let context_of_second = format!("pawl/1 epoch={}", second.epoch);
    let said = log.register(2, UserId(0), 901, context_of_second.as_bytes());
    assert!(said.is_done());
    // Other text says nothing.
    assert!(log.register(1, UserId(0), 902, b"my app").is_done());
    assert_eq!(watermark(&log, 1), Some(0));
    // What began afresh does not go back to what was forgotten.
    let said = log.register(1, UserId(0), 903, context.as_bytes());
    assert_eq!(said, Said::Evicted(EvictionReason::NoSession));
    assert_ne!(log.epoch(1), None, "and nothing changed");
}

// spec SES-23
#[test]
fn a_logout_makes_a_tombstone_at_once_and_moves_no_watermark() {
    let mut log = Log::new();
    let session = log.sign_in(5);
    log.request(session, 3, EntryKind::CreateStream, &create("s"));
    let said = log.logout(session);
    assert_eq!(said.payload(), b"", "not result-framed");
    assert_eq!(said.header().op, log.op().0);
    let fence = log
        .machine
        .clients
        .tombstones()
        .get(ClientId(5))
        .expect("a fence");
    assert_eq!((fence.watermark.0, fence.by_logout), (3, true));
    assert_ne!(fence.reply_digest, 0);
}

// spec SES-24
#[test]
fn a_stale_logout_ends_nothing() {
    let mut log = Log::new();
    let old = log.sign_in(5);
    let new = log.sign_in(5);
    assert_eq!(
        log.logout(old),
        Said::Evicted(EvictionReason::SessionTooLow)
    );
    assert_eq!(log.epoch(5), Some(Epoch(new.epoch)));
    let invented = Session { epoch: 99, ..new };
    assert_eq!(log.logout(invented).header().status, 3);
    assert!(log.logout(new).is_done());
    assert!(log.logout(new).is_done(), "nothing is left to end");
    assert!(log.logout(old).is_done());
}

// spec SES-25
#[test]
fn after_a_logout_another_user_may_take_the_client_with_nothing_of_the_former() {
    let mut log = Log::new();
    let bob = log.add_user("bob", None);
    let session = log.sign_in(5);
    log.request(session, 3, EntryKind::CreateStream, &create("s"));
    log.logout(session);
    assert!(log.register(5, bob, 77, b"").is_done());
    let view = log.machine.client(ClientId(5)).expect("an entry");
    assert_eq!((view.watermark.0, view.owner.user), (0, bob));
    let said = log.request(session, 4, EntryKind::CreateStream, &create("t"));
    assert_eq!(said, Said::Evicted(EvictionReason::SessionTooLow));
}

// spec SES-23, SES-20
#[test]
fn after_a_logout_the_owner_comes_back_to_its_watermark() {
    let mut log = Log::new();
    let session = log.sign_in(5);
    log.request(session, 3, EntryKind::CreateStream, &create("s"));
    log.logout(session);
    let back = log.sign_in(5);
    let said = log.request(back, 3, EntryKind::CreateStream, &create("s"));
    assert!(said.is(ErrorCode::RequestAlreadyApplied));
}

// spec SES-26, SES-28
#[test]
fn a_released_entry_becomes_a_tombstone_when_its_grace_is_over() {
    let mut log = small();
    let session = log.sign_in(5);
    assert_eq!(log.release(session), Said::Nothing);
    let released_at = log
        .machine
        .client(ClientId(5))
        .expect("an entry")
        .released_at;
    assert_eq!(released_at, Some(Timestamp(log.time)));
    log.pass(998);
    assert_eq!(
        log.epoch(5),
        Some(Epoch(session.epoch)),
        "one microsecond is left"
    );
    // The op that ends the grace is judged after it: this request finds no entry.
    let said = log.request(session, 1, EntryKind::CreateStream, &create("s"));
    assert_eq!(said, Said::Evicted(EvictionReason::NoSession));
    let fence = log
        .machine
        .clients
        .tombstones()
        .get(ClientId(5))
        .expect("a fence");
    assert!(!fence.by_logout);
}

// spec SES-27
#[test]
fn a_release_of_another_epoch_changes_nothing() {
    let mut log = Log::new();
    let old = log.sign_in(5);
    let new = log.sign_in(5);
    let released = |log: &Log| {
        log.machine
            .client(ClientId(5))
            .expect("an entry")
            .released_at
    };
    log.release(old);
    log.release(Session { epoch: 99, ..new });
    log.release(Session { client: 6, ..new });
    assert_eq!(released(&log), None);
    log.release(new);
    let first = released(&log);
    log.release(new);
    assert_eq!(
        released(&log),
        first,
        "the grace runs from the first release"
    );
}

// spec SES-29, known fault 2.3
#[test]
fn a_client_that_signs_in_within_the_grace_finds_its_answer() {
    for same_stamp in [false, true] {
        let mut log = small();
        log.register(5, UserId(0), 50, b"");
        let session = Session {
            client: 5,
            epoch: log.op().0,
        };
        log.request(session, 2, EntryKind::CreateStream, &create("s"));
        let first = log.frame.clone();
        log.release(session);
        log.pass(500);
        let stamp = if same_stamp { 50 } else { 51 };
        let epoch = log.register(5, UserId(0), stamp, b"").header().op;
        assert_eq!(epoch == session.epoch, same_stamp);
        log.pass(5_000);
        let back = Session { client: 5, epoch };
        log.request(back, 2, EntryKind::CreateStream, &create("s"));
        assert_eq!(log.frame, first);
    }
}

// spec SES-31
#[test]
fn the_session_of_a_deleted_user_stands_and_has_no_rights() {
    let mut log = Log::new();
    let mut permissions = Permissions::default();
    permissions.global.manage_streams = true;
    let bob = log.add_user("bob", Some(permissions));
    log.register(5, bob, 1, b"");
    let session = Session {
        client: 5,
        epoch: log.op().0,
    };
    assert!(
        log.request(session, 1, EntryKind::CreateStream, &create("s"))
            .is_done()
    );
    let born = log.op();
    log.change_user(bob, |user| user.created_op = born);
    let said = log.request(session, 2, EntryKind::CreateStream, &create("t"));
    assert!(said.is(ErrorCode::Unauthorized));
    assert_eq!(said.header().op, log.op().0, "a committed refusal");
    assert_eq!(said.header().status, 0);
}

// spec SES-16
#[test]
fn client_zero_gets_no_entry_of_any_snapshot() {
    let mut log = Log::new();
    log.sign_in(5);
    let entries = log
        .machine
        .clients
        .iter()
        .map(|(_, e)| (ClientId(0), e.clone()))
        .collect();
    let table =
        crate::clients::ClientTable::assemble(entries, Default::default(), log.machine.constants());
    assert!(table.is_none());
}

// spec DED-12, SES-30
#[test]
fn the_reply_to_a_register_leaves_the_checksum_to_the_gateway() {
    let mut log = Log::new();
    let header = EntryHeader {
        request_checksum: 1234,
        ..log.register_header(5, UserId(0), 1)
    };
    assert_eq!(log.apply(header, b"").header().request_checksum, 0);
}
