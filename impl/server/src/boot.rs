//! Starts and stops a node.
//!
//! Order of a start: the ports (a second server stops here, before it touches any data), the data
//! directory, the machine and the replica, the threads, the file that tells tools where it serves.
//! Order of a stop: the port, the shards (which answer what is in flight), the log thread, the
//! keeper, the log, the sidecars.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use arc_swap::ArcSwap;
use crossbeam_channel::{Receiver, Sender, bounded};
use pawl_store::{Disk, Drainer};
use rand::RngExt;

use crate::clients::Clients;
use crate::config::{
    BoundAddresses, Config, ConfigError, CpuAllocation, Environment, write_runtime_file,
};
use crate::credentials::{Hashers, RootCredentials, RootError};
use crate::http::{self, HttpServer, Pages, Phase, PhaseCell};
use crate::inbox::Inbox;
use crate::limits::SUBMISSIONS_MAX;
use crate::log::batch::WalThread;
use crate::log::driver::{LogDriver, LogEnd, LogFailure, LogParts};
use crate::log::index::Indexer;
use crate::log::keeper::KeeperThreads;
use crate::log::submission::{LogInbox, Submission};
use crate::memory::Budget;
use crate::metrics::Metrics;
use crate::node::{Addresses, Balance, NodeShared};
use crate::recover::{RecoverError, Recovered, recover};
use crate::shard::accept::Acceptor;
use crate::shard::answers::Outbox;
use crate::shard::{ShardThread, now};
use crate::tail::TailCache;

/// What a node is started with.
#[derive(Debug)]
pub struct Start {
    /// The effective configuration.
    pub config: Config,
    /// Where the first user's name and password come from.
    pub environment: Environment,
    /// Name the first user iggy with password iggy where the environment does not say otherwise.
    pub default_root_credentials: bool,
    /// Remove the data directory first.
    pub fresh: bool,
    /// The disk to use instead of the data directory's, for tests.
    pub disk: Option<Arc<dyn Disk>>,
}

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A port cannot be bound.
    #[error("cannot listen on {address} ({key}): {reason}")]
    Bind {
        /// The setting.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system says.
        reason: io::Error,
    },
    /// The first user.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The data directory.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The log failed while the node started.
    #[error(transparent)]
    Log(#[from] LogFailure),
    /// The system refused something.
    #[error("{what}: {reason}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        reason: io::Error,
    },
}

/// How a node ended.
#[derive(Debug)]
pub enum NodeEnd {
    /// As asked; everything acknowledged is kept.
    Stopped,
    /// The log cannot go on.
    Failed(LogFailure),
}

/// Asks a node to stop.
#[derive(Clone, Debug)]
pub struct Stopper {
    events: Sender<Event>,
}

/// What the thread that owns the node waits for.
#[derive(Debug)]
enum Event {
    Stop,
    LogEnded(LogEnd),
}

/// A running node.
#[derive(Debug)]
pub struct Node {
    bound: BoundAddresses,
    root: Option<RootCredentials>,
    phase: Arc<PhaseCell>,
    inbox: LogInbox,
    acceptor: Acceptor,
    shards: Vec<ShardThread>,
    keeper: KeeperThreads,
    log: JoinHandle<()>,
    http: Option<HttpServer>,
    events: (Sender<Event>, Receiver<Event>),
}

impl Stopper {
    /// Asks once; more often changes nothing.
    pub fn stop(&self) {
        // The node has ended if nobody listens.
        let _ = self.events.try_send(Event::Stop);
    }
}

impl Node {
    /// Starts a node. It serves when this returns.
    pub fn start(start: Start) -> Result<Node, StartError> {
        let started_at = now().0;
        let config = start.config;
        let listeners = Listeners::bind(&config)?;
        prepare_directory(&config, start.fresh)?;
        let recovered = recover(
            &config,
            &start.environment,
            start.default_root_credentials,
            start.disk,
        )?;
        let root = recovered.root.clone();
        let metrics = Metrics::default();
        let phase = Arc::new(PhaseCell::default());
        let node = shared(&config, &listeners, &recovered, &metrics, started_at)?;
        let http = serve_http(&config, listeners.http, &node, &phase)?;
        let bound = BoundAddresses {
            tcp: Some(node.addresses.tcp),
            http: node.addresses.http,
        };
        let threads = Threads::start(&config, recovered, &node)?;
        let acceptor = Acceptor::start(
            listeners.tcp,
            threads.shards.iter().map(ShardThread::sockets).collect(),
            node.clients.clone(),
            metrics,
        )
        .map_err(system("starting to accept"))?;
        phase.set(Phase::Serving);
        write_runtime_file(&config, bound).map_err(system("writing the runtime file"))?;
        Ok(Node {
            bound,
            root,
            phase,
            inbox: node.inbox.clone(),
            acceptor,
            shards: threads.shards,
            keeper: threads.keeper,
            log: threads.log,
            http,
            events: threads.events,
        })
    }

    /// Where it listens.
    pub fn bound(&self) -> BoundAddresses {
        self.bound
    }

    /// The first user, if this start made it.
    pub fn root(&self) -> Option<&RootCredentials> {
        self.root.as_ref()
    }

    /// Asks for a stop from elsewhere.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            events: self.events.0.clone(),
        }
    }

    /// Serves until asked to stop, or until the log fails.
    pub fn wait(self) -> NodeEnd {
        let event = self.events.1.recv();
        match event {
            Ok(Event::LogEnded(LogEnd::Failed(failure))) => NodeEnd::Failed(failure),
            Ok(Event::Stop | Event::LogEnded(LogEnd::Stopped(_))) | Err(_) => self.shut_down(),
        }
    }

    /// Stops at once, gracefully.
    pub fn stop(self) -> NodeEnd {
        self.shut_down()
    }

    fn shut_down(self) -> NodeEnd {
        tracing::info!("stopping");
        self.phase.set(Phase::Stopping);
        self.acceptor.stop();
        self.shards.iter().for_each(ShardThread::stop);
        self.shards.into_iter().for_each(ShardThread::join);
        self.inbox.push_reserved(Submission::Stop);
        let end = loop {
            match self.events.1.recv() {
                Ok(Event::LogEnded(end)) => break end,
                Ok(Event::Stop) => {}
                Err(_) => return NodeEnd::Stopped,
            }
        };
        // A panic there has been reported by the thread itself.
        let _ = self.log.join();
        let drainer = self.keeper.join();
        if let Some(http) = self.http {
            http.stop();
        }
        match end {
            LogEnd::Failed(failure) => NodeEnd::Failed(failure),
            LogEnd::Stopped(writer) => match writer.close() {
                Err(error) => NodeEnd::Failed(LogFailure::Disk(error)),
                Ok(()) => {
                    close_drainer(drainer);
                    tracing::info!("stopped");
                    NodeEnd::Stopped
                }
            },
        }
    }
}

fn close_drainer(drainer: Option<Drainer>) {
    // Sidecars are derived: without them the next start takes longer, and loses nothing.
    if let Some(Err(error)) = drainer.map(Drainer::close) {
        tracing::warn!(%error, "the indexes were not saved");
    }
}

/// The bound ports.
struct Listeners {
    tcp: TcpListener,
    http: Option<TcpListener>,
}

impl Listeners {
    fn bind(config: &Config) -> Result<Listeners, StartError> {
        let tcp = bind(&config.tcp.address, "tcp.address")?;
        let http = match config.http.enabled {
            true => Some(bind(&config.http.address, "http.address")?),
            false => None,
        };
        Ok(Listeners { tcp, http })
    }
}

fn bind(text: &str, key: &'static str) -> Result<TcpListener, StartError> {
    let address = crate::config::address(text, key)?;
    TcpListener::bind(address).map_err(|reason| StartError::Bind {
        key,
        address,
        reason,
    })
}

fn system(what: &'static str) -> impl Fn(io::Error) -> StartError {
    move |reason| StartError::System { what, reason }
}

/// Makes the data directory, and removes what an earlier start left that tools would believe.
fn prepare_directory(config: &Config, fresh: bool) -> Result<(), StartError> {
    let directory = config.data_dir();
    if fresh && directory.exists() {
        fs::remove_dir_all(&directory).map_err(system("removing the data directory"))?;
    }
    fs::create_dir_all(&directory).map_err(system("making the data directory"))?;
    match fs::remove_file(config.runtime_file()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(system("removing the old runtime file")(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn shared(
    config: &Config,
    listeners: &Listeners,
    recovered: &Recovered,
    metrics: &Metrics,
    started_at: u64,
) -> Result<Arc<NodeShared>, StartError> {
    let address = |listener: &TcpListener| listener.local_addr();
    let tcp = address(&listeners.tcp).map_err(system("reading the bound address"))?;
    let http = listeners.http.as_ref().map(address).transpose();
    let request_bytes_max = config.memory.request_bytes_max.0;
    metrics.request_bytes_max.set(request_bytes_max as i64);
    metrics.cache_bytes_max.set(config.cache.bytes_max.0 as i64);
    let catalog = recovered.replica.machine().catalog().clone();
    Ok(Arc::new(NodeShared {
        inbox: Arc::new(Inbox::new(SUBMISSIONS_MAX)),
        catalog: Arc::new(ArcSwap::from_pointee(catalog)),
        index: recovered.store.index.clone(),
        tail: Arc::new(TailCache::new(config.cache.bytes_max.0)),
        reader: recovered.store.reader.clone(),
        status: recovered.store.status.clone(),
        clients: Arc::new(Clients::default()),
        hashers: Hashers::start().map_err(system("starting the hashing threads"))?,
        metrics: metrics.clone(),
        budget: Budget::new(request_bytes_max),
        frame_bytes_max: config.message_bus.max_message_size.0 as u32,
        balance: Balance::default(),
        addresses: Addresses {
            tcp,
            http: http.map_err(system("reading the bound address"))?,
        },
        started_at,
        boot: rand::rng().random(),
        secret: recovered.secret,
        data_dir: config.data_dir(),
    }))
}

fn serve_http(
    config: &Config,
    listener: Option<TcpListener>,
    node: &Arc<NodeShared>,
    phase: &Arc<PhaseCell>,
) -> Result<Option<HttpServer>, StartError> {
    let Some(listener) = listener else {
        return Ok(None);
    };
    let refreshed = node.clone();
    let pages = Pages {
        phase: phase.clone(),
        registry: node.metrics.registry(),
        refresh: Box::new(move || refresh(&refreshed)),
        metrics_path: config
            .http
            .metrics
            .enabled
            .then(|| config.http.metrics.endpoint.clone()),
    };
    http::serve(listener, pages)
        .map(Some)
        .map_err(system("starting the HTTP listener"))
}

/// Brings gauges up to date.
fn refresh(node: &NodeShared) {
    let metrics = &node.metrics;
    metrics.log_applied_op.set(node.index.applied_op().0 as i64);
    metrics.log_bytes.set(node.status.log_bytes() as i64);
    metrics
        .log_bytes_max
        .set(node.status.log_bytes_max() as i64);
    metrics.disk_full.set(node.status.disk_full().into());
    metrics.request_bytes.set(node.budget.used() as i64);
    metrics.cache_bytes.set(node.tail.bytes() as i64);
    metrics.logins_waiting.set(node.hashers.waiting() as i64);
    metrics.log_inbox.set(node.inbox.len() as i64);
}

/// The threads behind the shards, and the shards.
struct Threads {
    shards: Vec<ShardThread>,
    keeper: KeeperThreads,
    log: JoinHandle<()>,
    events: (Sender<Event>, Receiver<Event>),
}

impl Threads {
    fn start(
        config: &Config,
        recovered: Recovered,
        node: &Arc<NodeShared>,
    ) -> Result<Threads, StartError> {
        let cores = shard_cores(config);
        let outboxes: Vec<Arc<Outbox>> = cores.iter().map(|_| Arc::default()).collect();
        let events = bounded(4);
        let store = recovered.store;
        let (keeper, keeper_threads) = KeeperThreads::start(
            store.checkpointer,
            store.drainer,
            store.preparer,
            store.status.clone(),
            node.inbox.clone(),
        )
        .map_err(system("starting the keeper"))?;
        let mut indexer = Indexer::new(store.index, node.tail.clone());
        for (op, place) in recovered.places {
            indexer.on_recovered(op, place);
        }
        let parts = LogParts {
            replica: recovered.replica,
            effects: recovered.effects,
            status: store.status,
            indexer,
            inbox: node.inbox.clone(),
            outboxes: outboxes.clone(),
            catalog: node.catalog.clone(),
            clients: node.clients.clone(),
            keeper,
            wal: WalThread::start(node.inbox.clone()).map_err(system("starting the WAL thread"))?,
            metrics: node.metrics.clone(),
        };
        let mut driver = LogDriver::new(parts, store.writer);
        driver.settle()?;
        let log = start_log(driver, events.0.clone())?;
        let mut shards = Vec::new();
        for ((number, core), outbox) in cores.into_iter().enumerate().zip(outboxes) {
            let shard = ShardThread::start(number, core, node.clone(), outbox)
                .map_err(system("starting a shard"))?;
            shards.push(shard);
        }
        Ok(Threads {
            shards,
            keeper: keeper_threads,
            log,
            events,
        })
    }
}

fn start_log(driver: LogDriver, events: Sender<Event>) -> Result<JoinHandle<()>, StartError> {
    thread::Builder::new()
        .name("log".to_owned())
        .spawn(move || {
            let end = driver.run();
            if let LogEnd::Failed(failure) = &end {
                tracing::error!(%failure, "the log cannot go on: the node stops");
            }
            // The owner waits for this, unless it has given the node up.
            let _ = events.send(Event::LogEnded(end));
        })
        .map_err(system("starting the log thread"))
}

/// One entry per shard: the core it stays on, if any.
fn shard_cores(config: &Config) -> Vec<Option<usize>> {
    let available = available_cores();
    let sharding = &config.system.sharding;
    let cores: Vec<usize> = match sharding.cpu_allocation {
        CpuAllocation::All => available.clone(),
        CpuAllocation::Count(count) => available.iter().copied().cycle().take(count).collect(),
        CpuAllocation::Range(start, end) => (start..end).collect(),
    };
    let pinned = |core: usize| (sharding.pin_cores && available.contains(&core)).then_some(core);
    cores.into_iter().map(pinned).collect()
}

/// The cores that this process may run on; never none.
fn available_cores() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None);
    let cores: Vec<usize> = match set {
        Ok(set) => (0..rustix::thread::CpuSet::MAX_CPU)
            .filter(|core| set.is_set(*core))
            .collect(),
        Err(_) => Vec::new(),
    };
    match cores.is_empty() {
        true => vec![0],
        false => cores,
    }
}

/// What a newcomer is told on standard output.
pub fn greeting(node: &Node, config: &Config) -> String {
    let mut text = String::new();
    let address = |address: Option<SocketAddr>| match address {
        Some(address) => address.to_string(),
        None => "not served".to_owned(),
    };
    let bound = node.bound();
    let data: PathBuf = fs::canonicalize(config.data_dir()).unwrap_or(config.data_dir());
    text += &format!("Pawl {} serves.\n", crate::SERVER_VERSION);
    text += &format!("  clients   {} (binary protocol)\n", address(bound.tcp));
    text += &format!("  HTTP      {} (metrics, health)\n", address(bound.http));
    text += &format!("  data      {}\n", data.display());
    match node.root() {
        Some(root) if root.generated => {
            text += &format!(
                "  log in    as {} with password {} (told only now)\n",
                root.username, root.password
            );
        }
        Some(root) => {
            text += &format!("  log in    as {} with the password given\n", root.username);
        }
        None => text += "  log in    with the users that the data directory holds\n",
    }
    text
}
