//! Personal access tokens (41 to 43).

use crate::layout::record;
use crate::primitives::{Name, Secret};

record! {
    /// Creates a token (42).
    #[derive(Copy, Eq)]
    pub struct CreateToken<'a> {
        name: Name<'a>,
        /// Duration in µs; 0 or 2^64 − 1: never
        expiry: u64,
    }

    /// Deletes a token (43).
    #[derive(Copy, Eq)]
    pub struct DeleteToken<'a> {
        name: Name<'a>,
    }

    /// A token in a list (41).
    #[derive(Copy, Eq)]
    pub struct Token<'a> {
        name: Name<'a>,
        /// µs since the Unix epoch; 0: never
        expiry_at: u64,
    }

    /// The token's text, shown once.
    #[derive(Copy, Eq)]
    pub struct CreateTokenReply<'a> {
        token: Secret<'a>,
    }
}
