//! Every command of the dialect: code, operation, names, request and reply type.

use crate::commands::{
    groups, messages, offsets, partitions, session, streams, system, tokens, topics, users,
};
use crate::error_code::ErrorCode;
use crate::headers::{HeaderError, RequestHeader};
use crate::operation::Operation;
use crate::primitives::{Empty, List, OrEmpty, Reader, ToEnd, Wire, WireError};

/// Codes of sign-ins of an older dialect; they are answered with Eviction 15.
pub const OLD_LOGIN_CODES: [u32; 2] = [38, 44];

/// What a command touches, which decides where it is served.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CommandClass {
    /// The session and the connection.
    Session,
    /// Reads of the catalog and the server.
    Read,
    /// Writes to the catalog.
    MetadataWrite,
    /// Writes to one partition.
    PartitionWrite,
    /// Reads of one partition.
    PartitionRead,
}

/// Declares the commands: code, variant, name, class, operation, request type, reply type.
macro_rules! commands {
    ($lifetime:lifetime; $(
        $code:literal $variant:ident $name:literal $class:ident $operation:ident
            $request:ty => $reply:ty;
    )*) => {
        /// The code of a command.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u32)]
        pub enum CommandCode {
            $(#[doc = concat!("`", $name, "`")] $variant = $code,)*
        }

        impl CommandCode {
            /// Every command, by code.
            pub const ALL: &[CommandCode] = &[$(CommandCode::$variant,)*];

            /// The command with this code.
            pub const fn from_u32(value: u32) -> Option<CommandCode> {
                match value {
                    $($code => Some(CommandCode::$variant),)*
                    _ => None,
                }
            }

            /// The name in the registry.
            pub const fn name(self) -> &'static str {
                match self {
                    $(CommandCode::$variant => $name,)*
                }
            }

            /// What it touches.
            pub const fn class(self) -> CommandClass {
                match self {
                    $(CommandCode::$variant => CommandClass::$class,)*
                }
            }

            /// The operation under which it travels.
            pub const fn operation(self) -> Operation {
                match self {
                    $(CommandCode::$variant => Operation::$operation,)*
                }
            }
        }

        /// A decoded request.
        #[derive(Clone, PartialEq, Debug)]
        #[allow(missing_docs, reason = "the variants are those of `CommandCode`")]
        pub enum Command<$lifetime> {
            $($variant($request),)*
        }

        impl<$lifetime> Command<$lifetime> {
            /// Reads the body of a request of this code. Trailing bytes are ignored.
            pub fn decode(
                code: CommandCode,
                body: &$lifetime [u8],
            ) -> Result<Command<$lifetime>, WireError> {
                let mut reader = Reader::new(body);
                Ok(match code {
                    $(CommandCode::$variant => Command::$variant(reader.read()?),)*
                })
            }

            /// Appends the request's body.
            pub fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Command::$variant(request) => request.write(out),)*
                }
            }

            /// The request's code.
            pub const fn code(&self) -> CommandCode {
                match self {
                    $(Command::$variant(_) => CommandCode::$variant,)*
                }
            }

            #[cfg(test)]
            pub(crate) fn generate(
                code: CommandCode,
                source: &mut crate::generate::Source<$lifetime>,
            ) -> Command<$lifetime> {
                match code {
                    $(CommandCode::$variant => Command::$variant(source.generate()),)*
                }
            }
        }

        /// The decoded payload of a successful reply, behind header and result section.
        #[derive(Clone, PartialEq, Debug)]
        #[allow(missing_docs, reason = "the variants are those of `CommandCode`")]
        pub enum Payload<$lifetime> {
            $($variant($reply),)*
        }

        impl<$lifetime> Payload<$lifetime> {
            /// Reads the payload of a reply to this code.
            pub fn decode(
                code: CommandCode,
                payload: &$lifetime [u8],
            ) -> Result<Payload<$lifetime>, WireError> {
                let mut reader = Reader::new(payload);
                Ok(match code {
                    $(CommandCode::$variant => Payload::$variant(reader.read()?),)*
                })
            }

            /// Appends the payload.
            pub fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Payload::$variant(reply) => reply.write(out),)*
                }
            }

            /// The code of the request that it answers.
            pub const fn code(&self) -> CommandCode {
                match self {
                    $(Payload::$variant(_) => CommandCode::$variant,)*
                }
            }

            #[cfg(test)]
            pub(crate) fn generate(
                code: CommandCode,
                source: &mut crate::generate::Source<$lifetime>,
            ) -> Payload<$lifetime> {
                match code {
                    $(CommandCode::$variant => Payload::$variant(source.generate()),)*
                }
            }
        }
    };
}

commands! { 'a;
    1 Ping "ping" Session NonReplicated Empty => Empty;
    10 GetStats "stats" Read NonReplicated Empty => system::StatsReply<'a>;
    11 GetSnapshot "snapshot" Read NonReplicated
        system::GetSnapshot => system::SnapshotReply<'a>;
    12 GetClusterMetadata "cluster.metadata" Read NonReplicated
        Empty => system::ClusterMetadataReply<'a>;
    13 DescribeOptions "options.describe" Read NonReplicated
        system::DescribeOptions => system::DescribeOptionsReply<'a>;
    14 AttachConsumerSession "consumer_session.attach" Session NonReplicated
        session::AttachConsumerSession => Empty;
    20 GetMe "me" Read NonReplicated Empty => system::ClientDetails<'a>;
    21 GetClient "client.get" Read NonReplicated
        system::GetClient => OrEmpty<system::ClientDetails<'a>>;
    22 GetClients "client.list" Read NonReplicated Empty => ToEnd<system::ClientInfo<'a>>;
    31 GetUser "user.get" Read NonReplicated
        users::GetUser<'a> => OrEmpty<users::UserDetails<'a>>;
    32 GetUsers "user.list" Read NonReplicated Empty => ToEnd<users::User<'a>>;
    33 CreateUser "user.create" MetadataWrite CreateUser
        users::CreateUser<'a> => users::UserDetails<'a>;
    34 DeleteUser "user.delete" MetadataWrite DeleteUser users::DeleteUser<'a> => Empty;
    35 UpdateUser "user.update" MetadataWrite UpdateUser users::UpdateUser<'a> => Empty;
    36 UpdatePermissions "user.permissions" MetadataWrite UpdatePermissions
        users::UpdatePermissions<'a> => Empty;
    37 ChangePassword "user.password" MetadataWrite ChangePassword
        users::ChangePassword<'a> => Empty;
    39 Logout "user.logout" Session Logout Empty => Empty;
    40 LoginRegister "user.login_register" Session Register
        session::LoginRegister<'a> => session::LoginReply<'a>;
    41 GetTokens "personal_access_token.list" Read NonReplicated
        Empty => ToEnd<tokens::Token<'a>>;
    42 CreateToken "personal_access_token.create" MetadataWrite CreateToken
        tokens::CreateToken<'a> => tokens::CreateTokenReply<'a>;
    43 DeleteToken "personal_access_token.delete" MetadataWrite DeleteToken
        tokens::DeleteToken<'a> => Empty;
    45 LoginRegisterWithToken "user.login_register_with_pat" Session Register
        session::LoginRegisterWithToken<'a> => session::LoginReply<'a>;
    100 PollMessages "message.poll" PartitionRead NonReplicated
        messages::PollMessages<'a> => messages::PollReply<'a>;
    101 SendMessages "message.send" PartitionWrite SendMessages
        messages::SendMessages<'a> => messages::SendReply;
    102 FlushUnsaved "message.flush_unsaved_buffer" Read NonReplicated
        messages::FlushUnsaved<'a> => Empty;
    103 GetPollRoute "message.poll_routing" PartitionRead NonReplicated
        messages::PollMessages<'a> => messages::RouteReply<'a>;
    104 PollOnPrimary "message.poll_primary" PartitionRead NonReplicated
        messages::PollMessages<'a> => messages::PollReply<'a>;
    120 GetOffset "consumer_offset.get" PartitionRead NonReplicated
        offsets::GetOffset<'a> => OrEmpty<offsets::OffsetReply>;
    121 StoreOffset "consumer_offset.store" PartitionWrite StoreOffset
        offsets::StoreOffset<'a> => Empty;
    122 DeleteOffset "consumer_offset.delete" PartitionWrite DeleteOffset
        offsets::DeleteOffset<'a> => Empty;
    123 GetOffsetRoute "consumer_offset.routing" PartitionRead NonReplicated
        offsets::GetOffsetRoute<'a> => messages::RouteReply<'a>;
    200 GetStream "stream.get" Read NonReplicated
        streams::GetStream<'a> => OrEmpty<streams::StreamDetails<'a>>;
    201 GetStreams "stream.list" Read NonReplicated Empty => ToEnd<streams::Stream<'a>>;
    202 CreateStream "stream.create" MetadataWrite CreateStream
        streams::CreateStream<'a> => streams::Stream<'a>;
    203 DeleteStream "stream.delete" MetadataWrite DeleteStream
        streams::DeleteStream<'a> => Empty;
    204 UpdateStream "stream.update" MetadataWrite UpdateStream
        streams::UpdateStream<'a> => Empty;
    205 PurgeStream "stream.purge" MetadataWrite PurgeStream
        streams::PurgeStream<'a> => Empty;
    300 GetTopic "topic.get" Read NonReplicated
        topics::GetTopic<'a> => OrEmpty<topics::TopicDetails<'a>>;
    301 GetTopics "topic.list" Read NonReplicated
        topics::GetTopics<'a> => List<topics::TopicHeader<'a>>;
    302 CreateTopic "topic.create" MetadataWrite CreateTopic
        topics::CreateTopic<'a> => topics::TopicDetails<'a>;
    303 DeleteTopic "topic.delete" MetadataWrite DeleteTopic
        topics::DeleteTopic<'a> => Empty;
    304 UpdateTopic "topic.update" MetadataWrite UpdateTopic
        topics::UpdateTopic<'a> => Empty;
    305 PurgeTopic "topic.purge" MetadataWrite PurgeTopic topics::PurgeTopic<'a> => Empty;
    402 CreatePartitions "partition.create" MetadataWrite CreatePartitions
        partitions::CreatePartitions<'a> => Empty;
    403 DeletePartitions "partition.delete" MetadataWrite DeletePartitions
        partitions::DeletePartitions<'a> => Empty;
    503 DeleteSegments "segment.delete" MetadataWrite DeleteSegments
        partitions::DeleteSegments<'a> => Empty;
    600 GetGroup "consumer_group.get" Read NonReplicated
        groups::GetGroup<'a> => OrEmpty<groups::GroupDetails<'a>>;
    601 GetGroups "consumer_group.list" Read NonReplicated
        groups::GetGroups<'a> => ToEnd<groups::Group<'a>>;
    602 CreateGroup "consumer_group.create" MetadataWrite CreateConsumerGroup
        groups::CreateGroup<'a> => groups::GroupDetails<'a>;
    603 DeleteGroup "consumer_group.delete" MetadataWrite DeleteConsumerGroup
        groups::DeleteGroup<'a> => Empty;
    604 JoinGroup "consumer_group.join" MetadataWrite JoinConsumerGroup
        groups::JoinGroup<'a> => Empty;
    605 LeaveGroup "consumer_group.leave" MetadataWrite LeaveConsumerGroup
        groups::LeaveGroup<'a> => Empty;
    606 SyncGroup "consumer_group.sync" Read NonReplicated
        groups::SyncGroup<'a> => OrEmpty<groups::GroupAssignment>;
}

impl CommandCode {
    /// The number.
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// The command of a replicated operation. Sign-ins are told apart by their body, and internal
    /// operations have none.
    pub fn of_operation(operation: Operation) -> Option<CommandCode> {
        match operation {
            Operation::Register | Operation::NonReplicated => None,
            _ => CommandCode::ALL
                .iter()
                .copied()
                .find(|code| code.operation() == operation),
        }
    }
}

impl<'a> Command<'a> {
    /// The request's body.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
}

impl Payload<'_> {
    /// The payload's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
}

/// What a valid header asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// A sign-in; the body tells which one.
    Register,
    /// This command.
    Command(CommandCode),
    /// A sign-in of an older dialect: Eviction 15.
    OldLogin(u32),
    /// A read of a code that is not known: status 3.
    UnknownCode(u32),
    /// A read that carries the code of a replicated command: status 5.
    ReplicatedCode(CommandCode),
    /// An operation that only servers issue: Eviction 4.
    Internal(Operation),
}

impl Target {
    /// The refusal as a status, where this target is refused by one.
    pub const fn refusal(self) -> Option<ErrorCode> {
        match self {
            Target::UnknownCode(_) => Some(ErrorCode::InvalidCommand),
            Target::ReplicatedCode(_) => Some(ErrorCode::FeatureUnavailable),
            Target::Register | Target::Command(_) | Target::OldLogin(_) | Target::Internal(_) => {
                None
            }
        }
    }
}

impl RequestHeader {
    // spec ANS-16
    /// Validates the header and says what it asks for.
    pub fn target(&self) -> Result<Target, HeaderError> {
        let operation = self.validate()?;
        Ok(match operation {
            Operation::Register => Target::Register,
            Operation::NonReplicated => match CommandCode::from_u32(self.code) {
                Some(code) if code.operation() == Operation::NonReplicated => Target::Command(code),
                Some(code) => Target::ReplicatedCode(code),
                None if OLD_LOGIN_CODES.contains(&self.code) => Target::OldLogin(self.code),
                None => Target::UnknownCode(self.code),
            },
            operation => match CommandCode::of_operation(operation) {
                Some(code) => Target::Command(code),
                None => Target::Internal(operation),
            },
        })
    }

    /// The header of a request of this command, as a published client fills it: the checksum only
    /// where the dialect asks for one. Identity and numbers are still zero.
    pub fn for_command(code: CommandCode, body: &[u8]) -> RequestHeader {
        let operation = code.operation();
        let body_bytes = u32::try_from(body.len()).expect("a body is below the frame limit");
        let mut header = RequestHeader::new(operation, body_bytes);
        if operation.is_checksummed() {
            header.request_checksum = crate::headers::request_checksum(body);
        }
        if operation == Operation::NonReplicated {
            header.code = code.code();
        }
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_commands_agree() {
        // The dialect counts the old sign-ins among its 55 codes.
        assert_eq!(CommandCode::ALL.len() + OLD_LOGIN_CODES.len(), 55);
        assert!(CommandCode::ALL.is_sorted());
        for code in CommandCode::ALL {
            assert_eq!(CommandCode::from_u32(code.code()), Some(*code));
            assert!(!OLD_LOGIN_CODES.contains(&code.code()));
        }
        let known = (0..=1000).filter(|code| CommandCode::from_u32(*code).is_some());
        assert_eq!(known.count(), CommandCode::ALL.len());
    }

    #[test]
    fn class_follows_from_the_operation() {
        for code in CommandCode::ALL {
            let operation = code.operation();
            let class = code.class();
            let metadata = operation.is_metadata() || operation == Operation::DeleteSegments;
            assert_eq!(metadata, class == CommandClass::MetadataWrite, "{code:?}");
            let partition = class == CommandClass::PartitionWrite;
            assert_eq!(operation.is_partition(), partition, "{code:?}");
        }
    }

    #[test]
    fn every_client_operation_leads_to_its_command() {
        for operation in Operation::ALL {
            let code = CommandCode::of_operation(operation);
            let own = !operation.is_internal()
                && !matches!(operation, Operation::Register | Operation::NonReplicated);
            assert_eq!(code.is_some(), own, "{operation:?}");
            assert!(code.is_none_or(|code| code.operation() == operation));
        }
    }

    #[test]
    fn targets_follow_the_table_of_refusals() {
        let read = |code| {
            let mut header = RequestHeader::new(Operation::NonReplicated, 0);
            header.client = 1;
            header.code = code;
            header.target().expect("the header is valid")
        };
        assert_eq!(read(1), Target::Command(CommandCode::Ping));
        assert_eq!(read(38), Target::OldLogin(38));
        assert_eq!(read(44), Target::OldLogin(44));
        assert_eq!(read(999).refusal(), Some(ErrorCode::InvalidCommand));
        assert_eq!(read(202).refusal(), Some(ErrorCode::FeatureUnavailable));
        assert_eq!(read(40).refusal(), Some(ErrorCode::FeatureUnavailable));

        let mut header = RequestHeader::new(Operation::RemoveGroupMember, 0);
        (header.client, header.session, header.request) = (1, 1, 1);
        let internal = Target::Internal(Operation::RemoveGroupMember);
        assert_eq!(header.target(), Ok(internal));
    }
}
