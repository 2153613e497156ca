//! Section META: `[applied u64][log time u64][constants][secret 32]`.

use pawl_vsr::machine::RestoreError;
use pawl_wire::ids::{Op, Timestamp};
use pawl_wire::primitives::Wire;

use super::Section;
use crate::genesis::ClusterSecret;
use crate::machine::PawlMachine;

pub(super) fn write(machine: &PawlMachine, out: &mut Vec<u8>) {
    machine.applied.0.write(out);
    machine.log_time.0.write(out);
    machine.constants.write(out);
    out.extend_from_slice(&machine.secret.0);
}

pub(super) fn read(
    section: &mut Section<'_>,
    machine: &mut PawlMachine,
) -> Result<(), RestoreError> {
    machine.applied = Op(section.read()?);
    machine.log_time = Timestamp(section.read()?);
    machine.constants = section.read()?;
    let works = machine.constants.check().is_ok();
    section.require(works, "a cluster constant cannot work")?;
    let secret = section.bytes(32)?;
    machine.secret = ClusterSecret(secret.try_into().expect("32 bytes were taken"));
    Ok(())
}
