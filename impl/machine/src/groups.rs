//! Consumer groups of a topic: who is a member, and which member owns which partition.
//!
//! A group lives in its topic, so it is published with the catalog and goes with the topic. The
//! machine keeps, beside it, which groups a client is a member of, so that the end of a session
//! ends its memberships in time proportional to their number.
//!
//! Invariants:
//! 1. A client is in at most one slot of a group.
//! 2. `owners` has one place a partition of the topic; every owner is a taken slot; without members
//!    nobody owns anything, and with members every partition has an owner.
//! 3. A group's id is never given to another group of the topic.
//! 4. A client is in `Memberships` of a group exactly when it is in a slot of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use imbl::OrdMap;
use pawl_wire::ids::{ClientId, StreamId, TopicId};
use pawl_wire::primitives::Identifier;

use crate::catalog::Catalog;

/// A group, named from anywhere.
pub type GroupKey = (StreamId, TopicId, u32);

/// One consumer group.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Group {
    /// Visible number in its topic; grows and is never reused.
    pub id: u32,
    /// Unique in its topic.
    pub name: Arc<str>,
    /// Rises by one with every rebalance.
    pub generation: u64,
    members: BTreeMap<u32, ClientId>,
    owners: Vec<Option<u32>>,
}

impl Group {
    /// A group without members over so many partitions.
    pub fn new(id: u32, name: Arc<str>, partitions: usize) -> Group {
        Group {
            id,
            name,
            generation: 0,
            members: BTreeMap::new(),
            owners: vec![None; partitions],
        }
    }

    /// The members by slot.
    pub fn members(&self) -> impl ExactSizeIterator<Item = (u32, ClientId)> {
        self.members.iter().map(|(slot, client)| (*slot, *client))
    }

    /// The slot of a client, if it is a member.
    pub fn slot_of(&self, client: ClientId) -> Option<u32> {
        let mut members = self.members.iter();
        members
            .find(|(_, member)| **member == client)
            .map(|(slot, _)| *slot)
    }

    /// What a slot owns, by partition number.
    pub fn partitions_of(&self, slot: u32) -> impl Iterator<Item = u32> {
        let owners = (0u32..).zip(self.owners.iter());
        owners
            .filter(move |(_, owner)| **owner == Some(slot))
            .map(|(partition, _)| partition)
    }

    /// Whether a client owns a partition.
    pub fn owns(&self, client: ClientId, partition: u32) -> bool {
        let owner = self.owners.get(partition as usize).copied().flatten();
        owner.is_some_and(|slot| self.members.get(&slot) == Some(&client))
    }

    /// Adds a client under the lowest free slot. Whether it was not a member before.
    // spec SES-34
    pub fn join(&mut self, client: ClientId) -> bool {
        if self.slot_of(client).is_some() {
            return false;
        }
        let taken = (0u32..).zip(self.members.keys());
        let slot = taken
            .take_while(|(expected, slot)| expected == *slot)
            .count() as u32;
        self.members.insert(slot, client);
        self.deal_free(slot);
        self.take_surplus(slot);
        self.generation += 1;
        true
    }

    /// The newcomer gets what nobody owns: all of it when it is the first.
    fn deal_free(&mut self, newcomer: u32) {
        for owner in self.owners.iter_mut().filter(|owner| owner.is_none()) {
            *owner = Some(newcomer);
        }
    }

    /// Members above the fair share give their highest partitions, the richest first, until the
    /// newcomer has a fair share. Takes time in proportion to the partitions of the topic.
    fn take_surplus(&mut self, newcomer: u32) {
        let share = (self.owners.len() / self.members.len()).max(1);
        let mut owned: BTreeMap<u32, Vec<usize>> = self
            .members
            .keys()
            .map(|slot| (*slot, Vec::new()))
            .collect();
        for (partition, owner) in self.owners.iter().enumerate() {
            let slot = owner.expect("what was free went to the newcomer");
            let partitions = owned.get_mut(&slot).expect("invariant 2");
            partitions.push(partition);
        }
        let mut held = owned
            .remove(&newcomer)
            .expect("the newcomer is a member")
            .len();
        while held < share {
            let richest = owned
                .iter_mut()
                .max_by_key(|(slot, partitions)| (partitions.len(), u32::MAX - **slot));
            let Some((_, partitions)) = richest else {
                return;
            };
            // Nobody has more than the newcomer would have: nothing to even out.
            if partitions.len() <= share {
                return;
            }
            let highest = partitions
                .pop()
                .expect("the richest has more than its share");
            self.owners[highest] = Some(newcomer);
            held += 1;
        }
    }

    /// Removes a client and deals all partitions anew. Whether it was a member.
    // spec SES-34
    pub fn leave(&mut self, client: ClientId) -> bool {
        let Some(slot) = self.slot_of(client) else {
            return false;
        };
        self.members.remove(&slot);
        self.deal();
        true
    }

    /// The topic has so many partitions now: all are dealt anew.
    pub fn resize(&mut self, partitions: usize) {
        self.owners = vec![None; partitions];
        self.deal();
    }

    /// Partition i goes to member i modulo their number, in the order of slots.
    fn deal(&mut self) {
        let slots: Vec<u32> = self.members.keys().copied().collect();
        for (partition, owner) in self.owners.iter_mut().enumerate() {
            *owner = match slots.is_empty() {
                true => None,
                false => Some(slots[partition % slots.len()]),
            };
        }
        self.generation += 1;
    }

    /// The owners by partition, for the snapshot.
    pub(crate) fn owners(&self) -> &[Option<u32>] {
        &self.owners
    }

    /// A group as a snapshot holds it. `None` where invariant 1 or 2 does not hold.
    pub(crate) fn assemble(
        id: u32,
        name: Arc<str>,
        generation: u64,
        members: BTreeMap<u32, ClientId>,
        owners: Vec<Option<u32>>,
    ) -> Option<Group> {
        let clients: BTreeSet<ClientId> = members.values().copied().collect();
        let all_owned = owners.iter().all(|owner| match owner {
            Some(slot) => members.contains_key(slot),
            None => members.is_empty(),
        });
        let valid = clients.len() == members.len() && all_owned;
        valid.then_some(Group {
            id,
            name,
            generation,
            members,
            owners,
        })
    }
}

/// The groups of a topic.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Groups {
    groups: OrdMap<u32, Arc<Group>>,
    by_name: OrdMap<Arc<str>, u32>,
    next_id: u32,
}

impl Groups {
    /// The group that an identifier names.
    pub fn get(&self, group: Identifier<'_>) -> Option<&Arc<Group>> {
        match group {
            Identifier::Numeric(id) => self.groups.get(&id),
            Identifier::Named(name) => self.groups.get(self.by_name.get(name.as_str())?),
        }
    }

    /// The group with this number.
    pub fn by_id(&self, id: u32) -> Option<&Arc<Group>> {
        self.groups.get(&id)
    }

    /// All groups, by id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Group>> {
        self.groups.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The id of the next group.
    pub(crate) fn next_id(&self) -> u32 {
        self.next_id
    }

    /// Adds a group over so many partitions. Its name must be free.
    pub(crate) fn create(&mut self, name: &str, partitions: usize) -> u32 {
        let id = self.next_id;
        self.next_id += 1;
        let name: Arc<str> = name.into();
        let taken = self.by_name.insert(name.clone(), id);
        assert!(taken.is_none(), "the name of a new group is free");
        let group = Group::new(id, name, partitions);
        self.groups.insert(id, Arc::new(group));
        id
    }

    /// Removes a group and returns it.
    pub(crate) fn remove(&mut self, id: u32) -> Arc<Group> {
        let removed = self.groups.remove(&id);
        let removed = removed.expect("a group that is removed was found before");
        self.by_name.remove(&removed.name);
        removed
    }

    /// Changes a group in place.
    pub(crate) fn change<T>(&mut self, id: u32, change: impl FnOnce(&mut Group) -> T) -> T {
        let group = self.groups.get_mut(&id);
        change(Arc::make_mut(
            group.expect("a group that is changed was found before"),
        ))
    }

    /// The topic has so many partitions now.
    pub(crate) fn resize(&mut self, partitions: usize) {
        let ids: Vec<u32> = self.groups.keys().copied().collect();
        for id in ids {
            self.change(id, |group| group.resize(partitions));
        }
    }

    /// The groups that a snapshot holds, by rising id. `None` where an id or a name cannot be.
    pub(crate) fn assemble(next_id: u32, groups: Vec<Group>) -> Option<Groups> {
        let mut assembled = Groups {
            next_id,
            ..Groups::default()
        };
        for group in groups {
            let (id, name) = (group.id, group.name.clone());
            let id_fits = id < next_id && assembled.groups.insert(id, Arc::new(group)).is_none();
            if !id_fits || assembled.by_name.insert(name, id).is_some() {
                return None;
            }
        }
        Some(assembled)
    }
}

/// Which groups every client is a member of. Derived from the groups; never stored.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Memberships(BTreeMap<ClientId, BTreeSet<GroupKey>>);

impl Memberships {
    /// The groups of a client, in order.
    pub fn of(&self, client: ClientId) -> impl Iterator<Item = GroupKey> {
        self.0.get(&client).into_iter().flatten().copied()
    }

    /// What the groups of a catalog come to.
    pub(crate) fn derive(catalog: &Catalog) -> Memberships {
        let mut memberships = Memberships::default();
        for stream in catalog.streams() {
            for topic in stream.topics() {
                for group in topic.groups.iter() {
                    for (_, client) in group.members() {
                        memberships.add(client, (stream.id, topic.id, group.id));
                    }
                }
            }
        }
        memberships
    }

    pub(crate) fn add(&mut self, client: ClientId, group: GroupKey) {
        self.0.entry(client).or_default().insert(group);
    }

    pub(crate) fn remove(&mut self, client: ClientId, group: GroupKey) {
        let Some(groups) = self.0.get_mut(&client) else {
            return;
        };
        groups.remove(&group);
        if groups.is_empty() {
            self.0.remove(&client);
        }
    }

    /// All groups that a client was in; it is in none from now on.
    pub(crate) fn take(&mut self, client: ClientId) -> BTreeSet<GroupKey> {
        self.0.remove(&client).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u128) -> ClientId {
        ClientId(number)
    }

    fn owned(group: &Group) -> Vec<Vec<u32>> {
        let slots = group.members().map(|(slot, _)| slot);
        slots
            .map(|slot| group.partitions_of(slot).collect())
            .collect()
    }

    #[test]
    fn the_first_member_owns_everything_and_a_newcomer_takes_the_highest_of_the_richest() {
        let mut group = Group::new(0, "g".into(), 4);
        assert!(group.join(client(1)));
        assert_eq!(owned(&group), [vec![0, 1, 2, 3]]);
        assert!(group.join(client(2)));
        assert_eq!(owned(&group), [vec![0, 1], vec![2, 3]]);
        assert!(group.join(client(3)));
        assert_eq!(owned(&group), [vec![0], vec![2, 3], vec![1]]);
        assert_eq!(group.generation, 3);
        assert!(!group.join(client(2)), "joining again changes nothing");
        assert_eq!(group.generation, 3);
    }

    #[test]
    fn members_beyond_the_partitions_own_nothing_until_somebody_leaves() {
        let mut group = Group::new(0, "g".into(), 2);
        for number in 1..=3 {
            group.join(client(number));
        }
        assert_eq!(owned(&group), [vec![0], vec![1], vec![]]);
        assert!(!group.owns(client(3), 0));
        assert!(group.leave(client(1)));
        assert_eq!(owned(&group), [vec![0], vec![1]]);
        assert!(group.owns(client(2), 0) && group.owns(client(3), 1));
        assert!(!group.leave(client(1)));
    }

    #[test]
    fn every_partition_has_one_owner_whatever_happens() {
        // All sequences of six joins and leaves of three clients, over 0 to 4 partitions.
        for partitions in 0..=4 {
            for mut code in 0..6u32.pow(6) {
                let mut group = Group::new(0, "g".into(), partitions);
                for _ in 0..6 {
                    let (who, leaves) = (client(1 + u128::from(code % 3)), code % 6 >= 3);
                    code /= 6;
                    match leaves {
                        true => group.leave(who),
                        false => group.join(who),
                    };
                    let members = group.members();
                    let copy = Group::assemble(
                        0,
                        "g".into(),
                        group.generation,
                        members.collect(),
                        group.owners().to_vec(),
                    );
                    assert_eq!(copy.as_ref(), Some(&group), "invariants 1 and 2");
                    let counts = owned(&group).into_iter().map(|owned| owned.len());
                    if let (Some(least), Some(most)) = (counts.clone().min(), counts.max()) {
                        assert!(most - least <= 2, "shares are nearly even");
                        assert!(least > 0 || partitions < group.members().len());
                    }
                }
            }
        }
    }

    #[test]
    fn a_free_slot_is_the_lowest_and_ids_of_groups_are_not_reused() {
        let mut group = Group::new(0, "g".into(), 1);
        group.join(client(1));
        group.join(client(2));
        group.leave(client(1));
        group.join(client(3));
        assert_eq!(group.slot_of(client(3)), Some(0));
        let mut groups = Groups::default();
        let first = groups.create("a", 1);
        groups.remove(first);
        assert_eq!(groups.create("a", 1), first + 1);
    }
}
