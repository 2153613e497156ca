//! The table of what a restart makes of what was found: one row a test case (spec REC-10, CON-2,
//! CON-19, CON-30).

mod util;

use pawl_vsr::{
    CheckpointHeader, Config, ConfigError, Effects, Record, Recovered, Replica, RestartError,
    VoteRecord,
};
use pawl_wire::entry::{EntryHeader, EntryId, EntryKind};
use pawl_wire::ids::{Lsn, Op, ReplicaIndex, View};
use util::node::{Node, config, request};
use util::toy::Toy;

/// Records 1 and 2 are vote and Genesis; 3 to `2 + requests` are requests of clients 1, 2, ...
fn node_with(requests: u64) -> Node {
    let mut node = Node::format(config(1, 0));
    node.flush();
    for number in 1..=requests {
        let request = request(number, number.into(), 1, b"body", number);
        node.step(pawl_vsr::Input::Request(request));
        node.flush();
    }
    node
}

fn found(requests: u64) -> Recovered {
    node_with(requests).recovered()
}

/// What stands on disk after the checkpoint at op 8, with two entries above it.
fn found_with_checkpoint() -> Recovered {
    let mut node = node_with(9);
    node.finish_snapshot();
    node.recovered()
}

fn restart(config: Config, found: Recovered) -> Result<Replica<Toy>, RestartError> {
    Replica::restart(config, Toy::default(), found, &mut Effects::new())
}

fn header_at(found: &mut Recovered, lsn: u64) -> &mut EntryHeader {
    let record = found.records.iter_mut().find(|(at, _)| *at == Lsn(lsn));
    match record {
        Some((_, Record::Entry { header, .. })) => header,
        other => panic!("no entry at {lsn}: {other:?}"),
    }
}

fn vote_at(found: &mut Recovered, lsn: u64) -> &mut VoteRecord {
    let record = found.records.iter_mut().find(|(at, _)| *at == Lsn(lsn));
    match record {
        Some((_, Record::View(vote))) => vote,
        other => panic!("no vote at {lsn}: {other:?}"),
    }
}

fn push_vote(found: &mut Recovered, change: impl Fn(&mut VoteRecord)) {
    let head = found
        .records
        .iter()
        .rev()
        .find_map(|(_, record)| match record {
            Record::Entry { header, .. } => Some(*header),
            Record::View(_) => None,
        });
    let head = head.expect("the log holds an entry");
    let mut vote = VoteRecord {
        cluster: 0xc1,
        replica: ReplicaIndex(0),
        view: View(1),
        log_view: View(1),
        commit: head.op(),
        op_head: head.op(),
        head: head.id(),
        suffix: Vec::new(),
    };
    change(&mut vote);
    found.lsn_last = found.lsn_last.next();
    found.records.push((found.lsn_last, Record::View(vote)));
}

type Change = fn(&mut Recovered);
type Verdict = fn(&RestartError) -> bool;

#[test]
fn what_a_restart_refuses() {
    let rows: [(&str, Change, Verdict); 19] = [
        (
            "nothing at all",
            |f| *f = Recovered::default(),
            |e| matches!(e, RestartError::Unformatted),
        ),
        (
            "the first vote, and nothing else",
            |f| {
                f.records.truncate(1);
                f.lsn_last = Lsn(1);
            },
            |e| matches!(e, RestartError::Unformatted),
        ),
        (
            "entries, and no vote",
            |f| {
                f.records.remove(0);
                for (lsn, _) in &mut f.records {
                    lsn.0 -= 1;
                }
                f.lsn_last.0 -= 1;
            },
            |e| matches!(e, RestartError::Unformatted),
        ),
        (
            "the first record is missing",
            |f| drop(f.records.remove(0)),
            |e| {
                matches!(
                    e,
                    RestartError::Lsn {
                        previous: Lsn(0),
                        found: Lsn(2)
                    }
                )
            },
        ),
        (
            "a record in the middle is missing",
            |f| drop(f.records.remove(2)),
            |e| {
                matches!(
                    e,
                    RestartError::Lsn {
                        previous: Lsn(2),
                        found: Lsn(4)
                    }
                )
            },
        ),
        (
            "the last record is missing",
            |f| drop(f.records.pop()),
            |e| {
                matches!(
                    e,
                    RestartError::Lsn {
                        previous: Lsn(4),
                        found: Lsn(5)
                    }
                )
            },
        ),
        (
            "an entry of another cluster",
            |f| {
                header_at(f, 5).cluster = 9;
                header_at(f, 5).seal();
            },
            |e| {
                matches!(
                    e,
                    RestartError::Cluster {
                        found: 9,
                        expected: 0xc1
                    }
                )
            },
        ),
        (
            "a vote of another cluster",
            |f| vote_at(f, 1).cluster = 9,
            |e| matches!(e, RestartError::Cluster { found: 9, .. }),
        ),
        (
            "a vote of another replica",
            |f| vote_at(f, 1).replica = ReplicaIndex(2),
            |e| {
                matches!(
                    e,
                    RestartError::Replica {
                        found: ReplicaIndex(2),
                        ..
                    }
                )
            },
        ),
        (
            "a header that its checksum does not cover",
            |f| header_at(f, 4).epoch = 9,
            |e| {
                matches!(
                    e,
                    RestartError::Damaged {
                        lsn: Lsn(4),
                        op: Op(3)
                    }
                )
            },
        ),
        (
            "a body of another length",
            |f| {
                if let Record::Entry { body, .. } = &mut f.records[3].1 {
                    *body = body.slice(1..);
                }
            },
            |e| {
                matches!(
                    e,
                    RestartError::Damaged {
                        lsn: Lsn(4),
                        op: Op(3)
                    }
                )
            },
        ),
        (
            "an op is left out",
            |f| {
                header_at(f, 5).op = 5;
                header_at(f, 5).seal();
            },
            |e| {
                matches!(
                    e,
                    RestartError::Chain {
                        lsn: Lsn(5),
                        op: Op(5),
                        found: None,
                        ..
                    }
                )
            },
        ),
        (
            "another parent",
            |f| {
                header_at(f, 5).parent = 5;
                header_at(f, 5).seal();
            },
            |e| {
                let RestartError::Chain { parent, found, .. } = e else {
                    return false;
                };
                *parent == EntryId(5) && found.is_some_and(|id| id != *parent)
            },
        ),
        (
            "another entry at an op that is held",
            |f| {
                header_at(f, 5).op = 3;
                header_at(f, 5).seal();
            },
            |e| {
                matches!(
                    e,
                    RestartError::Chain {
                        lsn: Lsn(5),
                        op: Op(3),
                        ..
                    }
                )
            },
        ),
        (
            "log time goes back",
            |f| {
                header_at(f, 5).timestamp = 1;
                header_at(f, 5).seal();
            },
            |e| {
                matches!(
                    e,
                    RestartError::Backwards {
                        lsn: Lsn(5),
                        op: Op(4)
                    }
                )
            },
        ),
        (
            "an entry of a view that no vote speaks of",
            |f| {
                header_at(f, 5).view = 1;
                header_at(f, 5).seal();
            },
            |e| {
                matches!(
                    e,
                    RestartError::VoteOlder {
                        lsn: Lsn(5),
                        log_view: View(0),
                        ..
                    }
                )
            },
        ),
        (
            "a vote of a lower view than the one before",
            |f| {
                push_vote(f, |vote| (vote.view, vote.log_view) = (View(3), View(3)));
                push_vote(f, |_| {});
            },
            |e| matches!(e, RestartError::Vote { lsn: Lsn(7), .. }),
        ),
        (
            "a vote that speaks of more than the log holds",
            |f| {
                push_vote(f, |vote| {
                    (vote.op_head, vote.head) = (vote.op_head.next(), EntryId(7));
                });
            },
            |e| matches!(e, RestartError::Vote { lsn: Lsn(6), .. }),
        ),
        (
            "a vote that speaks of less than the log holds",
            |f| {
                push_vote(f, |vote| {
                    (vote.op_head, vote.commit) = (Op(1), Op(1));
                });
            },
            |e| matches!(e, RestartError::Vote { lsn: Lsn(6), .. }),
        ),
    ];
    for (row, change, verdict) in rows {
        let mut found = found(3);
        change(&mut found);
        let error = restart(config(1, 0), found).expect_err(row);
        assert!(verdict(&error), "{row}: {error:?}");
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn what_a_restart_refuses_of_a_checkpoint() {
    type Change = fn(&mut CheckpointHeader, &mut Vec<u8>);
    let rows: [(&str, Change, Verdict); 9] = [
        (
            "a checkpoint of another cluster, with our vote",
            |h, _| h.cluster = 1,
            |e| matches!(e, RestartError::Cluster { found: 1, .. }),
        ),
        (
            "a checkpoint of another replica, with our vote",
            |h, _| h.replica = ReplicaIndex(1),
            |e| {
                matches!(
                    e,
                    RestartError::Replica {
                        found: ReplicaIndex(1),
                        ..
                    }
                )
            },
        ),
        (
            "a snapshot that cannot be restored",
            |_, s| s.truncate(3),
            |e| matches!(e, RestartError::Snapshot { op: Op(8), .. }),
        ),
        (
            "a snapshot of another state",
            |_, s| s[20] ^= 1,
            |e| matches!(e, RestartError::SnapshotDigest { op: Op(8), .. }),
        ),
        (
            "a checkpoint with a vote of another cluster",
            |h, _| h.vote.cluster = 1,
            |e| matches!(e, RestartError::Cluster { found: 1, .. }),
        ),
        (
            "a checkpoint with a vote of another replica",
            |h, _| h.vote.replica = ReplicaIndex(1),
            |e| {
                matches!(
                    e,
                    RestartError::Replica {
                        found: ReplicaIndex(1),
                        ..
                    }
                )
            },
        ),
        (
            "an entry above it that does not follow it",
            |h, _| h.id = EntryId(4),
            |e| matches!(e, RestartError::Chain { op: Op(9), .. }),
        ),
        (
            "an entry above it that is older",
            |h, _| h.timestamp.0 = 1 << 40,
            |e| matches!(e, RestartError::Backwards { op: Op(9), .. }),
        ),
        (
            "records that begin above the first one needed",
            |h, _| h.replay_from = Lsn(9),
            |e| {
                matches!(
                    e,
                    RestartError::Lsn {
                        previous: Lsn(8),
                        found: Lsn(10)
                    }
                )
            },
        ),
    ];
    for (row, change, verdict) in rows {
        let mut found = found_with_checkpoint();
        let (header, snapshot) = found.checkpoint.as_mut().expect("there is one");
        let mut bytes = snapshot.to_vec();
        change(header, &mut bytes);
        *snapshot = bytes.into();
        found.records.retain(|(lsn, _)| *lsn >= Lsn(10));
        let error = restart(config(1, 0), found).expect_err(row);
        assert!(verdict(&error), "{row}: {error:?}");
    }
}

#[test]
fn what_a_restart_takes() {
    type Change = fn(&mut Recovered);
    let rows: [(&str, Change, u64, u32); 6] = [
        ("the log as it was", |_| {}, 10, 1),
        (
            "records from before the checkpoint",
            |f| {
                let whole = found(9);
                assert_eq!(whole.lsn_last, f.lsn_last);
                f.records = whole.records;
            },
            10,
            1,
        ),
        (
            "the checkpoint, and no record above it",
            |f| {
                f.records.clear();
                f.lsn_last = Lsn(9);
            },
            8,
            1,
        ),
        (
            "an entry that was written twice",
            |f| {
                let (lsn, record) = f.records.last().expect("not empty").clone();
                f.records.push((lsn.next(), record));
                f.lsn_last = lsn.next();
            },
            10,
            1,
        ),
        (
            "bodies of messages that were left out",
            |f| {
                for (_, record) in &mut f.records {
                    if let Record::Entry { body, .. } = record {
                        *body = bytes::Bytes::new();
                    }
                }
            },
            10,
            1,
        ),
        (
            "a later view",
            |f| push_vote(f, |vote| (vote.view, vote.log_view) = (View(6), View(6))),
            10,
            7,
        ),
    ];
    for (row, change, head, view) in rows {
        let mut found = found_with_checkpoint();
        change(&mut found);
        let replica = restart(config(1, 0), found).expect(row);
        assert_eq!(replica.op_head(), Op(head), "{row}");
        assert_eq!(replica.view(), View(view), "{row}");
        assert_eq!(
            replica.applied(),
            Op(8),
            "{row}: nothing is applied before the vote"
        );
    }
}

#[test]
fn a_body_is_left_out_of_messages_only() {
    let mut found = found(2);
    header_at(&mut found, 4).kind = EntryKind::CreateStream as u8;
    header_at(&mut found, 4).seal();
    if let Record::Entry { body, .. } = &mut found.records[3].1 {
        *body = bytes::Bytes::new();
    }
    let error = restart(config(1, 0), found).expect_err("the body is missing");
    assert_eq!(
        error,
        RestartError::Damaged {
            lsn: Lsn(4),
            op: Op(3)
        }
    );
}

#[test]
fn settings_that_cannot_work_are_refused() {
    type Change = fn(&mut Config);
    let rows: [(Change, ConfigError); 5] = [
        (|c| c.replicas = 0, ConfigError::Replicas(0)),
        (|c| c.replicas = 8, ConfigError::Replicas(8)),
        (
            |c| c.replica = ReplicaIndex(1),
            ConfigError::Replica {
                replica: ReplicaIndex(1),
                replicas: 1,
            },
        ),
        (
            |c| c.pipeline_ops_max = 0,
            ConfigError::Zero("pipeline_ops_max"),
        ),
        (
            |c| c.view_change_ticks = 10,
            ConfigError::Ticks {
                heartbeat: 10,
                view_change: 10,
            },
        ),
    ];
    for (change, error) in rows {
        let mut config = config(1, 0);
        change(&mut config);
        let refused = restart(config, found(1)).expect_err("it cannot work");
        assert_eq!(refused, RestartError::Config(error));
    }
}

/// Restarts without end on a log that ends at a checkpoint (spec CON-22, REC-11).
#[test]
fn an_idle_node_restarts_again_and_again() {
    let mut node = node_with(7);
    assert_eq!(node.replica().applied(), Op(8));
    node.finish_snapshot();
    let machine = node.replica().machine().clone();
    for view in 1..20 {
        node.crash(node.flushed);
        node.restart().expect("nothing is missing");
        node.flush();
        assert_eq!(node.replica().view(), View(view));
        assert_eq!(node.replica().machine(), &machine);
        assert_eq!(node.replica().caught_up(), Ok(()));
    }
}
