//! The short form of the floor runs, tells every limit, and leaves nothing behind.

use std::process::Command;

#[test]
fn the_quick_floor_tells_every_limit() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let json = directory.path().join("floor.json");
    let files = directory.path().join("files");
    std::fs::create_dir(&files).expect("a directory");
    let output = Command::new(env!("CARGO_BIN_EXE_pawl-bench"))
        .args(["floor", "--quick", "--directory"])
        .arg(&files)
        .arg("--json")
        .arg(&json)
        .output()
        .expect("the program starts");
    let (text, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{errors}");
    assert!(text.contains("group commit of 64"), "{text}");

    let json = std::fs::read_to_string(&json).expect("the numbers were written");
    let floor: serde_json::Value = serde_json::from_str(&json).expect("they are JSON");
    for limit in [
        "round_trip_flush",
        "round_trip",
        "group_commit",
        "flush_small",
        "flush_large_burst",
        "flush_large_sustained",
        "read_cold",
    ] {
        let rate = floor[limit]["per_second"].as_f64();
        assert!(rate.is_some_and(|rate| rate > 0.0), "{limit}: {json}");
    }
    let stream = floor["stream"]["megabytes_per_second"].as_f64();
    assert!(stream.is_some_and(|rate| rate > 0.0), "{json}");

    let left = std::fs::read_dir(&files).expect("the directory is there");
    assert_eq!(left.count(), 0);
}
