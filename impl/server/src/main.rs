//! The Pawl node.

fn main() {}
