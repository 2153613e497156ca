//! The dialect's error codes, each with its name, HTTP status and retry class.
//!
//! The table in `error_code_table.rs` is generated from `spec/vectors/v11-errors.tsv`; a test
//! compares the two and rewrites the table when it runs with `PAWL_REGENERATE=1`.

use std::fmt;

/// What a caller may do after an error.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RetryClass {
    /// Nothing happened: send again (after signing in again, for 30 and 40).
    NotAccepted,
    /// It may have happened: ask again with the same identity and number.
    UnknownOutcome,
    /// Do not repeat.
    Terminal,
}

/// Declares the codes: number, variant, name in the registry, HTTP status, retry class.
macro_rules! error_codes {
    ($($code:literal $variant:ident $name:literal $status:literal $class:ident;)*) => {
        /// An error code of the client dialect. Numbers are never reused.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum ErrorCode {
            $(#[doc = concat!("`", $name, "`")] $variant = $code,)*
        }

        impl ErrorCode {
            /// Every code, by number.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant,)*];

            /// The code with this number.
            pub const fn from_u32(value: u32) -> Option<ErrorCode> {
                match value {
                    $($code => Some(ErrorCode::$variant),)*
                    _ => None,
                }
            }

            /// The name in the registry.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ErrorCode::$variant => $name,)*
                }
            }

            /// The status of an HTTP answer that carries it.
            pub const fn http_status(self) -> u16 {
                match self {
                    $(ErrorCode::$variant => $status,)*
                }
            }

            /// What the caller may do.
            pub const fn class(self) -> RetryClass {
                match self {
                    $(ErrorCode::$variant => RetryClass::$class,)*
                }
            }
        }
    };
}
pub(crate) use error_codes;

pub use crate::error_code_table::ErrorCode;

impl ErrorCode {
    /// The number.
    pub const fn code(self) -> u32 {
        self as u32
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.code(), self.name())
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
