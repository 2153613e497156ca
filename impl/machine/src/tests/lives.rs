//! Random lives of catalog, data and groups. The harness recounts and restores after every op.

use pawl_wire::commands::groups::{CreateGroup, JoinGroup, LeaveGroup};
use pawl_wire::commands::partitions::{CreatePartitions, DeletePartitions};
use pawl_wire::commands::streams::{DeleteStream, PurgeStream};
use pawl_wire::commands::topics::{DeleteTopic, PurgeTopic};
use pawl_wire::primitives::Identifier;
use proptest::prelude::*;

use super::catalog::{Root, named};
use super::data::{key, offset, send};
use super::*;

/// A write to a stream, a topic or a partition.
#[derive(Clone, Copy, Debug)]
enum Write {
    Send(usize, u32),
    Store(usize, u32, u64),
    PurgeTopic(u32, u32),
    PurgeStream(u32),
    DeleteTopic(u32, u32),
    DeleteStream(u32),
    CreateTopic(u32),
    CreateStream,
    CreatePartition(u32, u32),
    DeletePartition(u32, u32),
    CreateGroup(u32, u32),
}

/// What a client, one of several, does.
#[derive(Clone, Copy, Debug)]
enum Doing {
    /// Joins the first group of a topic.
    Join(u32, u32),
    Leave(u32, u32),
    SignIn,
    /// Its connection ends.
    Release,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Write(Write),
    Client(u128, Doing),
}

fn write() -> impl Strategy<Value = Write> {
    let id = || 0..3u32;
    prop_oneof![
        6 => (any::<usize>(), 1..20u32).prop_map(|(p, n)| Write::Send(p, n)),
        2 => (any::<usize>(), 0..3u32, 0..30u64).prop_map(|(p, c, o)| Write::Store(p, c, o)),
        1 => (id(), id()).prop_map(|(s, t)| Write::PurgeTopic(s, t)),
        1 => id().prop_map(Write::PurgeStream),
        1 => (id(), id()).prop_map(|(s, t)| Write::DeleteTopic(s, t)),
        1 => id().prop_map(Write::DeleteStream),
        3 => id().prop_map(Write::CreateTopic),
        2 => Just(Write::CreateStream),
        1 => (id(), id()).prop_map(|(s, t)| Write::CreatePartition(s, t)),
        1 => (id(), id()).prop_map(|(s, t)| Write::DeletePartition(s, t)),
        2 => (id(), id()).prop_map(|(s, t)| Write::CreateGroup(s, t)),
    ]
}

fn doing() -> impl Strategy<Value = Doing> {
    let id = || 0..3u32;
    prop_oneof![
        3 => (id(), id()).prop_map(|(s, t)| Doing::Join(s, t)),
        1 => (id(), id()).prop_map(|(s, t)| Doing::Leave(s, t)),
        1 => Just(Doing::SignIn),
        1 => Just(Doing::Release),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => write().prop_map(Step::Write),
        1 => (10..13u128, doing()).prop_map(|(client, doing)| Step::Client(client, doing)),
    ]
}

/// `next` makes names.
fn take_write(root: &mut Root, write: Write, next: u64) {
    let session = root.session;
    let uids: Vec<_> = root
        .log
        .machine
        .partitions
        .iter()
        .map(|(uid, _)| uid)
        .collect();
    let pick = |index: usize| uids.get(index % uids.len().max(1)).copied();
    let id = Identifier::Numeric;
    match write {
        Write::Send(index, messages) => {
            if let Some(uid) = pick(index) {
                assert!(
                    root.log
                        .apply(send(session, uid, 1, messages), b"")
                        .is_done()
                );
            }
        }
        Write::Store(index, consumer, to) => {
            if let Some(uid) = pick(index) {
                let key = key(uid, consumer);
                root.log
                    .apply(offset(session, EntryKind::StoreOffset, key, to), b"");
            }
        }
        Write::PurgeStream(stream) => {
            root.ask(EntryKind::PurgeStream, &PurgeStream { stream: id(stream) });
        }
        Write::DeleteStream(stream) => {
            root.ask(
                EntryKind::DeleteStream,
                &DeleteStream { stream: id(stream) },
            );
        }
        Write::CreateTopic(stream) => {
            root.create_topic(stream, &format!("t{next}"), next as u32 % 4);
        }
        Write::CreateStream => {
            root.create_stream(&format!("s{next}"));
        }
        Write::PurgeTopic(stream, topic)
        | Write::DeleteTopic(stream, topic)
        | Write::CreatePartition(stream, topic)
        | Write::DeletePartition(stream, topic)
        | Write::CreateGroup(stream, topic) => {
            take_topic_write(root, write, (id(stream), id(topic)), next);
        }
    }
}

fn take_topic_write(
    root: &mut Root,
    write: Write,
    (stream, topic): (Identifier<'_>, Identifier<'_>),
    next: u64,
) {
    let count = 1;
    match write {
        Write::PurgeTopic(..) => root.ask(EntryKind::PurgeTopic, &PurgeTopic { stream, topic }),
        Write::DeleteTopic(..) => root.ask(EntryKind::DeleteTopic, &DeleteTopic { stream, topic }),
        Write::CreatePartition(..) => {
            let body = CreatePartitions {
                stream,
                topic,
                count,
            };
            root.ask(EntryKind::CreatePartitions, &body)
        }
        Write::DeletePartition(..) => {
            let body = DeletePartitions {
                stream,
                topic,
                count,
            };
            root.ask(EntryKind::DeletePartitions, &body)
        }
        _ => {
            let name = format!("g{next}");
            let name = named(&name);
            let body = CreateGroup {
                stream,
                topic,
                name,
            };
            root.ask(EntryKind::CreateConsumerGroup, &body)
        }
    };
}

fn take_doing(root: &mut Root, client: u128, doing: Doing, next: u64) {
    let epoch = root.log.epoch(client).unwrap_or_default().0;
    let session = Session { client, epoch };
    let id = Identifier::Numeric;
    let group = id(0);
    match doing {
        Doing::Join(stream, topic) => {
            let (stream, topic) = (id(stream), id(topic));
            let body = JoinGroup {
                stream,
                topic,
                group,
            };
            root.log
                .request(session, next, EntryKind::JoinConsumerGroup, &body);
        }
        Doing::Leave(stream, topic) => {
            let (stream, topic) = (id(stream), id(topic));
            let body = LeaveGroup {
                stream,
                topic,
                group,
            };
            root.log
                .request(session, next, EntryKind::LeaveConsumerGroup, &body);
        }
        Doing::SignIn => {
            root.log.sign_in(client);
        }
        Doing::Release => {
            root.log.release(session);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // Known faults 10.4 and 3.7. spec SES-33, SES-34
    #[test]
    fn any_order_of_changes_keeps_counts_and_snapshots_true(
        steps in prop::collection::vec(step(), 0..80)
    ) {
        let mut root = Root::new();
        for client in 10..13 {
            root.log.sign_in(client);
        }
        for (next, step) in (1..).zip(steps) {
            match step {
                Step::Write(write) => take_write(&mut root, write, next),
                Step::Client(client, doing) => take_doing(&mut root, client, doing, next),
            }
        }
    }
}
