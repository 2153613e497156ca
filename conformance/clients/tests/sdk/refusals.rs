//! Typed refusals: the code that the SDK makes of each, and a session that lives on.

use iggy::prelude::*;

use super::util::*;

/// The code of a refusal.
fn code<T: std::fmt::Debug>(result: Result<T, IggyError>) -> u32 {
    result.expect_err("it is refused").as_code()
}

fn partitions(count: u32) -> TopicCreateOptions {
    TopicCreateOptions {
        partitions_count: Some(count),
        ..TopicCreateOptions::default()
    }
}

#[tokio::test]
async fn streams_refuse_by_type() {
    let server = Server::start();
    let client = server.client().await;
    create_place(&client, 3).await;
    let missing = named("missing");
    client.create_stream("other").await.expect("created");
    let plain = StreamUpdateOptions::default();
    let other = named("other");

    assert_eq!(code(client.create_stream(STREAM).await), 1012);
    let taken = client.update_stream(&other, STREAM, &plain).await;
    assert_eq!(code(taken), 1012);
    assert_eq!(code(client.delete_stream(&missing).await), 1009);
    assert_eq!(code(client.purge_stream(&missing).await), 1009);
    let orphan = client.create_topic(&missing, "t", &partitions(1)).await;
    assert_eq!(code(orphan), 1009);

    let streams = client.get_streams().await.expect("the session is alive");
    assert_eq!(streams.len(), 2);
    let topics = client.get_topics(&missing).await.expect("served");
    assert!(topics.is_empty());
}

#[tokio::test]
async fn topics_refuse_by_type() {
    let server = Server::start();
    let client = server.client().await;
    create_place(&client, 3).await;
    let (stream, topic) = place();
    let missing = named("missing");
    let unchanged = TopicUpdateOptions::default();

    let same = client.create_topic(&stream, TOPIC, &partitions(1)).await;
    assert_eq!(code(same), 2013);
    let many = client.create_topic(&stream, "t", &partitions(1001)).await;
    assert_eq!(code(many), 2015);
    assert_eq!(code(client.delete_topic(&stream, &missing).await), 2010);
    assert_eq!(code(client.purge_topic(&stream, &missing).await), 2010);
    let update = client.update_topic(&stream, &missing, "t", &unchanged);
    assert_eq!(code(update.await), 2010);
    let create = |topic, count| client.create_partitions(&stream, topic, count);
    assert_eq!(code(create(&missing, 1).await), 2010);
    assert_eq!(code(create(&topic, 1001).await), 2015);
    let remove = client.delete_partitions(&stream, &topic, 4);
    assert_eq!(code(remove.await), 2019);

    let found = client.get_topic(&stream, &missing).await.expect("served");
    assert!(found.is_none());
}

#[tokio::test]
async fn topic_options_refuse_by_type() {
    let server = Server::start();
    let client = server.client().await;
    create_place(&client, 1).await;
    let stream = named(STREAM);

    let mut options = partitions(1);
    options.segment_size = Some(IggyByteSize::from(1000));
    let odd_segment = client.create_topic(&stream, "t", &options).await;
    assert_eq!(code(odd_segment), 4042);
    let mut options = partitions(1);
    options.max_topic_size = Some(MaxTopicSize::Custom(IggyByteSize::from(1000)));
    let small = client.create_topic(&stream, "t", &options).await;
    assert_eq!(code(small), 1019);
    let topics = client.get_topics(&stream).await.expect("served");
    assert_eq!(topics.len(), 1, "the session is alive, nothing was made");
}

#[tokio::test]
async fn partitions_refuse_by_type() {
    let server = Server::start();
    let client = server.client().await;
    create_place(&client, 2).await;
    let (stream, topic) = place();
    let missing = named("missing");
    let reader = consumer(1);
    send(
        &client,
        &Partitioning::partition_id(0),
        &[Sent::numbered(0)],
    )
    .await;

    let store = |partition, offset| {
        client.store_consumer_offset(&reader, &stream, &topic, Some(partition), offset)
    };
    assert_eq!(code(store(0, 1).await), 4100, "above the current offset");
    assert_eq!(code(store(1, 0).await), 4100, "the partition is empty");
    // spec ANS-12
    assert_eq!(code(store(2, 0).await), 3007, "no such partition");
    store(0, 0).await.expect("stored");
    let delete = |partition| client.delete_consumer_offset(&reader, &stream, &topic, partition);
    assert_eq!(code(delete(Some(1)).await), 3021);

    let first = PollingStrategy::first();
    let poll = |stream, topic, partition| {
        client.poll_messages(stream, topic, Some(partition), &reader, &first, 1, false)
    };
    assert_eq!(code(poll(&missing, &topic, 0).await), 1009);
    assert_eq!(code(poll(&stream, &missing, 0).await), 2010);
    assert_eq!(code(poll(&stream, &topic, 2).await), 3007);

    let mut messages = vec![Sent::numbered(0).message()];
    let to = Partitioning::partition_id(2);
    let sent = client.send_messages(&stream, &topic, &to, &mut messages);
    assert_eq!(code(sent.await), 3007);
    // spec ANS-15
    let flushed = client.flush_unsaved_buffer(&stream, &topic, 0, true);
    assert_eq!(code(flushed.await), 5);
    let polled = poll(&stream, &topic, 0)
        .await
        .expect("the session is alive");
    assert_eq!(polled.count, 1);
}

#[tokio::test]
async fn only_who_signs_in_is_served() {
    let server = Server::start();
    let stranger = server.stranger().await;
    stranger.ping().await.expect("a ping needs no sign-in");
    assert_eq!(code(stranger.get_streams().await), 40);
    assert_eq!(code(stranger.create_stream("s").await), 40);
    assert_eq!(code(stranger.login_user("iggy", "wrong").await), 42);
    assert_eq!(code(stranger.login_user("nobody", "iggy").await), 42);
    stranger
        .login_user("iggy", "iggy")
        .await
        .expect("the right password");
    assert!(stranger.get_streams().await.expect("served").is_empty());
    stranger.logout_user().await.expect("signed out");
    assert_eq!(code(stranger.get_streams().await), 40);
}
