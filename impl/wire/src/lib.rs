//! Byte formats of Pawl: client frames and bodies, message batches, log entries, error codes.
//!
//! Pure: bytes in, values out, and back. Nothing here reads a clock, draws a random number, touches
//! a file or a socket, or trusts a length that it has not compared with the bytes at hand.
//!
//! The map, in the order in which a request meets it:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`frame`] | finding frames in a stream of bytes |
//! | [`headers`] | the 256-byte headers of requests, replies and evictions, and their validity |
//! | [`operation`] | the operation byte: what the log sees |
//! | [`command`] | every command: code, operation, request and reply type; what a header asks for |
//! | [`commands`] | the bodies of requests and replies, one module per area |
//! | [`primitives`] | names, identifiers, consumers; [`primitives::Wire`], trait of all layouts |
//! | [`options`], [`topic_options`] | option blocks, user headers; the options of topics |
//! | [`permissions`] | what a user may do |
//! | [`batch`], [`batch_client`] | message batches: verify, stamp, slice; build and read |
//! | [`reply`] | whole answer frames: replies, refusals, evictions |
//! | [`error_code`] | the dialect's error codes with their retry class |
//! | [`ids`] | one newtype per number |
//! | [`entry`], [`entry_arguments`] | the header of a log entry |

pub mod batch;
pub mod batch_client;
pub mod command;
pub mod commands;
pub mod entry;
pub mod entry_arguments;
pub mod error_code;
mod error_code_table;
pub mod frame;
#[cfg(test)]
mod generate;
pub mod headers;
pub mod ids;
mod layout;
pub mod operation;
pub mod options;
pub mod permissions;
pub mod primitives;
pub mod reply;
mod topic_option_text;
pub mod topic_options;

#[cfg(test)]
mod properties;
