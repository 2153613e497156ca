//! Clause numbers: each defined once, in sequence, with a sentence; each citation defined.

use std::collections::BTreeMap;

use crate::{Finding, Source};

/// Families of clauses, by the letters of their numbers.
const FAMILIES: &[&str] = &["SES", "DED", "REC", "ANS", "CON", "LEA"];

/// A clause's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Clause {
    /// The family, one of those above.
    pub family: &'static str,
    /// The number in it.
    pub number: u32,
}

/// Headings `### SES-4 Title` in `spec/*.md`: unique, counted from 1, each with a bold sentence.
pub fn definitions(sources: &[Source], findings: &mut Vec<Finding>) {
    let mut last: BTreeMap<&str, u32> = BTreeMap::new();
    for source in sources.iter().filter(|s| is_spec(s)) {
        let lines: Vec<&str> = source.text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let Some(heading) = line.strip_prefix("### ") else {
                continue;
            };
            let mut report = |text: String| {
                findings.push(Finding {
                    path: source.path.clone(),
                    line: index + 1,
                    rule: "clause",
                    text,
                });
            };
            let Some(clause) = clauses_in(heading).into_iter().next() else {
                report(format!("{heading:?} is not a clause's heading"));
                continue;
            };
            let expected = last.get(clause.family).map_or(1, |number| number + 1);
            if clause.number != expected {
                report(format!(
                    "{}-{} where {expected} is next",
                    clause.family, clause.number
                ));
            }
            last.insert(clause.family, clause.number.max(expected));
            if !lines
                .get(index + 1)
                .is_some_and(|next| next.starts_with("**"))
            {
                report("a clause begins with its sentence, in bold".to_string());
            }
        }
    }
}

/// Every clause that is cited, in a comment or in prose, is defined.
pub fn citations(sources: &[Source], findings: &mut Vec<Finding>) {
    let defined = defined(sources);
    for source in sources {
        for (index, line) in source.comments.iter().enumerate() {
            for clause in clauses_in(line) {
                if !defined.contains(&clause) {
                    findings.push(Finding {
                        path: source.path.clone(),
                        line: index + 1,
                        rule: "citation",
                        text: format!("{}-{} is not defined", clause.family, clause.number),
                    });
                }
            }
        }
    }
}

/// The clauses that `spec/` defines.
pub fn defined(sources: &[Source]) -> Vec<Clause> {
    let headings = sources
        .iter()
        .filter(|s| is_spec(s))
        .flat_map(|s| s.text.lines())
        .filter_map(|line| line.strip_prefix("### "));
    headings
        .filter_map(|heading| clauses_in(heading).into_iter().next())
        .collect()
}

/// Files that define clauses. The README of `spec/` shows their form and defines none.
fn is_spec(source: &Source) -> bool {
    let name = source.path.strip_prefix("spec/");
    name.is_some_and(|name| name.ends_with(".md") && !name.contains('/') && name != "README.md")
        && source
            .text
            .lines()
            .any(|line| line.starts_with("### ") && !clauses_in(line).is_empty())
}

/// The clause numbers in a line.
pub fn clauses_in(line: &str) -> Vec<Clause> {
    let mut clauses = Vec::new();
    for family in FAMILIES {
        for (start, _) in line.match_indices(family) {
            if line[..start].ends_with(|c: char| c.is_alphanumeric() || c == '-') {
                continue;
            }
            let Some(rest) = line[start + family.len()..].strip_prefix('-') else {
                continue;
            };
            let end = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            if let Ok(number) = rest[..end].parse() {
                clauses.push(Clause { family, number });
            }
        }
    }
    clauses
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rule: fn(&[Source], &mut Vec<Finding>), files: &[(&str, &str)]) -> Vec<Finding> {
        let sources: Vec<Source> = files.iter().map(|(p, t)| Source::new(p, t)).collect();
        let mut findings = Vec::new();
        rule(&sources, &mut findings);
        findings
    }

    const GOOD: &str = "### SES-1 One\n**It holds.**\n\n### SES-2 Two\n**It holds too.**\n";

    #[test]
    fn good_definitions_pass() {
        assert!(run(definitions, &[("spec/sessions.md", GOOD)]).is_empty());
    }

    #[test]
    fn a_number_used_twice_or_skipped_is_found() {
        let twice = "### SES-1 One\n**A.**\n\n### SES-1 Again\n**B.**\n";
        assert_eq!(run(definitions, &[("spec/a.md", twice)]).len(), 1);
        let skipped = "### SES-1 One\n**A.**\n\n### SES-3 Three\n**B.**\n";
        assert_eq!(run(definitions, &[("spec/a.md", skipped)]).len(), 1);
        let other = "### SES-2 Two\n**A.**\n";
        let found = run(definitions, &[("spec/a.md", GOOD), ("spec/b.md", other)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "spec/b.md");
    }

    #[test]
    fn a_clause_without_its_sentence_is_found() {
        let text = "### SES-1 One\n\nWhy: none.\n";
        assert_eq!(run(definitions, &[("spec/a.md", text)]).len(), 1);
    }

    #[test]
    fn a_citation_of_nothing_is_found() {
        let code = "// spec SES-1, SES-2\n/// See SES-9.\nlet x = \"SES-8\";\n";
        let found = run(citations, &[("spec/a.md", GOOD), ("impl/a/src/b.rs", code)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
    }

    #[test]
    fn numbers_are_read_whole() {
        let found = clauses_in("SES-12, (DED-3) and ABSES-4, x-SES-5, SES-, SES-7b");
        let numbers: Vec<u32> = found.iter().map(|c| c.number).collect();
        assert_eq!(numbers, [12, 7, 3]);
    }
}
