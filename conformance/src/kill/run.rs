//! The rounds of a run: lives, kills, comparisons.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use pawl_wire::command::CommandCode;

use super::ledger::{Batch, Ledger};
use super::message::Content;
use super::observation::{Observation, observe};
use super::random::Random;
use super::report::{Counters, Report};
use super::violation::Violation;
use super::worker::Worker;
use super::workload::{Workload, create_stream_body, create_topic_body};
use super::{SHARED_PARTITIONS, SHARED_STREAM, SHARED_TOPIC};
use crate::client::{ClientError, Credentials, Request, Session};
use crate::node::{self, Addresses, Node, NodeError, NodeOptions};

/// Most lives of the node in a round, before the comparison.
const LIVES_MAX: u64 = 3;

/// How often, in percent, a start is preceded by one that is killed.
const KILL_AT_START_PERCENT: u64 = 35;

/// The longest that a node lives which is killed while it starts.
const START_LIFE_MS_MAX: u64 = 80;

/// How often, in percent, the time until a kill begins before the clients have signed in.
const KILL_IN_SIGN_IN_PERCENT: u64 = 25;

/// How often the progress is drawn during load.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// Of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KillOptions {
    /// Rounds.
    pub rounds: u64,
    /// Of all that is drawn.
    pub seed: u64,
    /// Clients that write at once.
    pub clients: u16,
    /// The longest load before a kill.
    pub load_ms_max: u64,
    /// The node's binary; `None`: as [`node::binary`] finds it.
    pub binary: Option<PathBuf>,
    /// Further settings of the node.
    pub environment: Vec<(String, String)>,
}

/// Why a run could not begin. What is found afterwards is a [`Violation`].
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The node could not be built or started for the first time.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The first node did not take the stream that everything goes to.
    #[error("setting up: {0}")]
    SetUp(#[from] ClientError),
    /// There is no room for the data directory.
    #[error("a folder for the data: {0}")]
    Folder(std::io::Error),
}

/// What a run needs to remember between its phases.
struct Run<'a> {
    options: &'a KillOptions,
    node: NodeOptions,
    random: Random,
    workers: Vec<Worker>,
    ledger: Ledger,
    counters: Counters,
    start_ms_max: u64,
    progress: &'a dyn Fn(&str),
}

/// Runs the rounds. `progress` is told what happens, `finished` each round that ended well.
/// The data directory is kept where something was found, and its path is in the report.
pub fn run(
    options: &KillOptions,
    progress: &dyn Fn(&str),
    finished: &dyn Fn(u64),
) -> Result<Report, Failure> {
    let begun = Instant::now();
    let binary = match &options.binary {
        Some(path) => path.clone(),
        None => node::binary()?,
    };
    let folder = tempfile::Builder::new()
        .prefix("pawl-kill-")
        .tempdir()
        .map_err(Failure::Folder)?;
    let mut node = NodeOptions::in_folder(&binary, folder.path());
    node.environment.clone_from(&options.environment);
    set_up(&node)?;
    let mut run = Run {
        options,
        node,
        random: Random::new(options.seed, 1),
        workers: (0..options.clients)
            .map(|index| Worker::new(options.seed, index))
            .collect(),
        ledger: Ledger::new(SHARED_PARTITIONS),
        counters: Counters::default(),
        start_ms_max: 0,
        progress,
    };
    let mut violations = Vec::new();
    for round in 0..options.rounds {
        if let Err(found) = run.round(round) {
            violations = found.iter().map(Violation::to_string).collect();
            break;
        }
        run.counters.rounds += 1;
        finished(round);
    }
    if !violations.is_empty() {
        let kept = folder.keep();
        violations.push(format!("data and log are kept in {}", kept.display()));
    }
    Ok(run.report(begun.elapsed(), violations))
}

/// Makes the stream that all clients produce to, in a life of its own.
fn set_up(options: &NodeOptions) -> Result<(), Failure> {
    let (node, addresses) = Node::start(options)?;
    let mut session = Session::open(addresses.tcp, 1, &Credentials::root())?;
    let stream = create_stream_body(SHARED_STREAM);
    let topic = create_topic_body(SHARED_STREAM, SHARED_TOPIC, SHARED_PARTITIONS);
    for (number, code, body) in [
        (1, CommandCode::CreateStream, stream),
        (2, CommandCode::CreateTopic, topic),
    ] {
        let answer = session.exchange(&Request::once(code, number, body))?;
        answer.success()?;
    }
    node.stop()?;
    Ok(())
}

fn broken(error: NodeError) -> Vec<Violation> {
    vec![Violation::Node(error.to_string())]
}

impl Run<'_> {
    fn round(&mut self, round: u64) -> Result<(), Vec<Violation>> {
        for _ in 0..=self.random.below(LIVES_MAX) {
            self.life()?;
        }
        let (node, address) = self.start()?;
        if self.random.percent(50) {
            (self.progress)("comparing before retries");
            self.compare(address)?;
        }
        (self.progress)("retrying");
        self.settle(address)?;
        (self.progress)("comparing");
        let before = self.compare(address)?;
        match self.random.percent(50) {
            true => node.kill().map_err(broken)?,
            false => {
                node.stop().map_err(broken)?;
                self.counters.stops += 1;
            }
        }
        let (node, address) = self.start()?;
        (self.progress)("comparing after a restart");
        let after = self.compare(address)?;
        if let Some(difference) = before.difference(&after) {
            return Err(vec![Violation::RestartChanged(difference)]);
        }
        self.settle(address)?;
        node.kill().map_err(broken)?;
        match self.node.has_panicked() {
            true => Err(vec![Violation::Node(format!("panicked in round {round}"))]),
            false => Ok(()),
        }
    }

    /// Starts the node, now and then after a start that is killed.
    fn start(&mut self) -> Result<(Node, SocketAddr), Vec<Violation>> {
        while self.random.percent(KILL_AT_START_PERCENT) {
            let life = self.random.octaves(1, START_LIFE_MS_MAX);
            let node = Node::spawn(&self.node).map_err(broken)?;
            std::thread::sleep(Duration::from_millis(life));
            node.kill().map_err(broken)?;
            self.counters.kills_at_start += 1;
        }
        let begun = Instant::now();
        let (node, Addresses { tcp, .. }) = Node::start(&self.node).map_err(broken)?;
        let took = begun.elapsed().as_millis() as u64;
        self.start_ms_max = self.start_ms_max.max(took);
        self.counters.starts += 1;
        Ok((node, tcp))
    }

    /// One life under load, ended by SIGKILL at a random instant.
    fn life(&mut self) -> Result<(), Vec<Violation>> {
        let load = Duration::from_millis(self.random.octaves(5, self.options.load_ms_max));
        let in_sign_in = self.random.percent(KILL_IN_SIGN_IN_PERCENT);
        let (node, address) = self.start()?;
        let killed = AtomicBool::new(false);
        let (signed_in, all_signed_in) = mpsc::channel();
        let (progress, ledger) = (self.progress, &self.ledger);
        let workers = &mut self.workers;
        let (ended, results) = std::thread::scope(|scope| {
            let threads: Vec<_> = workers
                .iter_mut()
                .map(|worker| {
                    let signed_in = signed_in.clone();
                    scope.spawn(|| worker.load(address, &killed, signed_in))
                })
                .collect();
            drop(signed_in);
            if !in_sign_in {
                // It ends when every worker has signed in, or has found something.
                let _ = all_signed_in.recv();
            }
            let end = Instant::now() + load;
            while let Some(left) = end.checked_duration_since(Instant::now()) {
                progress(&format!(
                    "load, {} messages confirmed before",
                    ledger.count()
                ));
                std::thread::sleep(left.min(PROGRESS_INTERVAL));
            }
            killed.store(true, Ordering::SeqCst);
            let ended = node.kill();
            let results: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            (ended, results)
        });
        self.counters.kills += 1;
        let mut violations: Vec<Violation> = ended.map_err(broken).err().unwrap_or_default();
        for result in results {
            violations.extend(result.expect("a worker does not panic").err());
        }
        violations.extend(self.confirm());
        match violations.is_empty() {
            true => Ok(()),
            false => Err(violations),
        }
    }

    /// Every client gets its open request answered and repeats its last ones.
    fn settle(&mut self, address: SocketAddr) -> Result<(), Vec<Violation>> {
        let workers = &mut self.workers;
        let results: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = workers
                .iter_mut()
                .map(|worker| scope.spawn(|| worker.settle(address)))
                .collect();
            threads.into_iter().map(|thread| thread.join()).collect()
        });
        let results = results
            .into_iter()
            .map(|result| result.expect("a worker does not panic"));
        let mut violations: Vec<Violation> = results.filter_map(Result::err).collect();
        violations.extend(self.confirm());
        match violations.is_empty() {
            true => Ok(()),
            false => Err(violations),
        }
    }

    /// Takes the workers' confirmations into the ledger.
    fn confirm(&mut self) -> Vec<Violation> {
        let mut violations = Vec::new();
        for worker in &mut self.workers {
            for (batch, base_offset) in worker.confirmed.drain(..) {
                violations.extend(self.ledger.confirm(batch, base_offset).err());
            }
        }
        violations
    }

    /// Reads everything and compares it with what was acknowledged.
    fn compare(&mut self, address: SocketAddr) -> Result<Observation, Vec<Violation>> {
        let observation =
            observe(address, self.options.clients).map_err(|violation| vec![violation])?;
        self.counters.compared += observation.messages();
        let open: Vec<Batch> = self.workers.iter().filter_map(Worker::open_batch).collect();
        let seed = self.options.seed;
        let mut violations = self.ledger.compare(&observation.partitions, &open, |key| {
            let content = Content::of(seed, key);
            Content::fingerprint(&content.payload, &content.headers)
        });
        violations.extend(compare_catalogs(&self.workers, &observation));
        violations.extend(compare_stored(&self.workers, &observation));
        match violations.is_empty() {
            true => Ok(observation),
            false => Err(violations),
        }
    }

    fn report(&self, elapsed: Duration, violations: Vec<String>) -> Report {
        let mut counters = self.counters;
        for worker in &self.workers {
            counters.add(&worker.counters);
        }
        let mut data_files = BTreeMap::new();
        let data_bytes = count_files(&self.node.data, &self.node.data, &mut data_files);
        Report {
            seed: self.options.seed,
            rounds_asked: self.options.rounds,
            clients: self.options.clients,
            seconds: elapsed.as_secs_f64(),
            start_ms_max: self.start_ms_max,
            data_bytes,
            data_files,
            counters,
            violations,
        }
    }
}

/// Each client's streams are what its answered writes make, with or without its open one.
fn compare_catalogs(workers: &[Worker], observation: &Observation) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut owned = 0;
    for (client, worker) in (0u16..).zip(workers) {
        let found = observation.catalog.of_prefix(&Workload::prefix(client));
        owned += found.0.len();
        let expected = &worker.workload.catalog;
        let mut opened = expected.clone();
        if let Some((action, _)) = &worker.open {
            opened.apply(action, None);
        }
        if !expected.agrees(&found) && !opened.agrees(&found) {
            violations.push(Violation::Catalog {
                client,
                expected: expected.describe(),
                found: found.describe(),
            });
        }
    }
    if owned != observation.catalog.0.len() {
        let names = observation.catalog.0.keys();
        let own = |name: &String| {
            (0..workers.len() as u16).any(|client| name.starts_with(&Workload::prefix(client)))
        };
        let foreign = names.filter(|name| !own(name));
        violations.extend(foreign.cloned().map(Violation::ForeignStream));
    }
    violations
}

/// Each client's stored offsets are what its answered writes make, with or without its open one.
fn compare_stored(workers: &[Worker], observation: &Observation) -> Vec<Violation> {
    use super::workload::Action;
    let mut violations = Vec::new();
    for ((client, worker), found) in (0u16..).zip(workers).zip(&observation.stored) {
        let expected = &worker.workload.stored;
        let mut opened = expected.clone();
        if let Some((Action::StoreOffset { partition, offset }, _)) = &worker.open {
            opened.insert(*partition, *offset);
        }
        if expected != found && opened != *found {
            violations.push(Violation::StoredOffsets {
                client,
                expected: format!("{expected:?}"),
                found: format!("{found:?}"),
            });
        }
    }
    violations
}

/// Counts the files below `folder` by the first part of their path, and their bytes.
fn count_files(root: &Path, folder: &Path, files: &mut BTreeMap<String, u64>) -> u64 {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            bytes += count_files(root, &path, files);
            continue;
        }
        bytes += entry.metadata().map_or(0, |metadata| metadata.len());
        let relative = path.strip_prefix(root).unwrap_or(&path);
        let first = relative.components().next();
        let name = first.map_or_else(String::new, |part| {
            part.as_os_str().to_string_lossy().into_owned()
        });
        *files.entry(name).or_default() += 1;
    }
    bytes
}

#[cfg(test)]
#[path = "run_test.rs"]
mod tests;
