//! A node that is stopped or killed has everything that it acknowledged.

use iggy::prelude::*;

use super::util::*;

/// Everything that a client can know of the test's place.
#[derive(Debug, PartialEq)]
struct Seen {
    messages: Vec<Vec<(u64, u128, u64)>>,
    stored: Vec<Option<u64>>,
    /// As the SDK prints it.
    topic: String,
}

async fn see(client: &IggyClient, expected: &[Vec<Sent>]) -> Seen {
    let (stream, topic) = place();
    let details = client.get_topic(&stream, &topic).await.expect("served");
    let details = details.expect("the topic is there");
    let reader = consumer(1);
    let mut seen = Seen {
        messages: Vec::new(),
        stored: Vec::new(),
        topic: format!("{details:?}"),
    };
    for (partition, held) in (0u32..).zip(expected) {
        let polled = poll(client, partition, PollingStrategy::first(), 10_000).await;
        assert_eq!(polled.messages.len(), held.len());
        for ((offset, message), sent) in (0u64..).zip(&polled.messages).zip(held) {
            sent.check(message, offset);
        }
        let brief = polled.messages.iter().map(|message| &message.header);
        seen.messages
            .push(brief.map(|h| (h.offset, h.id, h.timestamp)).collect());
        let info = client.get_consumer_offset(&reader, &stream, &topic, Some(partition));
        let info = info.await.expect("served");
        seen.stored.push(info.map(|info| info.stored_offset));
    }
    seen
}

/// Two clients take turns.
async fn write(server: &Server, expected: &mut [Vec<Sent>], number: &mut u64) {
    let clients = [server.client().await, server.client().await];
    let (stream, topic) = place();
    for round in 0..40u32 {
        let client = &clients[round as usize % 2];
        let partition = round % expected.len() as u32;
        let held = &mut expected[partition as usize];
        let count = 1 + u64::from(round) % 9;
        let sent: Vec<Sent> = (*number..*number + count).map(Sent::numbered).collect();
        *number += count;
        let at = send(client, &Partitioning::partition_id(partition), &sent).await;
        assert_eq!(at, (partition, held.len() as u64));
        held.extend(sent);
        let newest = held.len() as u64 - 1;
        client
            .store_consumer_offset(&consumer(1), &stream, &topic, Some(partition), newest)
            .await
            .expect("stored");
    }
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_stop_and_a_kill() {
    let mut server = Server::start();
    let mut expected: Vec<Vec<Sent>> = vec![Vec::new(); 3];
    let mut number = 0;
    create_place(&server.client().await, 3).await;
    for life in 0..6 {
        write(&server, &mut expected, &mut number).await;
        let before = see(&server.client().await, &expected).await;
        match life % 2 {
            0 => server.kill_and_start(),
            _ => server.stop_and_start(),
        }
        let after = see(&server.client().await, &expected).await;
        assert_eq!(before, after);
    }
}

#[tokio::test]
async fn a_client_outlives_its_node() {
    let mut server = Server::start();
    let client = server.client().await;
    client.create_stream(STREAM).await.expect("created");
    server.kill_and_start();
    // The node is elsewhere now: the old client cannot find it, a new one finds everything.
    let client = server.client().await;
    let streams = client.get_streams().await.expect("served");
    assert_eq!(streams.len(), 1);
    assert_eq!(streams[0].name, STREAM);
    let again = client.create_stream(STREAM).await.expect_err("it is there");
    assert_eq!(again.as_code(), 1012);
}
