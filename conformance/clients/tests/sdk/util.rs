//! A node, clients of it, and messages whose content is known.

use std::collections::BTreeMap;

use bytes::Bytes;
use iggy::prelude::*;
use pawl_conformance::node::{Addresses, Node, NodeOptions, binary};
use tempfile::TempDir;

/// The stream of most tests.
pub const STREAM: &str = "orders";

/// The topic of most tests.
pub const TOPIC: &str = "events";

/// A node with a data directory of its own. Dropping it kills the node and removes the directory.
pub struct Server {
    options: NodeOptions,
    running: Option<(Node, Addresses)>,
    _folder: TempDir,
}

impl Server {
    /// Starts a node that has nothing stored.
    pub fn start() -> Server {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let binary = binary().expect("the node can be built");
        let options = NodeOptions::in_folder(&binary, folder.path());
        let running = Node::start(&options).expect("the node starts");
        Server {
            options,
            running: Some(running),
            _folder: folder,
        }
    }

    fn take(&mut self) -> Node {
        self.running.take().expect("the node runs").0
    }

    /// SIGTERM and a new start.
    pub fn stop_and_start(&mut self) {
        self.take().stop().expect("the node stops in time");
        self.running = Some(Node::start(&self.options).expect("the node starts again"));
    }

    /// SIGKILL and a new start.
    pub fn kill_and_start(&mut self) {
        self.take()
            .kill()
            .expect("the node ran until it was killed");
        self.running = Some(Node::start(&self.options).expect("the node starts again"));
    }

    /// A client that is connected and not signed in.
    pub async fn stranger(&self) -> IggyClient {
        let (_, addresses) = self.running.as_ref().expect("the node runs");
        let client = IggyClient::builder()
            .with_tcp()
            .with_server_address(addresses.tcp.to_string())
            .build()
            .expect("the client's settings are valid");
        client.connect().await.expect("the node accepts");
        client
    }

    /// A client that is signed in as root.
    pub async fn client(&self) -> IggyClient {
        let client = self.stranger().await;
        let identity = client.login_user("iggy", "iggy").await;
        assert_eq!(identity.expect("root signs in").user_id, 0);
        client
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        assert!(
            std::thread::panicking() || !self.options.has_panicked(),
            "the node never panics"
        );
    }
}

/// A name as an identifier.
pub fn named(name: &str) -> Identifier {
    Identifier::named(name).expect("the names of these tests are valid")
}

/// [`STREAM`] and [`TOPIC`].
pub fn place() -> (Identifier, Identifier) {
    (named(STREAM), named(TOPIC))
}

/// A plain consumer with a number.
pub fn consumer(id: u32) -> Consumer {
    Consumer::new(Identifier::numeric(id).expect("every number is valid"))
}

/// Creates [`STREAM`] with [`TOPIC`] of so many partitions.
pub async fn create_place(client: &IggyClient, partitions: u32) {
    let stream = client.create_stream(STREAM).await.expect("created");
    assert_eq!((stream.id, stream.name.as_str()), (0, STREAM));
    let options = TopicCreateOptions {
        partitions_count: Some(partitions),
        ..TopicCreateOptions::default()
    };
    let topic = client.create_topic(&named(STREAM), TOPIC, &options).await;
    let topic = topic.expect("created");
    assert_eq!((topic.id, topic.name.as_str()), (0, TOPIC));
    assert_eq!(topic.partitions_count, partitions);
    assert_eq!(topic.partitions.len(), partitions as usize);
}

/// What was sent and must come back.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub id: u128,
    pub payload: Bytes,
    pub headers: Option<BTreeMap<HeaderKey, HeaderValue>>,
}

impl Sent {
    /// The message with this number: every third one has no headers.
    pub fn numbered(number: u64) -> Sent {
        let bytes = 1 + (number * 37) % 401;
        let byte = |index: u64| (number.wrapping_mul(31) ^ index.wrapping_mul(7)) as u8;
        Sent {
            id: u128::from(number) + 1,
            payload: (0..bytes).map(byte).collect(),
            headers: (!number.is_multiple_of(3)).then(|| headers(number)),
        }
    }

    /// As the SDK takes it.
    pub fn message(&self) -> IggyMessage {
        let message = IggyMessage::builder()
            .id(self.id)
            .payload(self.payload.clone())
            .maybe_user_headers(self.headers.clone());
        message.build().expect("the message is within the limits")
    }

    /// Whether this is what came back.
    pub fn check(&self, polled: &IggyMessage, offset: u64) {
        assert_eq!(polled.header.offset, offset);
        assert_eq!(polled.header.id, self.id, "offset {offset}");
        assert_eq!(polled.payload, self.payload, "offset {offset}");
        let headers = polled.user_headers_map().expect("well-formed headers");
        assert_eq!(headers, self.headers, "offset {offset}");
    }
}

fn headers(number: u64) -> BTreeMap<HeaderKey, HeaderValue> {
    let key = |text: &str| HeaderKey::try_from(text).expect("a short key");
    let text = format!("value {number}");
    let text = HeaderValue::try_from(text.as_str()).expect("a short value");
    BTreeMap::from([
        (key("text"), text),
        (key("number"), HeaderValue::from(number)),
        (key("even"), HeaderValue::from(number.is_multiple_of(2))),
        (key("ratio"), HeaderValue::from(number as f64 / 3.0)),
    ])
}

/// Polls up to `count` messages of a partition of [`TOPIC`] without storing an offset.
pub async fn poll(
    client: &IggyClient,
    partition: u32,
    strategy: PollingStrategy,
    count: u32,
) -> PolledMessages {
    let (stream, topic) = place();
    let polled = client
        .poll_messages(
            &stream,
            &topic,
            Some(partition),
            &consumer(1),
            &strategy,
            count,
            false,
        )
        .await
        .expect("the poll is served");
    assert_eq!(polled.count as usize, polled.messages.len());
    assert_eq!(polled.partition_id, partition);
    polled
}

/// Sends messages and says where the first one went.
pub async fn send(client: &IggyClient, to: &Partitioning, sent: &[Sent]) -> (u32, u64) {
    let (stream, topic) = place();
    let mut messages: Vec<IggyMessage> = sent.iter().map(Sent::message).collect();
    let response = client
        .send_messages(&stream, &topic, to, &mut messages)
        .await
        .expect("the send is acknowledged");
    let [ref receipt] = response.confirmations[..] else {
        panic!("one receipt for one batch: {:?}", response.confirmations);
    };
    assert_eq!((receipt.stream_id, receipt.topic_id), (0, 0));
    (receipt.partition_id, receipt.base_offset)
}
