//! Commands about the server, the roster of a node alone, and its routes.

use pawl_wire::command::CommandCode;
use pawl_wire::commands::messages::RouteReply;
use pawl_wire::commands::streams::StreamDetails;
use pawl_wire::commands::system::{
    ClientDetails, ClientInfo, ClusterMetadataReply, DescribeOptionsReply, NodeRole, NodeStatus,
    StatsReply, USER_ID_NONE,
};
use pawl_wire::error_code::ErrorCode;
use pawl_wire::primitives::{PollingStrategy, ToEnd, Wire};

use crate::util::{TestNode, poll_of};

#[test]
fn a_node_alone_lists_itself_under_the_names_that_tools_compare() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    let payload = client.body(CommandCode::GetClusterMetadata, b"").payload();
    let roster = ClusterMetadataReply::decode(&payload).expect("a roster");
    assert_eq!(roster.name.0, "single-node");
    assert_eq!(roster.nodes.0.len(), 1);
    let only = &roster.nodes.0[0];
    assert_eq!(only.name.0, "iggy-node");
    assert_eq!(only.ip.0, "127.0.0.1");
    assert_eq!(only.tcp, node.address.port());
    assert_ne!(only.http, 0);
    assert_eq!((only.quic, only.websocket), (0, 0), "not offered");
    assert_eq!(
        (only.role, only.status),
        (NodeRole::Leader, NodeStatus::Healthy)
    );
}

#[test]
fn connections_are_told_by_number() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    let stranger = node.connect();
    let stranger_address = stranger
        .stream
        .local_addr()
        .expect("an address")
        .to_string();
    let payload = client.body(CommandCode::GetMe, b"").payload();
    let me = ClientDetails::decode(&payload).expect("a client");
    assert_eq!(me.user_id, 0);
    let own_address = client.stream.local_addr().expect("an address").to_string();
    assert_eq!(me.address.0, own_address);
    // The stranger is listed once its shard has taken it up.
    let strangers = |client: &mut crate::util::Client| {
        let payload = client.body(CommandCode::GetClients, b"").payload();
        let ToEnd(all) = ToEnd::<ClientInfo<'_>>::decode(&payload).expect("clients");
        assert!(
            all.iter()
                .any(|c| c.client_id == me.client_id && c.user_id == 0)
        );
        let found = all.iter().find(|c| c.address.0 == stranger_address);
        found.map(|c| (c.client_id, c.user_id))
    };
    crate::util::until(|| strangers(&mut client).is_some());
    let (number, user) = strangers(&mut client).expect("listed");
    assert_eq!(user, USER_ID_NONE);
    let one = client
        .body(CommandCode::GetClient, &number.to_le_bytes())
        .payload();
    assert_eq!(
        ClientDetails::decode(&one).expect("a client").client_id,
        number
    );
    drop(stranger);
    crate::util::until(|| strangers(&mut client).is_none());
    let none = client.body(CommandCode::GetClient, &number.to_le_bytes());
    assert_eq!(none.payload(), b"");
}

#[test]
fn stats_count_what_is_there() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    client.create_topic("s", 3);
    client.send_ok(&[b"a", b"b"]);
    let payload = client.body(CommandCode::GetStats, b"").payload();
    let stats = StatsReply::decode(&payload).expect("stats");
    assert_eq!((stats.streams, stats.topics, stats.partitions), (1, 1, 3));
    assert_eq!((stats.messages, stats.clients), (2, 1));
    assert_eq!(stats.process_id, std::process::id());
    assert!(stats.memory > 0 && stats.total_memory > 0 && stats.threads > 0);
    assert!(!stats.hostname.0.is_empty() && !stats.server_version.0.is_empty());
    let payload = client
        .body(CommandCode::GetStream, &[1, 4, 0, 0, 0, 0])
        .payload();
    let details = StreamDetails::decode(&payload).expect("details");
    assert_eq!((details.stream.messages, details.topics.len()), (2, 1));
}

#[test]
fn options_are_described_by_scope() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    for (scope, count) in [(1, 10), (2, 0), (3, 0)] {
        let payload = client
            .body(CommandCode::DescribeOptions, &[scope])
            .payload();
        let reply = DescribeOptionsReply::decode(&payload).expect("options");
        assert_eq!(reply.options.0.len(), count);
    }
    let answer = client.body(CommandCode::DescribeOptions, &[4]);
    answer.assert_status(ErrorCode::InvalidCommand);
}

#[test]
fn routes_of_a_node_alone_lead_back_to_it() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    client.create_topic("s", 1);
    let poll = poll_of(PollingStrategy::First, 1, true).encode();
    for (code, body) in [
        (CommandCode::GetPollRoute, &poll[..]),
        (CommandCode::GetOffsetRoute, &poll[..24]),
    ] {
        let payload = client.body(code, body).payload();
        let route = RouteReply::decode(&payload).expect("a route");
        assert_eq!(
            (route.client_id, route.session),
            (client.id, client.session)
        );
        assert_eq!(route.primary.tcp, node.address.port());
        assert!(route.metadata_watermark >= client.session);
    }
    let polled = client.body(CommandCode::PollOnPrimary, &poll).payload();
    assert_eq!(polled, [0; 16]);

    let mut data = node.sign_in();
    let attach = |client: u128, session: u64, watermark: u64| {
        [
            &client.to_le_bytes()[..],
            &session.to_le_bytes(),
            &watermark.to_le_bytes(),
        ]
        .concat()
    };
    let code = CommandCode::AttachConsumerSession;
    let body = attach(client.id, client.session, 1);
    assert_eq!(data.body(code, &body).payload(), b"");
    for body in [attach(client.id, client.session + 1, 1), attach(0x77, 1, 1)] {
        data.body(code, &body)
            .assert_status(ErrorCode::Unauthenticated);
    }
    data.body(code, &attach(client.id, client.session, u64::MAX))
        .assert_status(ErrorCode::TransientNotAccepted);
}
