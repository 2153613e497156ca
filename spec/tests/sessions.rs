//! `sessions.md`, clause by clause.

mod util;

use pawl_spec::{
    Act, Client, Constants, Epoch, Login, Op, Refusal, Response, UserChange, UserNumber,
};
use util::{ALICE, ROOT, SMALL, World, applied_earlier, refused, request};

/// SES-1
#[test]
fn the_epoch_is_the_op_of_the_register() {
    let mut world = World::new(SMALL);
    world.act(Act::Noop);
    let op = world.next();
    assert_eq!(world.bind(1, ROOT, 1), Epoch(op));
    let op = world.next();
    assert_eq!(world.bind(1, ROOT, 2), Epoch(op));
}

/// SES-2
#[test]
fn no_bind_is_certain_without_an_entry() {
    let mut world = World::new(SMALL);
    world.bind(1, ROOT, 1);
    let again = Act::Register(world.login(1, ROOT, 1));
    assert_eq!(world.table.certain(&again), None);
}

/// SES-3
#[test]
fn the_same_register_keeps_its_epoch_in_every_state() {
    let mut world = World::new(SMALL);
    let epoch = world.bind(1, ROOT, 1);
    assert_eq!(world.bind(1, ROOT, 1), epoch, "live");
    world.release(1, epoch);
    assert_eq!(world.bind(1, ROOT, 1), epoch, "released");
    world.bind(2, ROOT, 2);
    world.bind(3, ROOT, 3);
    assert!(world.is_buried(1));
    assert_eq!(world.bind(1, ROOT, 1), epoch, "evicted");
    world.logout(1, epoch);
    assert_eq!(world.bind(1, ROOT, 1), epoch, "logged out");
}

/// SES-5
#[test]
fn a_rebind_keeps_watermark_and_ring() {
    let mut world = World::new(SMALL);
    let first = world.bind(1, ROOT, 1);
    let op = world.next();
    assert_eq!(world.request(1, first, 7, 70), Response::Executed);
    let second = world.bind(1, ROOT, 2);
    assert_eq!(world.request(1, second, 7, 70), Response::Repeat(Op(op)));
    assert_eq!(world.request(1, second, 6, 60), applied_earlier(7));
}

/// SES-6, SES-7
#[test]
fn what_is_certain_is_what_apply_says_and_changes_nothing() {
    let mut world = World::new(SMALL);
    let first = world.bind(1, ROOT, 1);
    world.request(1, first, 3, 30);
    let second = world.bind(1, ROOT, 2);
    for (epoch, number, sum) in [
        (first, 4, 0),
        (second, 3, 30),
        (second, 3, 31),
        (second, 2, 0),
    ] {
        let act = Act::Request(request(1, epoch, number, sum));
        let certain = world.table.certain(&act).expect("no state can change");
        assert_eq!(world.act(act), certain);
    }
    let new = Act::Request(request(1, second, 4, 40));
    assert_eq!(world.table.certain(&new), None);
}

/// SES-8
#[test]
fn another_user_binds_nothing_and_changes_nothing() {
    let mut world = World::with_user(SMALL);
    let epoch = world.bind(1, ROOT, 1);
    let before = world.table.clients.clone();
    assert_eq!(world.register(1, ALICE, 2), refused(Refusal::NotOwner));
    assert_eq!(
        world.register(1, ALICE, 1),
        refused(Refusal::NotOwner),
        "the stamp is no pass"
    );
    assert_eq!(world.table.clients, before);
    assert_eq!(world.request(1, epoch, 1, 10), Response::Executed);
}

/// SES-9
#[test]
fn of_two_registers_in_the_log_the_first_owns() {
    let mut world = World::with_user(SMALL);
    let (root, alice) = (world.login(1, ROOT, 1), world.login(1, ALICE, 2));
    assert!(matches!(world.act(Act::Register(root)), Response::Bound(_)));
    assert_eq!(world.act(Act::Register(alice)), refused(Refusal::NotOwner));
}

/// SES-10, SES-31
#[test]
fn a_new_user_under_an_old_number_owns_nothing_of_it() {
    let constants = Constants {
        clients: 3,
        ..SMALL
    };
    let mut world = World::with_user(constants);
    let root = world.bind(1, ROOT, 1);
    let alice = world.bind(2, ALICE, 2);
    world.change(1, root, 1, UserChange::Delete(ALICE));
    assert_eq!(
        world.request(2, alice, 1, 10),
        Response::Executed,
        "the binding stays"
    );
    assert_eq!(world.register(2, ALICE, 3), refused(Refusal::Credentials));
    world.change(1, root, 2, UserChange::Create(ALICE));
    assert_eq!(world.register(2, ALICE, 4), refused(Refusal::NotOwner));
}

/// SES-11
#[test]
fn a_login_judged_before_a_change_does_not_bind_after_it() {
    let mut world = World::with_user(SMALL);
    let root = world.bind(1, ROOT, 1);
    let login = world.login(2, ALICE, 2);
    world.change(1, root, 1, UserChange::Password(ALICE));
    assert_eq!(
        world.act(Act::Register(login)),
        refused(Refusal::Credentials)
    );
    world.change(1, root, 2, UserChange::Active(ALICE, false));
    assert_eq!(world.register(2, ALICE, 3), refused(Refusal::Credentials));
    assert_eq!(
        world.register(2, UserNumber(9), 3),
        refused(Refusal::Credentials)
    );
    world.change(1, root, 3, UserChange::Active(ALICE, true));
    world.bind(2, ALICE, 3);
}

/// SES-12, SES-13, SES-14
#[test]
fn evicted_fenced_and_unknown_epochs_change_nothing() {
    let mut world = World::new(SMALL);
    let first = world.bind(1, ROOT, 1);
    let second = world.bind(1, ROOT, 2);
    let before = world.table.clients.clone();
    let cases = [
        (1, first, Refusal::Fenced { epoch: second }),
        (1, Epoch(second.0 + 1), Refusal::EpochUnknown),
        (2, first, Refusal::Evicted),
    ];
    for (client, epoch, refusal) in cases {
        assert_eq!(world.request(client, epoch, 1, 10), refused(refusal));
        assert_eq!(world.produce(client, epoch, 1, 0), refused(refusal));
    }
    assert_eq!(world.table.clients, before);
}

/// SES-16, SES-17
#[test]
fn the_quietest_is_evicted_and_the_released_before_it() {
    let mut world = World::new(SMALL);
    let one = world.bind(1, ROOT, 1);
    let two = world.bind(2, ROOT, 2);
    world.request(1, one, 1, 10);
    let three = world.bind(3, ROOT, 3);
    assert!(world.is_buried(2), "client 2 was quiet longest");
    assert_eq!(world.request(2, two, 1, 10), refused(Refusal::Evicted));
    world.request(1, one, 2, 20);
    world.release(1, one);
    world.bind(4, ROOT, 4);
    assert!(
        world.is_buried(1),
        "released goes first, though 3 was quiet longer"
    );
    assert_eq!(world.request(3, three, 1, 10), Response::Executed);
}

/// SES-18
#[test]
fn only_what_was_executed_or_granted_is_activity() {
    for keeps_warm in [true, false] {
        let mut world = World::new(SMALL);
        let one = world.bind(1, ROOT, 1);
        world.request(1, one, 1, 10);
        world.bind(2, ROOT, 2);
        if keeps_warm {
            assert_eq!(world.produce(1, one, 1, 0), Response::Executed);
        } else {
            assert!(matches!(world.request(1, one, 1, 10), Response::Repeat(_)));
            world.request(1, one, 1, 11);
            world.request(1, Epoch(99), 1, 10);
        }
        world.bind(3, ROOT, 3);
        assert_eq!(world.is_buried(1), !keeps_warm);
        assert_eq!(world.is_buried(2), keeps_warm);
    }
}

/// SES-19, SES-20
#[test]
fn after_an_eviction_a_retry_is_known_and_not_executed() {
    let mut world = World::new(SMALL);
    let one = world.bind(1, ROOT, 1);
    world.request(1, one, 7, 70);
    world.bind(2, ROOT, 2);
    world.bind(3, ROOT, 3);
    assert_eq!(world.request(1, one, 7, 70), refused(Refusal::Evicted));
    let again = world.bind(1, ROOT, 4);
    assert!(again > one);
    assert!(!world.is_buried(1));
    assert_eq!(
        world.request(1, one, 8, 80),
        refused(Refusal::Fenced { epoch: again })
    );
    assert_eq!(world.request(1, again, 7, 70), applied_earlier(7));
    assert_eq!(
        world.request(1, again, 7, 71),
        refused(Refusal::NumberReused)
    );
    assert_eq!(world.request(1, again, 8, 80), Response::Executed);
}

/// SES-21
#[test]
fn the_oldest_tombstone_is_forgotten() {
    let mut world = World::new(SMALL);
    for client in 1..=4 {
        let epoch = world.bind(client, ROOT, client);
        world.logout(client, epoch);
    }
    assert!(!world.is_buried(1) && !world.is_buried(2));
    assert!(world.is_buried(3) && world.is_buried(4));
}

/// SES-20: the tombstone that is taken up makes room for that of the victim.
#[test]
fn coming_back_forgets_nobody() {
    let mut world = World::new(SMALL);
    for client in 1..=4 {
        world.bind(client, ROOT, client);
    }
    assert!(world.is_buried(1) && world.is_buried(2));
    world.bind(2, ROOT, 9);
    assert!(world.is_buried(1) && world.is_buried(3));
}

/// SES-22
#[test]
fn a_history_that_is_gone_is_not_begun_anew() {
    let mut world = World::new(SMALL);
    let names = |world: &World, stamp, earlier: Epoch| Login {
        earlier: Some(earlier),
        ..world.login(1, ROOT, stamp)
    };
    let first = world.bind(1, ROOT, 1);
    let second = world.bind(1, ROOT, 2);
    let login = names(&world, 3, first);
    let third = match world.act(Act::Register(login)) {
        Response::Bound(epoch) => epoch,
        other => panic!("{other:?}"),
    };
    world.logout(1, third);
    let login = names(&world, 4, second);
    assert!(
        matches!(world.act(Act::Register(login)), Response::Bound(_)),
        "tombstone"
    );
    for client in 2..=5 {
        world.bind(client, ROOT, client);
    }
    assert!(!world.stands(1) && !world.is_buried(1));
    let login = names(&world, 5, second);
    assert_eq!(world.act(Act::Register(login)), refused(Refusal::Forgotten));
    world.bind(1, ROOT, 6);
    let login = names(&world, 7, second);
    assert_eq!(
        world.act(Act::Register(login)),
        refused(Refusal::Forgotten),
        "begun afresh since"
    );
}

/// SES-23, SES-24
#[test]
fn a_logout_ends_its_own_session_only() {
    let mut world = World::new(SMALL);
    let first = world.bind(1, ROOT, 1);
    world.request(1, first, 3, 30);
    assert_eq!(world.logout(1, first), Response::LoggedOut);
    assert!(world.is_buried(1));
    assert_eq!(
        world.logout(1, first),
        Response::LoggedOut,
        "nothing is left to end"
    );
    let second = world.bind(1, ROOT, 2);
    assert_eq!(
        world.logout(1, first),
        refused(Refusal::Fenced { epoch: second })
    );
    assert!(world.stands(1));
    assert_eq!(world.request(1, second, 3, 30), applied_earlier(3));
}

/// SES-25
#[test]
fn after_a_logout_another_user_begins_afresh() {
    let mut world = World::with_user(SMALL);
    let root = world.bind(1, ROOT, 1);
    world.request(1, root, 7, 70);
    world.logout(1, root);
    let alice = world.bind(1, ALICE, 2);
    assert_eq!(
        world.request(1, root, 8, 80),
        refused(Refusal::Fenced { epoch: alice })
    );
    assert_eq!(world.request(1, alice, 1, 10), Response::Executed);
    assert_eq!(world.register(1, ROOT, 3), refused(Refusal::NotOwner));
}

/// SES-25
#[test]
fn after_an_eviction_or_a_release_the_owner_stays() {
    let mut world = World::with_user(SMALL);
    world.bind(1, ROOT, 1);
    let two = world.bind(2, ROOT, 2);
    world.bind(3, ROOT, 3);
    assert_eq!(world.register(1, ALICE, 4), refused(Refusal::NotOwner));
    world.release(2, two);
    world.now += SMALL.grace;
    assert_eq!(world.register(2, ALICE, 5), refused(Refusal::NotOwner));
    assert!(world.is_buried(2));
}

/// SES-26, SES-28, SES-29
#[test]
fn within_the_grace_a_client_resumes_and_after_it_has_a_tombstone() {
    let mut world = World::new(SMALL);
    let first = world.bind(1, ROOT, 1);
    let op = world.next();
    world.request(1, first, 1, 10);
    world.release(1, first);
    world.now += SMALL.grace - 1;
    let second = world.bind(1, ROOT, 2);
    assert_eq!(world.request(1, second, 1, 10), Response::Repeat(Op(op)));
    world.release(1, second);
    world.now += SMALL.grace;
    let third = world.bind(1, ROOT, 3);
    assert_eq!(
        world.request(1, third, 1, 10),
        applied_earlier(1),
        "the ring is gone"
    );
}

/// SES-28: expiry comes before the op that brings the time.
#[test]
fn an_entry_past_its_grace_is_evicted_for_the_op_that_says_so() {
    let mut world = World::new(SMALL);
    let epoch = world.bind(1, ROOT, 1);
    world.release(1, epoch);
    world.now += SMALL.grace - 1;
    assert_eq!(
        world.request(1, epoch, 1, 10),
        Response::Executed,
        "released still stands"
    );
    world.now += 1;
    assert_eq!(world.request(1, epoch, 2, 20), refused(Refusal::Evicted));
}

/// SES-27
#[test]
fn a_release_of_an_older_epoch_has_no_effect() {
    let mut world = World::new(SMALL);
    let first = world.bind(1, ROOT, 1);
    world.bind(1, ROOT, 2);
    world.release(1, first);
    assert_eq!(world.table.clients.table[&Client(1)].released, None);
    world.release(5, first);
}

/// SES-26: a second notice of the same end does not prolong the grace.
#[test]
fn the_first_release_counts() {
    let mut world = World::new(SMALL);
    let epoch = world.bind(1, ROOT, 1);
    world.release(1, epoch);
    world.now += SMALL.grace - 1;
    world.release(1, epoch);
    world.now += 1;
    world.act(Act::Noop);
    assert!(world.is_buried(1));
}
