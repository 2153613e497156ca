//! The rights table, cell by cell: each right alone, at each level, against every action.

use pawl_wire::ids::{StreamId, TopicId};
use pawl_wire::permissions::{
    GlobalPermissions, StreamPermissions, StreamRights, TopicPermissions,
};

use super::*;
use crate::catalog::rights::Action;

const STREAM: StreamId = StreamId(1);
const TOPIC: TopicId = TopicId(2);

/// The actions in the order of the columns below.
const ACTIONS: [Action; 13] = [
    Action::ReadServers,
    Action::ReadUsers,
    Action::ManageUsers,
    Action::ListStreams,
    Action::ReadStream(STREAM),
    Action::CreateStream,
    Action::ManageStream(STREAM),
    Action::ListTopics(STREAM),
    Action::ReadTopic(STREAM, TOPIC),
    Action::CreateTopic(STREAM),
    Action::ManageTopic(STREAM, TOPIC),
    Action::Poll(STREAM, TOPIC),
    Action::Send(STREAM, TOPIC),
];

/// A right, and the actions that it alone allows: one `x` per column.
const TABLE: [(&str, &str); 20] = [
    ("g.manage_servers", "x............"),
    ("g.read_servers", "x............"),
    ("g.manage_users", ".xx.........."),
    ("g.read_users", ".x..........."),
    ("g.manage_streams", "...xxxxxxxxxx"),
    ("g.read_streams", "...xx..xx..x."),
    ("g.manage_topics", ".......xxxxxx"),
    ("g.read_topics", ".......xx..x."),
    ("g.poll_messages", "...........x."),
    ("g.send_messages", "............x"),
    ("s.manage_stream", "....x.xxxxxxx"),
    ("s.read_stream", "....x..xx..x."),
    ("s.manage_topics", ".......xxxxxx"),
    ("s.read_topics", ".......xx..x."),
    ("s.poll_messages", "...........x."),
    ("s.send_messages", "............x"),
    ("t.manage_topic", "........x.xxx"),
    ("t.read_topic", "........x..x."),
    ("t.poll_messages", "...........x."),
    ("t.send_messages", "............x"),
];

fn permissions_with(right: &str) -> Permissions {
    let mut permissions = Permissions::default();
    let mut stream = StreamPermissions::default();
    let mut topic = TopicPermissions::default();
    let GlobalPermissions {
        manage_servers,
        read_servers,
        manage_users,
        read_users,
        manage_streams,
        read_streams,
        manage_topics,
        read_topics,
        poll_messages,
        send_messages,
    } = &mut permissions.global;
    let s: &mut StreamRights = &mut stream.rights;
    let flag = match right {
        "g.manage_servers" => manage_servers,
        "g.read_servers" => read_servers,
        "g.manage_users" => manage_users,
        "g.read_users" => read_users,
        "g.manage_streams" => manage_streams,
        "g.read_streams" => read_streams,
        "g.manage_topics" => manage_topics,
        "g.read_topics" => read_topics,
        "g.poll_messages" => poll_messages,
        "g.send_messages" => send_messages,
        "s.manage_stream" => &mut s.manage_stream,
        "s.read_stream" => &mut s.read_stream,
        "s.manage_topics" => &mut s.manage_topics,
        "s.read_topics" => &mut s.read_topics,
        "s.poll_messages" => &mut s.poll_messages,
        "s.send_messages" => &mut s.send_messages,
        "t.manage_topic" => &mut topic.manage_topic,
        "t.read_topic" => &mut topic.read_topic,
        "t.poll_messages" => &mut topic.poll_messages,
        "t.send_messages" => &mut topic.send_messages,
        other => panic!("{other} is no right"),
    };
    *flag = true;
    stream.topics.insert(TOPIC.0, topic);
    permissions.streams.insert(STREAM.0, stream);
    permissions
}

fn user_with(permissions: Option<Permissions>) -> User {
    let mut log = Log::new();
    let user = log.add_user("bob", permissions);
    User::clone(log.machine.catalog.user_by_id(user).expect("it was added"))
}

// Known fault 7.6
#[test]
fn each_right_alone_allows_what_the_table_says() {
    for (right, row) in TABLE {
        let user = user_with(Some(permissions_with(right)));
        let found: String = ACTIONS
            .iter()
            .map(|a| if user.may(*a) { 'x' } else { '.' })
            .collect();
        assert_eq!(found, row, "{right}");
    }
}

#[test]
fn rights_on_one_place_say_nothing_about_another() {
    let elsewhere = [
        Action::ReadStream(StreamId(9)),
        Action::ManageStream(StreamId(9)),
        Action::ListTopics(StreamId(9)),
        Action::CreateTopic(StreamId(9)),
        Action::ReadTopic(StreamId(9), TOPIC),
        Action::ManageTopic(StreamId(9), TOPIC),
        Action::Poll(StreamId(9), TOPIC),
        Action::Send(StreamId(9), TOPIC),
    ];
    for (right, _) in TABLE.iter().filter(|(right, _)| !right.starts_with("g.")) {
        let user = user_with(Some(permissions_with(right)));
        assert!(elsewhere.iter().all(|action| !user.may(*action)), "{right}");
        if right.starts_with("t.") {
            let other = TopicId(9);
            assert!(!user.may(Action::Poll(STREAM, other)), "{right}");
            assert!(!user.may(Action::Send(STREAM, other)), "{right}");
            assert!(!user.may(Action::ManageTopic(STREAM, other)), "{right}");
        }
    }
}

#[test]
fn root_may_everything_and_a_user_without_permissions_nothing() {
    let log = Log::new();
    let root = log
        .machine
        .catalog
        .user_by_id(UserId(0))
        .expect("root exists");
    let nobody = user_with(None);
    for action in ACTIONS {
        assert!(root.may(action), "{action:?}");
        assert!(!nobody.may(action), "{action:?}");
    }
}
