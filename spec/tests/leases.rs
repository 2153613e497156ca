//! `leases.md`, clause by clause.

mod util;

use pawl_spec::{
    Access, Act, Checkpoint, Client, Epoch, LeaseWrite, Op, RecordNumber, Refusal, Response, Shard,
    ShardNumber, Store,
};
use util::{ROOT, SMALL, World, refused};

fn grant(world: &mut World, client: u128, session: Epoch, shards: &[u32]) -> Response {
    world.act(Act::Grant {
        client: Client(client),
        session,
        shards: shards.iter().copied().map(ShardNumber).collect(),
    })
}

fn access(client: u128, session: Epoch, shard: u32, epoch: Epoch) -> Access {
    Access {
        client: Client(client),
        session,
        shard: ShardNumber(shard),
        epoch,
    }
}

fn section(world: &mut World, access: Access, first: u64, last: u64) -> Response {
    let write = LeaseWrite::Section {
        first: RecordNumber(first),
        last: RecordNumber(last),
    };
    world.act(Act::Write { access, write })
}

fn append(world: &mut World, access: Access, expected: Option<u64>, bytes: u64) -> Response {
    let write = LeaseWrite::Store { expected, bytes };
    world.act(Act::Write { access, write })
}

fn shard(world: &World, number: u32) -> Shard {
    let shards = &world.table.leases.shards;
    shards
        .get(&ShardNumber(number))
        .copied()
        .unwrap_or_default()
}

/// Two workers, the first of which holds shard 2.
fn two_workers() -> (World, Access, Epoch) {
    let mut world = World::new(SMALL);
    let one = world.bind(1, ROOT, 1);
    let two = world.bind(2, ROOT, 2);
    let Response::Leased(epoch) = grant(&mut world, 1, one, &[2]) else {
        panic!("the session stands");
    };
    (world, access(1, one, 2, epoch), two)
}

/// LEA-1
#[test]
fn the_epoch_is_the_op_of_the_grant() {
    let mut world = World::new(SMALL);
    let session = world.bind(1, ROOT, 1);
    let op = world.next();
    let leased = grant(&mut world, 1, session, &[1, 3]);
    assert_eq!(leased, Response::Leased(Epoch(op)));
    assert_eq!(shard(&world, 1).epoch, shard(&world, 3).epoch);
    assert_eq!(shard(&world, 2).epoch, Epoch(0));
}

/// LEA-2, LEA-3
#[test]
fn a_stale_holder_writes_nothing() {
    let (mut world, old, two) = two_workers();
    assert_eq!(section(&mut world, old, 1, 3), Response::Written);
    let Response::Leased(epoch) = grant(&mut world, 2, two, &[2]) else {
        panic!("the session stands");
    };
    let new = access(2, two, 2, epoch);
    let before = world.table.leases.clone();
    let stale = refused(Refusal::Stale { epoch });
    assert_eq!(section(&mut world, old, 4, 4), stale);
    assert_eq!(append(&mut world, old, None, 8), stale);
    assert_eq!(
        section(&mut world, Access { epoch, ..old }, 4, 4),
        stale,
        "not its session"
    );
    let ahead = Epoch(epoch.0 + 9);
    assert_eq!(
        section(
            &mut world,
            Access {
                epoch: ahead,
                ..new
            },
            4,
            4
        ),
        stale
    );
    assert_eq!(world.table.leases, before);
    assert_eq!(section(&mut world, new, 4, 4), Response::Written);
}

/// LEA-4
#[test]
fn a_grant_to_a_session_that_left_has_no_effect() {
    let (mut world, held, two) = two_workers();
    world.release(2, two);
    assert_eq!(grant(&mut world, 2, two, &[2]), refused(Refusal::Evicted));
    assert_eq!(
        grant(&mut world, 2, Epoch(two.0 + 50), &[2]),
        refused(Refusal::Evicted)
    );
    assert_eq!(section(&mut world, held, 1, 1), Response::Written);
}

/// LEA-5, LEA-7
#[test]
fn a_lease_ends_with_its_session_and_survives_a_release() {
    let (mut world, held, _) = two_workers();
    world.release(1, held.session);
    assert_eq!(world.bind(1, ROOT, 1), held.session, "the same Register");
    assert_eq!(section(&mut world, held, 1, 1), Response::Written);
    world.bind(1, ROOT, 5);
    assert_eq!(shard(&world, 2).holder, None);
    assert_eq!(
        section(&mut world, held, 2, 2),
        refused(Refusal::Stale { epoch: held.epoch })
    );
}

/// LEA-5
#[test]
fn every_way_out_of_the_table_frees_the_shards() {
    for way in 0..3 {
        let (mut world, held, two) = two_workers();
        match way {
            0 => assert_eq!(world.logout(1, held.session), Response::LoggedOut),
            1 => {
                world.request(2, two, 1, 10);
                world.bind(3, ROOT, 3);
            }
            _ => {
                world.release(1, held.session);
                world.now += SMALL.grace;
                world.act(Act::Noop);
            }
        }
        assert_eq!(shard(&world, 2).holder, None, "way {way}");
        assert_eq!(shard(&world, 2).epoch, held.epoch);
    }
}

/// LEA-6
#[test]
fn a_late_revocation_has_no_effect() {
    let (mut world, held, two) = two_workers();
    grant(&mut world, 2, two, &[2]);
    let late = Act::Revoke {
        shard: held.shard,
        epoch: held.epoch,
    };
    world.act(late);
    assert!(shard(&world, 2).holder.is_some());
    let epoch = shard(&world, 2).epoch;
    world.act(Act::Revoke {
        shard: held.shard,
        epoch,
    });
    assert_eq!(shard(&world, 2).holder, None);
    assert_eq!(shard(&world, 2).epoch, epoch);
}

/// LEA-8, LEA-9, LEA-10
#[test]
fn a_gap_stops_the_shard_until_the_next_grant() {
    let (mut world, held, _) = two_workers();
    assert_eq!(section(&mut world, held, 1, 2), Response::Written);
    assert_eq!(section(&mut world, held, 4, 4), refused(Refusal::Gap));
    assert_eq!(section(&mut world, held, 3, 3), refused(Refusal::Stopped));
    let Response::Leased(epoch) = grant(&mut world, 1, held.session, &[2]) else {
        panic!("the session stands");
    };
    assert_eq!(
        section(&mut world, Access { epoch, ..held }, 3, 3),
        Response::Written
    );
}

/// LEA-8
#[test]
fn a_wrong_store_offset_stops_the_shard() {
    let (mut world, held, _) = two_workers();
    let at = |offset| Response::StoreAppended { offset };
    assert_eq!(append(&mut world, held, None, 8), at(0));
    assert_eq!(append(&mut world, held, Some(8), 8), at(8));
    assert_eq!(
        append(&mut world, held, Some(8), 8),
        refused(Refusal::Offset)
    );
    assert_eq!(
        append(&mut world, held, Some(16), 8),
        refused(Refusal::Stopped)
    );
}

/// LEA-11, LEA-12
#[test]
fn checkpoints_go_forward_and_a_grant_goes_back_to_them() {
    let (mut world, held, two) = two_workers();
    section(&mut world, held, 1, 5);
    append(&mut world, held, None, 100);
    let good = Checkpoint {
        record: RecordNumber(3),
        position: Op(4),
        generation: 0,
        length: 60,
    };
    let mut save = |checkpoint| {
        let write = LeaseWrite::Checkpoint(checkpoint);
        world.act(Act::Write {
            access: held,
            write,
        })
    };
    let record = |record| Checkpoint {
        record: RecordNumber(record),
        ..good
    };
    assert_eq!(save(record(6)), refused(Refusal::Range));
    assert_eq!(
        save(Checkpoint {
            length: 101,
            ..good
        }),
        refused(Refusal::Range)
    );
    assert_eq!(
        save(Checkpoint {
            generation: 1,
            ..good
        }),
        refused(Refusal::Range)
    );
    assert_eq!(
        save(Checkpoint {
            position: Op(99),
            ..good
        }),
        refused(Refusal::Range)
    );
    assert_eq!(save(good), Response::Written);
    assert_eq!(save(record(2)), refused(Refusal::Range));
    let write = LeaseWrite::Compacted { length: 10 };
    world.act(Act::Write {
        access: held,
        write,
    });
    assert_eq!(shard(&world, 2).store.generation, 1);
    grant(&mut world, 2, two, &[2]);
    let store = Store {
        generation: 0,
        length: 60,
    };
    assert_eq!(shard(&world, 2).store, store);
    assert_eq!(shard(&world, 2).end, RecordNumber(5), "the log stays");
}

/// LEA-16
#[test]
fn a_shard_beyond_the_constant_is_refused() {
    let (mut world, held, _) = two_workers();
    let session = held.session;
    assert_eq!(
        grant(&mut world, 1, session, &[1, 4]),
        refused(Refusal::NoShard)
    );
    assert_eq!(shard(&world, 1).epoch, Epoch(0), "none of them is granted");
    let beyond = access(1, session, 4, held.epoch);
    assert_eq!(section(&mut world, beyond, 1, 1), refused(Refusal::NoShard));
}
