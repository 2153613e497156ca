//! Users: credentials and rights.

use std::fmt;
use std::sync::Arc;

use pawl_wire::commands::users::UserStatus;
use pawl_wire::ids::{Op, Timestamp, UserId};
use pawl_wire::permissions::Permissions;

use super::ROOT;

/// A password as it is kept: PHC text of an Argon2id hash. It does not print itself.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PasswordHash(pub Arc<str>);

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(password hash)")
    }
}

/// A user. Sign-in needs the hash, an active status, and that [`User::credential_version`] is still
/// the one of the check when the Register is applied (spec SES-11).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct User {
    /// Visible number; reused after a deletion.
    pub id: UserId,
    /// The op that created it; with the number it is never reused.
    pub created_op: Op,
    /// Log time of that op.
    pub created_at: Timestamp,
    /// Unique among users.
    pub name: Arc<str>,
    /// Whether it may sign in.
    pub status: UserStatus,
    /// The op that set the password in force: no two passwords of one number share it.
    pub credential_version: u64,
    /// The password.
    pub password_hash: PasswordHash,
    /// What it may do; root needs none.
    pub permissions: Option<Permissions>,
}

/// Who a user is, beyond its number (spec SES-10).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UserIdentity {
    /// The visible number.
    pub user: UserId,
    /// The op that created it.
    pub created_op: Op,
}

impl User {
    /// Number and birth.
    pub const fn identity(&self) -> UserIdentity {
        UserIdentity {
            user: self.id,
            created_op: self.created_op,
        }
    }

    /// Root may do everything and cannot be deleted.
    pub fn is_root(&self) -> bool {
        self.id == ROOT
    }

    /// Whether it may sign in with credentials of this version.
    pub fn admits(&self, credential_version: u64) -> bool {
        self.status == UserStatus::Active && self.credential_version == credential_version
    }
}
