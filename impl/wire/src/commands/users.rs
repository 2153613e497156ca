//! Users (31 to 37).

use crate::layout::{record, wire_enum};
use crate::options::{Options, OptionsBlock};
use crate::permissions::{PermissionsBlock, PermissionsTail};
use crate::primitives::{Identifier, Name, Secret};

wire_enum! {
    /// Whether a user may sign in.
    pub enum UserStatus: "a user status" {
        /// It may.
        Active = 1,
        /// It may not.
        Inactive = 2,
    }
}

record! {
    /// Asks for one user (31).
    #[derive(Copy, Eq)]
    pub struct GetUser<'a> {
        user: Identifier<'a>,
    }

    /// Creates a user (33).
    #[derive(Eq)]
    pub struct CreateUser<'a> {
        username: Name<'a>,
        password: Secret<'a>,
        /// A [`UserStatus`]; other numbers mean active.
        status: u8,
        permissions: Option<PermissionsBlock>,
        options: Options<'a>,
    }

    /// Deletes a user (34).
    #[derive(Copy, Eq)]
    pub struct DeleteUser<'a> {
        user: Identifier<'a>,
    }

    /// Changes name or status (35).
    #[derive(Copy, Eq)]
    pub struct UpdateUser<'a> {
        user: Identifier<'a>,
        username: Option<Name<'a>>,
        /// A [`UserStatus`]; other numbers change nothing.
        status: Option<u8>,
        options: Options<'a>,
    }

    /// Replaces or clears the permissions (36).
    #[derive(Eq)]
    pub struct UpdatePermissions<'a> {
        user: Identifier<'a>,
        permissions: Option<PermissionsBlock>,
    }

    /// Changes the password (37).
    #[derive(Copy, Eq)]
    pub struct ChangePassword<'a> {
        user: Identifier<'a>,
        current: Secret<'a>,
        new: Secret<'a>,
    }

    /// A user in a list (32).
    #[derive(Copy, Eq)]
    pub struct User<'a> {
        id: u32,
        /// µs
        created_at: u64,
        status: UserStatus,
        username: Name<'a>,
        options: OptionsBlock<'a>,
    }

    /// A user with its permissions (31, 33).
    #[derive(Eq)]
    pub struct UserDetails<'a> {
        user: User<'a>,
        permissions: PermissionsTail,
    }
}
