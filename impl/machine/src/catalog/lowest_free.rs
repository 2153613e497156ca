//! Visible ids: the lowest free number is given next.
//!
//! Invariants:
//! 1. Every number from `next` on is free.
//! 2. A number below `next` is free exactly when it is in `holes`.
//! 3. `next − 1` is not free. So equal sets of taken numbers have equal representations.

use imbl::OrdSet;

/// Which numbers are taken. See the module.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Ids {
    next: u32,
    holes: OrdSet<u32>,
}

impl Ids {
    /// The number that is given next.
    pub fn lowest_free(&self) -> u32 {
        self.holes.get_min().copied().unwrap_or(self.next)
    }

    /// Takes the lowest free number.
    pub fn take(&mut self) -> u32 {
        match self.holes.remove_min() {
            Some(id) => id,
            None => {
                self.next += 1;
                self.next - 1
            }
        }
    }

    /// Gives a taken number back.
    pub fn release(&mut self, id: u32) {
        assert!(id < self.next, "a number that is given back was taken");
        let free_already = self.holes.insert(id).is_some();
        assert!(!free_already, "a number is given back once");
        while self.next > 0 && self.holes.remove(&(self.next - 1)).is_some() {
            self.next -= 1;
        }
    }

    /// How many numbers are taken.
    pub fn count(&self) -> u32 {
        self.next - self.holes.len() as u32
    }

    /// The representation of these taken numbers, which come in rising order.
    pub fn of_taken(taken: impl Iterator<Item = u32>) -> Ids {
        let mut ids = Ids::default();
        for id in taken {
            assert!(id >= ids.next, "taken numbers rise");
            ids.holes.extend(ids.next..id);
            ids.next = id + 1;
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_lowest_free_number_is_taken(
            steps in prop::collection::vec(any::<(bool, u8)>(), 0..200),
        ) {
            let mut ids = Ids::default();
            let mut taken = BTreeSet::new();
            for (take, pick) in steps {
                if take || taken.is_empty() {
                    let expected = (0..).find(|id| !taken.contains(id)).expect("u32 is large");
                    prop_assert_eq!(ids.lowest_free(), expected);
                    prop_assert_eq!(ids.take(), expected);
                    taken.insert(expected);
                } else {
                    let index = pick as usize % taken.len();
                    let id = *taken.iter().nth(index).expect("the index is below the length");
                    ids.release(id);
                    taken.remove(&id);
                }
                prop_assert_eq!(ids.count() as usize, taken.len());
                prop_assert_eq!(&ids, &Ids::of_taken(taken.iter().copied()));
            }
        }
    }
}
