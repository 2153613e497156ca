//! Memory follows the bytes at hand, never a claim: every four bytes of every golden body are
//! replaced by large counts and lengths, and the allocator says how much a decoder asked for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bytes::BytesMut;
use pawl_wire::batch::{frame_checksums, verify_batch};
use pawl_wire::command::{Command, CommandCode, Payload};
use pawl_wire::frame::decode_frame;
use serde_json::Value;

const LINES: &str = include_str!("../../../spec/vectors/v11.jsonl");

/// Decoded structs are larger than their bytes, by at most this factor.
const BYTES_PER_BYTE_MAX: usize = 64;

/// And small constant needs come on top.
const BYTES_EXTRA_MAX: usize = 4096;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, remembering each thread's largest request.
struct Watched;

// SAFETY: every call goes to the system's allocator unchanged; the cell does not allocate.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.set(LARGEST.get().max(layout.size()));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `System` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        LARGEST.set(LARGEST.get().max(bytes));
        // SAFETY: the pointer came from `System` with this layout.
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// The largest single allocation that `work` asks for.
fn largest(work: impl FnOnce()) -> usize {
    LARGEST.set(0);
    work();
    LARGEST.get()
}

fn bodies() -> Vec<(Option<CommandCode>, Vec<u8>)> {
    LINES
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).expect("a line is a vector");
            let code = line["code"].as_u64().map(|code| code as u32);
            let hex = line["hex"].as_str().expect("bytes");
            let bytes = (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex digits"))
                .collect();
            (code.and_then(CommandCode::from_u32), bytes)
        })
        .collect()
}

fn decode_all(code: Option<CommandCode>, bytes: &[u8]) {
    if let Some(code) = code {
        let _ = Command::decode(code, bytes);
        let _ = Payload::decode(code, bytes);
    }
    let _ = verify_batch(bytes);
    let _ = frame_checksums(bytes);
}

#[test]
fn memory_never_follows_a_claim() {
    for (code, body) in bodies() {
        let allowed = body.len() * BYTES_PER_BYTE_MAX + BYTES_EXTRA_MAX;
        for at in 0..body.len().saturating_sub(3) {
            for claim in [u32::MAX, i32::MAX as u32, 0x00ff_ffff, 1_000_000] {
                let mut bytes = body.clone();
                bytes[at..at + 4].copy_from_slice(&claim.to_le_bytes());
                let asked = largest(|| decode_all(code, &bytes));
                assert!(
                    asked <= allowed,
                    "{code:?} at {at}: {claim} led to {asked} bytes"
                );
            }
        }
    }
}

#[test]
fn frames_are_handed_out_without_memory_of_their_size() {
    let mut head = vec![0; 256];
    for claim in [256u32, 1 << 20, u32::MAX] {
        head[48..52].copy_from_slice(&claim.to_le_bytes());
        let mut buffer = BytesMut::from(&head[..]);
        let asked = largest(|| drop(decode_frame(&mut buffer, 1 << 26)));
        assert!(asked <= 256, "{claim} led to {asked} bytes");
    }
    let body_bytes = 1 << 20;
    let mut frame = vec![0; 256 + body_bytes];
    frame[48..52].copy_from_slice(&(256 + body_bytes as u32).to_le_bytes());
    let mut buffer = BytesMut::from(&frame[..]);
    let asked = largest(|| drop(decode_frame(&mut buffer, 1 << 26)));
    assert!(
        asked <= 256,
        "a whole frame is shared, not copied: {asked} bytes"
    );
}
