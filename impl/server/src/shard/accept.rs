//! The accept loop: one thread, which hands sockets to shards in turn.
//!
//! One listener, without address sharing, so that a second server on the port fails to bind.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use super::Socket;
use crate::clients::Clients;
use crate::limits::CONNECTIONS_MAX;
use crate::metrics::Metrics;

/// How long the loop rests after an error such as "too many open files".
const ERROR_PAUSE: Duration = Duration::from_millis(20);

/// The running loop.
#[derive(Debug)]
pub struct Acceptor {
    address: std::net::SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Acceptor {
    /// Starts to accept.
    pub fn start(
        listener: TcpListener,
        shards: Vec<UnboundedSender<Socket>>,
        clients: Arc<Clients>,
        metrics: Metrics,
    ) -> io::Result<Acceptor> {
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let stop = stop.clone();
            thread::Builder::new()
                .name("accept".to_owned())
                .spawn(move || accept(&listener, &shards, &clients, &metrics, &stop))?
        };
        Ok(Acceptor {
            address,
            stop,
            thread,
        })
    }

    /// Stops to accept: the port is closed when this returns.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Release);
        // The loop waits for a connection; it gets one. If that fails, it has ended by itself.
        let _ = std::net::TcpStream::connect(self.address);
        let _ = self.thread.join();
    }
}

fn accept(
    listener: &TcpListener,
    shards: &[UnboundedSender<Socket>],
    clients: &Clients,
    metrics: &Metrics,
    stop: &AtomicBool,
) {
    let mut turn = 0;
    loop {
        let accepted = listener.accept();
        if stop.load(Ordering::Acquire) {
            return;
        }
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                thread::sleep(ERROR_PAUSE);
                continue;
            }
        };
        metrics.connections_accepted.inc();
        if clients.count() >= CONNECTIONS_MAX {
            metrics.closed("too_many_connections");
            continue; // Dropping the socket closes it.
        }
        if let Err(error) = stream.set_nonblocking(true) {
            tracing::warn!(%error, "an accepted socket cannot be used");
            continue;
        }
        if shards[turn % shards.len()].send((stream, address)).is_err() {
            return; // The shard has ended: the node stops.
        }
        turn += 1;
    }
}
