//! Leased shards: `leases.md`.

use std::collections::BTreeMap;

use crate::{
    Access, Checkpoint, Client, Constants, Epoch, LeaseWrite, Op, RecordNumber, Refusal, Response,
    ShardNumber,
};

/// The session that holds a lease.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Holder {
    /// Its client.
    pub client: Client,
    /// Its epoch.
    pub session: Epoch,
}

/// The run store of a shard.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Store {
    /// How often it was compacted.
    pub generation: u64,
    /// Bytes.
    pub length: u64,
}

/// A leased shard.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Shard {
    /// The op of the latest grant; 0: never granted.
    pub epoch: Epoch,
    /// Who holds it.
    pub holder: Option<Holder>,
    /// Whether this lease has ended its right to write.
    pub stopped: bool,
    /// The highest record.
    pub end: RecordNumber,
    /// The run store.
    pub store: Store,
    /// The checkpoint.
    pub checkpoint: Option<Checkpoint>,
}

/// All shards that were ever granted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Leases {
    /// By number; one that is missing is as [`Shard::default`].
    pub shards: BTreeMap<ShardNumber, Shard>,
}

impl Leases {
    /// A grant, to a session that stands. LEA-1, LEA-3, LEA-11.
    pub fn grant(
        &mut self,
        constants: &Constants,
        op: Op,
        holder: Holder,
        numbers: impl Iterator<Item = ShardNumber> + Clone,
    ) -> Response {
        if numbers.clone().any(|number| number.0 >= constants.shards) {
            return Response::Refused(Refusal::NoShard); // LEA-16
        }
        for number in numbers {
            let shard = self.shards.entry(number).or_default();
            shard.epoch = Epoch(op.0);
            shard.holder = Some(holder);
            shard.stopped = false; // LEA-9
            shard.store = shard
                .checkpoint
                .map_or(Store::default(), |checkpoint| Store {
                    generation: checkpoint.generation,
                    length: checkpoint.length,
                });
        }
        Response::Leased(Epoch(op.0))
    }

    /// The end of a lease. LEA-6.
    pub fn revoke(&mut self, number: ShardNumber, epoch: Epoch) {
        if let Some(shard) = self.shards.get_mut(&number)
            && shard.epoch == epoch
        {
            shard.holder = None;
            shard.stopped = false;
        }
    }

    /// Frees what is held by sessions that no longer stand. LEA-5.
    pub fn keep(&mut self, stands: impl Fn(Holder) -> bool) {
        for shard in self.shards.values_mut() {
            if shard.holder.is_some_and(|holder| !stands(holder)) {
                shard.holder = None;
                shard.stopped = false;
            }
        }
    }

    /// What a worker writes. LEA-2, LEA-8 to LEA-10, LEA-12.
    pub fn write(
        &mut self,
        constants: &Constants,
        op: Op,
        access: Access,
        write: LeaseWrite,
    ) -> Response {
        if access.shard.0 >= constants.shards {
            return Response::Refused(Refusal::NoShard); // LEA-16
        }
        let holder = Holder {
            client: access.client,
            session: access.session,
        };
        let Some(shard) = self.shards.get_mut(&access.shard) else {
            return Response::Refused(Refusal::Stale { epoch: Epoch(0) });
        };
        if shard.epoch != access.epoch || shard.holder != Some(holder) {
            return Response::Refused(Refusal::Stale { epoch: shard.epoch }); // LEA-2
        }
        if shard.stopped {
            return Response::Refused(Refusal::Stopped); // LEA-9
        }
        match write {
            LeaseWrite::Section { first, last } => section(shard, first, last),
            LeaseWrite::Store { expected, bytes } => store(shard, expected, bytes),
            LeaseWrite::Compacted { length } => {
                shard.store = Store {
                    generation: shard.store.generation + 1,
                    length,
                };
                Response::Written
            }
            LeaseWrite::Checkpoint(checkpoint) => check_in(shard, op, checkpoint),
        }
    }
}

/// Records at the end of the shard's log. LEA-8, LEA-10.
fn section(shard: &mut Shard, first: RecordNumber, last: RecordNumber) -> Response {
    if first.0 != shard.end.0 + 1 || last < first {
        shard.stopped = true;
        return Response::Refused(Refusal::Gap);
    }
    shard.end = last;
    Response::Written
}

/// Bytes at the end of the run store. LEA-8.
fn store(shard: &mut Shard, expected: Option<u64>, bytes: u64) -> Response {
    let offset = shard.store.length;
    if expected.is_some_and(|expected| expected != offset) {
        shard.stopped = true;
        return Response::Refused(Refusal::Offset);
    }
    shard.store.length += bytes;
    Response::StoreAppended { offset }
}

/// A checkpoint. LEA-12.
fn check_in(shard: &mut Shard, op: Op, new: Checkpoint) -> Response {
    let last = shard.checkpoint;
    let forward =
        last.is_none_or(|last| last.record <= new.record && last.position <= new.position);
    let within = new.record <= shard.end && new.position <= op;
    let stored = new.generation == shard.store.generation && new.length <= shard.store.length;
    if !(forward && within && stored) {
        return Response::Refused(Refusal::Range);
    }
    shard.checkpoint = Some(new);
    Response::Written
}
