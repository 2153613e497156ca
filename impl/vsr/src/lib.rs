//! The sans-io replica of viewstamped replication.

pub mod machine;
