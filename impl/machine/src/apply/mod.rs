//! Apply: what a committed op does.

use bytes::Bytes;
use pawl_vsr::machine::{Judgement, Machine, RestoreError};
use pawl_wire::entry::EntryHeader;
use xxhash_rust::xxh3::xxh3_128;

use crate::effect::Effect;
use crate::machine::PawlMachine;

impl Machine for PawlMachine {
    type Effect = Effect;

    fn apply(&mut self, header: &EntryHeader, _: &Bytes, _: &mut Vec<Effect>) -> Bytes {
        self.applied = header.op();
        self.log_time = header.timestamp();
        Bytes::new()
    }

    fn judge(&self, _: &EntryHeader) -> Judgement {
        Judgement::Propose
    }

    fn snapshot(&self) -> Vec<u8> {
        Vec::new()
    }

    fn restore(_: &[u8]) -> Result<Self, RestoreError> {
        Ok(PawlMachine::new())
    }

    fn digest(&self) -> u128 {
        xxh3_128(&self.snapshot())
    }
}
