//! Columns, lines of a function, lines of a file.

use crate::{Finding, Source};

/// Columns of a line of Rust.
pub const LINE_COLUMNS_MAX: usize = 100;

/// Columns of a row of a table in a comment, which cannot be broken.
pub const ROW_COLUMNS_MAX: usize = 180;

/// Lines of a function, from `fn` to the closing brace.
pub const FUNCTION_LINES_MAX: usize = 70;

/// Lines of a Rust file.
pub const FILE_LINES_MAX: usize = 800;

/// No line is longer than 100 columns; a row of a table in a comment than 180.
pub fn lines(source: &Source, findings: &mut Vec<Finding>) {
    if !source.is_rust() {
        return;
    }
    for (index, line) in source.text.lines().enumerate() {
        let columns = line.chars().count();
        let max = match is_row(line) {
            true => ROW_COLUMNS_MAX,
            false => LINE_COLUMNS_MAX,
        };
        if columns > max {
            findings.push(Finding {
                path: source.path.clone(),
                line: index + 1,
                rule: "line-length",
                text: format!("{columns} columns, at most {max}"),
            });
        }
    }
}

/// Whether the line is a row of a table in a comment.
fn is_row(line: &str) -> bool {
    let line = line.trim_start();
    ["/// |", "//! |", "// |"]
        .iter()
        .any(|start| line.starts_with(start))
}

/// No file is longer than 800 lines.
pub fn files(source: &Source, findings: &mut Vec<Finding>) {
    if source.is_rust() && source.code.len() > FILE_LINES_MAX {
        findings.push(Finding {
            path: source.path.clone(),
            line: 0,
            rule: "file-length",
            text: format!("{} lines, at most {FILE_LINES_MAX}", source.code.len()),
        });
    }
}

/// No function is longer than 70 lines.
pub fn functions(source: &Source, findings: &mut Vec<Finding>) {
    if !source.is_rust() {
        return;
    }
    for (index, line) in source.code.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let Some(end) = body_end(&source.code[index..], line.find("fn ").unwrap_or(0)) else {
            continue;
        };
        if end + 1 > FUNCTION_LINES_MAX {
            findings.push(Finding {
                path: source.path.clone(),
                line: index + 1,
                rule: "function-length",
                text: format!("{name}: {} lines, at most {FUNCTION_LINES_MAX}", end + 1),
            });
        }
    }
}

/// The name of the function that is declared on this line.
fn function_name(line: &str) -> Option<&str> {
    let start = super::find_word(line, "fn")? + "fn ".len();
    let rest = line.get(start..)?.trim_start();
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (end > 0).then(|| &rest[..end])
}

/// How many lines below the first the function's body closes; `None` without a body.
fn body_end(lines: &[String], column: usize) -> Option<usize> {
    let mut braces = 0usize;
    let mut brackets = 0usize;
    for (index, line) in lines.iter().enumerate() {
        let from = if index == 0 { column } else { 0 };
        for c in line[from..].chars() {
            match c {
                '(' | '[' if braces == 0 => brackets += 1,
                ')' | ']' if braces == 0 => brackets = brackets.saturating_sub(1),
                ';' if braces == 0 && brackets == 0 => return None,
                '{' => braces += 1,
                '}' if braces <= 1 => return Some(index),
                '}' => braces -= 1,
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::findings_of;
    use super::*;

    #[test]
    fn a_line_of_101_columns_is_found() {
        let text = format!("// {}\n// {}\n", "é".repeat(97), "é".repeat(98));
        let found = findings_of(lines, "impl/a/src/lib.rs", &text);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
        let row = |columns: usize| format!("//! | {}\n", "x".repeat(columns - 6));
        assert!(findings_of(lines, "impl/a/src/lib.rs", &row(180)).is_empty());
        assert_eq!(findings_of(lines, "impl/a/src/lib.rs", &row(181)).len(), 1);
    }

    #[test]
    fn a_function_of_71_lines_is_found() {
        let body = |count: usize| "    g();\n".repeat(count);
        let fits = format!("fn fits(a: [u8; 4]) {{\n{}}}\n", body(68));
        assert!(findings_of(functions, "a/src/lib.rs", &fits).is_empty());
        let long = format!(
            "trait T {{ fn none(&self); }}\nfn long() {{\n{}}}\n",
            body(69)
        );
        let found = findings_of(functions, "a/src/lib.rs", &long);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
        assert!(found[0].text.starts_with("long: 71 lines"));
    }

    #[test]
    fn braces_in_literals_do_not_count() {
        let text = format!(
            "fn f() {{\n    let a = '{{'; let b = \"{{\";\n}}\n{}",
            "\n".repeat(90)
        );
        assert!(findings_of(functions, "a/src/lib.rs", &text).is_empty());
    }

    #[test]
    fn a_file_of_801_lines_is_found() {
        assert!(findings_of(files, "a/src/lib.rs", &"//\n".repeat(800)).is_empty());
        assert_eq!(
            findings_of(files, "a/src/lib.rs", &"//\n".repeat(801)).len(),
            1
        );
    }
}
