//! The node over raw sockets, one module per property.

#[path = "../util/mod.rs"]
mod util;

mod disk;
mod groups;
mod malformed;
mod messages;
mod process;
mod refusals;
mod sessions;
mod system;
