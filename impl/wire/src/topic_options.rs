//! The options of topics.
