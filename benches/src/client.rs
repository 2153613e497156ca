//! The client: one connection, one question at a time. Load is made elsewhere ([`crate::lane`]) on
//! connections that were set up here.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use pawl_wire::command::{Command, Payload};
use pawl_wire::commands::messages::PollMessages;
use pawl_wire::commands::session::{ClientVersion, LoginRegister, PROTOCOL_VERSION};
use pawl_wire::commands::streams::CreateStream;
use pawl_wire::commands::topics::CreateTopic;
use pawl_wire::headers::{HEADER_BYTES, RequestHeader};
use pawl_wire::options::Options;
use pawl_wire::primitives::{
    Consumer, Identifier, Name, OptionalPartition, PollingStrategy, Secret, Text32,
};
use pawl_wire::reply::Answer;

use crate::error::{BenchError, Doing, Result};
use crate::load::Place;

/// The longest answer that is read.
const ANSWER_BYTES_MAX: u32 = 256 << 20;

/// How long an answer may take.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// The topic that measurements use in each of their streams.
pub const TOPIC_NAME: &str = "bench";

/// Name and password of a sign-in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// The user's name.
    pub username: String,
    /// The user's password.
    pub password: String,
}

/// A signed-in connection.
#[derive(Debug)]
pub struct Client {
    socket: TcpStream,
    client: u128,
    session: u64,
    request_next: u64,
    answer: Vec<u8>,
}

/// What a load connection takes over from a client.
#[derive(Debug)]
pub struct Session {
    /// The connection.
    pub socket: TcpStream,
    /// The client id.
    pub client: u128,
    /// The session number.
    pub session: u64,
    /// The next request number.
    pub request_next: u64,
}

fn text(name: &str) -> Result<Name<'_>> {
    Name::new(name).map_err(|_| BenchError::Arguments("a name has 1 to 255 bytes"))
}

impl Client {
    /// Connects and signs in.
    pub fn sign_in(address: SocketAddr, credentials: &Credentials) -> Result<Client> {
        let socket = TcpStream::connect(address).doing("connect to the node")?;
        socket.set_nodelay(true).doing("set a socket option")?;
        socket
            .set_read_timeout(Some(ANSWER_TIME_MAX))
            .doing("set a socket option")?;
        let mut client = Client {
            socket,
            client: rand::random::<u128>() | 1,
            session: 0,
            request_next: 0,
            answer: Vec::new(),
        };
        let login = Command::LoginRegister(LoginRegister {
            version: ClientVersion {
                protocol_version: PROTOCOL_VERSION,
                sdk_name: text("pawl-bench")?,
                sdk_version: text(env!("CARGO_PKG_VERSION"))?,
            },
            username: text(&credentials.username)?,
            password: Secret(&credentials.password),
            context: Text32(""),
        });
        let Payload::LoginRegister(reply) = client.call(&login)? else {
            unreachable!("a payload is decoded as its command's");
        };
        let session = reply.session;
        client.session = session;
        client.request_next = 1;
        Ok(client)
    }

    /// Asks and waits for the payload of the answer. The request number is spent.
    pub fn call(&mut self, command: &Command<'_>) -> Result<Payload<'_>> {
        let code = command.code();
        let body = command.encode();
        let header = RequestHeader {
            client: self.client,
            session: self.session,
            request: self.request_next,
            ..RequestHeader::for_command(code, &body)
        };
        if self.session != 0 {
            self.request_next += 1;
        }
        let frame = [header.as_bytes().as_slice(), &body].concat();
        self.socket.write_all(&frame).doing("send a request")?;
        self.read_answer()?;
        let request = code.name();
        match Answer::decode(&self.answer)? {
            Answer::Payload(_, payload) => {
                Payload::decode(code, payload).map_err(|error| BenchError::Payload {
                    request,
                    what: error.to_string(),
                })
            }
            Answer::Refused(_, code) => Err(BenchError::Refused { request, code }),
            Answer::Evicted(eviction) => Err(BenchError::Evicted {
                request,
                reason: eviction.reason,
            }),
        }
    }

    fn read_answer(&mut self) -> Result<()> {
        let mut head = [0; HEADER_BYTES];
        self.socket.read_exact(&mut head).doing("read an answer")?;
        let bytes = answer_bytes(&head)?;
        self.answer.resize(bytes, 0);
        self.answer[..HEADER_BYTES].copy_from_slice(&head);
        self.socket
            .read_exact(&mut self.answer[HEADER_BYTES..])
            .doing("read an answer")
    }

    /// Creates a stream with one topic of `partitions`; answers both numbers. The topic is
    /// [`TOPIC_NAME`].
    pub fn create_stream(&mut self, name: &str, partitions: u32) -> Result<(u32, u32)> {
        let stream = Command::CreateStream(CreateStream {
            name: text(name)?,
            options: Options::EMPTY,
        });
        let Payload::CreateStream(created) = self.call(&stream)? else {
            unreachable!("a payload is decoded as its command's");
        };
        let stream = created.id;
        let topic = Command::CreateTopic(CreateTopic {
            stream: Identifier::Numeric(stream),
            partitions_count: partitions,
            name: text(TOPIC_NAME)?,
            options: Options::EMPTY,
        });
        let Payload::CreateTopic(created) = self.call(&topic)? else {
            unreachable!("a payload is decoded as its command's");
        };
        Ok((stream, created.topic.id))
    }

    /// Polls from `offset` on; answers how many messages came and the highest offset there is.
    pub fn poll(&mut self, place: Place, offset: u64, count: u32) -> Result<(u32, u64)> {
        let poll = Command::PollMessages(PollMessages {
            consumer: Consumer::Plain(Identifier::Numeric(1)),
            stream: Identifier::Numeric(place.stream),
            topic: Identifier::Numeric(place.topic),
            partition: OptionalPartition(Some(place.partition)),
            strategy: PollingStrategy::Offset(offset),
            count,
            auto_commit: false,
        });
        let Payload::PollMessages(reply) = self.call(&poll)? else {
            unreachable!("a payload is decoded as its command's");
        };
        Ok((reply.count, reply.current_offset))
    }

    /// Hands the connection over to a load program.
    pub fn into_session(self) -> Session {
        Session {
            socket: self.socket,
            client: self.client,
            session: self.session,
            request_next: self.request_next,
        }
    }
}

/// The size that an answer's header announces.
pub fn answer_bytes(head: &[u8; HEADER_BYTES]) -> Result<usize> {
    let bytes = u32::from_le_bytes([head[48], head[49], head[50], head[51]]);
    if !(HEADER_BYTES as u32..=ANSWER_BYTES_MAX).contains(&bytes) {
        return Err(BenchError::AnswerBytes(bytes));
    }
    Ok(bytes as usize)
}
