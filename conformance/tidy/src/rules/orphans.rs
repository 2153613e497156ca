//! Rust files that no crate includes.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Finding, Source};

/// Every Rust file is the root of a target or reached from one by `mod` or `include!`.
pub fn modules(sources: &[Source], findings: &mut Vec<Finding>) {
    let files: BTreeMap<&str, &Source> = sources
        .iter()
        .filter(|s| s.is_rust())
        .map(|s| (s.path.as_str(), s))
        .collect();
    let manifests: String = sources
        .iter()
        .filter(|s| s.path.ends_with("Cargo.toml"))
        .map(|s| s.text.as_str())
        .collect();
    let mut reached = BTreeSet::new();
    let mut open: Vec<String> = files
        .keys()
        .filter(|path| is_root(path, &manifests))
        .map(|path| path.to_string())
        .collect();
    while let Some(path) = open.pop() {
        if let Some(source) = files.get(path.as_str())
            && reached.insert(path)
        {
            open.extend(children(source, is_root(&source.path, &manifests)));
        }
    }
    for path in files.keys().filter(|path| !reached.contains(**path)) {
        findings.push(Finding {
            path: path.to_string(),
            line: 0,
            rule: "orphan",
            text: "no crate includes this file".to_string(),
        });
    }
}

/// Whether the file is the root of a target, by place or because a manifest names it.
fn is_root(path: &str, manifests: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let file = parts[parts.len() - 1];
    let folder = |back: usize| parts.len().checked_sub(back).map(|index| parts[index]);
    let by_place = match folder(2) {
        Some("src") => file == "lib.rs" || file == "main.rs",
        Some("tests" | "benches" | "examples" | "bin" | "fuzz_targets") => true,
        Some(_) if file == "main.rs" => matches!(folder(3), Some("bin" | "tests" | "benches")),
        _ => file == "build.rs",
    };
    let tail = parts[parts.len().saturating_sub(2)..].join("/");
    by_place || manifests.contains(&format!("\"{tail}\""))
}

/// Where the modules that a file declares may stand.
fn children(source: &Source, root: bool) -> Vec<String> {
    let (folder, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let stem = file.trim_end_matches(".rs");
    let own = if root || stem == "mod" {
        folder.to_string()
    } else {
        format!("{folder}/{stem}")
    };
    let mut paths = Vec::new();
    let lines: Vec<&str> = source.text.lines().collect();
    for (index, code) in source.code.iter().enumerate() {
        if let Some(name) = declared(code) {
            paths.push(format!("{own}/{name}.rs"));
            paths.push(format!("{own}/{name}/mod.rs"));
        }
        let named = code.contains("#[path") || code.contains("include!");
        if let Some(path) = lines[index].split('"').nth(1).filter(|_| named) {
            paths.push(joined(folder, path));
        }
    }
    paths
}

/// The module that a line declares without a body.
fn declared(code: &str) -> Option<&str> {
    let rest = &code[super::find_word(code, "mod")? + "mod".len()..];
    let name = rest
        .split(';')
        .next()
        .filter(|_| rest.contains(';'))?
        .trim();
    let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (plain && !name.is_empty()).then_some(name)
}

/// `path` from `folder`, with `..` taken away.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in path.split('/') {
        match part {
            ".." => {
                parts.pop();
            }
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orphans(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files.iter().map(|(p, t)| Source::new(p, t)).collect();
        let mut findings = Vec::new();
        modules(&sources, &mut findings);
        findings.into_iter().map(|f| f.path).collect()
    }

    #[test]
    fn a_file_that_nobody_declares_is_found() {
        let files = [
            ("impl/a/src/lib.rs", "pub mod b;\n// mod d;\n"),
            ("impl/a/src/b.rs", "mod c;\n"),
            ("impl/a/src/b/c.rs", ""),
            ("impl/a/src/d.rs", ""),
        ];
        assert_eq!(orphans(&files), ["impl/a/src/d.rs"]);
    }

    #[test]
    fn roots_mod_files_and_named_paths_are_reached() {
        let files = [
            ("impl/a/Cargo.toml", "[[bin]]\npath = \"tools/gen.rs\"\n"),
            ("impl/a/tools/gen.rs", ""),
            (
                "impl/a/src/main.rs",
                "mod b;\n#[path = \"../shared/e.rs\"]\nmod e;\n",
            ),
            ("impl/a/src/b/mod.rs", "mod c;\n"),
            ("impl/a/src/b/c.rs", ""),
            ("impl/a/shared/e.rs", ""),
            ("impl/a/tests/f.rs", "mod util;\n"),
            ("impl/a/tests/util/mod.rs", ""),
            ("impl/a/fuzz/fuzz_targets/g.rs", ""),
        ];
        assert!(orphans(&files).is_empty(), "{:?}", orphans(&files));
    }

    #[test]
    fn a_file_beside_shared_test_code_is_found() {
        let files = [
            ("impl/a/tests/f.rs", "mod util;\n"),
            ("impl/a/tests/util/mod.rs", ""),
            ("impl/a/tests/util/old.rs", ""),
        ];
        assert_eq!(orphans(&files), ["impl/a/tests/util/old.rs"]);
    }
}
