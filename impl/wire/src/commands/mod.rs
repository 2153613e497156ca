//! The bodies of every command, one module per area. Each request and each reply is a struct that
//! reads and writes itself through [`crate::primitives::Wire`].

pub mod groups;
pub mod messages;
pub mod offsets;
pub mod partitions;
pub mod session;
pub mod streams;
pub mod system;
pub mod tokens;
pub mod topics;
pub mod users;
