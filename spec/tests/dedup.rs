//! `dedup.md`, clause by clause.

mod util;

use pawl_spec::{Act, Epoch, Op, Refusal, Request, Response};
use util::{ROOT, SMALL, World, applied_earlier, refused, request};

fn bound() -> (World, Epoch) {
    let mut world = World::new(SMALL);
    let epoch = world.bind(1, ROOT, 1);
    (world, epoch)
}

/// DED-1, DED-7
#[test]
fn above_is_new_with_gaps_and_what_was_skipped_is_spent() {
    let (mut world, epoch) = bound();
    assert_eq!(world.request(1, epoch, 1, 10), Response::Executed);
    assert_eq!(world.request(1, epoch, 9, 90), Response::Executed);
    assert_eq!(world.request(1, epoch, 5, 50), applied_earlier(9));
}

/// DED-3
#[test]
fn what_was_refused_is_not_spent() {
    let (mut world, epoch) = bound();
    let unknown = Epoch(epoch.0 + 100);
    assert_eq!(
        world.request(1, unknown, 4, 40),
        refused(Refusal::EpochUnknown)
    );
    assert_eq!(world.request(1, epoch, 4, 40), Response::Executed);
}

/// DED-4, DED-8
#[test]
fn the_last_replies_are_kept_and_the_rest_is_told_apart() {
    let (mut world, epoch) = bound();
    let mut ops = Vec::new();
    for number in 1..=4u64 {
        ops.push(Op(world.next()));
        world.request(1, epoch, number, 10 * number as u128);
    }
    assert_eq!(world.request(1, epoch, 1, 10), applied_earlier(4));
    assert_eq!(world.request(1, epoch, 2, 20), applied_earlier(4));
    assert_eq!(world.request(1, epoch, 3, 30), Response::Repeat(ops[2]));
    assert_eq!(world.request(1, epoch, 4, 40), Response::Repeat(ops[3]));
}

/// DED-5, DED-6
#[test]
fn another_checksum_is_refused_and_zero_says_nothing() {
    let (mut world, epoch) = bound();
    let op = Op(world.next());
    world.request(1, epoch, 1, 10);
    assert_eq!(
        world.request(1, epoch, 1, 11),
        refused(Refusal::NumberReused)
    );
    assert_eq!(world.request(1, epoch, 1, 0), Response::Repeat(op));
    let op = Op(world.next());
    world.request(1, epoch, 2, 0);
    assert_eq!(world.request(1, epoch, 2, 21), Response::Repeat(op));
}

/// DED-9, DED-10
#[test]
fn a_produce_without_checksum_is_executed_each_time_and_moves_nothing() {
    let (mut world, epoch) = bound();
    world.request(1, epoch, 2, 20);
    for _ in 0..3 {
        assert_eq!(world.produce(1, epoch, 2, 0), Response::Executed);
        assert_eq!(world.produce(1, epoch, 9, 0), Response::Executed);
    }
    assert_eq!(
        world.request(1, epoch, 3, 30),
        Response::Executed,
        "9 was not taken"
    );
    let later = world.bind(1, ROOT, 2);
    let fenced = refused(Refusal::Fenced { epoch: later });
    assert_eq!(world.produce(1, epoch, 4, 0), fenced);
}

/// DED-11, DED-15
#[test]
fn a_produce_with_checksum_is_judged_like_every_request() {
    let (mut world, epoch) = bound();
    let op = Op(world.next());
    assert_eq!(world.produce(1, epoch, 5, 50), Response::Executed);
    assert_eq!(world.produce(1, epoch, 5, 50), Response::Repeat(op));
    assert_eq!(
        world.produce(1, epoch, 5, 51),
        refused(Refusal::NumberReused)
    );
    assert_eq!(
        world.request(1, epoch, 4, 40),
        applied_earlier(5),
        "one watermark for all"
    );
    let other = world.bind(2, ROOT, 2);
    assert_eq!(world.produce(2, other, 5, 50), Response::Executed);
}

/// DED-13
#[test]
fn a_reply_with_a_secret_is_not_kept() {
    let (mut world, epoch) = bound();
    let token = |sum| Request {
        secret_reply: true,
        ..request(1, epoch, 3, sum)
    };
    assert_eq!(world.act(Act::Request(token(30))), Response::Executed);
    assert_eq!(world.act(Act::Request(token(30))), applied_earlier(3));
    assert_eq!(
        world.act(Act::Request(token(31))),
        refused(Refusal::NumberReused)
    );
}

/// DED-19
#[test]
fn another_operation_under_the_number_is_refused() {
    let (mut world, epoch) = bound();
    world.request(1, epoch, 3, 0);
    assert_eq!(
        world.produce(1, epoch, 3, 30),
        refused(Refusal::NumberReused)
    );
    let other = Request {
        operation: 129,
        ..request(1, epoch, 3, 0)
    };
    assert_eq!(
        world.act(Act::Request(other)),
        refused(Refusal::NumberReused)
    );
}
