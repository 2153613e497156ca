//! A small machine, a node that drives the store as the server does, and the truth to compare with.
#![allow(dead_code, unused_imports, reason = "each test uses its part")]

pub mod fixture;
pub mod machine;
pub mod node;
pub mod truth;

pub use machine::TestMachine;
pub use node::{Node, OpenFailure, options_small};
pub use truth::Truth;

use pawl_store::Identity;
use pawl_wire::ids::ReplicaIndex;

pub const CLUSTER: u128 = 0xC1;
pub const NONCE: u64 = 0x5EED_0000_0000_0001;

pub fn identity() -> Identity {
    Identity {
        cluster: CLUSTER,
        replica: ReplicaIndex(0),
        constants: 77,
    }
}
