//! Streams, topics and partitions, and what the node says about itself and its clients.

use iggy::prelude::*;

use super::util::*;

fn partitions(count: u32) -> TopicCreateOptions {
    TopicCreateOptions {
        partitions_count: Some(count),
        ..TopicCreateOptions::default()
    }
}

#[tokio::test]
async fn streams_and_topics_take_the_lowest_free_number() {
    let server = Server::start();
    let client = server.client().await;
    for (id, name) in [(0, "a"), (1, "b"), (2, "c")] {
        assert_eq!(client.create_stream(name).await.expect("created").id, id);
    }
    client.delete_stream(&named("b")).await.expect("deleted");
    assert!(
        client
            .get_stream(&named("b"))
            .await
            .expect("served")
            .is_none()
    );
    assert_eq!(client.create_stream("d").await.expect("created").id, 1);
    let streams = client.get_streams().await.expect("served");
    let names: Vec<(u32, &str)> = streams.iter().map(|s| (s.id, s.name.as_str())).collect();
    assert_eq!(names, [(0, "a"), (1, "d"), (2, "c")]);

    let stream = named("a");
    for (id, name) in [(0, "t"), (1, "u")] {
        let topic = client.create_topic(&stream, name, &partitions(2)).await;
        assert_eq!(topic.expect("created").id, id);
    }
    client
        .delete_topic(&stream, &named("t"))
        .await
        .expect("deleted");
    let topic = client.create_topic(&stream, "v", &partitions(0)).await;
    assert_eq!(topic.expect("created").id, 0);
    let topics = client.get_topics(&stream).await.expect("served");
    let names: Vec<&str> = topics.iter().map(|topic| topic.name.as_str()).collect();
    assert_eq!(names, ["v", "u"]);
    let details = client.get_stream(&stream).await.expect("served");
    assert_eq!(details.expect("it exists").topics_count, 2);
}

#[tokio::test]
async fn names_and_partition_counts_change() {
    let server = Server::start();
    let client = server.client().await;
    create_place(&client, 3).await;
    let (stream, topic) = place();
    client
        .create_partitions(&stream, &topic, 4)
        .await
        .expect("added");
    client
        .delete_partitions(&stream, &topic, 2)
        .await
        .expect("removed");
    let details = client
        .get_topic(&stream, &topic)
        .await
        .expect("served")
        .expect("there");
    let ids: Vec<u32> = details
        .partitions
        .iter()
        .map(|partition| partition.id)
        .collect();
    assert_eq!(ids, [0, 1, 2, 3, 4]);

    let options = StreamUpdateOptions::default();
    client
        .update_stream(&stream, "sales", &options)
        .await
        .expect("renamed");
    assert!(client.get_stream(&stream).await.expect("served").is_none());
    let renamed = client.get_stream(&named("sales")).await.expect("served");
    assert_eq!(renamed.expect("there").id, 0);
    let options = TopicUpdateOptions {
        message_expiry: Some(IggyExpiry::ExpireDuration(IggyDuration::from(1_000_000))),
        ..TopicUpdateOptions::default()
    };
    let (stream, renamed) = (named("sales"), named("changes"));
    client
        .update_topic(&stream, &topic, "changes", &options)
        .await
        .expect("changed");
    let details = client
        .get_topic(&stream, &renamed)
        .await
        .expect("served")
        .expect("there");
    let second = IggyExpiry::ExpireDuration(IggyDuration::from(1_000_000));
    assert_eq!(details.message_expiry, second);
}

#[tokio::test]
async fn purging_leaves_an_empty_topic() {
    let server = Server::start();
    let client = server.client().await;
    create_place(&client, 2).await;
    let (stream, topic) = place();
    let sent: Vec<Sent> = (0..10).map(Sent::numbered).collect();
    let to = Partitioning::partition_id(1);
    send(&client, &to, &sent).await;
    client.purge_topic(&stream, &topic).await.expect("purged");
    assert_eq!(
        poll(&client, 1, PollingStrategy::first(), 10).await.count,
        0
    );
    let details = client
        .get_topic(&stream, &topic)
        .await
        .expect("served")
        .expect("there");
    assert_eq!(
        (details.messages_count, details.size.as_bytes_u64()),
        (0, 0)
    );
    assert_eq!(
        send(&client, &to, &sent).await,
        (1, 0),
        "offsets begin again"
    );
}

#[tokio::test]
async fn the_node_tells_about_itself_and_its_clients() {
    let server = Server::start();
    let (client, other) = (server.client().await, server.client().await);
    other.ping().await.expect("served");
    create_place(&client, 3).await;
    send(
        &client,
        &Partitioning::partition_id(0),
        &[Sent::numbered(0)],
    )
    .await;
    let stats = client.get_stats().await.expect("served");
    assert_eq!(
        (
            stats.streams_count,
            stats.topics_count,
            stats.partitions_count
        ),
        (1, 1, 3)
    );
    assert_eq!((stats.messages_count, stats.clients_count), (1, 2));
    assert!(stats.process_id > 0);

    let me = client.get_me().await.expect("served");
    assert_eq!(me.user_id, Some(0));
    let clients = client.get_clients().await.expect("served");
    assert_eq!(clients.len(), 2);
    let found = client
        .get_client(me.client_id)
        .await
        .expect("served")
        .expect("there");
    assert_eq!(found.address, me.address);
    assert!(client.get_client(u32::MAX).await.expect("served").is_none());

    let roster = client.get_cluster_metadata().await.expect("served");
    assert_eq!(
        (roster.name.as_str(), roster.nodes.len()),
        ("single-node", 1)
    );
    assert_eq!(roster.nodes[0].name, "iggy-node");
}
