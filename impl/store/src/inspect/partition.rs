//! A partition's file, in words.

use pawl_wire::ids::PartitionUid;

use super::{Lines, Source, unreadable};
use crate::format::checksum;
use crate::format::partition::{PARTITION_HEADER_BYTES, PartitionHeader, RecordHeader};
use crate::index::BatchEntry;

/// Lines about a partition's file.
pub(super) fn lines(source: Source) -> Lines {
    let head = match source.read(0, PARTITION_HEADER_BYTES as u64) {
        Ok(head) => head,
        Err(error) => return Box::new(std::iter::once(error.to_string())),
    };
    match PartitionHeader::decode(&head) {
        Err(reason) => Box::new(std::iter::once(unreadable(0, reason))),
        Ok(header) => {
            let title = format!(
                "cluster {:032x}, file {} of partition {}",
                header.cluster,
                header.number,
                header.uid()
            );
            Box::new(std::iter::once(title).chain(records(source, header)))
        }
    }
}

fn records(source: Source, header: PartitionHeader) -> impl Iterator<Item = String> {
    let mut position = PARTITION_HEADER_BYTES as u64;
    std::iter::from_fn(move || {
        if position >= source.bytes {
            return None;
        }
        let at = position;
        // Without a good record nothing says where the next one begins.
        position = source.bytes;
        let bytes = match source.read(at, PARTITION_HEADER_BYTES as u64) {
            Ok(bytes) => bytes,
            Err(error) => return Some(error.to_string()),
        };
        let record = match RecordHeader::decode(&bytes, header.uid(), (header.number, at)) {
            Ok(record) => record,
            Err(reason) => return Some(unreadable(at, reason)),
        };
        position = at + record.record_bytes();
        let entry = record.entry();
        let body = source.read(
            u64::from(entry.place.position),
            u64::from(entry.place.bytes),
        );
        let good = match body {
            Ok(body) if checksum(&body) == record.checksum_body => "body is good",
            _ => "body is DAMAGED",
        };
        Some(format!("{}, {good}", entry_words(header.uid(), &entry)))
    })
}

/// An entry of an index.
pub(super) fn entry_words(uid: PartitionUid, entry: &BatchEntry) -> String {
    format!(
        "partition {uid}, {}: offsets {}..{}, time {}, body at byte {}, {} bytes",
        entry.op,
        entry.base_offset,
        entry.end_offset(),
        entry.timestamp,
        entry.place.position,
        entry.place.bytes
    )
}
