//! Load programs and benchmarks of Pawl.

fn main() {}
