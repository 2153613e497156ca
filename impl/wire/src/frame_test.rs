use super::*;
use crate::operation::Operation;

fn frame(body: &[u8]) -> Vec<u8> {
    let header = RequestHeader::new(Operation::NonReplicated, body.len() as u32);
    [header.as_bytes(), body].concat()
}

#[test]
fn frames_come_off_one_by_one() {
    let bytes = [frame(b"one"), frame(b""), frame(b"three")].concat();
    let mut buffer = BytesMut::from(&bytes[..]);
    for body in [&b"one"[..], b"", b"three"] {
        let Decoded::Frame(frame) = decode_frame(&mut buffer, 1024) else {
            panic!("a frame is at hand");
        };
        assert_eq!(frame.body, body);
    }
    assert_eq!(decode_frame(&mut buffer, 1024), Decoded::NeedMore(256));
}

#[test]
fn every_cut_asks_for_no_more_than_the_frame_has() {
    let bytes = frame(b"body");
    for cut in 0..bytes.len() {
        let mut buffer = BytesMut::from(&bytes[..cut]);
        let Decoded::NeedMore(more) = decode_frame(&mut buffer, 1024) else {
            panic!("{cut} bytes are not a frame");
        };
        assert!(more >= 1 && cut + more <= bytes.len());
        assert_eq!(buffer.len(), cut, "nothing is taken off");
    }
}

#[test]
fn sizes_out_of_range_close() {
    let mut bytes = frame(b"");
    for (size, reason) in [
        (0, CloseReason::TooShort { size: 0 }),
        (255, CloseReason::TooShort { size: 255 }),
        (
            1025,
            CloseReason::TooLong {
                size: 1025,
                limit: 1024,
            },
        ),
        (
            u32::MAX,
            CloseReason::TooLong {
                size: u32::MAX,
                limit: 1024,
            },
        ),
    ] {
        bytes[48..52].copy_from_slice(&size.to_le_bytes());
        for cut in 52..=bytes.len() {
            let mut buffer = BytesMut::from(&bytes[..cut]);
            assert_eq!(decode_frame(&mut buffer, 1024), Decoded::Close(reason));
        }
    }
}

#[test]
fn a_claim_moves_no_memory() {
    let mut bytes = frame(b"");
    bytes[48..52].copy_from_slice(&FRAME_BYTES_MAX_DEFAULT.to_le_bytes());
    let mut buffer = BytesMut::from(&bytes[..]);
    let capacity = buffer.capacity();
    let more = FRAME_BYTES_MAX_DEFAULT as usize - 256;
    assert_eq!(
        decode_frame(&mut buffer, FRAME_BYTES_MAX_DEFAULT),
        Decoded::NeedMore(more)
    );
    assert_eq!(buffer.capacity(), capacity);
}
