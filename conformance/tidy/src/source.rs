//! A file of the tree, and its lines split into code and comment.
//!
//! The splitter knows just enough of Rust: line and nested block comments, strings, raw strings,
//! character literals and lifetimes. In `code` every byte of a comment or literal is a space, so
//! that columns stay where they were; in `comments` every byte that is not of a comment is.

/// A text file, read and split.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path from the workspace root, with `/`.
    pub path: String,
    /// The text as it is.
    pub text: String,
    /// Lines with comments and literals blanked out; for files that are not Rust the plain lines.
    pub code: Vec<String>,
    /// Lines with all but comments blanked out; for files that are not Rust the plain lines.
    pub comments: Vec<String>,
    /// Whether a line belongs to test code.
    pub test: Vec<bool>,
}

impl Source {
    /// Reads a text.
    pub fn new(path: &str, text: &str) -> Source {
        let (code, comments) = if path.ends_with(".rs") {
            split(text)
        } else {
            (text.to_string(), text.to_string())
        };
        let code: Vec<String> = code.lines().map(str::to_string).collect();
        let comments = comments.lines().map(str::to_string).collect();
        let test = if is_test_path(path) {
            vec![true; code.len()]
        } else {
            test_lines(&code)
        };
        Source {
            path: path.to_string(),
            text: text.to_string(),
            code,
            comments,
            test,
        }
    }

    /// Whether this is a Rust file.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The lines of code that are not test code, numbered from 1.
    pub fn product_code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code
            .iter()
            .zip(&self.test)
            .enumerate()
            .filter(|(_, (_, test))| !**test)
            .map(|(index, (line, _))| (index + 1, line.as_str()))
    }
}

/// Whether a whole file is test code.
fn is_test_path(path: &str) -> bool {
    let in_test_folder = path
        .split('/')
        .any(|part| ["tests", "benches", "fuzz", "examples"].contains(&part));
    in_test_folder || path.ends_with("_test.rs") || path.ends_with("/tests.rs")
}

/// Marks the items that `#[cfg(test)]` stands before: up to the end of their block or statement.
fn test_lines(code: &[String]) -> Vec<bool> {
    let mut test = vec![false; code.len()];
    let mut index = 0;
    while index < code.len() {
        if !code[index].contains("#[cfg(test)]") {
            index += 1;
            continue;
        }
        let end = item_end(code, index);
        test[index..=end].fill(true);
        index = end + 1;
    }
    test
}

/// The last line of the item whose attribute stands at `start`.
fn item_end(code: &[String], start: usize) -> usize {
    let mut depth = 0usize;
    let mut opened = false;
    for (index, line) in code.iter().enumerate().skip(start) {
        let line = if index == start {
            line.split_once("#[cfg(test)]").map_or("", |(_, rest)| rest)
        } else {
            line
        };
        for c in line.chars() {
            match c {
                '{' => {
                    depth += 1;
                    opened = true;
                }
                '}' => depth = depth.saturating_sub(1),
                ';' if !opened => return index,
                _ => {}
            }
        }
        if opened && depth == 0 {
            return index;
        }
    }
    code.len() - 1
}

/// What the splitter is inside of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    LineComment,
    BlockComment { depth: usize },
    Text,
    RawText { hashes: usize },
}

/// Splits Rust into (code, comments), each as long as the text, line for line.
fn split(text: &str) -> (String, String) {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut comments = String::with_capacity(text.len());
    let mut state = State::Code;
    let mut at = 0;
    while at < chars.len() {
        let (next, taken) = step(state, &chars[at..], at.checked_sub(1).map(|i| chars[i]));
        let comment = is_comment(state) || is_comment(next);
        let literal = state != State::Code || next != State::Code || taken > 1;
        for &c in &chars[at..at + taken] {
            let newline = c == '\n';
            let blank = if newline { '\n' } else { ' ' };
            code.push(if literal { blank } else { c });
            comments.push(if comment { c } else { blank });
        }
        state = next;
        at += taken;
    }
    (code, comments)
}

fn is_comment(state: State) -> bool {
    matches!(state, State::LineComment | State::BlockComment { .. })
}

/// From `state`, what the next characters lead to and how many of them are taken.
fn step(state: State, rest: &[char], before: Option<char>) -> (State, usize) {
    let starts = |text: &str| text.chars().eq(rest.iter().copied().take(text.len()));
    match state {
        State::Code => step_code(rest, before),
        State::LineComment if rest[0] == '\n' => (State::Code, 1),
        State::LineComment => (state, 1),
        State::BlockComment { depth } if starts("/*") => {
            (State::BlockComment { depth: depth + 1 }, 2)
        }
        State::BlockComment { depth: 1 } if starts("*/") => (State::Code, 2),
        State::BlockComment { depth } if starts("*/") => {
            (State::BlockComment { depth: depth - 1 }, 2)
        }
        State::BlockComment { .. } => (state, 1),
        State::Text if rest[0] == '\\' => (state, rest.len().min(2)),
        State::Text if rest[0] == '"' => (State::Code, 1),
        State::Text => (state, 1),
        State::RawText { hashes } if closes_raw(rest, hashes) => (State::Code, 1 + hashes),
        State::RawText { .. } => (state, 1),
    }
}

fn closes_raw(rest: &[char], hashes: usize) -> bool {
    rest[0] == '"' && rest[1..].iter().take_while(|c| **c == '#').count() >= hashes
}

/// In code: a comment, a literal, or one plain character.
fn step_code(rest: &[char], before: Option<char>) -> (State, usize) {
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let next = rest.get(1).copied();
    match rest[0] {
        '/' if next == Some('/') => (State::LineComment, 2),
        '/' if next == Some('*') => (State::BlockComment { depth: 1 }, 2),
        '"' => (State::Text, 1),
        'r' if !in_word || before == Some('b') => match raw_opening(rest) {
            Some(hashes) => (State::RawText { hashes }, 2 + hashes),
            None => (State::Code, 1),
        },
        '\'' => (State::Code, character_literal(rest)),
        _ => (State::Code, 1),
    }
}

/// The number of hashes when `rest` opens a raw string.
fn raw_opening(rest: &[char]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
    (rest.get(1 + hashes) == Some(&'"')).then_some(hashes)
}

/// How long the character literal at `rest` is; 1 for a lifetime.
fn character_literal(rest: &[char]) -> usize {
    match (rest.get(1), rest.get(2)) {
        (Some('\\'), Some(_)) => rest[3..]
            .iter()
            .position(|c| *c == '\'')
            .map_or(1, |end| end + 4),
        (Some(_), Some('\'')) => 3,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_in_code() {
        let text = "let a = \"x // y\"; // why \"z\"\nlet b = r#\"q\"w\"#; /* c /* d */ e */ f";
        let source = Source::new("impl/a/src/b.rs", text);
        assert_eq!(source.code[0].trim_end(), "let a =         ;");
        assert_eq!(source.comments[0].trim(), "// why \"z\"");
        let words: Vec<&str> = source.code[1].split_whitespace().collect();
        assert_eq!(words, ["let", "b", "=", ";", "f"]);
    }

    #[test]
    fn columns_and_lines_stay_where_they_were() {
        let text = "fn f() { let x = 'a'; }\n/* one\ntwo */ let y: &'static str = \"\\\"\";\n";
        let source = Source::new("impl/a/src/b.rs", text);
        assert_eq!(source.code.len(), 3);
        assert!(source.code[2].contains("let y: &'static str ="));
        assert_eq!(source.code[0].find("; }"), text.find("; }"));
    }

    #[test]
    fn a_quote_and_a_brace_as_characters_are_literals() {
        let source = Source::new(
            "impl/a/src/b.rs",
            "let q = ['\"', '{', '\\'', '\\u{7b}']; g();",
        );
        assert!(source.code[0].contains("g();"));
        assert!(!source.code[0].contains('{'));
    }

    #[test]
    fn the_item_after_cfg_test_is_test_code() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let source = Source::new("impl/a/src/b.rs", text);
        assert_eq!(source.test, [false, true, true, true, true, false]);
        let source = Source::new("impl/a/src/b.rs", "#[cfg(test)]\nmod b_test;\nfn c() {}\n");
        assert_eq!(source.test, [true, true, false]);
    }

    #[test]
    fn files_of_tests_are_test_code() {
        assert!(is_test_path("impl/a/tests/b.rs"));
        assert!(is_test_path("impl/a/src/b_test.rs"));
        assert!(!is_test_path("impl/a/src/latest.rs"));
    }
}
