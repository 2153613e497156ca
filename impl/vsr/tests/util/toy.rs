//! A machine small enough to see through: a sum, and a table of clients with watermarks.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use pawl_vsr::{Judgement, Machine, RestoreError};
use pawl_wire::entry::{EntryHeader, EntryKind};

/// A client's watermark and the op of its last request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Client {
    pub watermark: u64,
    pub op: u64,
}

/// Counts what it applies; refuses a repeated request.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Toy {
    pub applied: u64,
    pub timestamp: u64,
    pub chain: u64,
    pub clients: BTreeMap<u128, Client>,
}

/// What apply orders.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counted(pub u64);

fn frame(verdict: &str, client: &Client) -> Bytes {
    Bytes::from(format!("{verdict} {} at {}", client.watermark, client.op))
}

impl Machine for Toy {
    type Effect = Counted;

    fn apply(&mut self, header: &EntryHeader, body: &Bytes, effects: &mut Vec<Counted>) -> Bytes {
        assert_eq!(
            header.op,
            self.applied + 1,
            "ops are applied in order, once"
        );
        assert!(
            header.timestamp >= self.timestamp,
            "log time never goes back"
        );
        assert!(body.len() == header.body_bytes as usize || body.is_empty());
        self.applied = header.op;
        self.timestamp = header.timestamp;
        let mut hasher = DefaultHasher::new();
        (self.chain, header.checksum).hash(&mut hasher);
        self.chain = hasher.finish();
        if header.kind == EntryKind::Genesis as u8 {
            assert_eq!(header.op, 1, "Genesis is op 1");
            return Bytes::new();
        }
        let client = self.clients.entry(header.client).or_insert(Client {
            watermark: 0,
            op: 0,
        });
        if header.request <= client.watermark {
            return frame("again", client);
        }
        *client = Client {
            watermark: header.request,
            op: header.op,
        };
        effects.push(Counted(header.request));
        frame("ok", client)
    }

    fn judge(&self, header: &EntryHeader) -> Judgement {
        assert_eq!(
            (header.op, header.view, header.timestamp, header.parent),
            (0, 0, 0, 0)
        );
        match self.clients.get(&header.client) {
            Some(client) if header.request <= client.watermark => {
                Judgement::Answer(frame("again", client))
            }
            _ => Judgement::Propose,
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        let mut words = vec![
            self.applied as u128,
            self.timestamp as u128,
            self.chain as u128,
        ];
        for (id, client) in &self.clients {
            words.extend([*id, client.watermark as u128, client.op as u128]);
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn restore(bytes: &[u8]) -> Result<Toy, RestoreError> {
        let words: Vec<u128> = bytes
            .chunks_exact(16)
            .map(|word| u128::from_le_bytes(word.try_into().expect("16 bytes")))
            .collect();
        let [applied, timestamp, chain, clients @ ..] = words.as_slice() else {
            return Err(RestoreError {
                section: "toy".into(),
                position: 0,
                reason: "short",
            });
        };
        let clients = clients.chunks_exact(3).map(|client| {
            let value = Client {
                watermark: client[1] as u64,
                op: client[2] as u64,
            };
            (client[0], value)
        });
        Ok(Toy {
            applied: *applied as u64,
            timestamp: *timestamp as u64,
            chain: *chain as u64,
            clients: clients.collect(),
        })
    }

    fn digest(&self) -> u128 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish().into()
    }
}
