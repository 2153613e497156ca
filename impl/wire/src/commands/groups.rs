//! Consumer groups (600 to 606).

use crate::layout::record;
use crate::primitives::{Identifier, List, Name, Reader, Wire, WireError, count_u32};

record! {
    /// Asks for one group (600).
    #[derive(Copy, Eq)]
    pub struct GetGroup<'a> {
        stream: Identifier<'a>,
        topic: Identifier<'a>,
        group: Identifier<'a>,
    }

    /// Asks for the groups of a topic (601).
    #[derive(Copy, Eq)]
    pub struct GetGroups<'a> {
        stream: Identifier<'a>,
        topic: Identifier<'a>,
    }

    /// Creates a group (602).
    #[derive(Copy, Eq)]
    pub struct CreateGroup<'a> {
        stream: Identifier<'a>,
        topic: Identifier<'a>,
        name: Name<'a>,
    }

    /// Deletes a group (603).
    #[derive(Copy, Eq)]
    pub struct DeleteGroup<'a> {
        stream: Identifier<'a>,
        topic: Identifier<'a>,
        group: Identifier<'a>,
    }

    /// Joins a group (604).
    #[derive(Copy, Eq)]
    pub struct JoinGroup<'a> {
        stream: Identifier<'a>,
        topic: Identifier<'a>,
        group: Identifier<'a>,
    }

    /// Leaves a group (605).
    #[derive(Copy, Eq)]
    pub struct LeaveGroup<'a> {
        stream: Identifier<'a>,
        topic: Identifier<'a>,
        group: Identifier<'a>,
    }

    /// Asks for the caller's own assignment (606).
    #[derive(Copy, Eq)]
    pub struct SyncGroup<'a> {
        stream: Identifier<'a>,
        topic: Identifier<'a>,
        group: Identifier<'a>,
    }

    /// A group in a list (601).
    #[derive(Copy, Eq)]
    pub struct Group<'a> {
        id: u32,
        partitions_count: u32,
        members_count: u32,
        name: Name<'a>,
    }

    /// A member and the partitions it owns.
    #[derive(Eq)]
    pub struct GroupMember {
        id: u32,
        partitions: List<u32>,
    }

    /// The caller's assignment (606); an empty body where it is not a member.
    #[derive(Eq)]
    pub struct GroupAssignment {
        generation: u64,
        partitions: List<u32>,
    }
}

/// A group with its members (600, 602).
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(
    missing_docs,
    reason = "the fields are named as in the dialect's tables"
)]
pub struct GroupDetails<'a> {
    pub id: u32,
    pub partitions_count: u32,
    pub name: Name<'a>,
    pub members: Vec<GroupMember>,
}

impl<'a> Wire<'a> for GroupDetails<'a> {
    const BYTES_MIN: usize = Group::BYTES_MIN;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let group = Group::read(reader)?;
        Ok(GroupDetails {
            id: group.id,
            partitions_count: group.partitions_count,
            name: group.name,
            members: reader.read_counted("members", group.members_count)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let group = Group {
            id: self.id,
            partitions_count: self.partitions_count,
            members_count: count_u32(self.members.len()),
            name: self.name,
        };
        group.write(out);
        self.members.iter().for_each(|member| member.write(out));
    }
}
