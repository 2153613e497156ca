//! Names that must not stand in pure crates, and `unwrap` outside tests.

use crate::{Finding, Source};

use super::find_word;

/// Crates without clock, randomness, I/O, async, threads and unordered containers.
const PURE: &[&str] = &[
    "impl/wire/src/",
    "impl/vsr/src/",
    "impl/machine/src/",
    "impl/store/src/",
    "spec/src/",
];

/// What must not be named there, and why.
const BANNED: &[(&str, &str)] = &[
    ("Instant", "a clock"),
    ("SystemTime", "a clock"),
    ("std::fs", "files belong to the driver"),
    ("std::net", "sockets belong to the driver"),
    ("std::env", "what apply computes must not depend on it"),
    ("tokio", "the pure crates have no runtime"),
    ("rand", "randomness is an input"),
    ("HashMap", "its order differs from run to run"),
    ("HashSet", "its order differs from run to run"),
    ("RandomState", "its order differs from run to run"),
    ("std::thread", "threads belong to the driver"),
    ("async fn", "the pure crates do not wait"),
    ("println!", "output belongs to the driver"),
    ("eprintln!", "output belongs to the driver"),
];

/// Pure crates name nothing impure.
pub fn pure(source: &Source, findings: &mut Vec<Finding>) {
    if !source.is_rust() || !PURE.iter().any(|folder| source.path.starts_with(folder)) {
        return;
    }
    for (line, code) in source.product_code() {
        for (name, why) in BANNED {
            if find_word(code, name).is_some() {
                findings.push(Finding {
                    path: source.path.clone(),
                    line,
                    rule: "pure",
                    text: format!("{name}: {why}"),
                });
            }
        }
    }
}

/// No `unwrap` outside tests in the crates of the product.
pub fn unwrap(source: &Source, findings: &mut Vec<Finding>) {
    if !source.is_rust() || !source.path.starts_with("impl/") {
        return;
    }
    for (line, code) in source.product_code() {
        if code.contains(".unwrap()") {
            findings.push(Finding {
                path: source.path.clone(),
                line,
                rule: "unwrap",
                text: "say with expect why it holds, or return an error".to_string(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings_of;
    use super::*;

    #[test]
    fn every_banned_name_is_found_in_a_pure_crate() {
        for (name, _) in BANNED {
            let text = format!("use {name};\n");
            let found = findings_of(pure, "impl/vsr/src/lib.rs", &text);
            assert_eq!(found.len(), 1, "{name}");
        }
    }

    #[test]
    fn names_in_tests_comments_literals_and_longer_words_pass() {
        let text = "// HashMap\nlet s = \"tokio\";\nlet operand = 1;\n#[cfg(test)]\nuse std::fs;\n";
        assert!(findings_of(pure, "impl/wire/src/lib.rs", text).is_empty());
        assert!(findings_of(pure, "impl/server/src/main.rs", "use tokio;\n").is_empty());
    }

    #[test]
    fn an_unwrap_outside_tests_is_found() {
        let text =
            "fn f() { g().unwrap(); }\n#[cfg(test)]\nmod tests { fn h() { g().unwrap(); } }\n";
        let found = findings_of(unwrap, "impl/server/src/a.rs", text);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 1);
        assert!(findings_of(unwrap, "conformance/src/a.rs", text).is_empty());
    }
}
