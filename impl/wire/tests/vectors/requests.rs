//! The command that a request vector's fields describe.

use pawl_wire::command::{Command, CommandCode};
use pawl_wire::commands::groups::{
    CreateGroup, DeleteGroup, GetGroup, GetGroups, JoinGroup, LeaveGroup, SyncGroup,
};
use pawl_wire::commands::messages::{FlushUnsaved, PollMessages, SendMessages};
use pawl_wire::commands::offsets::{DeleteOffset, GetOffset, GetOffsetRoute, StoreOffset};
use pawl_wire::commands::partitions::{CreatePartitions, DeletePartitions, DeleteSegments};
use pawl_wire::commands::session::{
    AttachConsumerSession, ClientVersion, LoginRegister, LoginRegisterWithToken,
};
use pawl_wire::commands::streams::{
    CreateStream, DeleteStream, GetStream, PurgeStream, UpdateStream,
};
use pawl_wire::commands::system::{
    DescribeOptions, GetClient, GetSnapshot, OptionScope, SnapshotCompression, SnapshotType,
};
use pawl_wire::commands::tokens::{CreateToken, DeleteToken};
use pawl_wire::commands::topics::{
    CreateTopic, DeleteTopic, GetTopic, GetTopics, PurgeTopic, UpdateTopic,
};
use pawl_wire::commands::users::{
    ChangePassword, CreateUser, DeleteUser, GetUser, UpdatePermissions, UpdateUser,
};
use pawl_wire::permissions::PermissionsBlock;
use pawl_wire::primitives::{AckLevel, Empty};
use serde_json::Value;

use crate::values::*;

pub fn expected(code: CommandCode, fields: &Value) -> Command<'_> {
    match code.code() {
        ..=45 if !(30..40).contains(&code.code()) => system_or_session(code, fields),
        30..40 => user(code, fields),
        100..=199 => message_or_offset(code, fields),
        200..=599 => catalog(code, fields),
        _ => group(code, fields),
    }
}

fn version(fields: &Value) -> ClientVersion<'_> {
    ClientVersion {
        protocol_version: small(&fields["protocol_version"]),
        sdk_name: name(&fields["sdk_name"]),
        sdk_version: name(&fields["sdk_version"]),
    }
}

fn empty(fields: &Value) -> Empty {
    assert_eq!(fields.as_object().map(|fields| fields.len()), Some(0));
    Empty {}
}

fn system_or_session(code: CommandCode, fields: &Value) -> Command<'_> {
    match code {
        CommandCode::Ping => Command::Ping(empty(fields)),
        CommandCode::GetStats => Command::GetStats(empty(fields)),
        CommandCode::GetClusterMetadata => Command::GetClusterMetadata(empty(fields)),
        CommandCode::GetMe => Command::GetMe(empty(fields)),
        CommandCode::GetClients => Command::GetClients(empty(fields)),
        CommandCode::GetTokens => Command::GetTokens(empty(fields)),
        CommandCode::GetSnapshot => Command::GetSnapshot(GetSnapshot {
            compression: SnapshotCompression::from_u8(byte(&fields["compression"]))
                .expect("a compression"),
            types: list(&fields["types"])
                .iter()
                .map(|value| SnapshotType::from_u8(byte(value)).expect("a type"))
                .collect(),
        }),
        CommandCode::DescribeOptions => Command::DescribeOptions(DescribeOptions {
            scope: OptionScope::from_u8(byte(&fields["scope"])).expect("a scope"),
        }),
        CommandCode::AttachConsumerSession => {
            Command::AttachConsumerSession(AttachConsumerSession {
                client_id: number(&fields["client_id"]).into(),
                session: number(&fields["session"]),
                metadata_watermark: number(&fields["metadata_watermark"]),
            })
        }
        CommandCode::GetClient => Command::GetClient(GetClient {
            client_id: small(&fields["client_id"]),
        }),
        CommandCode::LoginRegister => Command::LoginRegister(LoginRegister {
            version: version(fields),
            username: name(&fields["username"]),
            password: secret(&fields["password"]),
            context: text32(&fields["context"]),
        }),
        CommandCode::LoginRegisterWithToken => {
            Command::LoginRegisterWithToken(LoginRegisterWithToken {
                version: version(fields),
                token: secret(&fields["token"]),
                context: text32(&fields["context"]),
            })
        }
        CommandCode::CreateToken => Command::CreateToken(CreateToken {
            name: name(&fields["name"]),
            expiry: number(&fields["expiry"]),
        }),
        CommandCode::DeleteToken => Command::DeleteToken(DeleteToken {
            name: name(&fields["name"]),
        }),
        _ => panic!("no checker for requests of {code:?}"),
    }
}

fn user(code: CommandCode, fields: &Value) -> Command<'_> {
    let user = || identifier(&fields["user"]);
    let optional = |field: &str| Some(&fields[field]).filter(|value| !value.is_null());
    match code {
        CommandCode::GetUser => Command::GetUser(GetUser { user: user() }),
        CommandCode::GetUsers => Command::GetUsers(empty(fields)),
        CommandCode::CreateUser => Command::CreateUser(CreateUser {
            username: name(&fields["username"]),
            password: secret(&fields["password"]),
            status: byte(&fields["status"]),
            permissions: optional_permissions(&fields["permissions"]).map(PermissionsBlock),
            options: options(&fields["options"]),
        }),
        CommandCode::DeleteUser => Command::DeleteUser(DeleteUser { user: user() }),
        CommandCode::UpdateUser => Command::UpdateUser(UpdateUser {
            user: user(),
            username: match fields["username"].is_null() {
                true => None,
                false => Some(name(&fields["username"])),
            },
            status: optional("status").map(byte),
            options: options(&fields["options"]),
        }),
        CommandCode::UpdatePermissions => Command::UpdatePermissions(UpdatePermissions {
            user: user(),
            permissions: optional_permissions(&fields["permissions"]).map(PermissionsBlock),
        }),
        CommandCode::ChangePassword => Command::ChangePassword(ChangePassword {
            user: user(),
            current: secret(&fields["current"]),
            new: secret(&fields["new"]),
        }),
        CommandCode::Logout => Command::Logout(empty(fields)),
        _ => panic!("no checker for requests of {code:?}"),
    }
}

fn poll(fields: &Value) -> PollMessages<'_> {
    PollMessages {
        consumer: consumer(fields),
        stream: identifier(&fields["stream"]),
        topic: identifier(&fields["topic"]),
        partition: partition(&fields["partition"]),
        strategy: strategy(&fields["strategy"]),
        count: small(&fields["count"]),
        auto_commit: fields["auto_commit"].as_bool().expect("a truth value"),
    }
}

fn ack(fields: &Value) -> AckLevel {
    AckLevel::from_u8(byte(&fields["ack"])).expect("an ack level")
}

fn message_or_offset(code: CommandCode, fields: &Value) -> Command<'_> {
    let stream = identifier(&fields["stream"]);
    let topic = identifier(&fields["topic"]);
    match code {
        CommandCode::PollMessages => Command::PollMessages(poll(fields)),
        CommandCode::GetPollRoute => Command::GetPollRoute(poll(fields)),
        CommandCode::PollOnPrimary => Command::PollOnPrimary(poll(fields)),
        CommandCode::SendMessages => {
            let messages = messages(&fields["messages"]);
            Command::SendMessages(SendMessages {
                stream,
                topic,
                partitioning: partitioning(&fields["partitioning"]),
                messages_count: messages.len() as u32,
                batch: leak(batch(&messages)),
            })
        }
        CommandCode::FlushUnsaved => Command::FlushUnsaved(FlushUnsaved {
            stream,
            topic,
            partition: small(&fields["partition"]),
            fsync: fields["fsync"].as_bool().expect("a truth value"),
        }),
        CommandCode::GetOffset => Command::GetOffset(GetOffset {
            consumer: consumer(fields),
            stream,
            topic,
            partition: partition(&fields["partition"]),
        }),
        CommandCode::GetOffsetRoute => Command::GetOffsetRoute(GetOffsetRoute {
            consumer: consumer(fields),
            stream,
            topic,
            partition: partition(&fields["partition"]),
        }),
        CommandCode::StoreOffset => Command::StoreOffset(StoreOffset {
            consumer: consumer(fields),
            stream,
            topic,
            partition: partition(&fields["partition"]),
            offset: number(&fields["offset"]),
            ack: ack(fields),
        }),
        CommandCode::DeleteOffset => Command::DeleteOffset(DeleteOffset {
            consumer: consumer(fields),
            stream,
            topic,
            partition: partition(&fields["partition"]),
            ack: ack(fields),
        }),
        _ => panic!("no checker for requests of {code:?}"),
    }
}

fn catalog(code: CommandCode, fields: &Value) -> Command<'_> {
    let stream = || identifier(&fields["stream"]);
    let topic = || identifier(&fields["topic"]);
    let name = || name(&fields["name"]);
    let options = || options(&fields["options"]);
    let (s, t) = (stream, topic);
    match code {
        CommandCode::GetStream => Command::GetStream(GetStream { stream: s() }),
        CommandCode::GetStreams => Command::GetStreams(empty(fields)),
        CommandCode::CreateStream => Command::CreateStream(CreateStream {
            name: name(),
            options: options(),
        }),
        CommandCode::DeleteStream => Command::DeleteStream(DeleteStream { stream: s() }),
        CommandCode::UpdateStream => Command::UpdateStream(UpdateStream {
            stream: s(),
            name: name(),
            options: options(),
        }),
        CommandCode::PurgeStream => Command::PurgeStream(PurgeStream { stream: s() }),
        CommandCode::GetTopic => Command::GetTopic(GetTopic {
            stream: s(),
            topic: t(),
        }),
        CommandCode::GetTopics => Command::GetTopics(GetTopics { stream: s() }),
        CommandCode::CreateTopic => Command::CreateTopic(CreateTopic {
            stream: s(),
            partitions_count: small(&fields["partitions"]),
            name: name(),
            options: options(),
        }),
        CommandCode::DeleteTopic => Command::DeleteTopic(DeleteTopic {
            stream: s(),
            topic: t(),
        }),
        CommandCode::UpdateTopic => Command::UpdateTopic(UpdateTopic {
            stream: s(),
            topic: t(),
            name: name(),
            options: options(),
        }),
        CommandCode::PurgeTopic => Command::PurgeTopic(PurgeTopic {
            stream: s(),
            topic: t(),
        }),
        CommandCode::CreatePartitions => Command::CreatePartitions(CreatePartitions {
            stream: s(),
            topic: t(),
            count: small(&fields["count"]),
        }),
        CommandCode::DeletePartitions => Command::DeletePartitions(DeletePartitions {
            stream: s(),
            topic: t(),
            count: small(&fields["count"]),
        }),
        CommandCode::DeleteSegments => Command::DeleteSegments(DeleteSegments {
            stream: s(),
            topic: t(),
            partition: small(&fields["partition"]),
            segments: small(&fields["segments"]),
        }),
        _ => panic!("no checker for requests of {code:?}"),
    }
}

fn group(code: CommandCode, fields: &Value) -> Command<'_> {
    let stream = identifier(&fields["stream"]);
    let topic = identifier(&fields["topic"]);
    let group = || identifier(&fields["group"]);
    match code {
        CommandCode::GetGroup => Command::GetGroup(GetGroup {
            stream,
            topic,
            group: group(),
        }),
        CommandCode::GetGroups => Command::GetGroups(GetGroups { stream, topic }),
        CommandCode::CreateGroup => Command::CreateGroup(CreateGroup {
            stream,
            topic,
            name: name(&fields["name"]),
        }),
        CommandCode::DeleteGroup => Command::DeleteGroup(DeleteGroup {
            stream,
            topic,
            group: group(),
        }),
        CommandCode::JoinGroup => Command::JoinGroup(JoinGroup {
            stream,
            topic,
            group: group(),
        }),
        CommandCode::LeaveGroup => Command::LeaveGroup(LeaveGroup {
            stream,
            topic,
            group: group(),
        }),
        CommandCode::SyncGroup => Command::SyncGroup(SyncGroup {
            stream,
            topic,
            group: group(),
        }),
        _ => panic!("no checker for requests of {code:?}"),
    }
}
