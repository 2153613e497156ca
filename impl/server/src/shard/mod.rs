//! A shard: one thread with a current-thread runtime that owns connections.
//!
//! The accept loop hands sockets to shards in turn. A shard is told to stop by its inbox's end: it
//! takes no new request, lets those in flight be answered, and ends.

pub mod accept;
pub mod answers;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{SocketAddr, TcpStream as StdTcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use pawl_machine::PawlMachine;
use pawl_vsr::{NotAccepted, Outcome, Refusal, Request};
use pawl_wire::entry::EntryHeader;
use pawl_wire::error_code::ErrorCode;
use pawl_wire::ids::Timestamp;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::{AbortHandle, LocalSet, spawn_local};

use crate::gateway::answer::Answered;
use crate::gateway::connection::Connection;
use crate::gateway::frames::ReadContext;
use crate::limits::{ANSWER_WAIT_MAX, STOP_GRACE, SUBMISSIONS_MAX};
use crate::log::submission::Submission;
use crate::memory::Pool;
use crate::metrics::{CommandName, Meter};
use crate::node::NodeShared;
use answers::{Answer, Outbox, Slots};

/// How often a stopping shard looks whether its requests are answered.
const STOP_POLL: Duration = Duration::from_millis(5);

/// How often is looked for requests that have waited too long.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// A socket on its way to a shard. The queue is bounded by `CONNECTIONS_MAX`, at the accept loop.
pub type Socket = (StdTcpStream, SocketAddr);

/// What all tasks of a shard share.
#[derive(Debug)]
pub struct Shard {
    /// What all shards share.
    pub node: Arc<NodeShared>,
    /// What connections read with.
    pub read: ReadContext,
    /// What is counted per request.
    pub meter: Meter,
    slots: Rc<Slots>,
    busy: Rc<Cell<usize>>,
    stopping: Cell<bool>,
}

/// The log thread has not answered for `ANSWER_WAIT_MAX`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the log has not answered in time")]
pub struct InDoubt;

impl InDoubt {
    /// What a read is answered with: it has had no effect.
    pub const fn of_a_read(self) -> ErrorCode {
        ErrorCode::TransientNotAccepted
    }
}

/// Counts a request that is being answered, until it is.
#[derive(Debug)]
pub struct Busy(Rc<Cell<usize>>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Shard {
    fn new(number: usize, node: Arc<NodeShared>) -> Rc<Shard> {
        Rc::new(Shard {
            read: ReadContext::new(Pool::default(), node.budget.clone(), node.frame_bytes_max),
            meter: Meter::new(&node.metrics),
            slots: Slots::new(number),
            busy: Rc::new(Cell::new(0)),
            stopping: Cell::new(false),
            node,
        })
    }

    /// Marks that a request is being answered.
    pub fn begin_request(&self) -> Busy {
        self.busy.set(self.busy.get() + 1);
        Busy(self.busy.clone())
    }

    /// Whether the node stops.
    pub fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// Proposes an entry and waits for its outcome. A full queue is "not accepted" at once.
    pub async fn propose(&self, mut header: EntryHeader, body: Bytes) -> Result<Outcome, InDoubt> {
        // Here for every proposal, since an entry that does not cover its body is damage later.
        header.set_body(&body);
        let pending = self.slots.open();
        let request = Request {
            ticket: pending.ticket(),
            header,
            body,
            now: now(),
        };
        if self
            .node
            .inbox
            .push(Submission::Propose(Box::new(request)))
            .is_err()
        {
            let full = NotAccepted::PipelineOps {
                ops: SUBMISSIONS_MAX as u32,
                ops_max: SUBMISSIONS_MAX as u32,
            };
            return Ok(Outcome::Refused(Refusal::NotAccepted(full)));
        }
        match pending.answer().await {
            Answer::Outcome(outcome) => Ok(outcome),
            Answer::InDoubt => Err(InDoubt),
            Answer::Value(_) => unreachable!("a proposal is answered by its outcome"),
        }
    }

    /// Asks the machine, on the log thread, between two steps.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&PawlMachine) -> T + Send + 'static,
    ) -> Result<T, InDoubt> {
        let pending = self.slots.open();
        // A question is cheap and bounded by the connections: it is never turned away.
        self.node.inbox.push_reserved(Submission::Ask {
            ticket: pending.ticket(),
            question: Box::new(|machine| Box::new(question(machine))),
        });
        match pending.answer().await {
            Answer::Value(value) => Ok(*value
                .downcast()
                .expect("a question is answered with its own value")),
            Answer::InDoubt => Err(InDoubt),
            Answer::Outcome(_) => unreachable!("a question is answered by a value"),
        }
    }
}

/// The node's clock.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp(since.map_or(0, |since| since.as_micros() as u64))
}

/// The running thread of a shard.
#[derive(Debug)]
pub struct ShardThread {
    sockets: UnboundedSender<Socket>,
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl ShardThread {
    /// Starts shard `number`, on `core` if one is given.
    pub fn start(
        number: usize,
        core: Option<usize>,
        node: Arc<NodeShared>,
        outbox: Arc<Outbox>,
    ) -> std::io::Result<ShardThread> {
        let (sockets, queue) = unbounded_channel();
        let (stop, stopped) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let thread = thread::Builder::new()
            .name(format!("shard-{number}"))
            .spawn(move || {
                if let Some(core) = core {
                    pin(core);
                }
                let local = LocalSet::new();
                local.block_on(&runtime, async move {
                    let shard = Shard::new(number, node);
                    run(shard, queue, stopped, outbox).await;
                });
            })?;
        Ok(ShardThread {
            sockets,
            stop,
            thread,
        })
    }

    /// The way of sockets to this shard.
    pub fn sockets(&self) -> UnboundedSender<Socket> {
        self.sockets.clone()
    }

    /// Asks the shard to stop.
    pub fn stop(&self) {
        // Nobody hears it if the shard is gone already.
        let _ = self.stop.send(true);
    }

    /// Waits for its end.
    pub fn join(self) {
        drop(self.sockets);
        // A panic there has been reported by the thread itself.
        let _ = self.thread.join();
    }
}

async fn run(
    shard: Rc<Shard>,
    mut sockets: UnboundedReceiver<Socket>,
    mut stopped: watch::Receiver<bool>,
    outbox: Arc<Outbox>,
) {
    let pump = spawn_local({
        let slots = shard.slots.clone();
        async move { slots.pump(&outbox).await }
    });
    let sweeper = spawn_local({
        let slots = shard.slots.clone();
        async move {
            loop {
                tokio::time::sleep(SWEEP_INTERVAL).await;
                slots.sweep(ANSWER_WAIT_MAX.as_secs() / SWEEP_INTERVAL.as_secs());
            }
        }
    });
    let tasks: Rc<RefCell<HashMap<u64, AbortHandle>>> = Rc::default();
    let mut next_task = 0;
    loop {
        tokio::select! {
            socket = sockets.recv() => match socket {
                Some(socket) => {
                    next_task += 1;
                    begin_connection(&shard, socket, &tasks, next_task);
                }
                None => break,
            },
            _ = stopped.wait_for(|stop| *stop) => break,
        }
    }
    shard.stopping.set(true);
    let deadline = tokio::time::Instant::now() + STOP_GRACE;
    while shard.busy.get() > 0 && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(STOP_POLL).await;
    }
    for (_, task) in tasks.borrow_mut().drain() {
        task.abort();
    }
    pump.abort();
    sweeper.abort();
}

fn begin_connection(
    shard: &Rc<Shard>,
    (socket, address): Socket,
    tasks: &Rc<RefCell<HashMap<u64, AbortHandle>>>,
    number: u64,
) {
    let stream = match TcpStream::from_std(socket) {
        Ok(stream) => stream,
        Err(error) => {
            tracing::warn!(%error, "an accepted socket cannot be used");
            return;
        }
    };
    let task = spawn_local({
        let (shard, tasks) = (shard.clone(), tasks.clone());
        async move {
            shard.node.metrics.connections.inc();
            Connection::serve(shard.clone(), stream, address).await;
            shard.node.metrics.connections.dec();
            tasks.borrow_mut().remove(&number);
        }
    });
    tasks.borrow_mut().insert(number, task.abort_handle());
}

/// Keeps the calling thread on a core. A refusal costs speed, not correctness.
fn pin(core: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    if let Err(error) = rustix::thread::sched_setaffinity(None, &set) {
        tracing::warn!(core, %error, "a shard cannot be kept on its core");
    }
}

impl Meter {
    /// Counts an answered request.
    pub fn count(&self, command: CommandName, answered: &Answered) {
        match answered {
            Answered::Frame(_) | Answered::Pieces(_) => self.ok(command),
            Answered::Refused(_, code) => self.refused(command, Some(code.name())),
            Answered::Evicted(_) => self.refused(command, None),
        }
    }
}
