use super::*;
use crate::options::encode_options;
use crate::primitives::Wire;

fn block(entries: &[(&str, OptionValue)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in entries {
        Tlv::text(key).write(&mut out);
        value.as_tlv().write(&mut out);
    }
    out
}

fn create(entries: &[(&str, OptionValue)]) -> Result<TopicOptions, TopicOptionError> {
    let block = block(entries);
    TopicOptions::create(&Options::new(&block).expect("well formed"), 1)
}

fn update(
    topic: &TopicOptions,
    entries: &[(&str, OptionValue)],
) -> Result<TopicOptions, TopicOptionError> {
    let block = block(entries);
    topic.updated(&Options::new(&block).expect("well formed"))
}

fn text(value: &str) -> OptionValue {
    OptionValue::text(value)
}

fn keys(map: &OptionMap) -> Vec<&str> {
    map.keys().map(|key| &**key).collect()
}

#[test]
fn nothing_sent_derives_the_whole_catalog() {
    let topic = create(&[]).expect("nothing to refuse");
    assert_eq!(topic, TopicOptions::default());
    assert!(topic.explicit().is_empty());
    let derived = topic.derived();
    assert_eq!(derived.len(), TopicOption::ALL.len());
    for option in TopicOption::ALL {
        assert_eq!(derived[option.key()].kind, option.canonical_kind());
        assert_eq!(derived[option.key()], option.default_value());
        assert_eq!(TopicOption::from_key(option.key()), Some(option));
    }
    assert_eq!(topic.value(TopicOption::Durability), text("persisted"));
}

#[test]
fn values_are_stored_in_their_canonical_kind() {
    let table = [
        ("compression_algorithm", text("GZIP"), text("gzip")),
        (
            "message_expiry",
            text("7 days"),
            OptionValue::u64(604_800_000_000),
        ),
        ("max_topic_size", text("2 GiB"), OptionValue::u64(2 << 30)),
        ("segment_size", text("128 MiB"), OptionValue::u64(128 << 20)),
        ("enforce_fsync", text("true"), OptionValue::bool(true)),
        ("durability", text("Persisted"), text("persisted")),
        (
            "consumer_offset_durability",
            text("REPLICATED"),
            text("replicated"),
        ),
        ("messages_required_to_save", text("5"), OptionValue::u32(5)),
        (
            "size_of_messages_required_to_save",
            text("1 KiB"),
            OptionValue::u64(1024),
        ),
        (
            "preallocate_segments",
            text("true"),
            OptionValue::bool(true),
        ),
    ];
    for (key, sent, stored) in table {
        let topic = create(&[(key, sent)]).expect("the value is accepted");
        assert_eq!(topic.explicit().get(key), Some(&stored), "{key}");
        let again = create(&[(key, stored.clone())]).expect("the canonical value is accepted");
        assert_eq!(again, topic, "{key}");
        assert_eq!(TopicOptions::restore(topic.explicit().clone()), Ok(topic));
    }
}

#[test]
fn compression_may_be_a_number() {
    let number = |value: u8| OptionValue {
        kind: kind::U8,
        bytes: [value].into(),
    };
    let topic = create(&[("compression_algorithm", number(2))]).expect("2 is gzip");
    assert_eq!(topic.compression, CompressionAlgorithm::Gzip);
    assert_eq!(topic.explicit()["compression_algorithm"], text("gzip"));
    assert!(create(&[("compression_algorithm", number(3))]).is_err());
}

#[test]
fn zero_stays_explicit_and_becomes_the_default() {
    let topic = create(&[
        ("message_expiry", OptionValue::u64(0)),
        ("max_topic_size", OptionValue::u64(0)),
        ("segment_size", OptionValue::u64(0)),
        ("size_of_messages_required_to_save", OptionValue::u64(0)),
    ])
    .expect("0 asks for the default");
    assert_eq!(topic.explicit()["max_topic_size"], OptionValue::u64(0));
    assert_eq!(topic.message_expiry, UNLIMITED);
    assert_eq!(topic.max_topic_size, UNLIMITED);
    assert_eq!(topic.segment_size, SEGMENT_BYTES_MAX);
    assert_eq!(topic.size_of_messages_required_to_save, 1 << 20);
}

#[test]
fn bad_values_are_refused() {
    let table = [
        ("compression_algorithm", text("zstd")),
        ("message_expiry", text("soon")),
        ("message_expiry", OptionValue::u32(1)),
        ("max_topic_size", OptionValue::bool(true)),
        ("segment_size", OptionValue::u64((1 << 20) - 512)),
        ("segment_size", OptionValue::u64((1 << 30) + 512)),
        ("segment_size", OptionValue::u64((1 << 20) + 1)),
        ("enforce_fsync", text("yes")),
        (
            "enforce_fsync",
            OptionValue {
                kind: kind::BOOL,
                bytes: [2].into(),
            },
        ),
        (
            "enforce_fsync",
            OptionValue {
                kind: kind::BOOL,
                bytes: [1, 0].into(),
            },
        ),
        ("durability", text("maybe")),
        ("durability", OptionValue::bool(true)),
        ("consumer_offset_durability", text("none")),
        ("messages_required_to_save", OptionValue::u32(0)),
        ("messages_required_to_save", OptionValue::u32(16_777_217)),
        (
            "size_of_messages_required_to_save",
            OptionValue::u64((1 << 30) + 1),
        ),
        ("preallocate_segments", OptionValue::u32(1)),
    ];
    for (key, value) in table {
        let refused = create(&[(key, value.clone())]).expect_err("the value is bad");
        assert_eq!(
            refused.code(),
            ErrorCode::InvalidOptionValue,
            "{key} {value:?}"
        );
    }
}

#[test]
fn unknown_keys_and_fixed_keys_are_refused() {
    let refused = create(&[("retention", text("1"))]).expect_err("not in the catalog");
    assert_eq!(refused.code(), ErrorCode::UnsupportedOptionKey);
    let topic = TopicOptions::default();
    for option in TopicOption::ALL {
        let changed = update(&topic, &[(option.key(), option.default_value())]);
        match option.is_updatable() {
            true => assert!(changed.is_ok(), "{option}"),
            false => assert_eq!(changed, Err(TopicOptionError::Fixed(option))),
        }
    }
    let block = block(&[("any", text("1"))]);
    let options = Options::new(&block).expect("well formed");
    let refused = refuse_options(&options).expect_err("streams have no options");
    assert_eq!(refused.code(), ErrorCode::UnsupportedOptionKey);
    assert_eq!(refuse_options(&Options::EMPTY), Ok(()));
}

#[test]
fn durability_families_do_not_mix_in_the_derived_block() {
    let absent = |topic: &TopicOptions, absent: &[&str]| {
        let derived = topic.derived();
        let found = keys(&derived);
        absent.iter().all(|key| !found.contains(key))
    };
    let fsync = create(&[("enforce_fsync", OptionValue::bool(true))]).expect("accepted");
    assert_eq!(fsync.durability, Durability::Persisted);
    assert!(absent(
        &fsync,
        &["enforce_fsync", "durability", "consumer_offset_durability"]
    ));
    assert_eq!(fsync.derived().len(), 7);

    let durability = create(&[("durability", text("replicated"))]).expect("accepted");
    assert!(absent(&durability, &["enforce_fsync", "durability"]));
    assert_eq!(keys(&durability.derived()).len(), 8);

    let off = create(&[("enforce_fsync", OptionValue::bool(false))]).expect("accepted");
    assert_eq!(off.durability, Durability::Replicated);
}

#[test]
fn contradictory_families_are_refused() {
    for (fsync, durability, accepted) in [
        (true, "persisted", true),
        (false, "replicated", true),
        (true, "replicated", false),
        (false, "persisted", false),
    ] {
        let entries = [
            ("enforce_fsync", OptionValue::bool(fsync)),
            ("durability", text(durability)),
        ];
        let created = create(&entries);
        assert_eq!(created.is_ok(), accepted, "{fsync} {durability}");
        if let Err(refused) = created {
            assert_eq!(refused.code(), ErrorCode::InvalidOptionValue);
        }
    }
}

#[test]
fn a_topic_is_not_smaller_than_a_segment() {
    let small = ("max_topic_size", OptionValue::u64(1 << 20));
    let refused = create(std::slice::from_ref(&small)).expect_err("below the default segment");
    assert_eq!(refused.code(), ErrorCode::InvalidTopicSize);
    let segment = ("segment_size", OptionValue::u64(1 << 20));
    let topic = create(&[small, segment]).expect("as large as a segment");
    let smaller = [("max_topic_size", OptionValue::u64((1 << 20) - 1))];
    let refused = update(&topic, &smaller).expect_err("below the segment");
    assert_eq!(refused.code(), ErrorCode::InvalidTopicSize);
}

#[test]
fn preallocation_is_bounded_over_all_partitions() {
    let block = block(&[("preallocate_segments", OptionValue::bool(true))]);
    let options = Options::new(&block).expect("well formed");
    assert!(TopicOptions::create(&options, 64).is_ok());
    let refused = TopicOptions::create(&options, 65).expect_err("above 64 GiB");
    assert_eq!(refused.code(), ErrorCode::InvalidOptionValue);
    assert!(TopicOptions::create(&Options::EMPTY, 1000).is_ok());
}

#[test]
fn an_update_stores_the_bytes_as_sent() {
    let topic = create(&[("message_expiry", OptionValue::u64(5))]).expect("accepted");
    let topic = update(&topic, &[("message_expiry", text("1 s"))]).expect("accepted");
    assert_eq!(topic.message_expiry, 1_000_000);
    assert_eq!(topic.explicit()["message_expiry"], text("1 s"));
    let topic = update(&topic, &[("compression_algorithm", text("gzip"))]).expect("accepted");
    assert_eq!(
        topic.message_expiry, 1_000_000,
        "what is not sent keeps its value"
    );
    assert!(!topic.derived().contains_key("compression_algorithm"));
    assert_eq!(TopicOptions::restore(topic.explicit().clone()), Ok(topic));
}

#[test]
fn blocks_are_written_sorted_by_key() {
    let topic = create(&[]).expect("nothing to refuse");
    let bytes = encode_options(&topic.derived());
    let written: Vec<&str> = Options::new(&bytes)
        .expect("our own block is well formed")
        .iter()
        .map(|(key, _)| key)
        .collect();
    assert!(written.is_sorted());
    assert_eq!(written.len(), 10);
}
