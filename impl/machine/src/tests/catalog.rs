//! Streams, topics and partitions: effects, refusals, ids.

use pawl_wire::commands::partitions::{CreatePartitions, DeletePartitions, DeleteSegments};
use pawl_wire::commands::streams::{
    CreateStream, DeleteStream, PurgeStream, Stream, StreamDetails, UpdateStream,
};
use pawl_wire::commands::topics::{
    CompressionAlgorithm, CreateTopic, DeleteTopic, PurgeTopic, TopicDetails, UpdateTopic,
};
use pawl_wire::ids::{PartitionId, PartitionUid, StreamId, TopicId};
use pawl_wire::operation::Operation;
use pawl_wire::options::{Options, Tlv};
use pawl_wire::primitives::{Identifier, Name};
use pawl_wire::topic_options::UNLIMITED;

use super::*;
use crate::check::{check_body, is_carried_out};

/// A log with a signed-in root that numbers its requests.
pub(super) struct Root {
    pub log: Log,
    pub session: Session,
    pub number: u64,
}

impl Root {
    pub fn new() -> Root {
        let mut log = Log::new();
        let session = log.sign_in(5);
        Root {
            log,
            session,
            number: 0,
        }
    }

    pub fn ask<'a>(&mut self, kind: EntryKind, body: &impl Wire<'a>) -> Said {
        self.number += 1;
        self.log.request(self.session, self.number, kind, body)
    }

    pub fn create_stream(&mut self, name: &str) -> Said {
        let body = CreateStream {
            name: named(name),
            options: Options::EMPTY,
        };
        self.ask(EntryKind::CreateStream, &body)
    }

    pub fn create_topic(&mut self, stream: u32, name: &str, partitions: u32) -> Said {
        self.create_topic_with(stream, name, partitions, &[])
    }

    pub fn create_topic_with(
        &mut self,
        stream: u32,
        name: &str,
        partitions_count: u32,
        options: &[u8],
    ) -> Said {
        let body = CreateTopic {
            stream: Identifier::Numeric(stream),
            partitions_count,
            name: named(name),
            options: Options::new(options).expect("a block"),
        };
        self.ask(EntryKind::CreateTopic, &body)
    }

    pub fn uid(&self, stream: u32, topic: u32, partition: u32) -> PartitionUid {
        let (stream, topic) = (Identifier::Numeric(stream), Identifier::Numeric(topic));
        let found = self
            .log
            .machine
            .catalog()
            .partition(stream, topic, partition);
        found.expect("it exists").uid
    }
}

pub(super) fn named(name: &str) -> Name<'_> {
    Name::new(name).expect("a name")
}

fn id(id: u32) -> Identifier<'static> {
    Identifier::Numeric(id)
}

fn option(key: &str, value: Tlv<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    Tlv::text(key).write(&mut out);
    value.write(&mut out);
    out
}

fn stream_id(said: &Said) -> u32 {
    Stream::decode(said.payload()).expect("a stream").id
}

#[test]
fn ids_are_the_lowest_free_and_partitions_never_come_back() {
    let mut root = Root::new();
    for (expected, name) in ["a", "b", "c"].into_iter().enumerate() {
        assert_eq!(stream_id(&root.create_stream(name)), expected as u32);
    }
    root.create_topic(1, "t", 2);
    let before = root.uid(1, 0, 0);
    let delete = DeleteStream { stream: id(1) };
    assert!(root.ask(EntryKind::DeleteStream, &delete).is_done());
    let dropped = root.log.effects.iter();
    let dropped = dropped.filter(|effect| matches!(effect, Effect::PartitionDropped { .. }));
    assert_eq!(dropped.count(), 2);
    assert_eq!(stream_id(&root.create_stream("d")), 1);
    root.create_topic(1, "t", 2);
    assert_ne!(root.uid(1, 0, 0), before);
    assert_eq!(stream_id(&root.create_stream("e")), 3);
}

#[test]
fn a_create_reply_is_what_a_read_says_and_orders_the_partitions() {
    let mut root = Root::new();
    root.create_stream("s");
    let said = root.create_topic(0, "t", 3);
    let details = TopicDetails::decode(said.payload()).expect("details");
    assert_eq!((details.topic.id, details.topic.partitions_count), (0, 3));
    assert_eq!(details.topic.message_expiry, UNLIMITED);
    assert_eq!(details.topic.compression, CompressionAlgorithm::None);
    assert_eq!(details.partitions[2].id, 2);
    assert_eq!(details.partitions[2].segments_count, 1);
    let mut read = Vec::new();
    assert!(
        root.log
            .machine
            .write_topic_details(StreamId(0), TopicId(0), &mut read)
    );
    assert_eq!(read, said.payload());
    let created: Vec<_> = (0..3)
        .map(|partition| Effect::PartitionCreated {
            uid: PartitionUid::new(root.log.op(), partition as u16),
            stream: StreamId(0),
            topic: TopicId(0),
            partition: PartitionId(partition),
        })
        .chain([Effect::CatalogChanged])
        .collect();
    assert_eq!(root.log.effects, created);
    let mut read = Vec::new();
    assert!(
        root.log
            .machine
            .write_stream_details(StreamId(0), &mut read)
    );
    let details = StreamDetails::decode(&read).expect("details");
    assert_eq!(details.stream.topics_count, 1);
    assert!(
        !root
            .log
            .machine
            .write_stream_details(StreamId(1), &mut read)
    );
}

#[test]
fn renaming_frees_the_old_name_and_its_own_name_is_allowed() {
    let mut root = Root::new();
    root.create_stream("a");
    root.create_stream("b");
    let mut rename = |stream, name| {
        let body = UpdateStream {
            stream,
            name: named(name),
            options: Options::EMPTY,
        };
        root.ask(EntryKind::UpdateStream, &body).code()
    };
    let by_name = Identifier::named("a").expect("a name");
    assert_eq!(rename(by_name, "a"), 0);
    assert_eq!(rename(by_name, "b"), 1012);
    assert_eq!(rename(by_name, "c"), 0);
    assert_eq!(rename(by_name, "d"), 1009);
    assert_eq!(rename(id(1), "a"), 0);
    // A numeric string is a name.
    assert_eq!(rename(Identifier::named("0").expect("a name"), "e"), 1009);
}

#[test]
fn topic_updates_keep_what_is_not_sent() {
    let mut root = Root::new();
    root.create_stream("s");
    let week = option(
        "message_expiry",
        Tlv {
            kind: 12,
            bytes: &7u64.to_le_bytes(),
        },
    );
    root.create_topic_with(0, "t", 1, &week);
    let gzip = option("compression_algorithm", Tlv::text("gzip"));
    let body = UpdateTopic {
        stream: id(0),
        topic: id(0),
        name: named("u"),
        options: Options::new(&gzip).expect("a block"),
    };
    assert!(root.ask(EntryKind::UpdateTopic, &body).is_done());
    let topic = root
        .log
        .machine
        .catalog()
        .topic_by_id(StreamId(0), TopicId(0));
    let topic = topic.expect("it exists");
    assert_eq!(&*topic.name, "u");
    assert_eq!(topic.options.message_expiry, 7);
    assert_eq!(topic.options.compression, CompressionAlgorithm::Gzip);
    let old = root
        .log
        .machine
        .catalog()
        .topic(id(0), Identifier::named("t").expect("a name"));
    assert!(old.is_err());
}

#[test]
fn partitions_are_added_and_removed_at_the_end() {
    let mut root = Root::new();
    root.create_stream("s");
    root.create_topic(0, "t", 1);
    let add = CreatePartitions {
        stream: id(0),
        topic: id(0),
        count: 2,
    };
    assert!(root.ask(EntryKind::CreatePartitions, &add).is_done());
    let (first, second) = (root.uid(0, 0, 1), root.uid(0, 0, 2));
    assert_eq!(second.0, first.0 + 1);
    let remove = |count| DeletePartitions {
        stream: id(0),
        topic: id(0),
        count,
    };
    assert_eq!(
        root.ask(EntryKind::DeletePartitions, &remove(4)).code(),
        2019
    );
    assert!(root.ask(EntryKind::DeletePartitions, &remove(1)).is_done());
    let dropped = Effect::PartitionDropped { uid: second };
    assert_eq!(root.log.effects, [dropped, Effect::CatalogChanged]);
    assert!(root.ask(EntryKind::DeletePartitions, &remove(2)).is_done());
    assert_eq!(root.log.machine.totals().partitions, 0);
}

#[test]
fn missing_things_are_named_at_their_first_missing_level() {
    // spec ANS-12
    let mut root = Root::new();
    root.create_stream("s");
    root.create_topic(0, "t", 1);
    let cases = [(id(9), id(9), 1009), (id(0), id(9), 2010)];
    for (stream, topic, code) in cases {
        let update = UpdateTopic {
            stream,
            topic,
            name: named("u"),
            options: Options::EMPTY,
        };
        assert_eq!(root.ask(EntryKind::UpdateTopic, &update).code(), code);
        let delete = DeleteTopic { stream, topic };
        assert_eq!(root.ask(EntryKind::DeleteTopic, &delete).code(), code);
        let purge = PurgeTopic { stream, topic };
        assert_eq!(root.ask(EntryKind::PurgeTopic, &purge).code(), code);
        let count = 1;
        let create = CreatePartitions {
            stream,
            topic,
            count,
        };
        assert_eq!(root.ask(EntryKind::CreatePartitions, &create).code(), code);
        let delete = DeletePartitions {
            stream,
            topic,
            count,
        };
        assert_eq!(root.ask(EntryKind::DeletePartitions, &delete).code(), code);
        let segments = DeleteSegments {
            stream,
            topic,
            partition: 9,
            segments: 1,
        };
        assert_eq!(root.ask(EntryKind::DeleteSegments, &segments).code(), code);
    }
    let segments = DeleteSegments {
        stream: id(0),
        topic: id(0),
        partition: 1,
        segments: 1,
    };
    assert_eq!(root.ask(EntryKind::DeleteSegments, &segments).code(), 3007);
    let stream = id(9);
    assert_eq!(
        root.ask(EntryKind::DeleteStream, &DeleteStream { stream })
            .code(),
        1009
    );
    assert_eq!(
        root.ask(EntryKind::PurgeStream, &PurgeStream { stream })
            .code(),
        1009
    );
    assert_eq!(root.create_topic(9, "t", 1).code(), 1009);
}

#[test]
fn taken_names_and_bad_bodies_are_committed_refusals() {
    let mut root = Root::new();
    root.create_stream("s");
    root.create_topic(0, "t", 1);
    assert_eq!(root.create_stream("s").code(), 1012);
    assert_eq!(root.create_topic(0, "t", 1).code(), 2013);
    assert_eq!(root.create_topic(0, "u", 1_001).code(), 2015);
    let unknown = option("colour", Tlv::text("red"));
    assert_eq!(root.create_topic_with(0, "u", 1, &unknown).code(), 4041);
    let bad = option("compression_algorithm", Tlv::text("lzma"));
    assert_eq!(root.create_topic_with(0, "u", 1, &bad).code(), 4042);
    let said = root
        .log
        .apply(root.session.header(EntryKind::CreateTopic, 99), b"\x01");
    assert!(said.is(ErrorCode::InvalidCommand));
    // spec ANS-8
    assert_eq!(
        (said.header().status, said.header().op),
        (0, root.log.op().0)
    );
    assert!(root.log.effects.is_empty());
}

// spec ANS-9
#[test]
fn a_success_of_delete_segments_carries_its_own_operation() {
    let mut root = Root::new();
    root.create_stream("s");
    root.create_topic(0, "t", 1);
    let segments = DeleteSegments {
        stream: id(0),
        topic: id(0),
        partition: 0,
        segments: 5,
    };
    let said = root.ask(EntryKind::DeleteSegments, &segments);
    assert_eq!(said.header().operation, Operation::TruncatePartition as u8);
    assert_eq!(said.payload(), b"");
}

// spec ANS-15
#[test]
fn kinds_that_are_not_carried_out_are_committed_refusals_with_the_session_alive() {
    let mut root = Root::new();
    for kind in (0..=255)
        .filter_map(EntryKind::from_u8)
        .filter(|kind| !is_carried_out(*kind))
    {
        root.number += 1;
        let header = root.session.header(kind, root.number);
        let said = root.log.apply(header, b"");
        assert!(said.is(ErrorCode::FeatureUnavailable), "{kind:?}");
        assert_eq!(said.header().status, 0, "{kind:?}");
        assert_eq!(said.header().op, root.log.op().0);
        assert_eq!(check_body(kind, b""), Err(ErrorCode::FeatureUnavailable));
    }
    assert!(root.create_stream("s").is_done());
}

// spec ANS-13
#[test]
fn what_needs_no_state_is_refused_at_the_door() {
    let topic = |partitions_count, options| {
        let body = CreateTopic {
            stream: id(0),
            partitions_count,
            name: named("t"),
            options: Options::new(options).expect("a block"),
        };
        check_body(EntryKind::CreateTopic, &body.encode())
    };
    assert_eq!(topic(0, b""), Ok(()));
    assert_eq!(topic(1_000, b""), Ok(()));
    assert_eq!(topic(1_001, b""), Err(ErrorCode::TooManyPartitions));
    let unknown = option("colour", Tlv::text("red"));
    assert_eq!(topic(1, &unknown), Err(ErrorCode::UnsupportedOptionKey));
    let small = option(
        "max_topic_size",
        Tlv {
            kind: 12,
            bytes: &1u64.to_le_bytes(),
        },
    );
    assert_eq!(topic(1, &small), Err(ErrorCode::InvalidTopicSize));
    let body = CreateStream {
        name: named("s"),
        options: Options::new(&unknown).expect("a block"),
    };
    let refused = Err(ErrorCode::UnsupportedOptionKey);
    assert_eq!(check_body(EntryKind::CreateStream, &body.encode()), refused);
    for count in [0, 1_001] {
        let body = CreatePartitions {
            stream: id(0),
            topic: id(0),
            count,
        };
        let refused = Err(ErrorCode::TooManyPartitions);
        assert_eq!(
            check_body(EntryKind::CreatePartitions, &body.encode()),
            refused
        );
        assert_eq!(
            check_body(EntryKind::DeletePartitions, &body.encode()),
            refused
        );
    }
    let update = UpdateTopic {
        stream: id(0),
        topic: id(0),
        name: named("t"),
        options: Options::new(&small).expect("a block"),
    };
    // Whether it is too small depends on the topic.
    assert_eq!(check_body(EntryKind::UpdateTopic, &update.encode()), Ok(()));
    for kind in (128..=138).filter_map(EntryKind::from_u8) {
        assert_eq!(
            check_body(kind, b""),
            Err(ErrorCode::InvalidCommand),
            "{kind:?}"
        );
    }
}

#[test]
fn a_published_catalog_does_not_change() {
    let mut root = Root::new();
    root.create_stream("s");
    root.create_topic(0, "t", 1);
    let published = root.log.machine.catalog().clone();
    root.create_topic(0, "u", 1);
    root.ask(
        EntryKind::DeleteTopic,
        &DeleteTopic {
            stream: id(0),
            topic: id(0),
        },
    );
    assert!(published.topic(id(0), id(0)).is_ok());
    assert!(published.topic(id(0), id(1)).is_err());
    assert!(root.log.machine.catalog().topic(id(0), id(0)).is_err());
}

#[test]
fn rights_are_judged_at_the_op() {
    let mut log = Log::new();
    let bob = log.add_user("bob", None);
    log.register(7, bob, 1, b"");
    let session = Session {
        client: 7,
        epoch: log.op().0,
    };
    let body = CreateStream {
        name: named("s"),
        options: Options::EMPTY,
    };
    let said = log.request(session, 1, EntryKind::CreateStream, &body);
    assert!(said.is(ErrorCode::Unauthorized));
    log.change_user(bob, |user| {
        let mut permissions = Permissions::default();
        permissions.global.manage_streams = true;
        user.permissions = Some(permissions);
    });
    // The first outcome stands for its number (spec DED-2).
    let said = log.request(session, 1, EntryKind::CreateStream, &body);
    assert!(said.is(ErrorCode::Unauthorized));
    assert!(
        log.request(session, 2, EntryKind::CreateStream, &body)
            .is_done()
    );
    // What the header claims about the user is not believed.
    let header = EntryHeader {
        user: 0,
        ..session.header(EntryKind::DeleteStream, 3)
    };
    log.change_user(bob, |user| user.permissions = None);
    let delete = DeleteStream { stream: id(0) };
    assert!(
        log.apply(header, &delete.encode())
            .is(ErrorCode::Unauthorized)
    );
}
