//! Byte formats of Pawl: client frames and bodies, message batches, log entries, error codes.
//!
//! Pure: bytes in, values out, and back. Nothing here reads a clock, draws a random number, touches
//! a file or a socket, or trusts a length that it has not compared with the bytes at hand.

pub mod entry;
pub mod ids;
