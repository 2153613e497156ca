//! Reads the tree: every text file below a root, in the order of their paths.

use std::fs;
use std::io;
use std::path::Path;

use crate::Source;

/// Extensions of files that are text and ours.
const TEXT: &[&str] = &[
    "rs", "md", "toml", "sh", "py", "tsv", "json", "jsonl", "html",
];

/// Folders that hold nothing of ours.
const SKIPPED: &[&str] = &["target", "local_data", "corpus", "artifacts"];

/// Folders whose name begins with a dot and that are ours.
const DOTTED: &[&str] = &[".ci", ".cargo"];

/// All sources below `root`.
pub fn read(root: &Path) -> io::Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            if kind.is_dir() && is_ours(&name) {
                folders.push(entry.path());
            } else if kind.is_file() && is_text(&name, &folder) {
                let path = entry.path();
                let text = fs::read_to_string(&path)?;
                sources.push(Source::new(&relative(root, &path), &text));
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

fn is_ours(folder: &str) -> bool {
    let dotted = folder.starts_with('.') && !DOTTED.contains(&folder);
    !dotted && !SKIPPED.contains(&folder)
}

fn is_text(file: &str, folder: &Path) -> bool {
    let in_ci = folder.file_name().is_some_and(|name| name == ".ci");
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    in_ci || TEXT.contains(&extension)
}

/// `path` from `root` on, with `/` on every platform.
fn relative(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let parts: Vec<_> = below
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    parts.join("/")
}
