//! What a formatter cannot enforce, checked over the whole tree.
//!
//! The test `the_tree_is_tidy` reads every text file below the workspace root and applies each rule
//! to it. A rule is a function from a [`Source`] (or from all of them) to findings; each has a test
//! with a planted violation, since a rule that has never found one has proved nothing.
//!
//! Where a rule cannot hold, the exception stands in [`exceptions`], with its reason, and nowhere
//! else; an exception that is no longer needed is itself a finding.
//!
//! Invariants:
//! 1. Rules look at code with comments and string literals blanked out, unless they are about
//!    comments or about all text.
//! 2. Test code (a `#[cfg(test)]` item, a file named `*_test.rs` or `tests.rs`, a file under
//!    `tests/`, `benches/` or `fuzz/`) is exempt only from the rules that say so.
//! 3. This crate reads files and writes none.

pub mod exceptions;
pub mod rules;
pub mod source;
pub mod tree;

use std::fmt;

pub use source::Source;

/// One violation of one rule.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Finding {
    /// Path from the workspace root, with `/`.
    pub path: String,
    /// Line, from 1; 0 where the finding is about the whole file.
    pub line: usize,
    /// Name of the rule.
    pub rule: &'static str,
    /// What is wrong.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}: {}",
            self.path, self.line, self.rule, self.text
        )
    }
}

/// Applies every rule to every source and takes the exceptions away.
pub fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        for rule in rules::PER_SOURCE {
            rule(source, &mut findings);
        }
    }
    for rule in rules::PER_TREE {
        rule(sources, &mut findings);
    }
    exceptions::apply(exceptions::EXCEPTIONS, findings)
}
