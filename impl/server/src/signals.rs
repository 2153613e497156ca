//! SIGTERM and SIGINT stop the node.

use std::io;
use std::thread;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::boot::Stopper;

/// The signals, caught: from here on they no longer end the process by themselves. A node catches
/// them before it says that it serves, since a tool may ask it to stop right then.
#[derive(Debug)]
pub struct Signals {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Catches the signals. One that arrives before [`Signals::stop`] is kept until then.
    pub fn catch() -> io::Result<Signals> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let (terminate, interrupt) = {
            let _inside = runtime.enter();
            (
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
            )
        };
        Ok(Signals {
            runtime,
            terminate,
            interrupt,
        })
    }

    /// Starts a thread that waits for a signal and then asks the node to stop.
    pub fn stop(self, stopper: Stopper) -> io::Result<()> {
        let Signals {
            runtime,
            mut terminate,
            mut interrupt,
        } = self;
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
}
