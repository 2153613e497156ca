//! The machine as bytes, and back.
//!
//! | off | bytes | field |
//! | --- | --- | --- |
//! | 0 | 8 | `PAWLMACH` |
//! | 8 | 4 | version of this frame: 1 |
//! | 12 | 4 | number of sections |
//! | 16 | | sections |
//!
//! A section:
//!
//! | off | bytes | field |
//! | --- | --- | --- |
//! | 0 | 4 | tag |
//! | 4 | 2 | version of its layout |
//! | 6 | 2 | reserved, zero |
//! | 8 | 8 | bytes of the body |
//! | 16 | 16 | XXH3-128 of the body |
//! | 32 | | body |
//!
//! All sections of the list below are there, once, in its order, and nothing follows. A section
//! that is not known or of a newer version is refused, an older one is migrated (spec REC-20).
//! Everything that the log decides is in them; what can be derived (names by id, sums, orders) is
//! made anew. Equal machines give equal bytes, and bytes that are accepted give the same bytes.

use pawl_vsr::machine::RestoreError;
use pawl_wire::primitives::{Reader, Wire, WireError};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::groups::Memberships;
use crate::machine::PawlMachine;

mod catalog;
mod clients;
mod data;
mod meta;

const MAGIC: [u8; 8] = *b"PAWLMACH";
const FRAME_VERSION: u32 = 1;
const FRAME_BYTES: usize = 16;
const SECTION_HEADER_BYTES: usize = 32;

/// Tag and current version of every section, in the order of the snapshot.
const SECTIONS: [([u8; 4], u16); 7] = [
    (*b"META", 1),
    (*b"USER", 1),
    (*b"STRM", 1),
    (*b"PART", 1),
    (*b"OFFS", 1),
    (*b"CLNT", 1),
    (*b"TOMB", 1),
];

/// Writes the machine.
pub(crate) fn write(machine: &PawlMachine) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&MAGIC);
    FRAME_VERSION.write(&mut out);
    (SECTIONS.len() as u32).write(&mut out);
    let writers: [fn(&PawlMachine, &mut Vec<u8>); SECTIONS.len()] = [
        meta::write,
        catalog::write_users,
        catalog::write_streams,
        data::write_partitions,
        data::write_offsets,
        clients::write_entries,
        clients::write_tombstones,
    ];
    for ((tag, version), fill) in SECTIONS.into_iter().zip(writers) {
        write_section(&mut out, tag, version, |out| fill(machine, out));
    }
    out
}

fn write_section(out: &mut Vec<u8>, tag: [u8; 4], version: u16, fill: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&tag);
    version.write(out);
    0u16.write(out);
    let patch = out.len();
    out.extend_from_slice(&[0; SECTION_HEADER_BYTES - 8]);
    let start = out.len();
    fill(out);
    let bytes = (out.len() - start) as u64;
    let hash = xxh3_128(&out[start..]);
    out[patch..patch + 8].copy_from_slice(&bytes.to_le_bytes());
    out[patch + 8..start].copy_from_slice(&hash.to_le_bytes());
}

/// The digest of the machine whose snapshot this is: a hash over the sections' headers, which hold
/// the hashes of their bodies.
pub(crate) fn digest(snapshot: &[u8]) -> u128 {
    let mut hasher = Xxh3::new();
    let (frame, mut rest) = snapshot.split_at(FRAME_BYTES);
    hasher.update(frame);
    while !rest.is_empty() {
        let (header, bodies) = rest.split_at(SECTION_HEADER_BYTES);
        hasher.update(header);
        let length = header[8..16].try_into().expect("the length has 8 bytes");
        rest = &bodies[u64::from_le_bytes(length) as usize..];
    }
    hasher.digest128()
}

/// Reads a machine. Any bytes give a machine or an error.
pub(crate) fn read(bytes: &[u8]) -> Result<PawlMachine, RestoreError> {
    let mut sections = read_frame(bytes)?;
    let [
        meta,
        users,
        streams,
        partitions,
        offsets,
        entries,
        tombstones,
    ] = &mut sections;
    let mut machine = PawlMachine::new();
    meta::read(meta, &mut machine)?;
    machine.catalog = catalog::read(users, streams)?;
    machine.memberships = Memberships::derive(&machine.catalog);
    machine.partitions = data::read_partitions(partitions, &machine.catalog)?;
    machine.offsets = data::read_offsets(offsets, &machine)?;
    machine.clients = clients::read(entries, tombstones, &machine)?;
    for section in &sections {
        section.finish()?;
    }
    Ok(machine)
}

/// Cuts a snapshot into its sections and verifies them.
fn read_frame(bytes: &[u8]) -> Result<[Section<'_>; SECTIONS.len()], RestoreError> {
    let mut frame = Section::new(*b"head", 0, bytes);
    if frame.bytes(MAGIC.len())? != MAGIC {
        return Err(frame.refuse("it does not begin as a snapshot does"));
    }
    if frame.read::<u32>()? != FRAME_VERSION {
        return Err(frame.refuse("this version of the frame is not known"));
    }
    if frame.read::<u32>()? as usize != SECTIONS.len() {
        return Err(frame.refuse("the number of sections is not that of this release"));
    }
    assert!(frame.position() == FRAME_BYTES, "the frame has its size");
    let mut sections = [const { None }; SECTIONS.len()];
    for (slot, known) in sections.iter_mut().zip(SECTIONS) {
        *slot = Some(read_section(&mut frame, known)?);
    }
    frame.finish()?;
    Ok(sections.map(|section| section.expect("every slot was filled")))
}

fn read_section<'a>(
    frame: &mut Section<'a>,
    (tag, version): ([u8; 4], u16),
) -> Result<Section<'a>, RestoreError> {
    if frame.bytes(4)? != tag {
        return Err(frame.refuse("this section is not known here"));
    }
    // Version 1 is the first of every section: there is nothing to migrate yet.
    if frame.read::<u16>()? != version {
        return Err(frame.refuse("this version of the section is not known"));
    }
    if frame.read::<u16>()? != 0 {
        return Err(frame.refuse("a reserved byte is not zero"));
    }
    let length = frame.read::<u64>()?;
    let hash = frame.read::<u128>()?;
    let start = frame.position();
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let body = frame.bytes(length)?;
    let section = Section::new(tag, start, body);
    match xxh3_128(body) == hash {
        true => Ok(section),
        false => Err(section.refuse("the hash does not match")),
    }
}

/// A cursor over the body of a section, which knows where in the snapshot it is.
struct Section<'a> {
    tag: [u8; 4],
    start: usize,
    reader: Reader<'a>,
}

impl<'a> Section<'a> {
    fn new(tag: [u8; 4], start: usize, body: &'a [u8]) -> Section<'a> {
        Section {
            tag,
            start,
            reader: Reader::new(body),
        }
    }

    fn position(&self) -> usize {
        self.start + self.reader.position()
    }

    fn refuse(&self, reason: &'static str) -> RestoreError {
        RestoreError {
            section: String::from_utf8_lossy(&self.tag).into_owned(),
            position: self.position(),
            reason,
        }
    }

    /// An error with this reason where the condition does not hold.
    fn require(&self, holds: bool, reason: &'static str) -> Result<(), RestoreError> {
        match holds {
            true => Ok(()),
            false => Err(self.refuse(reason)),
        }
    }

    fn malformed(&self, error: WireError) -> RestoreError {
        self.refuse(match error {
            WireError::Truncated { .. } => "it is cut short",
            WireError::Kind { .. } => "a kind is not known",
            WireError::Length { .. } => "a length is out of bounds",
            WireError::Utf8(_) => "text is not UTF-8",
            WireError::Count { .. } => "a count is not possible",
            WireError::Duplicate(_) => "a key stands twice",
        })
    }

    fn read<T: Wire<'a>>(&mut self) -> Result<T, RestoreError> {
        T::read(&mut self.reader).map_err(|error| self.malformed(error))
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], RestoreError> {
        let taken = self.reader.take(count);
        taken.map_err(|error| self.malformed(error))
    }

    /// A count of things of which each takes at least `bytes_min`.
    fn count(&mut self, bytes_min: usize) -> Result<usize, RestoreError> {
        let count = self.read::<u32>()? as usize;
        self.require(
            count <= self.reader.left() / bytes_min,
            "a count is not possible",
        )?;
        Ok(count)
    }

    fn finish(&self) -> Result<(), RestoreError> {
        self.require(self.reader.is_empty(), "bytes are left over")
    }
}

/// Whether `next` comes after the one before, which it then becomes.
fn rises<T: Ord + Copy>(before: &mut Option<T>, next: T) -> bool {
    let rises = before.is_none_or(|before| before < next);
    *before = Some(next);
    rises
}
