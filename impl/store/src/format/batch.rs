//! A batch of the log: what one write hands to the disk and one flush makes durable.
//!
//! A batch is a *region* (header, records, outcomes), then the bodies, then zeros up to a whole
//! block. The region's checksum covers everything but the bodies, and the region holds each body's
//! checksum, so that the region's checksum fixes the whole batch: it is the batch's identity and
//! the next batch's `parent`.
//!
//! | off | bytes | field |
//! | --- | --- | --- |
//! | 0 | 16 | checksum: XXH3-128, keyed by the log's nonce, of region bytes 16.. |
//! | 16 | 16 | parent: checksum of the batch before; of the log's first batch 0 |
//! | 32 | 16 | cluster |
//! | 48 | 8 | magic `PAWLBAT1` |
//! | 56 | 8 | segment in which it stands |
//! | 64 | 8 | position at which it stands |
//! | 72 | 8 | number: from 1, consecutive |
//! | 80 | 8 | vouched: number of the last batch that was flushed when this one was made |
//! | 88 | 8 | lsn of its first record, or of the next one if it has none |
//! | 96 | 8 | outcomes_op: outcomes of every op up to this one stand in batches up to this one |
//! | 104 | 8 | bytes of the batch, whole blocks |
//! | 112 | 4 | bytes of the region |
//! | 116 | 4 | count of records |
//! | 120 | 4 | count of outcomes |
//! | 124 | 2 | version: 1 |
//! | 126 | 1 | kind: 1 records, 2 the log was closed cleanly |
//! | 127 | 129 | reserved, zero |
//!
//! A record: 32 bytes, and for an entry its 256-byte header (`pawl_wire::entry`) behind them.
//!
//! | off | bytes | field |
//! | --- | --- | --- |
//! | 0 | 16 | checksum: XXH3-128 of the body |
//! | 16 | 8 | position of the body in the batch |
//! | 24 | 4 | bytes of the body |
//! | 28 | 1 | kind: 1 entry, 2 vote |
//! | 29 | 3 | reserved, zero |
//!
//! An outcome: 8 bytes op, 8 bytes base offset.

use bytemuck::{Pod, Zeroable};
use bytes::{Bytes, BytesMut};
use pawl_vsr::{Record, VoteRecord};
use pawl_wire::entry::{ENTRY_HEADER_BYTES, EntryHeader};
use pawl_wire::ids::{Lsn, Op};

use super::{BLOCK_BYTES, LogPosition, check_zero, checksum, checksum_keyed, read_pod};
use crate::error::Unreadable;
use crate::record::Outcome;

/// Magic number of a batch.
pub const BATCH_MAGIC: u64 = u64::from_le_bytes(*b"PAWLBAT1");
/// Version of the layout above.
pub const BATCH_VERSION: u16 = 1;
/// Bytes of the batch header.
pub const BATCH_HEADER_BYTES: usize = 256;
/// Bytes of a record's head.
pub const RECORD_HEAD_BYTES: usize = 32;
/// Bytes of an outcome.
pub const OUTCOME_BYTES: usize = 16;

/// What a batch is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum BatchKind {
    /// Records and outcomes.
    Records = 1,
    /// The last batch of a clean stop.
    Closed = 2,
}

/// The header of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
#[allow(
    missing_docs,
    reason = "the table at the top of the file says what each field is"
)]
pub struct BatchHeader {
    pub checksum: u128,
    pub parent: u128,
    pub cluster: u128,
    pub magic: u64,
    pub segment: u64,
    pub position: u64,
    pub number: u64,
    pub vouched: u64,
    pub lsn: u64,
    pub outcomes_op: u64,
    pub batch_bytes: u64,
    pub region_bytes: u32,
    pub record_count: u32,
    pub outcome_count: u32,
    pub version: u16,
    pub kind: u8,
    pub reserved: [u8; 129],
}

const _: () = assert!(size_of::<BatchHeader>() == BATCH_HEADER_BYTES);

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct RecordHead {
    checksum: u128,
    position: u64,
    bytes: u32,
    kind: u8,
    reserved: [u8; 3],
}

const _: () = assert!(size_of::<RecordHead>() == RECORD_HEAD_BYTES);

const RECORD_ENTRY: u8 = 1;
const RECORD_VOTE: u8 = 2;

/// A record of a region: everything but the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionRecord {
    /// The record's number.
    pub lsn: Lsn,
    /// The entry's header; `None` for a vote.
    pub header: Option<EntryHeader>,
    /// First byte of the body in the batch.
    pub position: u64,
    /// Bytes of the body.
    pub bytes: u32,
    /// XXH3-128 of the body.
    pub checksum: u128,
}

/// A verified region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// The header.
    pub header: BatchHeader,
    /// The records.
    pub records: Vec<RegionRecord>,
    /// The outcomes.
    pub outcomes: Vec<Outcome>,
}

/// A record as it goes to the disk.
#[derive(Clone, Debug)]
pub struct WriteRecord {
    /// The entry's header; `None` for a vote.
    pub header: Option<EntryHeader>,
    /// The entry's body, or the vote.
    pub body: Bytes,
    checksum: u128,
}

impl WriteRecord {
    /// A record of the replica. No byte of an entry's body is touched.
    pub fn new(record: &Record) -> WriteRecord {
        match record {
            Record::Entry { header, body } => WriteRecord {
                header: Some(*header),
                body: body.clone(),
                checksum: header.checksum_body,
            },
            Record::View(vote) => {
                let body = Bytes::from(vote.encode());
                WriteRecord {
                    header: None,
                    checksum: checksum(&body),
                    body,
                }
            }
        }
    }

    /// Bytes that it takes in the region.
    pub fn region_bytes(&self) -> usize {
        match self.header {
            Some(_) => RECORD_HEAD_BYTES + ENTRY_HEADER_BYTES,
            None => RECORD_HEAD_BYTES,
        }
    }

    /// Bytes that it adds to a batch.
    pub fn bytes(&self) -> u64 {
        self.region_bytes() as u64 + self.body.len() as u64
    }
}

/// What a batch says about itself and its place in the log.
#[derive(Clone, Copy, Debug)]
pub struct BatchFrame {
    /// The cluster.
    pub cluster: u128,
    /// The log's nonce.
    pub nonce: u64,
    /// Where it stands and what it continues.
    pub at: LogPosition,
    /// Number of the last flushed batch.
    pub vouched: u64,
    /// Outcomes are complete up to here.
    pub outcomes_op: Op,
    /// What it is for.
    pub kind: BatchKind,
}

/// Appends the region of a batch to `out`; returns its header. Bodies follow in the order of
/// records, without gaps.
pub fn encode_region(
    frame: &BatchFrame,
    records: &[WriteRecord],
    outcomes: &[Outcome],
    out: &mut BytesMut,
) -> BatchHeader {
    let start = out.len();
    let table_bytes: usize = records.iter().map(WriteRecord::region_bytes).sum();
    let region_bytes = BATCH_HEADER_BYTES + table_bytes + outcomes.len() * OUTCOME_BYTES;
    let body_bytes: u64 = records.iter().map(|r| r.body.len() as u64).sum();
    let mut header = BatchHeader {
        parent: frame.at.parent,
        cluster: frame.cluster,
        magic: BATCH_MAGIC,
        segment: frame.at.segment,
        position: frame.at.position,
        number: frame.at.number,
        vouched: frame.vouched,
        lsn: frame.at.lsn,
        outcomes_op: frame.outcomes_op.0,
        batch_bytes: super::block_align(region_bytes as u64 + body_bytes),
        region_bytes: region_bytes as u32,
        record_count: records.len() as u32,
        outcome_count: outcomes.len() as u32,
        version: BATCH_VERSION,
        kind: frame.kind as u8,
        ..BatchHeader::zeroed()
    };
    out.extend_from_slice(bytemuck::bytes_of(&header));
    let mut position = region_bytes as u64;
    for record in records {
        encode_record(record, position, out);
        position += record.body.len() as u64;
    }
    for outcome in outcomes {
        out.extend_from_slice(&outcome.op.0.to_le_bytes());
        out.extend_from_slice(&outcome.base_offset.to_le_bytes());
    }
    assert_eq!(
        out.len() - start,
        region_bytes,
        "the region has its computed size"
    );
    header.checksum = checksum_keyed(frame.nonce, &out[start + 16..]);
    out[start..start + 16].copy_from_slice(&header.checksum.to_le_bytes());
    header
}

fn encode_record(record: &WriteRecord, position: u64, out: &mut BytesMut) {
    let kind = match record.header {
        Some(_) => RECORD_ENTRY,
        None => RECORD_VOTE,
    };
    let head = RecordHead {
        checksum: record.checksum,
        position,
        bytes: record.body.len() as u32,
        kind,
        reserved: [0; 3],
    };
    out.extend_from_slice(bytemuck::bytes_of(&head));
    if let Some(header) = &record.header {
        out.extend_from_slice(header.as_bytes());
    }
}

impl BatchHeader {
    /// The header as it stands, unverified but for magic and bounds: enough to know how much to
    /// read.
    pub fn peek(bytes: &[u8]) -> Result<BatchHeader, Unreadable> {
        let header: BatchHeader = read_pod(bytes)?;
        if header.magic != BATCH_MAGIC {
            return Err(Unreadable::Magic);
        }
        let region = u64::from(header.region_bytes);
        let table = u64::from(header.record_count) * RECORD_HEAD_BYTES as u64
            + u64::from(header.outcome_count) * OUTCOME_BYTES as u64;
        if region < BATCH_HEADER_BYTES as u64 + table || region > header.batch_bytes {
            return Err(Unreadable::Field("region bytes"));
        }
        if !header.batch_bytes.is_multiple_of(BLOCK_BYTES as u64) {
            return Err(Unreadable::Field("batch bytes"));
        }
        Ok(header)
    }

    /// Where the log goes on after this batch, in the same segment.
    pub fn end(&self) -> LogPosition {
        LogPosition {
            parent: self.checksum,
            segment: self.segment,
            position: self.position + self.batch_bytes,
            number: self.number + 1,
            lsn: self.lsn + u64::from(self.record_count),
        }
    }

    /// Whether it was written for this place in the log.
    pub fn stands_at(&self, at: &LogPosition) -> bool {
        (self.segment, self.position) == (at.segment, at.position)
    }

    /// Whether it continues the log at this place.
    pub fn continues(&self, at: &LogPosition) -> bool {
        (self.parent, self.number, self.lsn) == (at.parent, at.number, at.lsn)
    }
}

impl Region {
    /// Reads and verifies a region from the batch's first bytes.
    pub fn decode(bytes: &[u8], nonce: u64) -> Result<Region, Unreadable> {
        let header = BatchHeader::peek(bytes)?;
        let region = bytes
            .get(..header.region_bytes as usize)
            .ok_or(Unreadable::Short)?;
        if header.checksum != checksum_keyed(nonce, &region[16..]) {
            return Err(Unreadable::Checksum);
        }
        if header.version != BATCH_VERSION {
            return Err(Unreadable::Version(header.version));
        }
        if header.kind != BatchKind::Records as u8 && header.kind != BatchKind::Closed as u8 {
            return Err(Unreadable::Field("kind"));
        }
        check_zero(&header.reserved)?;
        Region::decode_table(header, &region[BATCH_HEADER_BYTES..])
    }

    fn decode_table(header: BatchHeader, mut rest: &[u8]) -> Result<Region, Unreadable> {
        // The counts were compared with the region's length: these are allocations by bytes at
        // hand.
        let mut records = Vec::with_capacity(header.record_count as usize);
        let mut position = u64::from(header.region_bytes);
        for index in 0..u64::from(header.record_count) {
            let lsn = Lsn(header.lsn + index);
            let record = decode_record(&mut rest, lsn, position)?;
            position += u64::from(record.bytes);
            records.push(record);
        }
        if super::block_align(position) != header.batch_bytes {
            return Err(Unreadable::Field("batch bytes"));
        }
        let mut outcomes = Vec::with_capacity(header.outcome_count as usize);
        for _ in 0..header.outcome_count {
            let pair: [u64; 2] = read_pod(rest)?;
            rest = &rest[OUTCOME_BYTES..];
            outcomes.push(Outcome {
                op: Op(pair[0]),
                base_offset: pair[1],
            });
        }
        if !rest.is_empty() {
            return Err(Unreadable::Field("region bytes"));
        }
        Ok(Region {
            header,
            records,
            outcomes,
        })
    }

    /// The highest op among the entries.
    pub fn op_max(&self) -> Op {
        let ops = self.records.iter().filter_map(|r| r.header.as_ref());
        ops.map(EntryHeader::op).max().unwrap_or(Op(0))
    }

    /// The record at this index with its body, taken from the bytes of the whole batch and
    /// verified.
    pub fn record(&self, index: usize, batch: &Bytes) -> Result<Record, Unreadable> {
        let record = &self.records[index];
        let from = record.position as usize;
        let to = from + record.bytes as usize;
        if to > batch.len() {
            return Err(Unreadable::Short);
        }
        let body = batch.slice(from..to);
        if checksum(&body) != record.checksum {
            return Err(Unreadable::Checksum);
        }
        Ok(match record.header {
            Some(header) => Record::Entry { header, body },
            None => Record::View(VoteRecord::decode(&body).map_err(|_| Unreadable::Field("vote"))?),
        })
    }
}

fn decode_record(rest: &mut &[u8], lsn: Lsn, position: u64) -> Result<RegionRecord, Unreadable> {
    let head: RecordHead = read_pod(rest)?;
    *rest = &rest[RECORD_HEAD_BYTES..];
    check_zero(&head.reserved)?;
    if head.position != position {
        return Err(Unreadable::Field("body position"));
    }
    let header = match head.kind {
        RECORD_ENTRY => {
            let bytes = rest.get(..ENTRY_HEADER_BYTES).ok_or(Unreadable::Short)?;
            *rest = &rest[ENTRY_HEADER_BYTES..];
            let header = EntryHeader::decode(bytes).map_err(|_| Unreadable::Field("entry"))?;
            if (header.checksum_body, header.body_bytes) != (head.checksum, head.bytes) {
                return Err(Unreadable::Field("entry body"));
            }
            Some(header)
        }
        RECORD_VOTE => None,
        _ => return Err(Unreadable::Field("record kind")),
    };
    Ok(RegionRecord {
        lsn,
        header,
        position,
        bytes: head.bytes,
        checksum: head.checksum,
    })
}
