//! Setting up connections, streams and data for a load.

use std::sync::Arc;
use std::time::Duration;

use super::sources::{Arrivals, MetadataSource, Place, PollSource, SendSource, SentTimes, batch};
use super::{Case, Load, Node, Outcome, drive};
use crate::client::Client;
use crate::error::Result;
use crate::lane::{Lane, Shared, Work};

/// Messages of a batch that fills partitions before they are polled.
const FILL_BATCH: u32 = 1000;

/// Puts the load on the node. Streams are new; `poll` fills them first.
pub fn run(load: &Load, node: &Node) -> Result<Outcome> {
    load.check()?;
    match load.case {
        Case::Send => {
            let places = create(load, node)?;
            send(load, node, &places)
        }
        Case::Poll => {
            let places = create(load, node)?;
            // Enough that a poller does not go over the same few batches.
            let bytes = load.bytes.unwrap_or(256 << 20).min(1 << 30);
            fill(load, node, &places, bytes)?;
            poll(load, node, &places)
        }
        Case::EndToEnd => {
            let places = create(load, node)?;
            end_to_end(load, node, &places)
        }
        Case::Metadata => metadata(load, node),
    }
}

impl Load {
    fn work(&self) -> Work {
        Work {
            messages: self.batch.into(),
            bytes: u64::from(self.batch) * self.message_bytes as u64,
        }
    }
}

/// Makes the streams of a load; answers their partitions, those of different streams and different
/// partitions in turn.
pub fn create(load: &Load, node: &Node) -> Result<Vec<Place>> {
    let mut client = Client::sign_in(node.address, &node.credentials)?;
    let mut streams = Vec::new();
    let tag: u32 = rand::random();
    for index in 0..load.streams {
        let name = format!("bench-{tag:08x}-{index}");
        streams.push(client.create_stream(&name, load.partitions)?);
    }
    let places = (0..load.partitions).flat_map(|partition| {
        streams.iter().map(move |(stream, topic)| Place {
            stream: *stream,
            topic: *topic,
            partition,
        })
    });
    Ok(places.collect())
}

/// Sends `bytes` of payload in all, in full batches, to the partitions in turn.
pub fn fill(load: &Load, node: &Node, places: &[Place], bytes: u64) -> Result<Outcome> {
    let filling = Load {
        case: Case::Send,
        batch: FILL_BATCH.min((60_000_000 / load.message_bytes) as u32),
        lanes: places.len(),
        pipeline: 2,
        warm_up: Duration::ZERO,
        bytes: Some(bytes),
        ..load.clone()
    };
    send(&filling, node, places)
}

/// Producers send to the partitions in turn.
pub fn send(load: &Load, node: &Node, places: &[Place]) -> Result<Outcome> {
    let batch = batch(load.batch, load.message_bytes)?;
    let mut lanes = Vec::new();
    for index in 0..load.lanes {
        let session = Client::sign_in(node.address, &node.credentials)?.into_session();
        let place = places[index % places.len()];
        let source = SendSource::new(&session, place, batch.clone(), load.work(), None);
        lanes.push(Lane::new(session.socket, Box::new(source), load.pipeline));
    }
    drive(load, node, lanes, &load.open())
}

/// Consumers poll the partitions in turn.
pub fn poll(load: &Load, node: &Node, places: &[Place]) -> Result<Outcome> {
    let mut lanes = Vec::new();
    for index in 0..load.lanes {
        let session = Client::sign_in(node.address, &node.credentials)?.into_session();
        let place = places[index % places.len()];
        let source = PollSource::new(&session, place, load.work(), None);
        lanes.push(Lane::new(session.socket, Box::new(source), load.pipeline));
    }
    drive(load, node, lanes, &load.open())
}

/// A producer and a consumer for each partition; the consumer polls without a pause.
fn end_to_end(load: &Load, node: &Node, places: &[Place]) -> Result<Outcome> {
    let batch = batch(load.batch, load.message_bytes)?;
    let mut sessions = Vec::new();
    for _ in 0..2 * load.lanes {
        sessions.push(Client::sign_in(node.address, &node.credentials)?.into_session());
    }
    // Producers and consumers get threads of their own.
    let load = Load {
        threads: load.threads.max(2).next_multiple_of(2),
        ..load.clone()
    };
    let shared: Shared = load.open();
    let mut lanes = Vec::new();
    let mut sessions = sessions.into_iter();
    for place in &places[..load.lanes] {
        let sent = Arc::new(SentTimes::default());
        let mut session = || sessions.next().expect("two sessions for each partition");
        let producer = session();
        let source = SendSource::new(
            &producer,
            *place,
            batch.clone(),
            load.work(),
            Some(sent.clone()),
        );
        lanes.push(Lane::new(producer.socket, Box::new(source), load.pipeline));
        let consumer = session();
        let arrivals = Arrivals::new(sent, load.batch.into(), shared.window.from());
        // A poll asks for more than one batch, so that a consumer catches up.
        let work = Work {
            messages: load.work().messages.max(1000),
            bytes: 0,
        };
        let source = PollSource::new(&consumer, *place, work, Some(arrivals));
        lanes.push(Lane::new(consumer.socket, Box::new(source), 1));
    }
    drive(&load, node, lanes, &shared)
}

fn metadata(load: &Load, node: &Node) -> Result<Outcome> {
    let mut lanes = Vec::new();
    let tag: u32 = rand::random();
    for index in 0..load.lanes {
        let session = Client::sign_in(node.address, &node.credentials)?.into_session();
        let source = MetadataSource::new(&session, format!("bench-{tag:08x}-{index}"));
        lanes.push(Lane::new(session.socket, Box::new(source), 1));
    }
    drive(load, node, lanes, &load.open())
}
