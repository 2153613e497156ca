//! The walk over what a store found: from records to the log, the vote and the machine.
//!
//! | found | verdict |
//! | --- | --- |
//! | no vote, in the checkpoint or the records | never formatted |
//! | alone, and no op at all | never formatted: op 1 is written with the first vote |
//! | another cluster or replica | refuse |
//! | record numbers that do not rise by one | refuse |
//! | entry at or below the checkpoint | skip; at the checkpoint's op it must be the same entry |
//! | entry right above the log's head, naming it as parent | append |
//! | entry at an op that is held, the same one | it was written again: the later record counts |
//! | any other entry | refuse: the chain is broken |
//! | entry of a view above the latest vote's log view | refuse: a vote is missing |
//! | vote of a lower view or log view than the one before | refuse |
//! | vote whose head is not the log's | refuse: entries are missing |

use pawl_wire::entry::{EntryHeader, EntryId, EntryKind};
use pawl_wire::ids::{Lsn, Op, ReplicaIndex, View};

use crate::checkpoint::CheckpointHeader;
use crate::config::Config;
use crate::effect::Record;
use crate::log::{HeldEntry, Log, Position};
use crate::machine::Machine;
use crate::recovery::{Recovered, RestartError};
use crate::vote::VoteRecord;

/// What the walk ends with.
pub(crate) struct Replayed<M> {
    pub machine: M,
    pub log: Log,
    pub vote: VoteRecord,
    pub lsn_last: Lsn,
}

/// Walks over what the store found.
pub(crate) fn replay<M: Machine>(
    config: &Config,
    machine: M,
    recovered: Recovered,
) -> Result<Replayed<M>, RestartError> {
    config.check()?;
    let mut walk = Walk::new(config);
    let machine = match recovered.checkpoint {
        Some((header, snapshot)) => {
            walk.begin_at(&header)?;
            restore(&header, &snapshot)?
        }
        None => machine,
    };
    let lsn_last = recovered.lsn_last;
    for (lsn, record) in recovered.records {
        walk.on_record(lsn, record)?;
    }
    walk.finish(lsn_last)?;
    let vote = walk.vote.ok_or(RestartError::Unformatted)?;
    if config.replicas == 1 && walk.log.op_head() == Op(0) {
        return Err(RestartError::Unformatted);
    }
    Ok(Replayed {
        machine,
        log: walk.log,
        vote,
        lsn_last,
    })
}

fn restore<M: Machine>(header: &CheckpointHeader, snapshot: &[u8]) -> Result<M, RestartError> {
    let op = header.op;
    let machine = M::restore(snapshot).map_err(|error| RestartError::Snapshot { op, error })?;
    let found = machine.digest();
    if found != header.digest {
        return Err(RestartError::SnapshotDigest {
            op,
            found,
            expected: header.digest,
        });
    }
    Ok(machine)
}

struct Walk<'a> {
    config: &'a Config,
    log: Log,
    /// The latest vote met, in the checkpoint or the records.
    vote: Option<VoteRecord>,
    /// View and log view of the last vote among the records.
    recorded: Option<(View, View)>,
    /// The first record that counts; what stands before it is covered by the checkpoint.
    replay_from: Lsn,
    /// The last record met.
    last: Option<Lsn>,
}

impl Walk<'_> {
    fn new(config: &Config) -> Walk<'_> {
        Walk {
            config,
            log: Log::default(),
            vote: None,
            recorded: None,
            replay_from: Lsn(1),
            last: None,
        }
    }

    fn begin_at(&mut self, header: &CheckpointHeader) -> Result<(), RestartError> {
        self.check_is_ours(header.cluster, header.replica)?;
        self.check_is_ours(header.vote.cluster, header.vote.replica)?;
        self.log = Log::above(Position {
            op: header.op,
            id: header.id,
            timestamp: header.timestamp,
            view: header.view,
        });
        self.vote = Some(header.vote.clone());
        self.replay_from = header.replay_from;
        Ok(())
    }

    fn check_is_ours(&self, cluster: u128, replica: ReplicaIndex) -> Result<(), RestartError> {
        self.check_cluster(cluster)?;
        if replica != self.config.replica {
            return Err(RestartError::Replica {
                found: replica,
                expected: self.config.replica,
            });
        }
        Ok(())
    }

    fn check_cluster(&self, found: u128) -> Result<(), RestartError> {
        if found != self.config.cluster {
            return Err(RestartError::Cluster {
                found,
                expected: self.config.cluster,
            });
        }
        Ok(())
    }

    fn on_record(&mut self, lsn: Lsn, record: Record) -> Result<(), RestartError> {
        self.check_follows(lsn)?;
        self.last = Some(lsn);
        if lsn < self.replay_from {
            return Ok(());
        }
        match record {
            Record::View(vote) => self.on_vote(lsn, vote),
            Record::Entry { header, body } => {
                self.check_entry(lsn, &header, body.len())?;
                self.on_entry(HeldEntry {
                    header,
                    body,
                    lsn,
                    ticket: None,
                })
            }
        }
    }

    /// Records rise by one, and begin at or below the first one that counts.
    fn check_follows(&self, found: Lsn) -> Result<(), RestartError> {
        let (previous, follows) = match self.last {
            Some(last) => (last, found == last.next()),
            None => (
                Lsn(self.replay_from.0.saturating_sub(1)),
                found <= self.replay_from,
            ),
        };
        if follows {
            Ok(())
        } else {
            Err(RestartError::Lsn { previous, found })
        }
    }

    /// The records end where the store says that the log does.
    fn finish(&self, lsn_last: Lsn) -> Result<(), RestartError> {
        let previous = self.last.unwrap_or(lsn_last);
        let counted_are_here = self.last.is_some() || lsn_last < self.replay_from;
        if previous != lsn_last || !counted_are_here {
            return Err(RestartError::Lsn {
                previous,
                found: lsn_last,
            });
        }
        Ok(())
    }

    /// What an entry must be wherever it stands.
    fn check_entry(&self, lsn: Lsn, header: &EntryHeader, body: usize) -> Result<(), RestartError> {
        let op = header.op();
        self.check_cluster(header.cluster)?;
        let left_out = body == 0 && header.kind == EntryKind::SendMessages as u8;
        let whole = body == header.body_bytes as usize || left_out;
        if header.checksum != header.checksum_computed() || !whole {
            return Err(RestartError::Damaged { lsn, op });
        }
        let Some(vote) = &self.vote else {
            return Err(RestartError::Unformatted);
        };
        if header.view() > vote.log_view {
            return Err(RestartError::VoteOlder {
                lsn,
                op,
                view: header.view(),
                log_view: vote.log_view,
            });
        }
        Ok(())
    }

    fn on_entry(&mut self, held: HeldEntry) -> Result<(), RestartError> {
        let op = held.header.op();
        if op < self.log.base().op {
            // The checkpoint covers it.
            return Ok(());
        }
        if op > self.log.op_head() {
            return self.append(held);
        }
        if self.log.id(op) != Some(held.header.id()) {
            return Err(self.chain_broken(&held));
        }
        if op > self.log.base().op {
            self.log.fill(held);
        }
        Ok(())
    }

    fn append(&mut self, held: HeldEntry) -> Result<(), RestartError> {
        let head = *self.log.head();
        if held.header.op() != head.op.next() || held.header.parent != head.id.0 {
            return Err(self.chain_broken(&held));
        }
        if !head.not_after(&held.header) {
            return Err(RestartError::Backwards {
                lsn: held.lsn,
                op: held.header.op(),
            });
        }
        self.log.push(held);
        Ok(())
    }

    fn chain_broken(&self, held: &HeldEntry) -> RestartError {
        let op = held.header.op();
        RestartError::Chain {
            lsn: held.lsn,
            op,
            parent: EntryId(held.header.parent),
            found: op.previous().and_then(|below| self.log.id(below)),
        }
    }

    fn on_vote(&mut self, lsn: Lsn, vote: VoteRecord) -> Result<(), RestartError> {
        self.check_is_ours(vote.cluster, vote.replica)?;
        let refuse = |reason| Err(RestartError::Vote { lsn, reason });
        if vote.check().is_err() {
            return refuse("it contradicts itself");
        }
        if let Some((view, log_view)) = self.recorded {
            if vote.view < view {
                return refuse("its view is lower than an earlier vote's");
            }
            if vote.log_view < log_view {
                return refuse("its log view is lower than an earlier vote's");
            }
        }
        // A vote about ops that the checkpoint covers is about no entry that is left to look at.
        if vote.op_head >= self.log.base().op {
            if vote.op_head < self.log.op_head() {
                return refuse("its head is below the log's");
            }
            if self.log.id(vote.op_head) != Some(vote.head) {
                return refuse("its head is not the log's");
            }
        }
        self.recorded = Some((vote.view, vote.log_view));
        let latest = self
            .vote
            .as_ref()
            .map(|latest| (latest.view, latest.log_view));
        if latest <= self.recorded {
            self.vote = Some(vote);
        }
        Ok(())
    }
}
