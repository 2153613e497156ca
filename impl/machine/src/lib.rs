//! The replicated state machine: clients, users, catalog, partitions, offsets.
