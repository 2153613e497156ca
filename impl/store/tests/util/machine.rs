//! A machine with partitions and nothing else.

use std::collections::BTreeMap;

use bytes::Bytes;
use pawl_store::{Outcome, PartitionBounds};
use pawl_wire::entry::{EntryHeader, EntryKind};
use pawl_wire::entry_arguments::SendMessagesArguments;
use pawl_wire::ids::{Op, PartitionUid};
use xxhash_rust::xxh3::xxh3_128;

/// A send whose stream is this is refused by apply: an entry without an outcome.
pub const STREAM_REFUSED: u32 = 9;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    pub op: u64,
    pub base: u64,
    pub count: u32,
}

#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Partition {
    pub floor: u64,
    pub first: u64,
    pub next: u64,
    pub batches: Vec<Batch>,
}

/// What an op did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Did {
    Nothing,
    Created(PartitionUid),
    Appended(PartitionUid, Outcome, u32, u32, u32),
    Dropped(PartitionUid),
    Purged(PartitionUid),
    Trimmed(PartitionUid, u64),
}

#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct TestMachine {
    pub op: u64,
    pub digest: u128,
    pub partitions: BTreeMap<u64, Partition>,
}

fn body_u64(body: &[u8], index: usize) -> u64 {
    u64::from_le_bytes(body[index * 8..index * 8 + 8].try_into().expect("8 bytes"))
}

impl TestMachine {
    pub fn apply(&mut self, header: &EntryHeader, body: &Bytes) -> Did {
        assert_eq!(header.op, self.op + 1, "ops are applied in order");
        self.op = header.op;
        let chained = [self.digest.to_le_bytes(), header.checksum.to_le_bytes()].concat();
        self.digest = xxh3_128(&chained);
        let op = header.op();
        match header.entry_kind() {
            EntryKind::CreatePartitions => {
                let uid = PartitionUid::new(op, 0);
                let partition = Partition {
                    floor: op.0,
                    ..Partition::default()
                };
                self.partitions.insert(uid.0, partition);
                Did::Created(uid)
            }
            EntryKind::DeletePartitions => {
                let uid = body_u64(body, 0);
                match self.partitions.remove(&uid) {
                    Some(_) => Did::Dropped(PartitionUid(uid)),
                    None => Did::Nothing,
                }
            }
            EntryKind::PurgeTopic => match self.partitions.get_mut(&body_u64(body, 0)) {
                Some(partition) => {
                    *partition = Partition {
                        floor: op.0,
                        ..Partition::default()
                    };
                    Did::Purged(PartitionUid(body_u64(body, 0)))
                }
                None => Did::Nothing,
            },
            EntryKind::DeleteSegments => self.trim(body_u64(body, 0), body_u64(body, 1)),
            EntryKind::SendMessages => self.append(header),
            _ => Did::Nothing,
        }
    }

    fn trim(&mut self, uid: u64, first: u64) -> Did {
        let Some(partition) = self.partitions.get_mut(&uid) else {
            return Did::Nothing;
        };
        let first = first.clamp(partition.first, partition.next);
        partition.first = first;
        partition
            .batches
            .retain(|b| b.base + u64::from(b.count) > first);
        Did::Trimmed(PartitionUid(uid), first)
    }

    fn append(&mut self, header: &EntryHeader) -> Did {
        let arguments = SendMessagesArguments::decode(&header.arguments).expect("our own");
        let Some(partition) = self.partitions.get_mut(&arguments.partition_uid.0) else {
            return Did::Nothing;
        };
        if arguments.stream.0 == STREAM_REFUSED {
            return Did::Nothing;
        }
        let base = partition.next;
        partition.next += u64::from(arguments.message_count);
        partition.batches.push(Batch {
            op: header.op,
            base,
            count: arguments.message_count,
        });
        Did::Appended(
            arguments.partition_uid,
            Outcome {
                op: header.op(),
                base_offset: base,
            },
            arguments.message_count,
            arguments.batch_position,
            arguments.batch_length as u32,
        )
    }

    pub fn bounds(&self) -> Vec<PartitionBounds> {
        let bounds = self
            .partitions
            .iter()
            .map(|(uid, partition)| PartitionBounds {
                uid: PartitionUid(*uid),
                op_floor: Op(partition.floor),
                first_offset: partition.first,
                next_offset: partition.next,
            });
        bounds.collect()
    }

    pub fn snapshot(&self) -> Vec<u8> {
        let mut words: Vec<u64> = vec![self.op, self.digest as u64, (self.digest >> 64) as u64];
        words.push(self.partitions.len() as u64);
        for (uid, p) in &self.partitions {
            words.extend([*uid, p.floor, p.first, p.next, p.batches.len() as u64]);
            for batch in &p.batches {
                words.extend([batch.op, batch.base, u64::from(batch.count)]);
            }
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub fn restore(bytes: &[u8]) -> TestMachine {
        let words: Vec<u64> = (0..bytes.len() / 8).map(|i| body_u64(bytes, i)).collect();
        let mut words = words.into_iter();
        let mut next = || words.next().expect("our own snapshot");
        let op = next();
        let digest = u128::from(next()) | u128::from(next()) << 64;
        let mut machine = TestMachine {
            op,
            digest,
            partitions: BTreeMap::new(),
        };
        for _ in 0..next() {
            let uid = next();
            let mut partition = Partition {
                floor: next(),
                first: next(),
                next: next(),
                batches: Vec::new(),
            };
            for _ in 0..next() {
                partition.batches.push(Batch {
                    op: next(),
                    base: next(),
                    count: next() as u32,
                });
            }
            machine.partitions.insert(uid, partition);
        }
        machine
    }
}
