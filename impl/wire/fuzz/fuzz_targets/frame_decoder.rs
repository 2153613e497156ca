//! A stream of bytes arrives in chunks: however it is cut, the same frames come out, nothing
//! panics, and a decoder never asks for more than the limit.
//!
//! The first byte chooses the size of the chunks.

#![no_main]

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use pawl_wire::command::{Command, Target};
use pawl_wire::commands::session::LoginBody;
use pawl_wire::frame::{CloseReason, Decoded, Frame, decode_frame};

const LIMIT: u32 = 1 << 16;

fuzz_target!(|input: &[u8]| {
    let Some((chunk, stream)) = input.split_first() else {
        return;
    };
    let whole = decode(stream.chunks(stream.len().max(1)));
    let chunked = decode(stream.chunks(usize::from(*chunk) + 1));
    assert_eq!(whole, chunked);
    for frame in whole.0 {
        decode_body(&frame);
    }
});

/// The frames of a stream, what is left at its end, and why it was closed.
fn decode<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> (Vec<Frame>, Bytes, Option<CloseReason>) {
    let mut frames = Vec::new();
    let mut buffer = BytesMut::new();
    for chunk in chunks {
        buffer.extend_from_slice(chunk);
        loop {
            match decode_frame(&mut buffer, LIMIT) {
                Decoded::Frame(frame) => frames.push(frame),
                Decoded::NeedMore(more) => {
                    assert!(more > 0 && buffer.len() + more <= LIMIT as usize);
                    break;
                }
                // What came behind depends on the chunks, so it is not compared.
                Decoded::Close(reason) => return (frames, Bytes::new(), Some(reason)),
            }
        }
    }
    (frames, buffer.freeze(), None)
}

fn decode_body(frame: &Frame) {
    let _ = frame.header.covers(&frame.body);
    match frame.header.target() {
        Ok(Target::Command(code)) => {
            if let Ok(command) = Command::decode(code, &frame.body) {
                let written = command.encode();
                let again = Command::decode(code, &written).expect("what was written reads back");
                assert_eq!(again, command);
            }
        }
        Ok(Target::Register) => {
            let _ = LoginBody::decode(&frame.body);
        }
        Ok(_) | Err(_) => (),
    }
}
