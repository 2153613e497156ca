//! A log segment, in words.

use std::collections::VecDeque;
use std::io;

use pawl_wire::entry::EntryKind;

use super::{Lines, Source, unreadable};
use crate::error::Unreadable;
use crate::format::BLOCK_BYTES;
use crate::format::batch::{BatchHeader, BatchKind, Region};
use crate::format::segment::SegmentHeader;

/// Lines about a log segment. `nonce`: of the anchor, for a segment whose first block is damaged.
pub(super) fn lines(source: Source, nonce: Option<u64>) -> Lines {
    let head = match source.read(0, BLOCK_BYTES as u64) {
        Ok(head) => head,
        Err(error) => return Box::new(std::iter::once(error.to_string())),
    };
    let (title, nonce) = match SegmentHeader::decode(&head) {
        Ok(header) => {
            let life = match header.recycled() {
                true => "a file that was recycled",
                false => "a new file",
            };
            let (cluster, segment) = (header.cluster, header.segment());
            let title = format!("cluster {cluster:032x}, {segment}, {life}");
            (title, Some(header.nonce))
        }
        Err(reason) => (unreadable(0, reason), nonce),
    };
    let title = std::iter::once(title);
    match nonce {
        Some(nonce) => Box::new(title.chain(Batches::new(source, nonce))),
        None => {
            let text = "batches cannot be verified: neither this segment nor an anchor in the \
                        folder above says what keys their checksums";
            Box::new(title.chain(std::iter::once(text.to_owned())))
        }
    }
}

/// Walks a segment block by block; bytes that are no batch are summed up in one line.
struct Batches {
    source: Source,
    nonce: u64,
    position: u64,
    /// Where bytes began that are no batch, and why the first of them are not.
    gap: Option<(u64, String)>,
    lines: VecDeque<String>,
}

impl Batches {
    fn new(source: Source, nonce: u64) -> Batches {
        Batches {
            source,
            nonce,
            position: BLOCK_BYTES as u64,
            gap: None,
            lines: VecDeque::new(),
        }
    }

    fn step(&mut self) -> io::Result<()> {
        let at = self.position;
        match self.region(at)? {
            Ok(region) => {
                self.end_gap(at);
                self.describe(&region)?;
                self.position = at + region.header.batch_bytes;
            }
            Err(reason) => {
                if self.gap.is_none() {
                    let why = self.why_not(at, reason)?;
                    self.gap = Some((at, why));
                }
                self.position = at + BLOCK_BYTES as u64;
            }
        }
        if self.position >= self.source.bytes {
            self.end_gap(self.source.bytes);
        }
        Ok(())
    }

    fn region(&self, at: u64) -> io::Result<Result<Region, Unreadable>> {
        let mut bytes = self.source.read(at, BLOCK_BYTES as u64)?;
        let header = match BatchHeader::peek(&bytes) {
            Ok(header) => header,
            Err(reason) => return Ok(Err(reason)),
        };
        if at + header.batch_bytes > self.source.bytes {
            return Ok(Err(Unreadable::Short));
        }
        if header.region_bytes as usize > bytes.len() {
            bytes = self.source.read(at, u64::from(header.region_bytes))?;
        }
        Ok(Region::decode(&bytes, self.nonce))
    }

    fn why_not(&self, at: u64, reason: Unreadable) -> io::Result<String> {
        let bytes = self.source.read(at, BLOCK_BYTES as u64)?;
        Ok(match bytes.iter().all(|byte| *byte == 0) {
            true => "zeros".to_owned(),
            false => reason.to_string(),
        })
    }

    fn end_gap(&mut self, to: u64) {
        if let Some((from, why)) = self.gap.take() {
            self.lines
                .push_back(format!("bytes {from}..{to}: no batch: {why}"));
        }
    }

    fn describe(&mut self, region: &Region) -> io::Result<()> {
        let header = &region.header;
        let at = self.position;
        let kind = match header.kind == BatchKind::Closed as u8 {
            true => "the log was closed",
            false => "batch",
        };
        let stray = match header.position == at {
            true => "",
            false => ", NOT IN ITS PLACE",
        };
        self.lines.push_back(format!(
            "byte {at}: {kind} {} of segment {}{stray}, {} bytes, vouches for batch {}, from lsn \
             {}, {} records, outcomes complete up to op {}, checksum {:032x}, parent {:032x}",
            header.number,
            header.segment,
            header.batch_bytes,
            header.vouched,
            header.lsn,
            header.record_count,
            header.outcomes_op,
            header.checksum,
            header.parent
        ));
        let bytes = self.source.read(at, header.batch_bytes)?;
        for (index, record) in region.records.iter().enumerate() {
            let good = match region.record(index, &bytes) {
                Ok(_) => "is good",
                Err(_) => "is DAMAGED",
            };
            let what = match &record.header {
                Some(entry) => format!(
                    "{} {:?} of {}, {}, {}, request {}",
                    entry.op(),
                    EntryKind::from_u8(entry.kind),
                    entry.client(),
                    entry.user(),
                    entry.view(),
                    entry.request
                ),
                None => "vote".to_owned(),
            };
            let (lsn, body) = (record.lsn, record.bytes);
            let position = at + record.position;
            let line = format!("  {lsn}: {what}; body of {body} bytes at byte {position} {good}");
            self.lines.push_back(line);
        }
        for outcome in &region.outcomes {
            let line = format!(
                "  outcome: {} at offset {}",
                outcome.op, outcome.base_offset
            );
            self.lines.push_back(line);
        }
        Ok(())
    }
}

impl Iterator for Batches {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        while self.lines.is_empty() && self.position < self.source.bytes {
            if let Err(error) = self.step() {
                self.position = self.source.bytes;
                self.lines.push_back(error.to_string());
            }
        }
        self.lines.pop_front()
    }
}
