//! Reads batches from segments. Believes nothing before its checksum, its place and its chain
//! agree.

use std::sync::Arc;

use bytes::Bytes;

use crate::disk::DiskFile;
use crate::error::{DiskError, Unreadable};
use crate::format::batch::{BATCH_HEADER_BYTES, BATCH_MAGIC, BatchHeader, Region};
use crate::format::names;
use crate::format::{BLOCK_BYTES, LogPosition};
use crate::record::SegmentId;

/// Bytes that a search reads at once.
const SEARCH_BYTES: u64 = 1 << 20;

/// A segment's file, as recovery reads it.
#[derive(Clone, Debug)]
pub(crate) struct SegmentFile {
    pub segment: SegmentId,
    pub file: Arc<dyn DiskFile>,
    pub file_bytes: u64,
    pub nonce: u64,
}

/// What stands at a place of the log: a value, or why it is not one; the disk may fail besides.
pub(crate) type Read<T> = Result<Result<T, Unreadable>, DiskError>;

/// A batch of this log that stands where it says, found by a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundBatch {
    pub segment: SegmentId,
    pub header: BatchHeader,
}

impl SegmentFile {
    pub fn name(&self) -> String {
        names::segment(self.segment)
    }

    fn read(&self, position: u64, bytes: u64) -> Result<Bytes, DiskError> {
        self.file
            .read_at(position, bytes as usize)
            .map_err(DiskError::of("read", &self.name()))
    }

    /// The region of the batch at this position, verified, in its place.
    pub fn region(&self, position: u64) -> Read<Region> {
        let room = self.file_bytes.saturating_sub(position);
        if room < BLOCK_BYTES as u64 {
            return Ok(Err(Unreadable::Short));
        }
        let mut bytes = self.read(position, BLOCK_BYTES as u64)?;
        let header = match BatchHeader::peek(&bytes) {
            Ok(header) => header,
            Err(reason) => return Ok(Err(reason)),
        };
        if header.batch_bytes > room {
            return Ok(Err(Unreadable::Field("batch bytes")));
        }
        if header.region_bytes as usize > bytes.len() {
            bytes = self.read(position, u64::from(header.region_bytes))?;
        }
        let region = match Region::decode(&bytes, self.nonce) {
            Ok(region) => region,
            Err(reason) => return Ok(Err(reason)),
        };
        if (region.header.segment, region.header.position) != (self.segment.0, position) {
            return Ok(Err(Unreadable::Field("place")));
        }
        Ok(Ok(region))
    }

    /// The region of the batch that continues the log at `at`, which is in this segment.
    pub fn region_continuing(&self, at: &LogPosition) -> Read<Region> {
        let region = self.region(at.position)?;
        Ok(region.and_then(|region| match region.header.continues(at) {
            true => Ok(region),
            false => Err(Unreadable::Chain),
        }))
    }

    /// The batch that continues the log at `at`, with all its bytes.
    pub fn batch_continuing(&self, at: &LogPosition) -> Read<(Region, Bytes)> {
        let region = match self.region_continuing(at)? {
            Ok(region) => region,
            Err(reason) => return Ok(Err(reason)),
        };
        let bytes = self.read(at.position, region.header.batch_bytes)?;
        Ok(Ok((region, bytes)))
    }

    /// Valid batches behind `from`, in whatever order they came there.
    pub fn search(&self, from: u64) -> Result<Vec<FoundBatch>, DiskError> {
        let mut found = Vec::new();
        for position in self.blocks_with_magic(from)? {
            if let Ok(region) = self.region(position)? {
                found.push(FoundBatch {
                    segment: self.segment,
                    header: region.header,
                });
            }
        }
        Ok(found)
    }

    /// Positions of blocks that begin like a batch of this very place.
    fn blocks_with_magic(&self, from: u64) -> Result<Vec<u64>, DiskError> {
        let mut positions = Vec::new();
        self.each_block(from, |position, block| {
            let header: BatchHeader = bytemuck::pod_read_unaligned(&block[..BATCH_HEADER_BYTES]);
            let here = (header.segment, header.position) == (self.segment.0, position);
            if header.magic == BATCH_MAGIC && here {
                positions.push(position);
            }
        })?;
        Ok(positions)
    }

    /// The end of the last block behind `from` that is not all zero; `from` if there is none.
    pub fn end_of_nonzero(&self, from: u64) -> Result<u64, DiskError> {
        let mut end = from;
        self.each_block(from, |position, block| {
            if block.iter().any(|byte| *byte != 0) {
                end = position + BLOCK_BYTES as u64;
            }
        })?;
        Ok(end)
    }

    fn each_block(&self, from: u64, mut visit: impl FnMut(u64, &[u8])) -> Result<(), DiskError> {
        let whole = self.file_bytes - self.file_bytes % BLOCK_BYTES as u64;
        let mut position = from;
        while position < whole {
            let bytes = self.read(position, SEARCH_BYTES.min(whole - position))?;
            for block in bytes.chunks_exact(BLOCK_BYTES) {
                visit(position, block);
                position += BLOCK_BYTES as u64;
            }
        }
        Ok(())
    }
}
