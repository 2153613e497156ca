//! Ten thousand messages come back as they were sent, whichever way they are polled.

use iggy::prelude::*;
use pawl_wire::primitives::Partitioning as WirePartitioning;

use super::util::*;

const PARTITIONS: u32 = 3;

/// Batches of each size: 500 x 1 + 500 x 7 + 6 x 1000 = 10,000 messages.
const BATCHES: [(u64, u64); 3] = [(500, 1), (500, 7), (6, 1000)];

/// What each partition must hold, by offset.
type Expected = Vec<Vec<Sent>>;

/// Sends everything, in turn to a partition by number, by key, and wherever the client likes.
async fn send_all(client: &IggyClient) -> Expected {
    let mut expected: Expected = vec![Vec::new(); PARTITIONS as usize];
    let mut number = 0;
    let batches = BATCHES
        .iter()
        .flat_map(|(batches, size)| (0..*batches).map(|_| *size));
    for (index, size) in (0u32..).zip(batches) {
        let sent: Vec<Sent> = (number..number + size).map(Sent::numbered).collect();
        number += size;
        let key = format!("key {}", index % 17);
        let (to, partition) = match index % 3 {
            0 => (
                Partitioning::partition_id(index % PARTITIONS),
                Some(index % PARTITIONS),
            ),
            1 => (
                Partitioning::messages_key_str(&key).expect("a short key"),
                WirePartitioning::Key(key.as_bytes()).key_partition(PARTITIONS),
            ),
            _ => (Partitioning::balanced(), None),
        };
        let (found, base_offset) = send(client, &to, &sent).await;
        assert!(partition.is_none_or(|partition| partition == found));
        let held = &mut expected[found as usize];
        assert_eq!(base_offset, held.len() as u64, "offsets are dense");
        held.extend(sent);
    }
    assert_eq!(number, 10_000);
    assert!(expected.iter().all(|held| !held.is_empty()));
    expected
}

fn check(polled: &PolledMessages, held: &[Sent], first: u64) {
    assert_eq!(polled.current_offset, held.len() as u64 - 1);
    for (offset, message) in (first..).zip(&polled.messages) {
        held[offset as usize].check(message, offset);
    }
}

#[tokio::test]
async fn ten_thousand_messages_come_back_as_they_were_sent() {
    let server = Server::start();
    let client = server.client().await;
    create_place(&client, PARTITIONS).await;
    let expected = send_all(&client).await;
    for (partition, held) in (0u32..).zip(&expected) {
        by_offset(&client, partition, held).await;
        by_timestamp(&client, partition, held).await;
        first_and_last(&client, partition, held).await;
        next_with_auto_commit(&client, partition, held).await;
    }
    let (stream, topic) = place();
    let details = client.get_topic(&stream, &topic).await.expect("served");
    let details = details.expect("the topic exists");
    assert_eq!(details.messages_count, 10_000);
    for (partition, held) in details.partitions.iter().zip(&expected) {
        assert_eq!(partition.messages_count, held.len() as u64);
        assert_eq!(partition.current_offset, held.len() as u64 - 1);
    }
    client.shutdown().await.expect("the client closes");
}

async fn by_offset(client: &IggyClient, partition: u32, held: &[Sent]) {
    for count in [1000, 333] {
        let mut offset = 0;
        while offset < held.len() as u64 {
            let polled = poll(client, partition, PollingStrategy::offset(offset), count).await;
            let left = held.len() as u64 - offset;
            assert_eq!(u64::from(polled.count), left.min(count.into()));
            check(&polled, held, offset);
            offset += u64::from(polled.count);
        }
    }
    let end = held.len() as u64;
    for beyond in [end, end + 1, u64::MAX] {
        let polled = poll(client, partition, PollingStrategy::offset(beyond), 10).await;
        assert_eq!(polled.count, 0);
    }
}

async fn by_timestamp(client: &IggyClient, partition: u32, held: &[Sent]) {
    let mut appended = Vec::new();
    while appended.len() < held.len() {
        let strategy = PollingStrategy::offset(appended.len() as u64);
        let polled = poll(client, partition, strategy, 1000).await;
        appended.extend(
            polled
                .messages
                .iter()
                .map(|message| message.header.timestamp),
        );
    }
    assert!(appended.is_sorted(), "append times never go back");
    for index in (0..held.len()).step_by(held.len() / 25) {
        // One before, at, and one behind the append time of a message.
        for time in [appended[index] - 1, appended[index], appended[index] + 1] {
            let first = appended.partition_point(|appended| *appended < time);
            let strategy = PollingStrategy::timestamp(IggyTimestamp::from(time));
            let polled = poll(client, partition, strategy, 10).await;
            assert_eq!(polled.messages.len(), 10.min(held.len() - first));
            check(&polled, held, first as u64);
        }
    }
}

async fn first_and_last(client: &IggyClient, partition: u32, held: &[Sent]) {
    for count in [1, 10, 1000] {
        let polled = poll(client, partition, PollingStrategy::first(), count).await;
        assert_eq!(polled.messages.len(), held.len().min(count as usize));
        check(&polled, held, 0);
        let polled = poll(client, partition, PollingStrategy::last(), count).await;
        assert_eq!(polled.messages.len(), held.len().min(count as usize));
        check(&polled, held, (held.len() - polled.messages.len()) as u64);
    }
}

async fn next_with_auto_commit(client: &IggyClient, partition: u32, held: &[Sent]) {
    let (stream, topic) = place();
    let reader = consumer(77);
    let mut offset = 0;
    loop {
        let next = PollingStrategy::next();
        let polled = client
            .poll_messages(&stream, &topic, Some(partition), &reader, &next, 700, true)
            .await
            .expect("the poll is served");
        check(&polled, held, offset);
        offset += u64::from(polled.count);
        if polled.count == 0 {
            break;
        }
        let stored = client
            .get_consumer_offset(&reader, &stream, &topic, Some(partition))
            .await
            .expect("served")
            .expect("a poll with auto commit stores an offset");
        assert_eq!(stored.partition_id, partition);
        assert_eq!(stored.current_offset, held.len() as u64 - 1);
        assert_eq!(stored.stored_offset, offset - 1);
    }
    assert_eq!(offset, held.len() as u64);
}

#[tokio::test]
async fn a_poll_right_after_an_acknowledgement_finds_the_message() {
    let server = Server::start();
    let (producer, reader) = (server.client().await, server.client().await);
    create_place(&producer, 1).await;
    let to = Partitioning::partition_id(0);
    for number in 0..300 {
        let sent = Sent::numbered(number);
        let at = send(&producer, &to, std::slice::from_ref(&sent)).await;
        assert_eq!(at, (0, number));
        let polled = poll(&reader, 0, PollingStrategy::last(), 1).await;
        assert_eq!(polled.count, 1);
        sent.check(&polled.messages[0], number);
    }
}

#[tokio::test]
async fn a_message_of_the_largest_usual_size_comes_back() {
    let server = Server::start();
    let client = server.client().await;
    create_place(&client, 1).await;
    let mut sent = Sent::numbered(5);
    sent.payload = (0..10_000_000u32)
        .map(|index| (index % 251) as u8)
        .collect();
    send(
        &client,
        &Partitioning::partition_id(0),
        std::slice::from_ref(&sent),
    )
    .await;
    let polled = poll(&client, 0, PollingStrategy::first(), 1).await;
    sent.check(&polled.messages[0], 0);
}
