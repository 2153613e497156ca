//! The rules, one module each kind.

use crate::{Finding, Source};

pub mod clauses;
pub mod lengths;
pub mod names;
pub mod orphans;
pub mod texts;

/// A rule that looks at one file.
pub type SourceRule = fn(&Source, &mut Vec<Finding>);

/// A rule that looks at all of them.
pub type TreeRule = fn(&[Source], &mut Vec<Finding>);

/// Rules that look at one file.
pub const PER_SOURCE: &[SourceRule] = &[
    lengths::lines,
    lengths::functions,
    lengths::files,
    names::pure,
    names::unwrap,
    texts::unfinished,
    texts::absolute_paths,
];

/// Rules that look at all of them.
pub const PER_TREE: &[TreeRule] = &[clauses::definitions, clauses::citations, orphans::modules];

/// Where `word` stands in `line` with no letter, digit or underscore beside it.
pub(crate) fn find_word(line: &str, word: &str) -> Option<usize> {
    let of_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut from = 0;
    while let Some(found) = line[from..].find(word) {
        let start = from + found;
        let end = start + word.len();
        let free_before = !line[..start].ends_with(of_word) || !word.starts_with(of_word);
        let free_after = !line[end..].starts_with(of_word) || !word.ends_with(of_word);
        if free_before && free_after {
            return Some(start);
        }
        from = end;
    }
    None
}

#[cfg(test)]
pub(crate) fn findings_of(rule: SourceRule, path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    rule(&Source::new(path, text), &mut findings);
    findings
}
