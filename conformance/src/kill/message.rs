//! Messages whose whole content follows from who sent them as which one, so that nothing of it
//! needs to be remembered.

use pawl_wire::batch_client::{Message, write_batch};
use pawl_wire::options::kind;
use xxhash_rust::xxh3::xxh3_64;

use super::random::Random;

/// Marks the ids of this test, in the high bits.
const MARK: u128 = 0x7061_776c << 96;

/// Which message of which client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MessageKey {
    /// The client's place in the run.
    pub client: u16,
    /// Its place among the client's messages, from 0.
    pub sequence: u64,
}

impl MessageKey {
    /// The message id that it is sent under.
    pub const fn id(self) -> u128 {
        MARK | (self.client as u128) << 64 | self.sequence as u128
    }

    /// The key of a polled id, if it is of this test.
    pub fn of_id(id: u128) -> Option<MessageKey> {
        let key = MessageKey {
            client: (id >> 64) as u16,
            sequence: id as u64,
        };
        (key.id() == id).then_some(key)
    }

    /// The message `count` places behind this one.
    pub const fn plus(self, count: u64) -> MessageKey {
        MessageKey {
            client: self.client,
            sequence: self.sequence + count,
        }
    }
}

/// What a message holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Content {
    /// 16 bytes to 64 KiB, small ones by far the most.
    pub payload: Vec<u8>,
    /// Nothing or one entry.
    pub headers: Vec<u8>,
}

impl Content {
    /// The content that belongs to a key in a run.
    pub fn of(seed: u64, key: MessageKey) -> Content {
        let mut random = Random::new(seed ^ key.sequence, 0x1000 + key.client as u64);
        let bytes = match random.below(100) {
            0 => 64 << 10,
            1..10 => random.octaves(1 << 10, 8 << 10),
            _ => random.octaves(16, 512),
        };
        let mut payload = vec![0; bytes as usize];
        random.fill(&mut payload);
        let headers = match random.percent(25) {
            true => header_entry(&mut random),
            false => Vec::new(),
        };
        Content { payload, headers }
    }

    /// A number that says which content it is.
    pub fn fingerprint(payload: &[u8], headers: &[u8]) -> u64 {
        xxh3_64(payload) ^ xxh3_64(headers).rotate_left(1)
    }
}

/// One user header: `n` with a random value.
fn header_entry(random: &mut Random) -> Vec<u8> {
    let mut entry = vec![kind::STRING];
    entry.extend_from_slice(&1u32.to_le_bytes());
    entry.push(b'n');
    entry.push(kind::U64);
    entry.extend_from_slice(&8u32.to_le_bytes());
    entry.extend_from_slice(&random.next().to_le_bytes());
    entry
}

/// The batch of `count` messages from `first` on.
pub fn batch(seed: u64, first: MessageKey, count: u64, origin_timestamp: u64) -> Vec<u8> {
    let contents: Vec<(u128, Content)> = (0..count)
        .map(|index| first.plus(index))
        .map(|key| (key.id(), Content::of(seed, key)))
        .collect();
    let messages: Vec<Message<'_>> = contents
        .iter()
        .map(|(id, content)| Message {
            id: *id,
            origin_timestamp,
            payload: &content.payload,
            user_headers: &content.headers,
        })
        .collect();
    let mut out = Vec::new();
    write_batch(&messages, &mut out).expect("the contents are within the limits");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_leads_back_to_its_key_and_others_do_not() {
        let key = MessageKey {
            client: 7,
            sequence: 1 << 40,
        };
        assert_eq!(MessageKey::of_id(key.id()), Some(key));
        assert_eq!(MessageKey::of_id(5), None);
        assert_eq!(MessageKey::of_id(u128::MAX), None);
    }

    #[test]
    fn content_follows_from_seed_and_key() {
        let key = MessageKey {
            client: 1,
            sequence: 9,
        };
        assert_eq!(Content::of(3, key), Content::of(3, key));
        assert_ne!(Content::of(3, key), Content::of(4, key));
        assert_ne!(Content::of(3, key), Content::of(3, key.plus(1)));
    }

    #[test]
    fn a_batch_is_one_that_the_server_accepts() {
        let first = MessageKey {
            client: 0,
            sequence: 0,
        };
        let bytes = batch(1, first, 8, 5);
        let verified = pawl_wire::batch::verify_batch(&bytes).expect("it is well formed");
        assert_eq!(verified.message_count(), 8);
    }
}
