//! Holds a server to the specification from outside: over its sockets, its process and its files.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`node`] | starting, killing and stopping a node as a child process |
//! | [`client`] | a small blocking client on `pawl_wire`; its identity outlives connections |
//! | [`kill`] | the kill test: SIGKILL at random instants under load, then compare everything |
//!
//! Nothing here knows the inside of the server. What is believed about it comes from its answers.

pub mod client;
pub mod kill;
pub mod node;
