//! Holds a server to the specification from outside.

fn main() {}
