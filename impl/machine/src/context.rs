//! The `context` text of a login: how a client says which of its earlier lives it remembers.
//!
//! The dialect gives a login a free text. Clients that want to be told when the outcome of their
//! old requests can no longer be told (spec SES-22) write there:
//!
//! ```text
//! pawl/1 incarnation=<n> epoch=<n>
//! ```
//!
//! The first word is exactly `pawl/1`; then `key=value` words in any order, each at most once,
//! separated by single spaces, values decimal. Unknown keys are skipped. Text that does not fit is
//! a text that says nothing: published clients may write there what they like.

use std::fmt;

use pawl_wire::ids::Epoch;

use crate::limits::LOGIN_CONTEXT_BYTES_MAX;

/// The first word.
const WORD: &str = "pawl/1";

/// What a login says about the client's earlier lives.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct LoginContext {
    /// Which life of the client this is; higher is later.
    pub incarnation: Option<u64>,
    /// The last epoch that the client was granted.
    pub epoch: Option<Epoch>,
}

impl LoginContext {
    /// What the text says; nothing, if it does not fit.
    pub fn parse(text: &[u8]) -> LoginContext {
        LoginContext::parse_strict(text).unwrap_or_default()
    }

    fn parse_strict(text: &[u8]) -> Option<LoginContext> {
        if text.len() > LOGIN_CONTEXT_BYTES_MAX {
            return None;
        }
        let mut words = std::str::from_utf8(text).ok()?.split(' ');
        if words.next() != Some(WORD) {
            return None;
        }
        let mut context = LoginContext::default();
        for word in words {
            let (key, value) = word.split_once('=')?;
            match key {
                "incarnation" if context.incarnation.is_none() => {
                    context.incarnation = Some(decimal(value)?);
                }
                // Epoch 0 is "not registered": it names nothing.
                "epoch" if context.epoch.is_none() => {
                    context.epoch = Some(Epoch(decimal(value).filter(|epoch| *epoch > 0)?));
                }
                "incarnation" | "epoch" => return None,
                _ => (),
            }
        }
        Some(context)
    }
}

/// A number of decimal digits only: `parse` alone would take a sign.
fn decimal(text: &str) -> Option<u64> {
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse().ok(),
        false => None,
    }
}

impl fmt::Display for LoginContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(WORD)?;
        if let Some(incarnation) = self.incarnation {
            write!(f, " incarnation={incarnation}")?;
        }
        match self.epoch {
            Some(Epoch(epoch)) => write!(f, " epoch={epoch}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_round_trip() {
        for incarnation in [None, Some(0), Some(u64::MAX)] {
            for epoch in [None, Some(Epoch(1)), Some(Epoch(u64::MAX))] {
                let context = LoginContext { incarnation, epoch };
                assert_eq!(LoginContext::parse(context.to_string().as_bytes()), context);
            }
        }
    }

    // spec SES-22
    #[test]
    fn text_that_does_not_fit_says_nothing() {
        let texts: &[&[u8]] = &[
            b"",
            b"epoch=5",
            b"pawl/2 epoch=5",
            b"pawl/1  epoch=5",
            b"pawl/1 epoch=5 ",
            b"pawl/1 epoch",
            b"pawl/1 epoch=",
            b"pawl/1 epoch=+5",
            b"pawl/1 epoch=0",
            b"pawl/1 epoch=5 epoch=5",
            b"pawl/1 epoch=18446744073709551616",
            b"pawl/1 epoch=5\xff",
        ];
        for text in texts {
            assert_eq!(
                LoginContext::parse(text),
                LoginContext::default(),
                "{text:?}"
            );
        }
        let long = format!("pawl/1 epoch=5 pad={}", "x".repeat(LOGIN_CONTEXT_BYTES_MAX));
        assert_eq!(
            LoginContext::parse(long.as_bytes()),
            LoginContext::default()
        );
    }

    #[test]
    fn unknown_keys_are_skipped_and_order_is_free() {
        let context = LoginContext::parse(b"pawl/1 epoch=7 color=red incarnation=2");
        assert_eq!(context.epoch, Some(Epoch(7)));
        assert_eq!(context.incarnation, Some(2));
    }
}
