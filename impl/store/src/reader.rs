//! Reads bodies by place, and believes none before its checksum.

use bytes::Bytes;

use crate::error::ReadError;
use crate::record::Place;

/// Reads bodies. Cheap to clone; may be used from any thread.
#[derive(Clone, Debug)]
pub struct Reader {}

impl Reader {
    /// The body at this place, verified.
    pub fn read(&self, _place: &Place) -> Result<Bytes, ReadError> {
        Err(ReadError::Moved)
    }
}
