//! A node under test and a client of a few lines: whole frames over a raw socket, nothing hidden.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pawl_server::boot::{Node, NodeEnd, Start};
use pawl_server::config::{Config, CpuAllocation, Environment};
use pawl_store::Disk;
use pawl_wire::batch_client::{Message, PolledBatches, write_batch};
use pawl_wire::command::{Command, CommandCode};
use pawl_wire::commands::messages::{
    PollMessages, PollReply, SendMessages, SendReceipt, SendReply,
};
use pawl_wire::commands::session::{ClientVersion, LoginRegister, PROTOCOL_VERSION};
use pawl_wire::commands::streams::CreateStream;
use pawl_wire::commands::topics::CreateTopic;
use pawl_wire::error_code::ErrorCode;
use pawl_wire::headers::{EvictionReason, HEADER_BYTES, ReplyHeader, RequestHeader};
use pawl_wire::operation::Operation;
use pawl_wire::options::Options;
use pawl_wire::primitives::{
    Consumer, Identifier, Name, OptionalPartition, Partitioning, PollingStrategy, Secret, Text32,
    Wire,
};
use pawl_wire::reply::Answer as ReplyAnswer;

/// No answer of a node under test takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A node of its own, on free ports, in a folder of its own.
pub struct TestNode {
    node: Option<Node>,
    pub address: SocketAddr,
    pub config: Config,
    folder: Arc<tempfile::TempDir>,
}

impl TestNode {
    /// A node with the default settings.
    pub fn start() -> TestNode {
        TestNode::start_with(|_| {})
    }

    /// A node whose settings `change` has changed.
    pub fn start_with(change: impl FnOnce(&mut Config)) -> TestNode {
        let folder = Arc::new(tempfile::tempdir().expect("a temporary folder"));
        let mut config = Config::default();
        config.system.path = folder.path().join("data").display().to_string();
        config.tcp.address = "127.0.0.1:0".to_owned();
        config.http.address = "127.0.0.1:0".to_owned();
        config.system.sharding.cpu_allocation = CpuAllocation::Count(2);
        config.system.sharding.pin_cores = false;
        change(&mut config);
        TestNode::over(config, folder, None)
    }

    /// A node over a disk that is not a directory.
    pub fn start_on(disk: Arc<dyn Disk>) -> TestNode {
        let folder = Arc::new(tempfile::tempdir().expect("a temporary folder"));
        let mut config = Config::default();
        config.system.path = folder.path().join("data").display().to_string();
        config.tcp.address = "127.0.0.1:0".to_owned();
        config.http.enabled = false;
        config.system.sharding.cpu_allocation = CpuAllocation::Count(1);
        config.system.sharding.pin_cores = false;
        TestNode::over(config, folder, Some(disk))
    }

    fn over(
        config: Config,
        folder: Arc<tempfile::TempDir>,
        disk: Option<Arc<dyn Disk>>,
    ) -> TestNode {
        let node = Node::start(start_of(&config, disk)).expect("the node starts");
        let address = node.bound().tcp.expect("TCP is served");
        TestNode {
            node: Some(node),
            address,
            config,
            folder,
        }
    }

    /// Stops it gracefully and starts it again over the same data.
    pub fn restart(mut self) -> TestNode {
        self.stop();
        TestNode::over(self.config.clone(), self.folder.clone(), None)
    }

    /// Stops it gracefully.
    pub fn stop(&mut self) {
        let node = self.node.take().expect("the node runs");
        assert!(matches!(node.stop(), NodeEnd::Stopped));
    }

    /// Waits for an end that nobody asked for.
    pub fn wait(mut self) -> NodeEnd {
        self.node.take().expect("the node runs").wait()
    }

    /// A connection that has not signed in.
    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// A connection that has signed in as root.
    pub fn sign_in(&self) -> Client {
        let mut client = self.connect();
        client.sign_in();
        client
    }

    /// The value of a line of `/metrics`, 0 where there is none.
    pub fn metric(&self, line: &str) -> f64 {
        let address = self.node.as_ref().and_then(|node| node.bound().http);
        let address = address.expect("HTTP is served");
        let mut stream = TcpStream::connect(address).expect("connected");
        let request = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("answered");
        text.lines()
            .find_map(|found| found.strip_prefix(line)?.trim().parse().ok())
            .unwrap_or(0.0)
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        if let Some(node) = self.node.take() {
            node.stop();
        }
    }
}

/// Asks again and again until it holds.
#[track_caller]
pub fn until(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "it never came to hold");
        std::thread::yield_now();
    }
}

/// What a node is started with, root being iggy with password iggy.
pub fn start_of(config: &Config, disk: Option<Arc<dyn Disk>>) -> Start {
    Start {
        config: config.clone(),
        environment: Environment::default(),
        default_root_credentials: true,
        fresh: false,
        disk,
    }
}

/// An answer of the node.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    Payload(Box<ReplyHeader>, Vec<u8>),
    /// The code, and whether it came as a status (not in a result section).
    Refused {
        code: u32,
        status: bool,
        header: Box<ReplyHeader>,
    },
    Evicted(u8),
    Closed,
}

impl Answer {
    pub fn payload(self) -> Vec<u8> {
        match self {
            Answer::Payload(_, payload) => payload,
            other => panic!("not a success: {other:?}"),
        }
    }

    pub fn header(&self) -> ReplyHeader {
        match self {
            Answer::Payload(header, _) => **header,
            Answer::Refused { header, .. } => **header,
            other => panic!("not a reply: {other:?}"),
        }
    }

    pub fn code(&self) -> Option<u32> {
        match self {
            Answer::Refused { code, .. } => Some(*code),
            Answer::Payload(..) | Answer::Evicted(_) | Answer::Closed => None,
        }
    }

    #[track_caller]
    pub fn assert_status(&self, expected: ErrorCode) {
        match self {
            Answer::Refused {
                code, status: true, ..
            } => assert_eq!(*code, expected.code()),
            other => panic!("not a status {expected}: {other:?}"),
        }
    }

    #[track_caller]
    pub fn assert_result(&self, expected: ErrorCode) {
        match self {
            Answer::Refused {
                code,
                status: false,
                ..
            } => assert_eq!(*code, expected.code()),
            other => panic!("not a result {expected}: {other:?}"),
        }
    }

    #[track_caller]
    pub fn assert_evicted(&self, reason: EvictionReason) {
        assert_eq!(*self, Answer::Evicted(reason as u8));
    }
}

static NEXT_CLIENT: AtomicU64 = AtomicU64::new(0x1000);

/// A connection.
pub struct Client {
    pub stream: TcpStream,
    pub id: u128,
    pub session: u64,
    pub number: u64,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).expect("connected");
        stream.set_nodelay(true).expect("no delay");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Client {
            stream,
            id: NEXT_CLIENT.fetch_add(1, Ordering::Relaxed).into(),
            session: 0,
            number: 1,
        }
    }

    /// Signs in as root; the session is used from then on.
    pub fn sign_in(&mut self) {
        let answer = self.login("iggy", "iggy");
        self.session = answer.header().op;
        assert_ne!(self.session, 0);
        self.number = 1;
    }

    /// Sends a login with a password.
    pub fn login(&mut self, username: &str, password: &str) -> Answer {
        self.login_with(PROTOCOL_VERSION, username, password, "")
    }

    pub fn login_with(
        &mut self,
        protocol_version: u32,
        username: &str,
        password: &str,
        context: &str,
    ) -> Answer {
        let login = LoginRegister {
            version: ClientVersion {
                protocol_version,
                sdk_name: Name::new("test").expect("a name"),
                sdk_version: Name::new("0.11.0").expect("a name"),
            },
            username: Name::new(username).expect("a name"),
            password: Secret(password),
            context: Text32(context),
        };
        self.login_body(&login.encode())
    }

    pub fn login_body(&mut self, body: &[u8]) -> Answer {
        let mut header = RequestHeader::new(Operation::Register, body.len() as u32);
        header.client = self.id;
        header.request_checksum = pawl_wire::headers::request_checksum(body);
        self.exchange(&header, body)
    }

    /// Sends a command, numbered as the stable SDK does.
    pub fn command(&mut self, command: &Command<'_>) -> Answer {
        self.body(command.code(), &command.encode())
    }

    /// Sends this body under a command's code.
    pub fn body(&mut self, code: CommandCode, body: &[u8]) -> Answer {
        let header = self.header(code, body);
        if code.operation() != Operation::NonReplicated {
            self.number += 1;
        }
        self.exchange(&header, body)
    }

    /// The header of a request of this connection.
    pub fn header(&self, code: CommandCode, body: &[u8]) -> RequestHeader {
        RequestHeader {
            client: self.id,
            session: self.session,
            request: self.number,
            ..RequestHeader::for_command(code, body)
        }
    }

    /// Sends a frame and reads its answer.
    pub fn exchange(&mut self, header: &RequestHeader, body: &[u8]) -> Answer {
        self.send(header, body);
        self.receive()
    }

    /// Sends a frame.
    pub fn send(&mut self, header: &RequestHeader, body: &[u8]) {
        let mut frame = header.as_bytes().to_vec();
        frame.extend_from_slice(body);
        self.send_bytes(&frame);
    }

    /// Sends bytes. A connection that the node has closed takes none; the answer will tell.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Reads an answer.
    pub fn receive(&mut self) -> Answer {
        let mut frame = vec![0; HEADER_BYTES];
        if !self.read_exact(&mut frame) {
            return Answer::Closed;
        }
        let size = u32::from_le_bytes(frame[48..52].try_into().expect("four bytes")) as usize;
        let mut body = vec![0; size - HEADER_BYTES];
        assert!(self.read_exact(&mut body), "an answer is whole");
        frame.extend_from_slice(&body);
        match ReplyAnswer::decode(&frame).expect("a valid answer") {
            ReplyAnswer::Payload(header, payload) => {
                Answer::Payload(Box::new(header), payload.to_vec())
            }
            ReplyAnswer::Refused(header, code) => Answer::Refused {
                code,
                status: header.status != 0,
                header: Box::new(header),
            },
            ReplyAnswer::Evicted(header) => Answer::Evicted(header.reason),
        }
    }

    /// Whether the bytes came; `false` when the node closed the connection instead.
    fn read_exact(&mut self, bytes: &mut [u8]) -> bool {
        match self.stream.read_exact(bytes) {
            Ok(()) => true,
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::ConnectionReset
                ) =>
            {
                false
            }
            Err(error) => panic!("no answer: {error}"),
        }
    }

    /// Whether the connection still serves: a ping is answered.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.body(CommandCode::Ping, b""), Answer::Payload(..))
    }
}

impl Client {
    /// Creates stream `name` (id 0 in a fresh node) with topic `t` of so many partitions.
    pub fn create_topic(&mut self, name: &str, partitions: u32) {
        let name = Name::new(name).expect("a name");
        let create = Command::CreateStream(CreateStream {
            name,
            options: Options::EMPTY,
        });
        self.command(&create).payload();
        let create = Command::CreateTopic(CreateTopic {
            stream: Identifier::Named(name),
            partitions_count: partitions,
            name: Name::new("t").expect("a name"),
            options: Options::EMPTY,
        });
        self.command(&create).payload();
    }

    /// Sends one message per payload in one batch to stream 0, topic 0.
    pub fn send_payloads(&mut self, partitioning: Partitioning<'_>, payloads: &[&[u8]]) -> Answer {
        let body = send_body(partitioning, payloads);
        self.body(CommandCode::SendMessages, &body)
    }

    /// Sends to partition 0 and returns the base offset.
    pub fn send_ok(&mut self, payloads: &[&[u8]]) -> u64 {
        let answer = self.send_payloads(Partitioning::Partition(0), payloads);
        receipt(&answer.payload()).base_offset
    }

    /// Polls partition 0 of stream 0, topic 0 for consumer 1.
    pub fn poll(&mut self, strategy: PollingStrategy, count: u32, auto_commit: bool) -> Answer {
        let poll = poll_of(strategy, count, auto_commit);
        self.command(&Command::PollMessages(poll))
    }

    /// Offsets and payloads that a poll returns.
    pub fn poll_ok(&mut self, strategy: PollingStrategy, count: u32) -> Vec<(u64, Vec<u8>)> {
        messages(&self.poll(strategy, count, false).payload())
    }
}

/// A poll of partition 0 of stream 0, topic 0 for consumer 1.
pub fn poll_of(strategy: PollingStrategy, count: u32, auto_commit: bool) -> PollMessages<'static> {
    PollMessages {
        consumer: Consumer::Plain(Identifier::Numeric(1)),
        stream: Identifier::Numeric(0),
        topic: Identifier::Numeric(0),
        partition: OptionalPartition(Some(0)),
        strategy,
        count,
        auto_commit,
    }
}

/// The body of a send to stream 0, topic 0.
pub fn send_body(partitioning: Partitioning<'_>, payloads: &[&[u8]]) -> Vec<u8> {
    let messages: Vec<Message<'_>> = payloads
        .iter()
        .zip(1..)
        .map(|(payload, id)| Message {
            id,
            origin_timestamp: 1_000,
            payload,
            user_headers: b"",
        })
        .collect();
    let mut batch = Vec::new();
    write_batch(&messages, &mut batch).expect("a valid batch");
    let send = SendMessages {
        stream: Identifier::Numeric(0),
        topic: Identifier::Numeric(0),
        partitioning,
        messages_count: messages.len() as u32,
        batch: &batch,
    };
    send.encode()
}

/// The one receipt of a send.
pub fn receipt(payload: &[u8]) -> SendReceipt {
    let reply = SendReply::decode(payload).expect("receipts");
    assert_eq!(reply.receipts.len(), 1);
    reply.receipts[0]
}

/// Offsets and payloads of a poll reply; checks every record's header and checksum.
pub fn messages(payload: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let reply = PollReply::decode(payload).expect("a poll reply");
    let mut found = Vec::new();
    for batch in PolledBatches::new(reply.records.0) {
        let batch = batch.expect("a record");
        let mut checksums = Vec::new();
        for message in batch.messages() {
            let message = message.expect("a message");
            assert_eq!(message.frame.checksum(), message.frame.checksum_computed());
            checksums.push(message.frame.checksum());
            found.push((message.offset, message.frame.payload().to_vec()));
        }
        assert_eq!(batch.header.message_count as usize, checksums.len());
        let checksum = batch.header.checksum_computed(&checksums);
        assert_eq!(batch.header.batch_checksum, checksum);
    }
    assert_eq!(found.len(), reply.count as usize);
    found
}
