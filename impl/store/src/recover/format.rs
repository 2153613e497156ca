//! Makes a data directory out of an empty one.
//!
//! The anchor's name is the last thing to become durable: before it nothing was promised, and a
//! start formats anew; after it the log is there.

use bytes::Bytes;

use super::anchor::FoundAnchor;
use super::directory::Directory;
use super::{Finding, Recovery, start};
use crate::error::{DiskError, OpenError};
use crate::format::anchor::{ANCHOR_SLOTS, Anchor};
use crate::format::names;
use crate::format::segment::SegmentHeader;
use crate::log::preparation::{flush_directory, make_segment};
use crate::options::{Identity, StoreOptions};
use crate::record::SegmentId;

/// A locked directory without data.
#[derive(Debug)]
pub struct EmptyDirectory {
    directory: Directory,
    options: StoreOptions,
}

impl EmptyDirectory {
    pub(crate) fn new(directory: Directory, options: StoreOptions) -> EmptyDirectory {
        EmptyDirectory { directory, options }
    }

    /// Files and folders that are not ours.
    pub fn findings(&self) -> &[Finding] {
        &self.directory.findings
    }

    /// Formats the directory. `nonce` is random and secret: it keys the checksums of the log, so
    /// that no message can hold bytes that look like a batch of this log.
    pub fn format(self, identity: Identity, nonce: u64) -> Result<Recovery, OpenError> {
        let EmptyDirectory {
            mut directory,
            options,
        } = self;
        let disk = &directory.disk;
        for name in names::DIRECTORIES {
            disk.create_directory(name)
                .map_err(DiskError::of("create directory", name))?;
        }
        flush_directory(disk, "")?;
        let first = SegmentId(1);
        let header = SegmentHeader::new(identity.cluster, nonce, first, false);
        let file_bytes = u64::from(options.segment_bytes);
        make_segment(disk, &names::segment(first), &header, file_bytes)?;
        flush_directory(disk, names::LOG)?;
        let anchor = Anchor::new(&identity, nonce);
        let file = write_anchor_file(&directory, &anchor)?;
        directory.anchor = true;
        directory.segments.insert(first);
        let found = FoundAnchor {
            anchor,
            file,
            repair: false,
            findings: Vec::new(),
        };
        start::recover(directory, options, found)
    }
}

fn write_anchor_file(
    directory: &Directory,
    anchor: &Anchor,
) -> Result<std::sync::Arc<dyn crate::disk::DiskFile>, OpenError> {
    let disk = &directory.disk;
    let temporary = format!("{}/{}", names::TEMPORARY, names::ANCHOR);
    // An earlier try may have left it.
    let _ = disk.remove(&temporary);
    let file = disk
        .create(&temporary)
        .map_err(DiskError::of("create", &temporary))?;
    let slot = Bytes::from(anchor.encode());
    file.write_at(&vec![slot; ANCHOR_SLOTS], 0)
        .map_err(DiskError::of("write", &temporary))?;
    file.flush().map_err(DiskError::of("flush", &temporary))?;
    disk.rename(&temporary, names::ANCHOR)
        .map_err(DiskError::of("rename", &temporary))?;
    flush_directory(disk, "")?;
    Ok(file)
}
