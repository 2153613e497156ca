//! The gateway of the binary protocol: decode, authenticate, bind a session, admit, answer.

pub mod answer;
pub mod connection;
mod dispatch;
pub mod frames;
mod groups;
mod login;
mod poll;
mod read;
mod send;
mod system;
mod target;
mod write;
