//! A toy machine and a node in memory: what the tests of the replica share.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod node;
pub mod script;
pub mod toy;
