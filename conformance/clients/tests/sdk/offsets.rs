//! Stored offsets: stored, read, moved back, deleted; per consumer and per partition.

use iggy::prelude::*;

use super::util::*;

async fn stored(client: &IggyClient, reader: &Consumer, partition: u32) -> Option<u64> {
    let (stream, topic) = place();
    client
        .get_consumer_offset(reader, &stream, &topic, Some(partition))
        .await
        .expect("served")
        .map(|info| info.stored_offset)
}

async fn store(client: &IggyClient, reader: &Consumer, partition: u32, offset: u64) {
    let (stream, topic) = place();
    client
        .store_consumer_offset(reader, &stream, &topic, Some(partition), offset)
        .await
        .expect("stored");
}

#[tokio::test]
async fn offsets_are_stored_read_and_deleted() {
    let server = Server::start();
    let client = server.client().await;
    create_place(&client, 3).await;
    let sent: Vec<Sent> = (0..20).map(Sent::numbered).collect();
    for partition in 0..3 {
        send(&client, &Partitioning::partition_id(partition), &sent).await;
    }
    let numeric = consumer(5);
    let by_name = Consumer::new(named("5"));
    assert_eq!(stored(&client, &numeric, 1).await, None);

    store(&client, &numeric, 1, 7).await;
    assert_eq!(stored(&client, &numeric, 1).await, Some(7));
    assert_eq!(
        stored(&client, &numeric, 0).await,
        None,
        "another partition"
    );
    assert_eq!(stored(&client, &by_name, 1).await, None, "another consumer");

    store(&client, &by_name, 1, 19).await;
    store(&client, &numeric, 1, 2).await;
    assert_eq!(
        stored(&client, &numeric, 1).await,
        Some(2),
        "it may move back"
    );
    assert_eq!(stored(&client, &by_name, 1).await, Some(19));

    let (stream, topic) = place();
    client
        .delete_consumer_offset(&numeric, &stream, &topic, Some(1))
        .await
        .expect("deleted");
    assert_eq!(stored(&client, &numeric, 1).await, None);
    assert_eq!(stored(&client, &by_name, 1).await, Some(19));
}

#[tokio::test]
async fn next_begins_behind_the_stored_offset() {
    let server = Server::start();
    let client = server.client().await;
    create_place(&client, 1).await;
    let sent: Vec<Sent> = (0..20).map(Sent::numbered).collect();
    send(&client, &Partitioning::partition_id(0), &sent).await;
    let next = PollingStrategy::next;
    assert_eq!(
        poll(&client, 0, next(), 3).await.messages[0].header.offset,
        0
    );
    store(&client, &consumer(1), 0, 11).await;
    let polled = poll(&client, 0, next(), 3).await;
    assert_eq!(polled.messages.len(), 3);
    for (offset, message) in (12..).zip(&polled.messages) {
        sent[offset as usize].check(message, offset);
    }
    // Without auto commit nothing moves.
    assert_eq!(
        poll(&client, 0, next(), 1).await.messages[0].header.offset,
        12
    );
    store(&client, &consumer(1), 0, 19).await;
    assert_eq!(poll(&client, 0, next(), 3).await.count, 0);
}
