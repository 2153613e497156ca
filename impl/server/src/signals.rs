//! SIGTERM and SIGINT stop the node.

use std::io;
use std::thread;

use tokio::signal::unix::{SignalKind, signal};

use crate::boot::Stopper;

/// Starts a thread that waits for a signal and then asks the node to stop.
pub fn stop_on_signal(stopper: Stopper) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let (mut terminate, mut interrupt) = {
        let _inside = runtime.enter();
        (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        )
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = terminate.recv() => tracing::info!("SIGTERM"),
                    _ = interrupt.recv() => tracing::info!("SIGINT"),
                }
            });
            stopper.stop();
        })?;
    Ok(())
}
