//! From a data directory to a replica that can start: open, restore, or format.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use pawl_machine::genesis::{ClusterSecret, Genesis, GenesisError};
use pawl_machine::limits::{ClusterConstants, ConstantMismatch};
use pawl_machine::{Effect, PawlMachine};
use pawl_store::{
    Disk, Finding, Identity, OpenError, Opened, PartitionBounds, Place, Placed, RealDisk, Recovery,
    Store, StoreOptions,
};
use pawl_vsr::machine::{Machine, RestoreError};
use pawl_vsr::{Effects, Record, Replica, RestartError};
use pawl_wire::entry::EntryKind;
use pawl_wire::ids::{Op, ReplicaIndex};
use rand::RngExt;

use crate::budget_disk::BudgetDisk;
use crate::config::{Config, Environment};
use crate::credentials::{RootCredentials, RootError, hash, root_credentials};
use crate::shard::now;

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The disk cannot be used.
    #[error("the data directory cannot be used: {0}")]
    Directory(#[source] std::io::Error),
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The first user.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The genesis cannot be written.
    #[error(transparent)]
    Genesis(#[from] GenesisError),
    /// The snapshot cannot be restored.
    #[error("checkpoint at {op}: {error}")]
    Snapshot {
        /// Its op.
        op: Op,
        /// Why.
        error: RestoreError,
    },
    /// A cluster constant differs (spec REC-21).
    #[error(transparent)]
    Constants(#[from] ConstantMismatch),
    /// The replica cannot start from what was found.
    #[error(transparent)]
    Restart(#[from] RestartError),
    /// A node alone is replica 0.
    #[error("the data directory belongs to {0}, and this node is alone")]
    Replica(ReplicaIndex),
}

/// A data directory, opened, and the replica that starts from it.
#[derive(Debug)]
pub struct Recovered {
    /// The parts of the store.
    pub store: Store,
    /// The replica.
    pub replica: Replica<PawlMachine>,
    /// Effects of starting it.
    pub effects: Effects<Effect>,
    /// Where the bodies of the produces of the log are.
    pub places: Vec<(Op, Place)>,
    /// Keys the checksums of requests with secrets in them.
    pub secret: ClusterSecret,
    /// The first user, if it was made now.
    pub root: Option<RootCredentials>,
}

/// Opens the data directory; formats it when it is empty.
pub fn recover(
    config: &Config,
    environment: &Environment,
    default_root: bool,
    disk: Option<Arc<dyn Disk>>,
) -> Result<Recovered, RecoverError> {
    let own_folder = config.system.runtime.path.as_str();
    let disk = match disk {
        Some(disk) => disk,
        None => {
            let real = RealDisk::new(&config.data_dir()).map_err(RecoverError::Directory)?;
            BudgetDisk::around(Arc::new(real), config.log.disk_bytes_max.0)
        }
    };
    let options = StoreOptions {
        log_bytes_max: config.log.bytes_max.0,
        ..StoreOptions::default()
    };
    let recovery = match pawl_store::open(disk, options)? {
        Opened::Empty(empty) => {
            let mut random = rand::rng();
            let identity = Identity {
                cluster: random.random(),
                replica: ReplicaIndex(0),
                constants: ClusterConstants::default().fingerprint(),
            };
            empty.format(identity, random.random())?
        }
        Opened::Holds(recovery) => *recovery,
    };
    if recovery.identity.replica != ReplicaIndex(0) {
        return Err(RecoverError::Replica(recovery.identity.replica));
    }
    // The genesis was never durable: nothing was ever acknowledged from here.
    if recovery.recovered.checkpoint.is_none() && recovery.recovered.records.is_empty() {
        let root = root_credentials(environment, default_root)?;
        return format(recovery, root, own_folder);
    }
    restart(recovery, own_folder)
}

fn vsr_config(cluster: u128) -> pawl_vsr::Config {
    let constants = ClusterConstants::default();
    pawl_vsr::Config {
        checkpoint_ops_interval: constants.checkpoint_ops_interval,
        checkpoint_log_bytes_interval: constants.checkpoint_log_bytes_interval,
        ..pawl_vsr::Config::solo(cluster)
    }
}

/// Begins a new log: op 1 makes the first user.
fn format(
    recovery: Recovery,
    root: RootCredentials,
    own_folder: &str,
) -> Result<Recovered, RecoverError> {
    let secret = ClusterSecret(rand::rng().random());
    let genesis = Genesis {
        constants: ClusterConstants::default(),
        secret,
        root_name: root.username.clone(),
        root_password_hash: hash(&root.password),
    };
    let genesis = Bytes::from(genesis.encode()?);
    let mut effects = Effects::new();
    let config = vsr_config(recovery.identity.cluster);
    let machine = PawlMachine::new();
    let replica = Replica::format(config, machine, genesis, now(), &mut effects)
        .map_err(RestartError::Config)?;
    let store = start_store(recovery, &[], own_folder)?;
    Ok(Recovered {
        store,
        replica,
        effects,
        places: Vec::new(),
        secret,
        root: Some(root),
    })
}

/// Goes on with the log that is there.
fn restart(mut recovery: Recovery, own_folder: &str) -> Result<Recovered, RecoverError> {
    let mut found = std::mem::take(&mut recovery.recovered);
    let machine = restore_checkpoint(&found)?;
    let bounds = partition_bounds(&machine);
    let after = found
        .checkpoint
        .as_ref()
        .map_or(Op(0), |(header, _)| header.op);
    let places = produce_places(&found, &recovery.placed, after);
    // Bodies of messages stay on the disk: apply does not need them.
    for (_, record) in &mut found.records {
        if let Record::Entry { header, body } = record
            && header.kind == EntryKind::SendMessages as u8
        {
            *body = Bytes::new();
        }
    }
    let config = vsr_config(recovery.identity.cluster);
    let store = start_store(recovery, &bounds, own_folder)?;
    let mut effects = Effects::new();
    let replica = Replica::restart(config, PawlMachine::new(), found, &mut effects)?;
    let secret = *replica.machine().secret();
    Ok(Recovered {
        store,
        replica,
        effects,
        places,
        secret,
        root: None,
    })
}

/// The machine that the checkpoint holds.
fn restore_checkpoint(found: &pawl_vsr::Recovered) -> Result<PawlMachine, RecoverError> {
    let Some((header, snapshot)) = &found.checkpoint else {
        return Ok(PawlMachine::new());
    };
    let machine = PawlMachine::restore(snapshot).map_err(|error| RecoverError::Snapshot {
        op: header.op,
        error,
    })?;
    machine.constants().compare(&ClusterConstants::default())?;
    Ok(machine)
}

/// What the machine, before any record is applied, says about its partitions.
fn partition_bounds(machine: &PawlMachine) -> Vec<PartitionBounds> {
    let streams = machine.catalog().streams();
    streams
        .flat_map(|stream| stream.topics())
        .flat_map(|topic| topic.partitions.iter())
        .filter_map(|slot| {
            let view = machine.partition(slot.uid)?;
            Some(PartitionBounds {
                uid: slot.uid,
                op_floor: view.purged_at,
                first_offset: view.first_offset,
                next_offset: view.next_offset,
            })
        })
        .collect()
}

/// Where the bodies of the produces above `after` are, by op. A later place replaces an earlier
/// one.
fn produce_places(found: &pawl_vsr::Recovered, placed: &[Placed], after: Op) -> Vec<(Op, Place)> {
    let produces: BTreeSet<Op> = found
        .records
        .iter()
        .filter_map(|(_, record)| match record {
            Record::Entry { header, .. } if header.kind == EntryKind::SendMessages as u8 => {
                Some(header.op())
            }
            Record::Entry { .. } | Record::View(_) => None,
        })
        .filter(|op| *op > after)
        .collect();
    let places: BTreeMap<Op, Place> = placed
        .iter()
        .filter(|placed| produces.contains(&placed.op))
        .map(|placed| (placed.op, placed.place))
        .collect();
    places.into_iter().collect()
}

fn start_store(
    recovery: Recovery,
    bounds: &[PartitionBounds],
    own_folder: &str,
) -> Result<Store, RecoverError> {
    let mut findings = recovery.findings;
    let store = recovery.starter.start(bounds, &mut findings)?;
    let own =
        |finding: &Finding| matches!(finding, Finding::Ignored { name } if name == own_folder);
    for finding in findings.iter().filter(|finding| !own(finding)) {
        tracing::warn!(?finding, "found in the data directory");
    }
    Ok(store)
}
