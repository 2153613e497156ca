//! The log: segments, the writer, and what keeps the next segment ready.

pub(crate) mod preparation;
pub mod preparer;
pub(crate) mod scan;
pub(crate) mod shared;
pub mod writer;
