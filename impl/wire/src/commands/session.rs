//! Sign-in (40, 45), sign-out (39), attaching to another session (14), protocol versions.

use crate::layout::record;
use crate::primitives::{Name, Secret, Text32, Wire, WireError};

/// This server's protocol version, packed: 0.11.0.
pub const PROTOCOL_VERSION: u32 = pack_version(0, 11, 0);

/// The lowest protocol version that is accepted.
pub const PROTOCOL_VERSION_MIN: u32 = pack_version(0, 11, 0);

const _: () = assert!(PROTOCOL_VERSION == 11264);
const _: () = assert!(PROTOCOL_VERSION_MIN <= PROTOCOL_VERSION);

/// A protocol version as it travels.
pub const fn pack_version(major: u32, minor: u32, patch: u32) -> u32 {
    assert!(minor < 1 << 10 && patch < 1 << 10, "each part has ten bits");
    major << 20 | minor << 10 | patch
}

// spec ANS-17
/// Whether a client of this protocol version is served: any patch of our minor version, nothing
/// above or below it.
pub const fn accepts_version(client: u32) -> bool {
    client >= PROTOCOL_VERSION_MIN && client >> 10 <= PROTOCOL_VERSION >> 10
}

record! {
    /// What a client says about itself in front of both sign-in bodies.
    #[derive(Copy, Eq)]
    pub struct ClientVersion<'a> {
        protocol_version: u32,
        sdk_name: Name<'a>,
        sdk_version: Name<'a>,
    }

    /// Sign-in with name and password (40).
    #[derive(Copy, Eq)]
    pub struct LoginRegister<'a> {
        version: ClientVersion<'a>,
        username: Name<'a>,
        password: Secret<'a>,
        context: Text32<'a>,
    }

    /// Sign-in with a personal access token (45).
    #[derive(Copy, Eq)]
    pub struct LoginRegisterWithToken<'a> {
        version: ClientVersion<'a>,
        token: Secret<'a>,
        context: Text32<'a>,
    }

    /// The answer to both sign-ins.
    #[derive(Copy, Eq)]
    pub struct LoginReply<'a> {
        user_id: u32,
        session: u64,
        server_protocol_version: u32,
        server_version: Name<'a>,
    }

    /// Borrows the group membership of another session (14).
    #[derive(Copy, Eq)]
    pub struct AttachConsumerSession {
        client_id: u128,
        session: u64,
        metadata_watermark: u64,
    }
}

/// A sign-in's body. Its command code does not travel: the shape tells which one it is, and a body
/// may have both shapes, so each is tried where the other does not sign in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoginBody<'a> {
    /// The prefix of both shapes.
    pub version: ClientVersion<'a>,
    /// The body read with a password in it.
    pub password: Option<LoginRegister<'a>>,
    /// The body read with a token in it.
    pub token: Option<LoginRegisterWithToken<'a>>,
}

impl<'a> LoginBody<'a> {
    // spec ANS-18
    /// Reads the prefix, which must be there, and both shapes.
    pub fn decode(body: &'a [u8]) -> Result<LoginBody<'a>, WireError> {
        Ok(LoginBody {
            version: ClientVersion::decode(body)?,
            password: LoginRegister::decode(body).ok(),
            token: LoginRegisterWithToken::decode(body).ok(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_patch_of_our_minor_is_accepted_and_nothing_else() {
        for patch in [0, 1, 1023] {
            assert!(accepts_version(pack_version(0, 11, patch)));
            assert!(!accepts_version(pack_version(0, 10, patch)));
            assert!(!accepts_version(pack_version(0, 12, patch)));
            assert!(!accepts_version(pack_version(1, 11, patch)));
        }
        assert!(!accepts_version(0));
        assert!(!accepts_version(u32::MAX));
    }
}
