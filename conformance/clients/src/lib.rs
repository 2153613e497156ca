//! Published clients against a Pawl node.
//!
//! There is nothing here but tests: the crates `iggy` and `iggy_common`, pinned to one release,
//! talk to a node that the tests start as a child process. They see what users of those crates see.
