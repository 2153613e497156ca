//! Streams and topics as acknowledged writes make them, and as the server lists them. Pure.
//!
//! Every write here is one whose second execution would show: a second create, rename or delete is
//! refused, and a second change of a partition count leaves another count.

use std::collections::BTreeMap;

use super::workload::Action;

/// A topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topic {
    /// Its number; `None` while the answer that names it is not known.
    pub id: Option<u32>,
    /// Its partitions.
    pub partitions: u32,
}

/// A stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stream {
    /// Its number; `None` while the answer that names it is not known.
    pub id: Option<u32>,
    /// Its topics by name.
    pub topics: BTreeMap<String, Topic>,
}

/// Streams by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Catalog(pub BTreeMap<String, Stream>);

impl Catalog {
    /// The streams whose name begins with `prefix`.
    pub fn of_prefix(&self, prefix: &str) -> Catalog {
        let own = self.0.iter().filter(|(name, _)| name.starts_with(prefix));
        Catalog(
            own.map(|(name, stream)| (name.clone(), stream.clone()))
                .collect(),
        )
    }

    /// Carries out an action that succeeds exactly once. `id` is the number that its answer named.
    pub fn apply(&mut self, action: &Action, id: Option<u32>) {
        match action {
            Action::Produce(_) | Action::StoreOffset { .. } | Action::CreateTaken { .. } => (),
            Action::CreateStream { name } => {
                let topics = BTreeMap::new();
                self.0.insert(name.clone(), Stream { id, topics });
            }
            Action::RenameStream { name, to } => {
                let stream = self.0.remove(name).unwrap_or_default();
                self.0.insert(to.clone(), stream);
            }
            Action::DeleteStream { name } => {
                self.0.remove(name);
            }
            Action::CreateTopic {
                stream,
                name,
                partitions,
            } => {
                let partitions = *partitions;
                self.topics(stream)
                    .insert(name.clone(), Topic { id, partitions });
            }
            Action::RenameTopic { stream, name, to } => {
                let topics = self.topics(stream);
                if let Some(topic) = topics.remove(name) {
                    topics.insert(to.clone(), topic);
                }
            }
            Action::DeleteTopic { stream, name } => {
                self.topics(stream).remove(name);
            }
            Action::CreatePartitions {
                stream,
                topic,
                count,
            } => self.change_partitions(stream, topic, i64::from(*count)),
            Action::DeletePartitions {
                stream,
                topic,
                count,
            } => self.change_partitions(stream, topic, -i64::from(*count)),
        }
    }

    fn topics(&mut self, stream: &str) -> &mut BTreeMap<String, Topic> {
        &mut self.0.entry(stream.to_owned()).or_default().topics
    }

    fn change_partitions(&mut self, stream: &str, topic: &str, change: i64) {
        if let Some(topic) = self.topics(stream).get_mut(topic) {
            let partitions = i64::from(topic.partitions) + change;
            topic.partitions = u32::try_from(partitions).unwrap_or(0);
        }
    }

    /// Whether this is what `observed` shows: names, partition counts, and the numbers that are
    /// known.
    pub fn agrees(&self, observed: &Catalog) -> bool {
        let id = |known: Option<u32>, found: Option<u32>| known.is_none() || known == found;
        self.0.len() == observed.0.len()
            && self.0.iter().all(|(name, stream)| {
                observed.0.get(name).is_some_and(|other| {
                    id(stream.id, other.id)
                        && stream.topics.len() == other.topics.len()
                        && stream.topics.iter().all(|(name, topic)| {
                            other.topics.get(name).is_some_and(|other| {
                                id(topic.id, other.id) && topic.partitions == other.partitions
                            })
                        })
                })
            })
    }

    /// Short text for a finding.
    pub fn describe(&self) -> String {
        let number = |id: Option<u32>| id.map_or("?".to_owned(), |id| id.to_string());
        let mut text = String::new();
        for (name, stream) in &self.0 {
            text += &format!(" {name}#{}", number(stream.id));
            for (name, topic) in &stream.topics {
                text += &format!("/{name}#{}x{}", number(topic.id), topic.partitions);
            }
        }
        match text.is_empty() {
            true => "nothing".to_owned(),
            false => text.trim_start().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog(actions: &[Action]) -> Catalog {
        let mut catalog = Catalog::default();
        for action in actions {
            catalog.apply(action, Some(1));
        }
        catalog
    }

    fn base() -> Vec<Action> {
        let text = str::to_owned;
        vec![
            Action::CreateStream { name: text("s") },
            Action::CreateTopic {
                stream: text("s"),
                name: text("t"),
                partitions: 2,
            },
        ]
    }

    fn more(count: u32) -> Action {
        Action::CreatePartitions {
            stream: "s".to_owned(),
            topic: "t".to_owned(),
            count,
        }
    }

    #[test]
    fn a_doubled_metadata_write_is_found() {
        let mut once = base();
        once.push(more(3));
        let mut twice = once.clone();
        twice.push(more(3));
        assert!(catalog(&once).agrees(&catalog(&once)));
        assert!(!catalog(&once).agrees(&catalog(&twice)));
    }

    #[test]
    fn a_lost_metadata_write_is_found() {
        assert!(!catalog(&base()).agrees(&Catalog::default()));
        assert!(!catalog(&base()).agrees(&catalog(&base()[..1])));
    }

    #[test]
    fn another_number_is_found_and_an_unknown_one_passes() {
        let mut open = Catalog::default();
        let mut other = Catalog::default();
        for action in base() {
            open.apply(&action, None);
            other.apply(&action, Some(2));
        }
        assert!(!catalog(&base()).agrees(&other));
        assert!(open.agrees(&other));
    }

    #[test]
    fn renames_and_deletes_take_effect() {
        let text = str::to_owned;
        let mut actions = base();
        actions.push(Action::RenameTopic {
            stream: text("s"),
            name: text("t"),
            to: text("u"),
        });
        actions.push(Action::RenameStream {
            name: text("s"),
            to: text("r"),
        });
        assert_eq!(catalog(&actions).describe(), "r#1/u#1x2");
        actions.push(Action::DeleteTopic {
            stream: text("r"),
            name: text("u"),
        });
        assert_eq!(catalog(&actions).describe(), "r#1");
        actions.push(Action::DeleteStream { name: text("r") });
        assert_eq!(catalog(&actions), Catalog::default());
    }
}
