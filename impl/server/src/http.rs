//! The small HTTP listener: `/ping`, `/health`, `/ready`, and the metrics.
//!
//! It runs on a thread of its own, so that a scrape never delays a client of the binary protocol.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::registry::Registry;
use tokio::sync::oneshot;

use crate::metrics;

/// Content type of the metrics.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Where a node is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Phase {
    /// Reading its data.
    Starting = 0,
    /// Serving.
    Serving = 1,
    /// Going down.
    Stopping = 2,
}

/// The phase, shared between threads.
#[derive(Debug, Default)]
pub struct PhaseCell(AtomicU8);

impl PhaseCell {
    /// Moves on to `phase`.
    pub fn set(&self, phase: Phase) {
        self.0.store(phase as u8, Ordering::Release);
    }

    /// The phase.
    pub fn get(&self) -> Phase {
        match self.0.load(Ordering::Acquire) {
            0 => Phase::Starting,
            1 => Phase::Serving,
            _ => Phase::Stopping,
        }
    }
}

/// What the pages are made of.
pub struct Pages {
    /// Where the node is in its life.
    pub phase: Arc<PhaseCell>,
    /// What is counted.
    pub registry: Registry,
    /// Brings gauges up to date right before they are printed.
    pub refresh: Box<dyn Fn() + Send + Sync>,
    /// Under which path metrics are served; `None`: not at all.
    pub metrics_path: Option<String>,
}

/// The running listener.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl HttpServer {
    /// Where it really listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it. When this returns nothing of the pages is held any more.
    pub fn stop(self) {
        // It may have ended by itself.
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// Serves `pages` on a bound listener, on a thread of its own.
pub fn serve(listener: std::net::TcpListener, pages: Pages) -> std::io::Result<HttpServer> {
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let (stop, stopped) = oneshot::channel::<()>();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    let router = router(pages);
    let thread = std::thread::Builder::new()
        .name("http".to_owned())
        .spawn(move || {
            runtime.block_on(async move {
                let listener = match tokio::net::TcpListener::from_std(listener) {
                    Ok(listener) => listener,
                    Err(error) => {
                        tracing::error!(%error, "the HTTP listener cannot be used");
                        return;
                    }
                };
                tokio::select! {
                    served = axum::serve(listener, router) => if let Err(error) = served {
                        tracing::error!(%error, "the HTTP listener ended");
                    },
                    _ = stopped => {}
                }
            });
        })?;
    Ok(HttpServer {
        address,
        stop,
        thread,
    })
}

fn router(pages: Pages) -> Router {
    let mut router = Router::new()
        .route("/", get(|| async { "pawl\n" }))
        .route("/ping", get(|| async { "pong" }))
        .route("/health", get(health))
        .route("/ready", get(ready));
    if let Some(path) = pages
        .metrics_path
        .as_deref()
        .filter(|path| !["/", "/ping", "/health", "/ready"].contains(path))
    {
        router = router.route(path, get(print_metrics));
    }
    router.with_state(Arc::new(pages))
}

/// The process lives and its parts answer.
async fn health() -> Response {
    (StatusCode::OK, "healthy\n").into_response()
}

/// The node serves clients.
async fn ready(State(pages): State<Arc<Pages>>) -> Response {
    match pages.phase.get() {
        Phase::Serving => (StatusCode::OK, "ready\n").into_response(),
        Phase::Starting => (StatusCode::SERVICE_UNAVAILABLE, "starting\n").into_response(),
        Phase::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response(),
    }
}

async fn print_metrics(State(pages): State<Arc<Pages>>) -> Response {
    (pages.refresh)();
    let text = metrics::print(&pages.registry);
    ([(header::CONTENT_TYPE, METRICS_TYPE)], text).into_response()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn fetch(address: SocketAddr, path: &str) -> String {
        let mut stream = std::net::TcpStream::connect(address).expect("connected");
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        answer
    }

    #[test]
    fn pages_follow_the_phase() {
        let phase = Arc::new(PhaseCell::default());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
        let server = serve(
            listener,
            Pages {
                phase: phase.clone(),
                registry: crate::metrics::Metrics::default().registry(),
                refresh: Box::new(|| {}),
                metrics_path: Some("/metrics".to_owned()),
            },
        )
        .expect("serves");
        let fetch = |path| fetch(server.address(), path);
        assert!(fetch("/ping").ends_with("pong"));
        assert!(fetch("/ready").starts_with("HTTP/1.1 503"));
        phase.set(Phase::Serving);
        assert!(fetch("/ready").starts_with("HTTP/1.1 200"));
        assert!(fetch("/health").starts_with("HTTP/1.1 200"));
        assert!(fetch("/metrics").contains("pawl_disk_full 0"));
        assert!(fetch("/nothing").starts_with("HTTP/1.1 404"));
        phase.set(Phase::Stopping);
        assert!(fetch("/ready").starts_with("HTTP/1.1 503"));
        server.stop();
    }
}
