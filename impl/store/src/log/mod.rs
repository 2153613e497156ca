//! The log: segments, the writer, and what keeps the next segment ready.

pub mod preparer;
pub mod writer;
