//! The program `pawl`.

fn main() {}
