//! The one place where a rule is suspended, for one file, with a reason.

use crate::Finding;

/// A rule that does not hold for a file.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// Path from the workspace root.
    pub path: &'static str,
    /// Name of the rule.
    pub rule: &'static str,
    /// Why it cannot hold there.
    pub reason: &'static str,
}

/// All exceptions.
pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        path: "impl/store/src/disk/real.rs",
        rule: "pure",
        reason: "the one place where the store meets the operating system's files",
    },
    Exception {
        path: "impl/store/src/inspect/mod.rs",
        rule: "pure",
        reason: "prints a file that an operator names; no part of the running store",
    },
    Exception {
        path: "impl/vsr/tests/recovery_table.rs",
        rule: "function-length",
        reason: "a table with one row for each refusal; the table is the test",
    },
];

/// Removes what an exception covers; an exception that covers nothing becomes a finding.
pub fn apply(exceptions: &[Exception], findings: Vec<Finding>) -> Vec<Finding> {
    let covers = |e: &Exception, f: &Finding| e.path == f.path && e.rule == f.rule;
    let unused = exceptions
        .iter()
        .filter(|e| !findings.iter().any(|f| covers(e, f)))
        .map(|e| Finding {
            path: e.path.to_string(),
            line: 0,
            rule: "exceptions",
            text: format!("the exception from {:?} is no longer needed", e.rule),
        })
        .collect::<Vec<_>>();
    let mut left: Vec<Finding> = findings
        .into_iter()
        .filter(|f| !exceptions.iter().any(|e| covers(e, f)))
        .collect();
    left.extend(unused);
    left.sort();
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(path: &str) -> Finding {
        Finding {
            path: path.to_string(),
            line: 1,
            rule: "line-length",
            text: String::new(),
        }
    }

    const ONE: &[Exception] = &[Exception {
        path: "a.rs",
        rule: "line-length",
        reason: "a table",
    }];

    #[test]
    fn an_exception_covers_its_file_and_its_rule_only() {
        let left = apply(ONE, vec![finding("a.rs"), finding("b.rs")]);
        assert_eq!(left, vec![finding("b.rs")]);
    }

    #[test]
    fn an_exception_that_covers_nothing_is_a_finding() {
        let left = apply(ONE, vec![]);
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].rule, "exceptions");
    }

    #[test]
    fn every_exception_has_a_reason() {
        for exception in EXCEPTIONS {
            assert!(exception.reason.len() > 10, "{exception:?}");
        }
    }
}
