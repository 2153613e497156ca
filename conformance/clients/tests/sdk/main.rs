//! The published Rust SDK 0.11.0 against a node: one file per property.

mod catalog;
mod messages;
mod offsets;
mod refusals;
mod restart;
mod util;
