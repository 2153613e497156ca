//! What was confirmed at which offset, and the comparison with what is there. Pure.
//!
//! Invariants:
//! 1. A slot is filled once: two confirmations of one offset are a finding themselves.
//! 2. Slots that are open (`None`) below a confirmed one are only explained by open requests; when
//!    there are none, every offset of a partition is confirmed.

use super::message::MessageKey;
use super::violation::Violation;

/// A polled message, in short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Observed {
    /// Its offset as the server says.
    pub offset: u64,
    /// Its id.
    pub id: u128,
    /// Of payload and headers.
    pub fingerprint: u64,
}

/// A batch with one partition as its target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batch {
    /// The target.
    pub partition: u32,
    /// Its first message.
    pub first: MessageKey,
    /// Its messages, consecutive from the first.
    pub count: u64,
}

impl Batch {
    fn holds(&self, key: MessageKey) -> bool {
        key.client == self.first.client
            && (self.first.sequence..self.first.sequence + self.count).contains(&key.sequence)
    }
}

/// All confirmations of a run.
#[derive(Clone, Debug)]
pub struct Ledger {
    partitions: Vec<Vec<Option<MessageKey>>>,
}

impl Ledger {
    /// Nothing is confirmed.
    pub fn new(partitions: u32) -> Ledger {
        Ledger {
            partitions: vec![Vec::new(); partitions as usize],
        }
    }

    /// Confirmed messages.
    pub fn count(&self) -> u64 {
        let slots = self.partitions.iter().flatten();
        slots.filter(|slot| slot.is_some()).count() as u64
    }

    /// Notes that a batch was confirmed from `base_offset` on.
    pub fn confirm(&mut self, batch: Batch, base_offset: u64) -> Result<(), Violation> {
        let slots = &mut self.partitions[batch.partition as usize];
        let end = (base_offset + batch.count) as usize;
        if slots.len() < end {
            slots.resize(end, None);
        }
        for index in 0..batch.count {
            let offset = base_offset + index;
            let key = batch.first.plus(index);
            if let Some(first) = slots[offset as usize].replace(key) {
                return Err(Violation::ConfirmedTwice {
                    partition: batch.partition,
                    offset,
                    first,
                    second: key,
                });
            }
        }
        Ok(())
    }

    /// Compares all partitions with what was polled of them. `open` are the batches whose requests
    /// are not answered yet; `fingerprint` says what a message must contain.
    pub fn compare(
        &self,
        observed: &[Vec<Observed>],
        open: &[Batch],
        fingerprint: impl Fn(MessageKey) -> u64,
    ) -> Vec<Violation> {
        let mut violations = Vec::new();
        for (partition, messages) in (0u32..).zip(observed) {
            let mut unconfirmed = Vec::new();
            for (expected, message) in (0u64..).zip(messages) {
                match self.compare_one(partition, expected, message, &fingerprint) {
                    Ok(None) => (),
                    Ok(Some(key)) => unconfirmed.push((expected, key)),
                    Err(violation) => violations.push(violation),
                }
            }
            let end = messages.len() as u64;
            violations.extend(self.lost(partition, end));
            let open = open.iter().filter(|batch| batch.partition == partition);
            self.compare_open(partition, open, &unconfirmed, &mut violations);
        }
        violations
    }

    /// `Ok(Some)` is a message of this test at an offset that is not confirmed.
    fn compare_one(
        &self,
        partition: u32,
        expected: u64,
        message: &Observed,
        fingerprint: &impl Fn(MessageKey) -> u64,
    ) -> Result<Option<MessageKey>, Violation> {
        let (offset, found) = (message.offset, message.id);
        if offset != expected {
            return Err(Violation::Offset {
                partition,
                expected,
                found: offset,
            });
        }
        let key = MessageKey::of_id(found).ok_or(Violation::Unknown {
            partition,
            offset,
            found,
        })?;
        let slots = &self.partitions[partition as usize];
        let confirmed = slots.get(offset as usize).copied().flatten();
        if let Some(confirmed) = confirmed
            && confirmed != key
        {
            return Err(Violation::WrongMessage {
                partition,
                offset,
                key: confirmed,
                found,
            });
        }
        if message.fingerprint != fingerprint(key) {
            return Err(Violation::Altered {
                partition,
                offset,
                key,
            });
        }
        Ok(match confirmed {
            Some(_) => None,
            None => Some(key),
        })
    }

    fn lost(&self, partition: u32, end: u64) -> Option<Violation> {
        let slots = &self.partitions[partition as usize];
        let missing = slots.iter().zip(0u64..).skip(end as usize);
        let mut missing = missing.filter_map(|(slot, offset)| Some((offset, (*slot)?)));
        let (offset, key) = missing.next()?;
        Some(Violation::Lost {
            partition,
            offset,
            key,
            end,
            lost: 1 + missing.count() as u64,
        })
    }

    /// What is at unconfirmed offsets must be open batches, each whole or not there at all.
    fn compare_open<'a>(
        &self,
        partition: u32,
        open: impl Iterator<Item = &'a Batch> + Clone,
        unconfirmed: &[(u64, MessageKey)],
        violations: &mut Vec<Violation>,
    ) {
        for (offset, key) in unconfirmed {
            if !open.clone().any(|batch| batch.holds(*key)) {
                violations.push(self.unexpected(partition, *offset, *key));
            }
        }
        for batch in open {
            let found: Vec<&(u64, MessageKey)> = unconfirmed
                .iter()
                .filter(|(_, key)| batch.holds(*key))
                .collect();
            let Some((base, _)) = found.first() else {
                continue;
            };
            let in_order = (0u64..)
                .zip(&found)
                .all(|(index, at)| **at == (base + index, batch.first.plus(index)));
            if !in_order || found.len() as u64 != batch.count {
                violations.push(Violation::TornBatch {
                    partition,
                    first: batch.first,
                    count: batch.count,
                    found: found.len() as u64,
                });
            }
        }
    }

    /// Names what a message at an unexplained offset is.
    fn unexpected(&self, partition: u32, offset: u64, key: MessageKey) -> Violation {
        for (confirmed_partition, slots) in (0u32..).zip(&self.partitions) {
            if let Some(confirmed) = slots.iter().position(|slot| *slot == Some(key)) {
                return Violation::Duplicate {
                    partition,
                    offset,
                    key,
                    confirmed_partition,
                    confirmed: confirmed as u64,
                };
            }
        }
        Violation::Unknown {
            partition,
            offset,
            found: key.id(),
        }
    }
}

#[cfg(test)]
#[path = "ledger_test.rs"]
mod tests;
