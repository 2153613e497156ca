//! The comparisons of catalog and stored offsets find planted faults.

use super::super::workload::Action;
use super::*;

/// Two clients; client 0 has made a stream with a topic of two partitions and stored an offset.
fn workers() -> Vec<Worker> {
    let mut workers = vec![Worker::new(1, 0), Worker::new(1, 1)];
    let workload = &mut workers[0].workload;
    for (action, id) in base() {
        workload.catalog.apply(&action, Some(id));
    }
    workload.stored.insert(2, 40);
    workers
}

fn base() -> [(Action, u32); 2] {
    let stream = Action::CreateStream {
        name: "c0-s1".to_owned(),
    };
    let topic = Action::CreateTopic {
        stream: "c0-s1".to_owned(),
        name: "c0-t2".to_owned(),
        partitions: 2,
    };
    [(stream, 1), (topic, 0)]
}

fn more_partitions() -> Action {
    Action::CreatePartitions {
        stream: "c0-s1".to_owned(),
        topic: "c0-t2".to_owned(),
        count: 2,
    }
}

fn observation(workers: &[Worker]) -> Observation {
    let mut all = Observation {
        partitions: Vec::new(),
        catalog: Default::default(),
        stored: Vec::new(),
        digest: 0,
    };
    for worker in workers {
        all.catalog.0.extend(worker.workload.catalog.0.clone());
        all.stored.push(worker.workload.stored.clone());
    }
    all
}

#[test]
fn what_was_acknowledged_passes() {
    let workers = workers();
    let seen = observation(&workers);
    assert_eq!(compare_catalogs(&workers, &seen), []);
    assert_eq!(compare_stored(&workers, &seen), []);
    assert_eq!(seen.difference(&seen.clone()), None);
}

#[test]
fn a_doubled_metadata_write_is_found() {
    let mut workers = workers();
    let mut seen = observation(&workers);
    workers[0].workload.catalog.apply(&more_partitions(), None);
    seen.catalog.apply(&more_partitions(), None);
    assert_eq!(compare_catalogs(&workers, &seen), []);
    seen.catalog.apply(&more_partitions(), None);
    let found = compare_catalogs(&workers, &seen);
    assert!(matches!(found[..], [Violation::Catalog { client: 0, .. }]));
}

#[test]
fn an_open_write_may_have_taken_effect_once() {
    let mut workers = workers();
    let request = Request::once(CommandCode::CreatePartitions, 9, Vec::new());
    workers[0].open = Some((more_partitions(), request));
    let mut seen = observation(&workers);
    assert_eq!(compare_catalogs(&workers, &seen), []);
    seen.catalog.apply(&more_partitions(), None);
    assert_eq!(compare_catalogs(&workers, &seen), []);
    seen.catalog.apply(&more_partitions(), None);
    assert_eq!(compare_catalogs(&workers, &seen).len(), 1);
}

#[test]
fn a_lost_metadata_write_and_a_stream_of_nobody_are_found() {
    let workers = workers();
    let mut seen = observation(&workers);
    let stream = seen.catalog.0.remove("c0-s1").expect("it was made");
    assert_eq!(compare_catalogs(&workers, &seen).len(), 1);
    seen.catalog.0.insert("other".to_owned(), stream);
    let found = compare_catalogs(&workers, &seen);
    assert!(found.contains(&Violation::ForeignStream("other".to_owned())));
}

#[test]
fn a_lost_or_moved_stored_offset_is_found() {
    let workers = workers();
    let mut seen = observation(&workers);
    seen.stored[0].insert(2, 41);
    assert_eq!(compare_stored(&workers, &seen).len(), 1);
    seen.stored[0].clear();
    assert_eq!(compare_stored(&workers, &seen).len(), 1);
}

#[test]
fn a_restart_that_changes_anything_is_found() {
    let workers = workers();
    let before = observation(&workers);
    let mut after = before.clone();
    after.digest ^= 1;
    assert!(before.difference(&after).is_some());
    let mut after = before.clone();
    after.catalog.apply(&more_partitions(), None);
    assert!(before.difference(&after).is_some());
}
