//! Properties of every command: what is written reads back; cut, flipped and random bytes never
//! panic, and what they decode to can be written.

use bytes::BytesMut;
use proptest::prelude::*;

use crate::batch::{MessageFrames, frame_checksums, slice_batch, verify_batch};
use crate::batch_client::PolledBatches;
use crate::command::{Command, CommandCode, Payload};
use crate::commands::session::LoginBody;
use crate::frame::{Decoded, decode_frame};
use crate::generate::{Pool, Source};
use crate::headers::{HEADER_BYTES, RequestHeader};
use crate::options::UserHeaders;
use crate::permissions::Permissions;
use crate::primitives::Wire;
use crate::reply::Answer;

/// Decodes as a request and as a payload of `code`; what comes out can be written, and reads back
/// to the same bytes.
fn decode_never_panics(code: CommandCode, bytes: &[u8]) {
    if let Ok(command) = Command::decode(code, bytes) {
        let written = command.encode();
        let again = Command::decode(code, &written).expect("what was written reads back");
        assert_eq!(again.encode(), written, "{code:?}");
        if let Command::SendMessages(send) = command {
            assert_eq!(bytes.len() - send.batch.len(), send.batch_position(bytes));
            let _ = send.verify();
        }
    }
    if let Ok(payload) = Payload::decode(code, bytes) {
        let written = payload.encode();
        let again = Payload::decode(code, &written).expect("what was written reads back");
        assert_eq!(again.encode(), written, "{code:?}");
        if let Payload::PollMessages(poll) = payload {
            walk_records(poll.records.0);
        }
    }
}

fn walk_records(records: &[u8]) {
    for batch in PolledBatches::new(records).map_while(Result::ok) {
        for message in batch.messages().map_while(Result::ok) {
            assert!(UserHeaders::new(message.frame.user_headers()).count() <= 1 << 16);
        }
    }
}

/// Hands bytes to every decoder that takes bytes as they come.
fn decode_anything(bytes: &[u8]) {
    for code in CommandCode::ALL {
        decode_never_panics(*code, bytes);
    }
    let _ = LoginBody::decode(bytes);
    let _ = Permissions::decode(bytes);
    let _ = Answer::decode(bytes);
    walk_records(bytes);
    batch_never_panics(bytes);
    frames_never_panic(bytes);
}

fn batch_never_panics(bytes: &[u8]) {
    let verified = verify_batch(bytes);
    let checksums = frame_checksums(bytes);
    if let Ok(verified) = verified {
        assert_eq!(checksums.as_deref(), Ok(verified.checksums()));
        let count = verified.message_count();
        let slice = slice_batch(bytes, verified.header(), 0..count).expect("all of it");
        assert_eq!(slice.frames, 256..bytes.len());
    }
    if let Some(frames) = bytes.get(256..) {
        assert!(MessageFrames::new(frames).count() <= frames.len() / 48 + 1);
    }
}

fn frames_never_panic(bytes: &[u8]) {
    let mut buffer = BytesMut::from(bytes);
    loop {
        let before = buffer.len();
        match decode_frame(&mut buffer, 1 << 20) {
            Decoded::NeedMore(more) => {
                assert!(more > 0 && before + more <= 1 << 20);
                break;
            }
            Decoded::Frame(frame) => {
                assert_eq!(before - buffer.len(), HEADER_BYTES + frame.body.len());
                let _ = frame.header.target();
                let _ = frame.header.covers(&frame.body);
            }
            Decoded::Close(_) => break,
        }
    }
}

#[test]
fn every_command_round_trips_and_survives_every_cut() {
    for seed in 0..20 {
        let pool = Pool::new(seed);
        for code in CommandCode::ALL {
            let mut source = Source::new(seed, &pool);
            let command = Command::generate(*code, &mut source);
            let bytes = command.encode();
            assert_eq!(Command::decode(*code, &bytes).as_ref(), Ok(&command));
            (0..bytes.len()).for_each(|cut| decode_never_panics(*code, &bytes[..cut]));

            let payload = Payload::generate(*code, &mut source);
            let bytes = payload.encode();
            assert_eq!(Payload::decode(*code, &bytes).as_ref(), Ok(&payload));
            (0..bytes.len()).for_each(|cut| decode_never_panics(*code, &bytes[..cut]));
        }
    }
}

#[test]
fn a_cut_request_is_refused_or_lost_only_optional_parts() {
    // Parts that may be absent at the end of a body: lists to the end and option blocks.
    let open_ended = [
        CommandCode::CreateUser,
        CommandCode::UpdateUser,
        CommandCode::CreateStream,
        CommandCode::UpdateStream,
        CommandCode::CreateTopic,
        CommandCode::UpdateTopic,
        CommandCode::SendMessages,
    ];
    for seed in 0..20 {
        let pool = Pool::new(seed);
        for code in CommandCode::ALL {
            let command = Command::generate(*code, &mut Source::new(seed, &pool));
            let bytes = command.encode();
            for cut in 0..bytes.len() {
                let decoded = Command::decode(*code, &bytes[..cut]);
                assert!(
                    decoded.is_err() || open_ended.contains(code),
                    "{code:?} {cut}"
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn generated_values_round_trip(seed: u64) {
        let pool = Pool::new(seed);
        let mut source = Source::new(seed, &pool);
        for code in CommandCode::ALL {
            let command = Command::generate(*code, &mut source);
            let bytes = command.encode();
            let decoded = Command::decode(*code, &bytes);
            prop_assert_eq!(decoded, Ok(command));
            let payload = Payload::generate(*code, &mut source);
            let bytes = payload.encode();
            let decoded = Payload::decode(*code, &bytes);
            prop_assert_eq!(decoded, Ok(payload));
        }
        let permissions: Permissions = source.generate();
        prop_assert_eq!(Permissions::decode(&permissions.encode()), Ok(permissions));
    }

    #[test]
    fn flipped_bytes_never_panic(seed: u64, flips in 1usize..4) {
        let pool = Pool::new(seed);
        let mut source = Source::new(seed, &pool);
        for code in CommandCode::ALL {
            let command = Command::generate(*code, &mut source).encode();
            let payload = Payload::generate(*code, &mut source).encode();
            for mut bytes in [command, payload].into_iter().filter(|bytes| !bytes.is_empty()) {
                for _ in 0..flips {
                    let at = source.below(bytes.len());
                    bytes[at] ^= 1 + source.below(255) as u8;
                }
                decode_never_panics(*code, &bytes);
            }
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        decode_anything(&bytes);
    }

    #[test]
    fn small_bytes_never_panic(bytes in proptest::collection::vec(0u8..5, 0..100)) {
        // Small numbers are valid kinds and lengths, so this reaches deeper than random bytes.
        decode_anything(&bytes);
    }

    #[test]
    fn damaged_streams_of_frames_never_panic(seed: u64, damage: u16, cut: u16) {
        let pool = Pool::new(seed);
        let mut source = Source::new(seed, &pool);
        let mut stream = Vec::new();
        for code in CommandCode::ALL {
            let body = Command::generate(*code, &mut source).encode();
            stream.extend_from_slice(RequestHeader::for_command(*code, &body).as_bytes());
            stream.extend_from_slice(&body);
        }
        frames_never_panic(&stream);
        let at = damage as usize % stream.len();
        stream[at] ^= 1 + source.below(255) as u8;
        frames_never_panic(&stream);
        frames_never_panic(&stream[..cut as usize % stream.len()]);
    }
}
