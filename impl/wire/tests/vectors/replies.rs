//! The payload that a response vector's fields describe. Where the fields only count or name what
//! is inside, the values are those of the vectors around it.

use pawl_wire::command::{CommandCode, Payload};
use pawl_wire::commands::groups::{Group, GroupAssignment, GroupDetails, GroupMember};
use pawl_wire::commands::messages::{PollReply, RouteReply, SendReceipt, SendReply};
use pawl_wire::commands::offsets::OffsetReply;
use pawl_wire::commands::session::LoginReply;
use pawl_wire::commands::streams::{Stream, StreamDetails};
use pawl_wire::commands::system::{
    ClientDetails, ClientGroup, ClientInfo, ClusterMetadataReply, DescribeOptionsReply,
    OptionDescription, StatsReply, Transport, USER_ID_NONE,
};
use pawl_wire::commands::tokens::{CreateTokenReply, Token};
use pawl_wire::commands::topics::{CompressionAlgorithm, Partition, TopicDetails, TopicHeader};
use pawl_wire::commands::users::{User, UserDetails, UserStatus};
use pawl_wire::headers::{HEADER_BYTES, RequestHeader};
use pawl_wire::options::{Options, OptionsBlock};
use pawl_wire::permissions::PermissionsTail;
use pawl_wire::primitives::{Bytes32, Empty, List, OrEmpty, Raw, Text32, ToEnd};
use pawl_wire::reply::Reply;
use serde_json::{Value, json};

use crate::Vector;
use crate::values::*;

pub fn expected<'a>(name: &str, fields: &'a Value) -> Payload<'a> {
    match name {
        "login_register_reply" => Payload::LoginRegister(login(fields)),
        "stats_reply" => Payload::GetStats(stats(fields)),
        "cluster_metadata_reply_single" | "cluster_metadata_reply_two" => {
            Payload::GetClusterMetadata(ClusterMetadataReply {
                name: text32(&fields["name"]),
                nodes: List(list(&fields["nodes"]).iter().map(node).collect()),
            })
        }
        "describe_options_reply" => Payload::DescribeOptions(described(fields)),
        "me_reply" => Payload::GetMe(client(fields)),
        "client_reply_with_group" => Payload::GetClient(OrEmpty(Some(client(fields)))),
        "clients_reply" => Payload::GetClients(clients()),
        "user_reply" => Payload::GetUser(OrEmpty(Some(user_details(fields)))),
        "user_reply_permissions" => Payload::CreateUser(user_details(fields)),
        "users_reply" => Payload::GetUsers(ToEnd(users(fields))),
        "tokens_reply" => Payload::GetTokens(ToEnd(tokens(fields))),
        "token_create_reply" => Payload::CreateToken(CreateTokenReply {
            token: secret(&fields["token"]),
        }),
        "stream_create_reply" => Payload::CreateStream(stream(fields)),
        "streams_reply" | "stream_reply_with_topic" => streams(name, fields),
        "topic_reply" => Payload::CreateTopic(topic_details(fields)),
        "topics_reply" => Payload::GetTopics(List(vec![plain_topic()])),
        "group_reply" => Payload::GetGroup(OrEmpty(Some(group_details(fields)))),
        "groups_reply" => Payload::GetGroups(ToEnd(vec![plain_group(fields)])),
        "group_sync_reply" => Payload::SyncGroup(OrEmpty(Some(GroupAssignment {
            generation: number(&fields["generation"]),
            partitions: List(list(&fields["partitions"]).iter().map(small).collect()),
        }))),
        "offset_get_reply" => Payload::GetOffset(OrEmpty(Some(OffsetReply {
            partition: small(&fields["partition"]),
            current: number(&fields["current"]),
            stored: number(&fields["stored"]),
        }))),
        "poll_routing_reply" => Payload::GetPollRoute(RouteReply {
            client_id: number(&fields["client_id"]).into(),
            session: number(&fields["session"]),
            metadata_watermark: number(&fields["metadata_watermark"]),
            primary: node(&fields["primary"]),
        }),
        "poll_reply" | "poll_reply_sliced" | "poll_reply_empty" | "poll_reply_resync" => {
            Payload::PollMessages(poll(fields))
        }
        "send_reply" => Payload::SendMessages(send(fields)),
        _ => panic!("no checker for {name}"),
    }
}

/// Answers without a payload: with a result section or without.
pub fn check_empty(vector: &Vector) {
    let framed = match vector.name.as_str() {
        "response_empty" => false,
        "response_empty_success" => true,
        name => panic!("no checker for {name}"),
    };
    assert_eq!(vector.fields["result_section"], json!(framed));
    for code in list(&vector.fields["codes"]) {
        let code = CommandCode::from_u32(small(code)).expect("the code is known");
        let request = RequestHeader::for_command(code, b"");
        let frame = Reply::to_request(&request, 0).empty();
        assert_eq!(frame[HEADER_BYTES..], vector.bytes(), "{code:?}");
        let payload = Payload::decode(code, b"").expect("the payload is empty");
        assert_eq!(payload.encode(), b"", "{code:?}");
        let debug = format!("{payload:?}");
        assert!(debug.ends_with(&format!("({:?})", Empty {})), "{debug}");
    }
}

fn login(fields: &Value) -> LoginReply<'_> {
    LoginReply {
        user_id: small(&fields["user_id"]),
        session: number(&fields["session"]),
        server_protocol_version: small(&fields["server_protocol_version"]),
        server_version: name(&fields["server_version"]),
    }
}

fn stats(fields: &Value) -> StatsReply<'_> {
    let real = |field: &str| fields[field].as_f64().expect("a real number") as f32;
    assert!(list(&fields["cache_metrics"]).is_empty());
    StatsReply {
        process_id: small(&fields["process_id"]),
        cpu: real("cpu"),
        total_cpu: real("total_cpu"),
        memory: number(&fields["memory"]),
        total_memory: number(&fields["total_memory"]),
        available_memory: number(&fields["available_memory"]),
        run_time: number(&fields["run_time"]),
        start_time: number(&fields["start_time"]),
        read_bytes: number(&fields["read_bytes"]),
        written_bytes: number(&fields["written_bytes"]),
        messages_size: number(&fields["messages_size"]),
        streams: small(&fields["streams"]),
        topics: small(&fields["topics"]),
        partitions: small(&fields["partitions"]),
        segments: small(&fields["segments"]),
        messages: number(&fields["messages"]),
        clients: small(&fields["clients"]),
        consumer_groups: small(&fields["consumer_groups"]),
        hostname: text32(&fields["hostname"]),
        os_name: text32(&fields["os_name"]),
        os_version: text32(&fields["os_version"]),
        kernel_version: text32(&fields["kernel_version"]),
        server_version: text32(&fields["server_version"]),
        server_semver: small(&fields["server_semver"]),
        cache_metrics: List(Vec::new()),
        threads: small(&fields["threads"]),
        free_disk: number(&fields["free_disk"]),
        total_disk: number(&fields["total_disk"]),
    }
}

fn described(fields: &Value) -> DescribeOptionsReply<'_> {
    let entries = list(&fields["entries"])
        .iter()
        .map(|entry| OptionDescription {
            key: name(&entry["key"]),
            kind: byte(&entry["kind"]),
            default: Bytes32(leak(hex(&entry["default"]))),
            description: text32(&entry["description"]),
        });
    DescribeOptionsReply {
        options: List(entries.collect()),
    }
}

fn client(fields: &Value) -> ClientDetails<'_> {
    ClientDetails {
        client_id: small(&fields["client_id"]),
        user_id: small(&fields["user_id"]),
        transport: Transport::from_u8(byte(&fields["transport"])).expect("a transport"),
        address: text32(&fields["address"]),
        consumer_groups: list(&fields["consumer_groups"])
            .iter()
            .map(|group| ClientGroup {
                stream: small(&group["stream"]),
                topic: small(&group["topic"]),
                group: small(&group["group"]),
            })
            .collect(),
    }
}

fn clients() -> ToEnd<ClientInfo<'static>> {
    let info = |client_id, user_id, transport| ClientInfo {
        client_id,
        user_id,
        transport,
        address: Text32("127.0.0.1:50000"),
        consumer_groups_count: 0,
    };
    ToEnd(vec![
        info(1, 0, Transport::Tcp),
        info(2, USER_ID_NONE, Transport::WebSocket),
    ])
}

fn user_details(fields: &Value) -> UserDetails<'_> {
    UserDetails {
        user: User {
            id: small(&fields["id"]),
            created_at: number(&fields["created_at"]),
            status: UserStatus::from_u8(byte(&fields["status"])).expect("a status"),
            username: name(&fields["username"]),
            options: OptionsBlock(options(&fields["options"])),
        },
        permissions: PermissionsTail(optional_permissions(&fields["permissions"])),
    }
}

fn users(fields: &Value) -> Vec<User<'_>> {
    (0..)
        .zip(list(&fields["users"]))
        .map(|(id, username)| User {
            id,
            created_at: 3,
            status: UserStatus::Active,
            username: name(username),
            options: OptionsBlock(Options::EMPTY),
        })
        .collect()
}

fn tokens(fields: &Value) -> Vec<Token<'_>> {
    list(&fields["tokens"])
        .iter()
        .map(|token| Token {
            name: name(&token["name"]),
            expiry_at: number(&token["expiry_at"]),
        })
        .collect()
}

fn stream(fields: &Value) -> Stream<'_> {
    Stream {
        id: small(&fields["id"]),
        created_at: number(&fields["created_at"]),
        topics_count: small(&fields["topics"]),
        size: number(&fields["size"]),
        messages: number(&fields["messages"]),
        name: name(&fields["name"]),
        options: OptionsBlock(options(&fields["options"])),
    }
}

fn streams<'a>(vector_name: &str, fields: &'a Value) -> Payload<'a> {
    let plain = |name, topics_count| Stream {
        id: 0,
        created_at: 1,
        topics_count,
        size: 0,
        messages: 0,
        name,
        options: OptionsBlock(Options::EMPTY),
    };
    match vector_name {
        "streams_reply" => Payload::GetStreams(ToEnd(
            list(&fields["streams"])
                .iter()
                .map(|stream| plain(name(stream), 0))
                .collect(),
        )),
        _ => {
            assert_eq!(fields["topics"], json!(["t"]));
            Payload::GetStream(OrEmpty(Some(StreamDetails {
                stream: plain(name(&fields["stream"]), 1),
                topics: vec![plain_topic()],
            })))
        }
    }
}

/// The topic of `topic_reply` with an empty explicit block.
fn plain_topic() -> TopicHeader<'static> {
    let fields: &'static Value = Box::leak(Box::new(crate::vector("topic_reply").fields));
    TopicHeader {
        explicit: OptionsBlock(Options::EMPTY),
        ..topic_details(fields).topic
    }
}

fn topic_details(fields: &Value) -> TopicDetails<'_> {
    TopicDetails {
        topic: TopicHeader {
            id: small(&fields["id"]),
            created_at: number(&fields["created_at"]),
            partitions_count: small(&fields["partitions_count"]),
            message_expiry: number(&fields["message_expiry"]),
            compression: CompressionAlgorithm::from_u8(byte(&fields["compression"]))
                .expect("a compression"),
            max_topic_size: number(&fields["max_topic_size"]),
            size: number(&fields["size"]),
            messages: number(&fields["messages"]),
            name: name(&fields["name"]),
            explicit: OptionsBlock(options(&fields["explicit"])),
            derived: OptionsBlock(options(&fields["derived"])),
        },
        partitions: list(&fields["partitions"])
            .iter()
            .map(|partition| Partition {
                id: small(&partition["id"]),
                created_at: number(&partition["created_at"]),
                segments_count: small(&partition["segments"]),
                current_offset: number(&partition["current_offset"]),
                size: number(&partition["size"]),
                messages: number(&partition["messages"]),
            })
            .collect(),
    }
}

fn group_details(fields: &Value) -> GroupDetails<'_> {
    GroupDetails {
        id: small(&fields["id"]),
        partitions_count: small(&fields["partitions_count"]),
        name: name(&fields["name"]),
        members: list(&fields["members"])
            .iter()
            .map(|member| GroupMember {
                id: small(&member["id"]),
                partitions: List(list(&member["partitions"]).iter().map(small).collect()),
            })
            .collect(),
    }
}

/// The group of `groups_reply`, whose fields only name it.
fn plain_group(fields: &Value) -> Group<'_> {
    let [group_name] = list(&fields["groups"]) else {
        panic!("one group is listed");
    };
    Group {
        id: 0,
        partitions_count: 2,
        members_count: 0,
        name: name(group_name),
    }
}

fn poll(fields: &Value) -> PollReply<'static> {
    let records = match fields.get("records") {
        None => Vec::new(),
        Some(records) => list(records)
            .iter()
            .flat_map(|record| crate::vector(text(record)).bytes())
            .collect(),
    };
    PollReply {
        partition: small(&fields["partition"]),
        current_offset: number(&fields["current_offset"]),
        count: small(&fields["count"]),
        records: Raw(leak(records)),
    }
}

fn send(fields: &Value) -> SendReply {
    SendReply {
        receipts: list(&fields["confirmations"])
            .iter()
            .map(|receipt| SendReceipt {
                stream: small(&receipt["stream"]),
                topic: small(&receipt["topic"]),
                partition: small(&receipt["partition"]),
                base_offset: number(&receipt["base_offset"]),
            })
            .collect(),
    }
}
