//! The tree itself.

use std::path::Path;

use pawl_tidy::{check, tree};

#[test]
fn the_tree_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the workspace root exists");
    let sources = tree::read(&root).expect("the tree can be read");
    assert!(sources.len() > 20, "read only {} files", sources.len());
    let findings = check(&sources);
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "\n{}\n", lines.join("\n"));
}
