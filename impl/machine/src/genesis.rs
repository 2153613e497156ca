//! The body of op 1: what a cluster is born with.
//!
//! | off | bytes | field |
//! | --- | --- | --- |
//! | 0 | 4 | version of this layout: 1 |
//! | 4 | 44 | cluster constants, see [`ClusterConstants`] |
//! | 48 | 32 | secret of the cluster |
//! | 80 | 1 + n | name of root |
//! | | 4 + n | root's password as PHC text |
//!
//! Nothing follows.

use pawl_wire::primitives::{Name, Reader, Text32, Wire, WireError};

use crate::limits::{ClusterConstants, ConstantOutOfBounds};

/// Version of the layout above.
const VERSION: u32 = 1;

/// Fewest bytes of root's name, as of every user's.
const ROOT_NAME_BYTES_MIN: usize = 3;

/// Most bytes of root's name, as of every user's.
const ROOT_NAME_BYTES_MAX: usize = 50;

/// The secret of a cluster: keys the hashes that the log keeps of requests with secrets in them
/// (spec DED-12). It does not print itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClusterSecret(pub [u8; 32]);

impl std::fmt::Debug for ClusterSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(secret of the cluster)")
    }
}

/// What a cluster is born with.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Genesis {
    /// What all replicas share.
    pub constants: ClusterConstants,
    /// Drawn at random when the cluster is formatted.
    pub secret: ClusterSecret,
    /// Name of user 0.
    pub root_name: String,
    /// Root's password, hashed: PHC text.
    pub root_password_hash: String,
}

/// Why a genesis cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GenesisError {
    /// The bytes are not a genesis.
    #[error("genesis: {0}")]
    Malformed(#[from] WireError),
    /// Made by another release.
    #[error("genesis version {0} is not known")]
    Version(u32),
    /// Bytes follow.
    #[error("{0} bytes follow the genesis")]
    Trailing(usize),
    /// The name cannot be a user's.
    #[error("the name of root has {0} bytes, not 3 to 50")]
    RootName(usize),
    /// A constant cannot work.
    #[error(transparent)]
    Constants(#[from] ConstantOutOfBounds),
}

impl Genesis {
    /// The body of the genesis entry.
    pub fn encode(&self) -> Result<Vec<u8>, GenesisError> {
        self.check()?;
        let mut out = Vec::new();
        VERSION.write(&mut out);
        self.constants.write(&mut out);
        out.extend_from_slice(&self.secret.0);
        Name::new(&self.root_name)?.write(&mut out);
        Text32(&self.root_password_hash).write(&mut out);
        Ok(out)
    }

    /// Reads what [`Genesis::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Genesis, GenesisError> {
        let mut reader = Reader::new(bytes);
        let version: u32 = reader.read()?;
        if version != VERSION {
            return Err(GenesisError::Version(version));
        }
        let constants = reader.read()?;
        let secret = ClusterSecret(reader.array()?);
        let root_name = reader.read::<Name<'_>>()?.as_str().to_owned();
        let root_password_hash = reader.read::<Text32<'_>>()?.0.to_owned();
        if !reader.is_empty() {
            return Err(GenesisError::Trailing(reader.left()));
        }
        let genesis = Genesis {
            constants,
            secret,
            root_name,
            root_password_hash,
        };
        genesis.check()?;
        Ok(genesis)
    }

    fn check(&self) -> Result<(), GenesisError> {
        self.constants.check()?;
        let bytes = self.root_name.len();
        if !(ROOT_NAME_BYTES_MIN..=ROOT_NAME_BYTES_MAX).contains(&bytes) {
            return Err(GenesisError::RootName(bytes));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn genesis() -> Genesis {
        Genesis {
            constants: ClusterConstants::default(),
            secret: ClusterSecret([7; 32]),
            root_name: "iggy".to_owned(),
            root_password_hash: "$argon2id$hash".to_owned(),
        }
    }

    #[test]
    fn a_genesis_round_trips_and_every_cut_of_it_is_refused() {
        let bytes = genesis().encode().expect("it is valid");
        assert_eq!(Genesis::decode(&bytes), Ok(genesis()));
        for cut in 0..bytes.len() {
            assert!(Genesis::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(Genesis::decode(&longer), Err(GenesisError::Trailing(1)));
    }

    #[test]
    fn names_outside_the_bounds_of_a_user_are_refused() {
        for name in ["", "ab", &"x".repeat(51)] {
            let root_name = name.to_owned();
            let refused = Genesis {
                root_name,
                ..genesis()
            }
            .encode();
            assert_eq!(refused, Err(GenesisError::RootName(name.len())));
        }
    }

    #[test]
    fn another_version_is_refused() {
        let mut bytes = genesis().encode().expect("it is valid");
        bytes[0] = 2;
        assert_eq!(Genesis::decode(&bytes), Err(GenesisError::Version(2)));
    }

    // spec SES-30
    #[test]
    fn the_secret_does_not_print_itself() {
        let printed = format!("{:?}", genesis());
        assert!(printed.contains("(secret of the cluster)") && !printed.contains("7, 7"));
    }
}
