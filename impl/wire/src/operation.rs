//! The operation byte of request and reply headers: what a frame asks for, as the log sees it.

/// An operation of the client dialect. Numbers are never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the dialect's operations")]
pub enum Operation {
    Register = 1,
    /// Reads and all codes without an operation of their own; the code stands at offset 196.
    NonReplicated = 2,
    Logout = 3,
    CreateTopicAssigned = 64,
    CreatePartitionsAssigned = 65,
    RemoveGroupMember = 66,
    CompleteGroupRevocation = 67,
    /// Never asked for by a client; the reply to [`Operation::DeleteSegments`] carries it.
    TruncatePartition = 68,
    CreateStream = 128,
    UpdateStream = 129,
    DeleteStream = 130,
    PurgeStream = 131,
    CreateTopic = 132,
    UpdateTopic = 133,
    DeleteTopic = 134,
    PurgeTopic = 135,
    CreatePartitions = 136,
    DeletePartitions = 137,
    DeleteSegments = 138,
    CreateConsumerGroup = 139,
    DeleteConsumerGroup = 140,
    CreateUser = 141,
    UpdateUser = 142,
    DeleteUser = 143,
    ChangePassword = 144,
    UpdatePermissions = 145,
    CreateToken = 146,
    DeleteToken = 147,
    JoinConsumerGroup = 148,
    LeaveConsumerGroup = 149,
    SendMessages = 160,
    StoreOffset = 161,
    DeleteOffset = 162,
}

impl Operation {
    /// Every operation, by number.
    pub const ALL: [Operation; 33] = {
        use Operation::*;
        [
            Register,
            NonReplicated,
            Logout,
            CreateTopicAssigned,
            CreatePartitionsAssigned,
            RemoveGroupMember,
            CompleteGroupRevocation,
            TruncatePartition,
            CreateStream,
            UpdateStream,
            DeleteStream,
            PurgeStream,
            CreateTopic,
            UpdateTopic,
            DeleteTopic,
            PurgeTopic,
            CreatePartitions,
            DeletePartitions,
            DeleteSegments,
            CreateConsumerGroup,
            DeleteConsumerGroup,
            CreateUser,
            UpdateUser,
            DeleteUser,
            ChangePassword,
            UpdatePermissions,
            CreateToken,
            DeleteToken,
            JoinConsumerGroup,
            LeaveConsumerGroup,
            SendMessages,
            StoreOffset,
            DeleteOffset,
        ]
    };

    /// The operation with this number.
    pub const fn from_u8(value: u8) -> Option<Operation> {
        let mut index = 0;
        while index < Operation::ALL.len() {
            if Operation::ALL[index] as u8 == value {
                return Some(Operation::ALL[index]);
            }
            index += 1;
        }
        None
    }

    /// Only servers may issue it; a client that does is evicted (reason 4).
    pub const fn is_internal(self) -> bool {
        matches!(self as u8, 64..=127)
    }

    /// A write to one partition.
    pub const fn is_partition(self) -> bool {
        self as u8 >= 160
    }

    /// A write to the catalog, internal ones included, without [`Operation::DeleteSegments`].
    pub const fn is_metadata(self) -> bool {
        matches!(self as u8, 64..=137 | 139..=149)
    }

    /// Whether a successful reply's body starts with a result section. That of
    /// [`Operation::Register`] does so when it is not empty.
    pub const fn is_result_framed(self) -> bool {
        self.is_metadata() || matches!(self, Operation::StoreOffset | Operation::DeleteOffset)
    }

    /// Whether the request must carry the checksum of its body (or zero).
    pub const fn is_checksummed(self) -> bool {
        matches!(self as u8, 1 | 3 | 128..=149)
    }

    /// Whether it becomes an entry of the log.
    pub const fn is_replicated(self) -> bool {
        !matches!(self, Operation::NonReplicated)
    }

    /// The operation that a reply to this one carries, so that clients strip the result section.
    pub const fn in_reply(self) -> Operation {
        match self {
            Operation::DeleteSegments => Operation::TruncatePartition,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_operations_agree() {
        let known: Vec<u8> = (0..=255)
            .filter(|value| Operation::from_u8(*value).is_some())
            .collect();
        let listed: Vec<u8> = Operation::ALL.iter().map(|op| *op as u8).collect();
        assert_eq!(known, listed);
        for op in Operation::ALL {
            assert_eq!(Operation::from_u8(op as u8), Some(op));
        }
    }

    #[test]
    fn result_framing_follows_the_table() {
        use Operation::*;
        for op in [
            Register,
            NonReplicated,
            Logout,
            SendMessages,
            DeleteSegments,
        ] {
            assert!(!op.is_result_framed(), "{op:?}");
        }
        for op in [
            TruncatePartition,
            CreateStream,
            LeaveConsumerGroup,
            StoreOffset,
            DeleteOffset,
        ] {
            assert!(op.is_result_framed(), "{op:?}");
        }
        assert!(DeleteSegments.in_reply().is_result_framed());
    }

    #[test]
    fn entry_kinds_share_the_numbers() {
        use crate::entry::EntryKind;
        for op in Operation::ALL {
            let kind = EntryKind::from_u8(op as u8);
            let client_write = op.is_replicated() && !op.is_internal();
            assert_eq!(kind.is_some(), client_write, "{op:?}");
        }
    }
}
