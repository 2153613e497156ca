//! The judgement of a request with an epoch: one function for admission and for apply.

use bytes::Bytes;
use pawl_wire::entry::{EntryHeader, EntryKind};
use pawl_wire::ids::RequestNumber;

use super::ClientTable;

/// What the table says about a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict<'a> {
    /// No entry (spec SES-12): Eviction 1.
    Evicted,
    /// The entry's epoch is above the request's (spec SES-12): Eviction 7.
    Fenced,
    /// The request's epoch was never granted (spec SES-14): status 3.
    EpochFromNowhere,
    /// Above the watermark (spec DED-1): executed, and the watermark moves.
    New,
    /// A partition write without checksum (spec DED-9): executed, and the watermark stays.
    Unnumbered,
    /// Executed before (spec DED-4): the kept reply.
    Repeat(&'a Bytes),
    /// The number was used for another request (spec DED-5): status 3.
    NumberReused,
    /// Executed before, and the reply is not kept (spec DED-7): 59.
    AppliedEarlier(RequestNumber),
}

/// Whether this kind writes to one partition.
pub const fn is_partition_write(kind: EntryKind) -> bool {
    use EntryKind::*;
    matches!(kind, SendMessages | StoreOffset | DeleteOffset)
}

/// Whether two checksums may be of one request: zero says nothing.
// spec DED-6
const fn checksums_agree(one: u128, other: u128) -> bool {
    one == 0 || other == 0 || one == other
}

impl ClientTable {
    /// Judges a request, in the order of SES-12 and DED's table.
    pub fn verdict(&self, header: &EntryHeader) -> Verdict<'_> {
        let Some(entry) = self.get(header.client()) else {
            return Verdict::Evicted;
        };
        if entry.epoch() > header.epoch() {
            return Verdict::Fenced;
        }
        if entry.epoch() < header.epoch() {
            return Verdict::EpochFromNowhere;
        }
        let (kind, checksum) = (header.entry_kind(), header.request_checksum);
        if is_partition_write(kind) && checksum == 0 {
            return Verdict::Unnumbered;
        }
        let request = header.request();
        if request > entry.watermark {
            return Verdict::New;
        }
        if let Some(reply) = entry.cached(request) {
            // Another operation is another request, whatever the checksums say: its client would
            // read the kept reply by the wrong layout (spec DED-19).
            let same = reply.kind == kind && checksums_agree(reply.checksum, checksum);
            return match same {
                true => Verdict::Repeat(&reply.frame),
                false => Verdict::NumberReused,
            };
        }
        let at_watermark = request == entry.watermark;
        if at_watermark && !checksums_agree(entry.watermark_checksum, checksum) {
            return Verdict::NumberReused;
        }
        Verdict::AppliedEarlier(entry.watermark)
    }
}
