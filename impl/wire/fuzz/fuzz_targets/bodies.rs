//! Bodies of every command, as requests and as payloads of replies, and batches. The first byte
//! chooses the command.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pawl_wire::batch::{frame_checksums, slice_batch, verify_batch};
use pawl_wire::batch_client::PolledBatches;
use pawl_wire::command::{Command, CommandCode, Payload};
use pawl_wire::reply::Answer;

fuzz_target!(|input: &[u8]| {
    let Some((choice, body)) = input.split_first() else {
        return;
    };
    let code = CommandCode::ALL[usize::from(*choice) % CommandCode::ALL.len()];
    if let Ok(command) = Command::decode(code, body) {
        let written = command.encode();
        let again = Command::decode(code, &written).expect("what was written reads back");
        assert_eq!(again, command);
    }
    if let Ok(payload) = Payload::decode(code, body) {
        // Bytes and not values are compared, since a real number may be none.
        let written = payload.encode();
        let again = Payload::decode(code, &written).expect("what was written reads back");
        assert_eq!(again.encode(), written);
    }
    let _ = Answer::decode(body);
    for batch in PolledBatches::new(body).map_while(Result::ok) {
        let _ = batch.messages().map_while(Result::ok).count();
    }
    if let Ok(verified) = verify_batch(body) {
        assert_eq!(frame_checksums(body).as_deref(), Ok(verified.checksums()));
        let all = slice_batch(body, verified.header(), 0..verified.message_count());
        assert!(all.is_ok());
    }
});
