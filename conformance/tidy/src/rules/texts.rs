//! What must not stand in any text: marks of unfinished work, paths of one machine.

use crate::{Finding, Source};

use super::find_word;

/// Marks of unfinished work. Spelled in two halves, since this file is read as well.
const UNFINISHED: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
    concat!("todo", "!"),
    concat!("unimplemented", "!"),
    concat!("#[ig", "nore"),
];

/// Beginnings of paths that exist on one machine only.
const MACHINE_PATHS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/Us", "ers/"),
    concat!("C:", "\\"),
];

/// Nothing in the tree is marked as unfinished: it is refused by type, with a clause and a test.
pub fn unfinished(source: &Source, findings: &mut Vec<Finding>) {
    for_each_line(source, UNFINISHED, |line, mark| {
        findings.push(Finding {
            path: source.path.clone(),
            line,
            rule: "unfinished",
            text: format!("{mark}: refuse it with a typed error and a clause instead"),
        });
    });
}

/// No absolute path of a machine.
pub fn absolute_paths(source: &Source, findings: &mut Vec<Finding>) {
    for (index, line) in source.text.lines().enumerate() {
        for start in MACHINE_PATHS {
            let found = line
                .match_indices(start)
                .any(|(at, _)| begins_path(line, at));
            if found {
                findings.push(Finding {
                    path: source.path.clone(),
                    line: index + 1,
                    rule: "absolute-path",
                    text: format!("{start}... exists on one machine only"),
                });
            }
        }
    }
}

/// Whether a path begins at `at`, and does not merely go on there.
fn begins_path(line: &str, at: usize) -> bool {
    let of_path = |c: char| c.is_alphanumeric() || "_-.}".contains(c);
    !line[..at].ends_with(of_path)
}

fn for_each_line(source: &Source, marks: &[&'static str], mut found: impl FnMut(usize, &str)) {
    for (index, line) in source.text.lines().enumerate() {
        for mark in marks {
            if find_word(line, mark).is_some() {
                found(index + 1, mark);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings_of;
    use super::*;

    #[test]
    fn every_mark_is_found_in_every_kind_of_file() {
        for mark in UNFINISHED {
            for path in ["impl/a/src/lib.rs", "README.md", ".ci/run"] {
                let found = findings_of(unfinished, path, &format!("a\n{mark} b\n"));
                assert_eq!(found.len(), 1, "{mark} in {path}");
                assert_eq!(found[0].line, 2);
            }
        }
    }

    #[test]
    fn longer_words_are_no_marks() {
        assert!(findings_of(unfinished, "a.md", "HACKNEY, XXXL and TODOS\n").is_empty());
    }

    #[test]
    fn a_path_of_one_machine_is_found() {
        for start in MACHINE_PATHS {
            let found = findings_of(absolute_paths, "a.toml", &format!("x = \"{start}y\"\n"));
            assert_eq!(found.len(), 1, "{start}");
        }
        let inside = format!("a{}b ./frame{}c", MACHINE_PATHS[2], MACHINE_PATHS[2]);
        assert!(findings_of(absolute_paths, "a.md", &inside).is_empty());
    }
}
