use super::*;
use crate::batch_client::{Message, PolledBatches, write_batch};

fn batch(count: usize) -> Vec<u8> {
    let payloads: Vec<Vec<u8>> = (0..count).map(|i| vec![i as u8; 1 + i % 40]).collect();
    let messages: Vec<Message> = payloads
        .iter()
        .enumerate()
        .map(|(i, payload)| Message {
            id: i as u128,
            origin_timestamp: 1_000 + i as u64,
            payload,
            user_headers: &[1; 12][..(i % 2) * 12],
        })
        .collect();
    let mut out = Vec::new();
    write_batch(&messages, &mut out).expect("the messages are within the limits");
    out
}

/// Applies `change` to a frame of a batch and makes its checksum right again.
fn with_frame(mut bytes: Vec<u8>, index: usize, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut position = BATCH_HEADER_BYTES;
    for _ in 0..index {
        position += MessageFrame::read(&bytes[position..])
            .expect("layout")
            .bytes
            .len();
    }
    let length = MessageFrame::read(&bytes[position..])
        .expect("layout")
        .bytes
        .len();
    let frame = &mut bytes[position..position + length];
    change(frame);
    let checksum = xxh3_64(&frame[8..]).to_le_bytes();
    frame[..8].copy_from_slice(&checksum);
    bytes
}

const STAMP: Stamp = Stamp {
    partition_id: 3,
    base_offset: 100,
    base_timestamp: 5_000,
};

#[test]
fn built_batches_verify_and_keep_their_checksum() {
    for count in [1, 2, 63, 64, 65, 1000] {
        let bytes = batch(count);
        let verified = verify_batch(&bytes).expect("the batch is sound");
        assert_eq!(verified.message_count() as usize, count);
        assert_eq!(verified.batch_length(), bytes.len() as u64);
        assert_eq!(verified.origin_timestamp(), 1_000);
        assert_eq!(verified.origin_timestamp_max(), 999 + count as u64);
        let header = verified.header();
        assert_eq!(
            header.batch_checksum,
            header.checksum_computed(verified.checksums())
        );
        assert_eq!(frame_checksums(&bytes).as_deref(), Ok(verified.checksums()));
    }
}

#[test]
fn batch_checksum_is_one_stream_over_fields_and_frames() {
    for count in [1, 64, 65, 200] {
        let bytes = batch(count);
        let verified = verify_batch(&bytes).expect("the batch is sound");
        let mut hasher = Xxh3::new();
        hasher.update(&bytes[..40]);
        hasher.update(&bytes[48..52]);
        for frame in MessageFrames::new(&bytes[BATCH_HEADER_BYTES..]) {
            hasher.update(&frame.expect("layout").as_bytes()[..8]);
        }
        assert_eq!(verified.header().batch_checksum, hasher.digest());
    }
}

#[test]
fn every_cut_is_refused() {
    let bytes = batch(3);
    for cut in 0..bytes.len() {
        assert!(verify_batch(&bytes[..cut]).is_err(), "{cut}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(verify_batch(&longer).is_err());
}

#[test]
fn every_flipped_bit_of_a_frame_is_refused() {
    let bytes = batch(2);
    for bit in BATCH_HEADER_BYTES * 8..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(verify_batch(&bytes).is_err(), "bit {bit}");
    }
}

#[test]
fn reserved_bytes_of_the_header_are_refused() {
    for at in 52..BATCH_HEADER_BYTES {
        let mut bytes = batch(1);
        bytes[at] = 1;
        assert_eq!(verify_batch(&bytes), Err(BatchError::Reserved));
    }
}

#[test]
fn stamped_fields_and_batch_checksum_may_be_anything_when_sent() {
    let mut bytes = batch(2);
    bytes[..24].fill(0xff);
    bytes[40..48].fill(0xff);
    let verified = verify_batch(&bytes).expect("what the server stamps is not compared");
    let stamped = verified.stamped(STAMP);
    assert_eq!(
        stamped,
        verify_batch(&batch(2)).expect("sound").stamped(STAMP)
    );
}

#[test]
fn claims_are_refused_before_memory_follows() {
    let mut bytes = batch(1);
    bytes[48..52].copy_from_slice(&u32::MAX.to_le_bytes());
    let announced = u32::MAX;
    let refused = Err(BatchError::MessageCount {
        announced,
        found: 1,
    });
    assert_eq!(verify_batch(&bytes), refused);
    bytes[48..52].fill(0);
    assert_eq!(verify_batch(&bytes), Err(BatchError::Empty));
    for count in [1u32, 3] {
        let mut bytes = batch(2);
        bytes[48..52].copy_from_slice(&count.to_le_bytes());
        assert!(matches!(
            verify_batch(&bytes),
            Err(BatchError::MessageCount { .. })
        ));
    }
}

#[test]
fn frames_out_of_order_or_bounds_are_refused() {
    let renumbered = with_frame(batch(2), 1, |frame| frame[24] = 7);
    let refused = BatchError::OffsetDelta { index: 1, delta: 7 };
    assert_eq!(verify_batch(&renumbered), Err(refused));

    let reserved = with_frame(batch(2), 1, |frame| frame[47] = 1);
    assert_eq!(verify_batch(&reserved), Err(BatchError::Reserved));

    // The payload's one byte becomes user headers.
    let empty = with_frame(batch(1), 0, |frame| {
        frame[32] = 1;
        frame[36] = 0;
    });
    let refused = BatchError::PayloadEmpty { index: 0 };
    assert_eq!(verify_batch(&empty), Err(refused));
    assert_eq!(refused.code(), ErrorCode::EmptyMessagePayload);

    let mut late = batch(2);
    late[24..32].fill(0xff);
    assert_eq!(verify_batch(&late), Err(BatchError::TimestampDelta));
}

#[test]
fn lengths_that_overflow_are_cut_frames() {
    for field in [32, 36] {
        let mut bytes = batch(1);
        let at = BATCH_HEADER_BYTES + field;
        bytes[at..at + 4].fill(0xff);
        assert!(matches!(
            verify_batch(&bytes),
            Err(BatchError::Truncated { .. })
        ));
    }
}

#[test]
fn user_headers_above_the_limit_are_refused() {
    let headers = vec![0; USER_HEADERS_BYTES_MAX + 1];
    let message = |user_headers| Message {
        id: 1,
        origin_timestamp: 0,
        payload: b"a",
        user_headers,
    };
    let mut out = Vec::new();
    let refused = write_batch(&[message(&headers)], &mut out);
    assert!(matches!(refused, Err(BatchError::UserHeadersTooBig { .. })));

    write_batch(&[message(&headers[1..])], &mut out).expect("the limit itself is accepted");
    verify_batch(&out).expect("the limit itself is accepted");
    // One payload byte more, taken as user headers.
    out.clear();
    let payload = vec![0; USER_HEADERS_BYTES_MAX + 2];
    let message = Message {
        payload: &payload,
        ..message(&[])
    };
    write_batch(&[message], &mut out).expect("payloads may be larger");
    let swapped = with_frame(out, 0, |frame| {
        frame[32..36].copy_from_slice(&(USER_HEADERS_BYTES_MAX as u32 + 1).to_le_bytes());
        frame[36..40].copy_from_slice(&1u32.to_le_bytes());
    });
    let refused = verify_batch(&swapped);
    assert!(matches!(refused, Err(BatchError::UserHeadersTooBig { .. })));
}

#[test]
fn slices_are_batches_of_the_same_messages() {
    let bytes = batch(5);
    let verified = verify_batch(&bytes).expect("sound");
    let stamped = verified.stamped(STAMP);
    for first in 0..5u32 {
        for end in first + 1..=5 {
            let slice = slice_batch(&bytes, &stamped, first..end).expect("within the batch");
            let record = [slice.header.as_bytes(), &bytes[slice.frames.clone()]].concat();
            assert_eq!(slice.header.batch_length, record.len() as u64);
            assert_eq!(slice.header.base_offset, 100);
            let wanted = &verified.checksums()[first as usize..end as usize];
            assert_eq!(
                slice.header.batch_checksum,
                slice.header.checksum_computed(wanted)
            );
            let polled = PolledBatches::new(&record)
                .next()
                .expect("a record")
                .expect("sound");
            let offsets: Vec<u64> = polled
                .messages()
                .map(|message| message.expect("layout").offset)
                .collect();
            let expected: Vec<u64> = (first..end).map(|i| 100 + u64::from(i)).collect();
            assert_eq!(offsets, expected);
        }
    }
    let whole = slice_batch(&bytes, &stamped, 0..5).expect("within the batch");
    assert_eq!(whole.header, stamped);
}

#[test]
fn slices_outside_the_batch_are_refused() {
    let bytes = batch(2);
    let header = BatchHeader::decode(&bytes).expect("sound");
    for (first, end) in [(0, 3), (2, 2), (1, 1), (2, 3), (0, u32::MAX)] {
        let refused = Err(BatchError::Slice {
            first,
            end,
            count: 2,
        });
        assert_eq!(slice_batch(&bytes, &header, first..end), refused);
    }
}

#[test]
fn polled_records_with_wrong_lengths_end_the_walk() {
    let bytes = batch(2);
    for length in [0, 255, bytes.len() as u64 + 1, u64::MAX] {
        let mut bytes = bytes.clone();
        bytes[32..40].copy_from_slice(&length.to_le_bytes());
        let mut batches = PolledBatches::new(&bytes);
        assert!(matches!(
            batches.next(),
            Some(Err(BatchError::Length { .. }))
        ));
        assert_eq!(batches.next(), None);
    }
}
