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

/// Bytes that a survey reads at once.
const SURVEY_BYTES: u64 = 1 << 20;

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

/// What stands behind a position of a segment.
#[derive(Clone, Debug)]
pub(crate) struct Survey {
    /// Valid batches of this segment.
    pub batches: Vec<FoundBatch>,
    /// The end of the last block that is not all zero; what a cut has left of a block counts.
    pub nonzero_end: u64,
}

/// A batch of this log that stands where it says.
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

    /// What stands behind `from`: batches, in whatever order they came there, and where it ends.
    pub fn survey(&self, from: u64) -> Result<Survey, DiskError> {
        let mut survey = Survey {
            batches: Vec::new(),
            nonzero_end: from,
        };
        let mut positions = Vec::new();
        self.each_block(from, |position, block| {
            if block.iter().any(|byte| *byte != 0) {
                survey.nonzero_end = position + block.len() as u64;
            }
            if block.len() == BLOCK_BYTES && self.begins_batch(position, block) {
                positions.push(position);
            }
        })?;
        for position in positions {
            if let Ok(region) = self.region(position)? {
                survey.batches.push(FoundBatch {
                    segment: self.segment,
                    header: region.header,
                });
            }
        }
        Ok(survey)
    }

    /// Whether a block begins like a batch of this very place.
    fn begins_batch(&self, position: u64, block: &[u8]) -> bool {
        let header: BatchHeader = bytemuck::pod_read_unaligned(&block[..BATCH_HEADER_BYTES]);
        let here = (header.segment, header.position) == (self.segment.0, position);
        header.magic == BATCH_MAGIC && here
    }

    fn each_block(&self, from: u64, mut visit: impl FnMut(u64, &[u8])) -> Result<(), DiskError> {
        let mut position = from;
        while position < self.file_bytes {
            let bytes = self.read(position, SURVEY_BYTES.min(self.file_bytes - position))?;
            for block in bytes.chunks(BLOCK_BYTES) {
                visit(position, block);
                position += block.len() as u64;
            }
        }
        Ok(())
    }
}
