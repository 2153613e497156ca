//! Exchanges of one node with its driver, as scripts of text (spec CON-34, CON-37).

mod util;

use util::script::run;

#[test]
fn normal_path() {
    run("normal_path");
}

#[test]
fn restart() {
    run("restart");
}

#[test]
fn checkpoints() {
    run("checkpoints");
}

#[test]
fn admission() {
    run("admission");
}

#[test]
fn failures() {
    run("failures");
}
