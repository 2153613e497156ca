//! From the fields of a vector to values. Borrowed parts live as long as the test runs.

use std::collections::BTreeMap;

use pawl_wire::batch_client::{Message, write_batch};
use pawl_wire::commands::system::{Node, NodeRole, NodeStatus};
use pawl_wire::options::{OptionMap, OptionValue, Options, Tlv, encode_options};
use pawl_wire::permissions::{
    GlobalPermissions, Permissions, StreamPermissions, StreamRights, TopicPermissions,
};
use pawl_wire::primitives::{
    Consumer, Identifier, Name, OptionalPartition, Partitioning, PollingStrategy, Secret, Text32,
    Wire,
};
use serde_json::Value;

pub fn leak(bytes: Vec<u8>) -> &'static [u8] {
    Box::leak(bytes.into_boxed_slice())
}

pub fn text(value: &Value) -> &str {
    value.as_str().expect("a field is text")
}

pub fn text32(value: &Value) -> Text32<'_> {
    Text32(text(value))
}

pub fn secret(value: &Value) -> Secret<'_> {
    Secret(text(value))
}

pub fn name(value: &Value) -> Name<'_> {
    Name::new(text(value)).expect("a field is a name")
}

pub fn number(value: &Value) -> u64 {
    value.as_u64().expect("a field is a number")
}

pub fn small(value: &Value) -> u32 {
    number(value).try_into().expect("a field is a small number")
}

pub fn byte(value: &Value) -> u8 {
    number(value).try_into().expect("a field is a byte")
}

pub fn port(value: &Value) -> u16 {
    number(value).try_into().expect("a field is a port")
}

pub fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a field is a list")
}

pub fn hex(value: &Value) -> Vec<u8> {
    let digits = text(value);
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex digits"))
        .collect()
}

pub fn identifier(value: &Value) -> Identifier<'_> {
    match value {
        Value::String(name) => Identifier::named(name).expect("a field is a name"),
        _ => Identifier::Numeric(small(value)),
    }
}

/// The consumer of an offset or poll command.
pub fn consumer(fields: &Value) -> Consumer<'_> {
    match fields.get("consumer") {
        Some(plain) => Consumer::Plain(identifier(plain)),
        None => Consumer::Group(identifier(&fields["consumer_group"])),
    }
}

pub fn partition(value: &Value) -> OptionalPartition {
    OptionalPartition((!value.is_null()).then(|| small(value)))
}

pub fn strategy(value: &Value) -> PollingStrategy {
    match value {
        Value::String(name) if name == "next" => PollingStrategy::Next,
        _ => PollingStrategy::Offset(number(&value["offset"])),
    }
}

pub fn partitioning(value: &Value) -> Partitioning<'static> {
    if value == "balanced" {
        return Partitioning::Balanced;
    }
    match value.get("key") {
        Some(key) => Partitioning::Key(leak(hex(key))),
        None => Partitioning::Partition(small(&value["partition"])),
    }
}

/// An option block, sorted by key.
pub fn options(value: &Value) -> Options<'static> {
    let map: OptionMap = value
        .as_object()
        .expect("options are an object")
        .iter()
        .map(|(key, value)| {
            let value = match value {
                Value::String(text) => OptionValue::text(text),
                Value::Bool(flag) => OptionValue::bool(*flag),
                _ => OptionValue::u64(number(value)),
            };
            (key.as_str().into(), value)
        })
        .collect();
    Options::new(leak(encode_options(&map))).expect("our own block is well formed")
}

/// Permissions, or `None`; "see permissions" is the vector of that name.
pub fn optional_permissions(value: &Value) -> Option<Permissions> {
    match value {
        Value::Null => None,
        _ if value == "see permissions" => Some(permissions(&crate::vector("permissions").fields)),
        _ => panic!("no reading of the permissions {value}"),
    }
}

pub fn permissions(fields: &Value) -> Permissions {
    let has = |value: &Value, flag: &str| list(value).iter().any(|set| set == flag);
    let global = &fields["global"];
    Permissions {
        global: GlobalPermissions {
            manage_servers: has(global, "manage_servers"),
            read_servers: has(global, "read_servers"),
            manage_users: has(global, "manage_users"),
            read_users: has(global, "read_users"),
            manage_streams: has(global, "manage_streams"),
            read_streams: has(global, "read_streams"),
            manage_topics: has(global, "manage_topics"),
            read_topics: has(global, "read_topics"),
            poll_messages: has(global, "poll_messages"),
            send_messages: has(global, "send_messages"),
        },
        streams: list(&fields["streams"])
            .iter()
            .map(|stream| {
                let flags = &stream["flags"];
                let rights = StreamRights {
                    manage_stream: has(flags, "manage_stream"),
                    read_stream: has(flags, "read_stream"),
                    manage_topics: has(flags, "manage_topics"),
                    read_topics: has(flags, "read_topics"),
                    poll_messages: has(flags, "poll_messages"),
                    send_messages: has(flags, "send_messages"),
                };
                let topics: BTreeMap<u32, TopicPermissions> = list(&stream["topics"])
                    .iter()
                    .map(|topic| {
                        let flags = &topic["flags"];
                        let rights = TopicPermissions {
                            manage_topic: has(flags, "manage_topic"),
                            read_topic: has(flags, "read_topic"),
                            poll_messages: has(flags, "poll_messages"),
                            send_messages: has(flags, "send_messages"),
                        };
                        (small(&topic["id"]), rights)
                    })
                    .collect();
                (small(&stream["id"]), StreamPermissions { rights, topics })
            })
            .collect(),
    }
}

pub fn messages(value: &Value) -> Vec<Message<'static>> {
    list(value)
        .iter()
        .map(|message| {
            let mut headers = Vec::new();
            if let Some(entries) = message["headers"].as_object() {
                for (key, value) in entries {
                    Tlv::text(key).write(&mut headers);
                    let flag = value.as_bool().expect("the only header is a truth value");
                    OptionValue::bool(flag).as_tlv().write(&mut headers);
                }
            }
            Message {
                id: number(&message["id"]).into(),
                origin_timestamp: number(&message["origin_timestamp"]),
                payload: leak(hex(&message["payload"])),
                user_headers: leak(headers),
            }
        })
        .collect()
}

pub fn batch(messages: &[Message<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    write_batch(messages, &mut out).expect("the messages are within the limits");
    out
}

pub fn node(value: &Value) -> Node<'_> {
    Node {
        name: text32(&value["name"]),
        ip: text32(&value["ip"]),
        tcp: port(&value["tcp"]),
        quic: port(&value["quic"]),
        http: port(&value["http"]),
        websocket: port(&value["websocket"]),
        role: NodeRole::from_u8(byte(&value["role"])).expect("a role"),
        status: NodeStatus::from_u8(byte(&value["status"])).expect("a status"),
    }
}
