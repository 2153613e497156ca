//! Published clients against a Pawl node.
