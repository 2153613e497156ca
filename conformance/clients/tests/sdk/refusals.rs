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
async fn the_catalog_refuses_by_type() {
    let server = Server::start();
    let client = server.client().await;
    create_place(&client, 3).await;
    let (stream, topic) = place();
    let missing = named("missing");
    client.create_stream("other").await.expect("created");
    let plain = StreamUpdateOptions::default();
    let unchanged = TopicUpdateOptions::default();

    assert_eq!(code(client.create_stream(STREAM).await), 1012);
    assert_eq!(
        code(client.update_stream(&named("other"), STREAM, &plain).await),
        1012
    );
    assert_eq!(code(client.delete_stream(&missing).await), 1009);
    assert_eq!(code(client.purge_stream(&missing).await), 1009);
    assert_eq!(
        code(client.create_topic(&missing, "t", &partitions(1)).await),
        1009
    );
    assert_eq!(
        code(client.create_topic(&stream, TOPIC, &partitions(1)).await),
        2013
    );
    assert_eq!(
        code(client.create_topic(&stream, "t", &partitions(1001)).await),
        2015
    );
    assert_eq!(code(client.delete_topic(&stream, &missing).await), 2010);
    assert_eq!(code(client.purge_topic(&stream, &missing).await), 2010);
    assert_eq!(
        code(
            client
                .update_topic(&stream, &missing, "t", &unchanged)
                .await
        ),
        2010
    );
    assert_eq!(
        code(client.create_partitions(&stream, &missing, 1).await),
        2010
    );
    assert_eq!(
        code(client.create_partitions(&stream, &topic, 1001).await),
        2015
    );
    assert_eq!(
        code(client.delete_partitions(&stream, &topic, 4).await),
        2019
    );

    let mut options = partitions(1);
    options.segment_size = Some(IggyByteSize::from(1000));
    assert_eq!(
        code(client.create_topic(&stream, "t", &options).await),
        4042
    );
    let mut options = partitions(1);
    options.max_topic_size = Some(MaxTopicSize::Custom(IggyByteSize::from(1000)));
    assert_eq!(
        code(client.create_topic(&stream, "t", &options).await),
        1019
    );

    let streams = client.get_streams().await.expect("the session is alive");
    assert_eq!(streams.len(), 2);
    assert!(
        client
            .get_topics(&missing)
            .await
            .expect("served")
            .is_empty()
    );
    assert!(
        client
            .get_topic(&stream, &missing)
            .await
            .expect("served")
            .is_none()
    );
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
    assert_eq!(code(store(2, 0).await), 20, "no such partition");
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
    assert_eq!(
        code(
            client
                .send_messages(&stream, &topic, &to, &mut messages)
                .await
        ),
        20
    );
    assert_eq!(
        code(client.flush_unsaved_buffer(&stream, &topic, 0, true).await),
        5
    );
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
