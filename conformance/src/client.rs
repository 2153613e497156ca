//! A small blocking client on `pawl_wire`, for tests that must control every byte.
//!
//! A [`Request`] is made once and sent as often as needed: its number, body and checksum stay the
//! same over connections; only the session in the header is that of the connection which carries
//! it. Answers are kept whole, so that a repeat can be compared byte for byte.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use pawl_wire::command::CommandCode;
use pawl_wire::commands::session::{ClientVersion, LoginRegister, LoginReply, PROTOCOL_VERSION};
use pawl_wire::frame::{CloseReason, FRAME_BYTES_MAX_CEILING, frame_bytes};
use pawl_wire::headers::{HEADER_BYTES, ReplyHeader, RequestHeader, request_checksum};
use pawl_wire::operation::Operation;
use pawl_wire::primitives::{Name, Secret, Text32, Wire, WireError};
use pawl_wire::reply::{Answer, AnswerError};

/// How long a connection attempt and each read or write may take.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Why an exchange did not end in a success.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The connection failed: whether the request was executed is not known.
    #[error("connection: {0}")]
    Connection(io::Error),
    /// What came back has an impossible size.
    #[error("answer: {0}")]
    Size(CloseReason),
    /// What came back is not an answer.
    #[error("answer: {0}")]
    Answer(AnswerError),
    /// The payload of an answer is malformed.
    #[error("payload: {0}")]
    Payload(#[from] WireError),
    /// The server refused.
    #[error("refused with {0}")]
    Refused(u32),
    /// The server ended the session.
    #[error("evicted for reason {0}")]
    Evicted(u8),
}

impl ClientError {
    /// The code of a refusal.
    pub const fn refusal(&self) -> Option<u32> {
        match self {
            ClientError::Refused(code) => Some(*code),
            _ => None,
        }
    }
}

/// One TCP connection: a frame out, a frame back.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
}

impl Connection {
    /// Connects.
    pub fn open(address: SocketAddr) -> Result<Connection, ClientError> {
        let open = || {
            let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(Connection { stream })
        };
        open().map_err(ClientError::Connection)
    }

    /// Sends bytes, whatever they are.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.stream
            .write_all(bytes)
            .map_err(ClientError::Connection)
    }

    /// Reads the next answer frame whole.
    pub fn receive(&mut self) -> Result<AnswerFrame, ClientError> {
        let mut frame = vec![0; HEADER_BYTES];
        self.stream
            .read_exact(&mut frame)
            .map_err(ClientError::Connection)?;
        let bytes = frame_bytes(&frame, FRAME_BYTES_MAX_CEILING).map_err(ClientError::Size)?;
        frame.resize(bytes.expect("a whole header names its size"), 0);
        self.stream
            .read_exact(&mut frame[HEADER_BYTES..])
            .map_err(ClientError::Connection)?;
        Ok(AnswerFrame(frame))
    }

    /// Sends a frame and reads its answer.
    pub fn exchange(&mut self, frame: &[u8]) -> Result<AnswerFrame, ClientError> {
        self.send(frame)?;
        self.receive()
    }
}

/// An answer as it came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnswerFrame(pub Vec<u8>);

impl AnswerFrame {
    /// The header of a success and its payload, behind the result section.
    pub fn success(&self) -> Result<(ReplyHeader, &[u8]), ClientError> {
        match Answer::decode(&self.0).map_err(ClientError::Answer)? {
            Answer::Payload(header, payload) => Ok((header, payload)),
            Answer::Refused(_, code) => Err(ClientError::Refused(code)),
            Answer::Evicted(header) => Err(ClientError::Evicted(header.reason)),
        }
    }

    /// The decoded payload of a success.
    pub fn payload<'a, T: Wire<'a>>(&'a self) -> Result<T, ClientError> {
        let (_, payload) = self.success()?;
        Ok(T::decode(payload)?)
    }
}

/// A write that can be sent again and again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// What it asks.
    pub code: CommandCode,
    /// Its number.
    pub number: u64,
    /// Its body.
    pub body: Vec<u8>,
    /// The checksum in its header; zero for none.
    pub checksum: u128,
}

impl Request {
    /// A request whose checksum is that of its body, partition writes included: they are thereby
    /// executed at most once.
    pub fn once(code: CommandCode, number: u64, body: Vec<u8>) -> Request {
        Request {
            code,
            number,
            checksum: request_checksum(&body),
            body,
        }
    }

    /// The frame of this request in a session.
    pub fn frame(&self, client: u128, session: u64) -> Vec<u8> {
        let mut header = RequestHeader::for_command(self.code, &self.body);
        header.client = client;
        header.session = session;
        header.request = self.number;
        if self.code.operation() != Operation::NonReplicated {
            header.request_checksum = self.checksum;
        }
        let mut frame = header.as_bytes().to_vec();
        frame.extend_from_slice(&self.body);
        frame
    }
}

/// Name and password.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// The name.
    pub username: String,
    /// The password.
    pub password: String,
}

impl Credentials {
    /// Root, as [`crate::node`] starts its nodes.
    pub fn root() -> Credentials {
        Credentials {
            username: "iggy".to_owned(),
            password: "iggy".to_owned(),
        }
    }
}

/// A signed-in connection of a client.
#[derive(Debug)]
pub struct Session {
    connection: Connection,
    client: u128,
    epoch: u64,
}

impl Session {
    /// Signs `client` in on a connection.
    pub fn register(
        mut connection: Connection,
        client: u128,
        credentials: &Credentials,
    ) -> Result<Session, ClientError> {
        let login = LoginRegister {
            version: ClientVersion {
                protocol_version: PROTOCOL_VERSION,
                sdk_name: Name::new("pawl-conformance").expect("a short name"),
                sdk_version: Name::new(env!("CARGO_PKG_VERSION")).expect("a short name"),
            },
            username: Name::new(&credentials.username)?,
            password: Secret(&credentials.password),
            context: Text32(""),
        };
        let request = Request::once(CommandCode::LoginRegister, 0, login.encode());
        let answer = connection.exchange(&request.frame(client, 0))?;
        let epoch = answer.payload::<LoginReply<'_>>()?.session;
        Ok(Session {
            connection,
            client,
            epoch,
        })
    }

    /// Connects and signs in.
    pub fn open(
        address: SocketAddr,
        client: u128,
        credentials: &Credentials,
    ) -> Result<Session, ClientError> {
        Session::register(Connection::open(address)?, client, credentials)
    }

    /// The session number: the op of the sign-in.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The connection, for bytes that no request makes.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Sends a request under this session.
    pub fn exchange(&mut self, request: &Request) -> Result<AnswerFrame, ClientError> {
        let frame = request.frame(self.client, self.epoch);
        self.connection.exchange(&frame)
    }

    /// Asks for something that changes nothing.
    pub fn read<'a>(
        &mut self,
        code: CommandCode,
        body: &impl Wire<'a>,
    ) -> Result<AnswerFrame, ClientError> {
        assert!(
            code.operation() == Operation::NonReplicated,
            "a read is not replicated"
        );
        self.exchange(&Request {
            code,
            number: 1,
            body: body.encode(),
            checksum: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeat_differs_in_the_session_only() {
        let request = Request::once(CommandCode::CreateStream, 7, b"\x02s1".to_vec());
        let first = request.frame(0x1122, 5);
        let second = request.frame(0x1122, 9);
        let differs: Vec<usize> = (0..first.len())
            .filter(|at| first[*at] != second[*at])
            .collect();
        assert_eq!(differs, [184]);
        let header = RequestHeader::from_bytes(first.first_chunk().expect("a whole header"));
        assert!(header.covers(&request.body) && header.request_checksum != 0);
        assert_eq!((header.request, header.client), (7, 0x1122));
    }

    #[test]
    fn a_send_that_opts_in_carries_a_checksum() {
        let request = Request::once(CommandCode::SendMessages, 3, vec![1, 2, 3]);
        let frame = request.frame(1, 1);
        let header = RequestHeader::from_bytes(frame.first_chunk().expect("a whole header"));
        assert_eq!(header.request_checksum, request_checksum(&[1, 2, 3]));
    }
}
