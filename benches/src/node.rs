//! Starting and stopping a node of one's own: fresh data directory, free ports.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::client::Credentials;
use crate::error::{BenchError, Doing, Result};
use crate::load::Node;

/// Where a node says what it listens on, below its data directory; it appears when the node is
/// ready.
const READY_FILE: &str = "runtime/current_config.toml";

/// How long a node may take to become ready.
const READY_TIME_MAX: Duration = Duration::from_secs(60);

/// How long a node may take to stop.
const STOP_TIME_MAX: Duration = Duration::from_secs(30);

/// Between two looks at a node that starts or stops.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// Root user of the nodes that are started here.
const ROOT: &str = "iggy";

/// How to start a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeOptions {
    /// The program.
    pub binary: PathBuf,
    /// The data directory.
    pub directory: PathBuf,
    /// Further environment.
    pub environment: Vec<(String, String)>,
}

/// A node that was started here. It is killed when it is dropped.
#[derive(Debug)]
pub struct RunningNode {
    child: Child,
    options: NodeOptions,
    /// From the start of the process to the first accepted connection.
    pub accepted_after: Duration,
    /// From the start of the process to readiness.
    pub ready_after: Duration,
    /// Where it listens and who signs in.
    pub node: Node,
}

/// An address that nobody listens on now.
pub fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).doing("find a free port")?;
    listener.local_addr().doing("find a free port")
}

impl RunningNode {
    /// Starts a node and waits until it is ready.
    pub fn start(options: &NodeOptions) -> Result<RunningNode> {
        let address = free_address()?;
        let ready = options.directory.join(READY_FILE);
        if ready.exists() {
            fs::remove_file(&ready).doing("remove an old readiness file")?;
        }
        let begun = Instant::now();
        let child = Command::new(&options.binary)
            .env("IGGY_SYSTEM_PATH", &options.directory)
            .env("IGGY_ROOT_USERNAME", ROOT)
            .env("IGGY_ROOT_PASSWORD", ROOT)
            .env("IGGY_TCP_ADDRESS", address.to_string())
            .env("IGGY_HTTP_ADDRESS", "127.0.0.1:0")
            .envs(options.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|error| broken(options, format!("does not start: {error}")))?;
        let mut running = RunningNode {
            node: Node {
                address,
                credentials: Credentials {
                    username: ROOT.to_owned(),
                    password: ROOT.to_owned(),
                },
                pid: Some(child.id()),
            },
            child,
            options: options.clone(),
            accepted_after: Duration::ZERO,
            ready_after: Duration::ZERO,
        };
        running.wait_for(begun, "does not listen", |_| {
            TcpStream::connect(address).is_ok()
        })?;
        running.accepted_after = begun.elapsed();
        running.wait_for(begun, "does not become ready", |_| ready.exists())?;
        running.ready_after = begun.elapsed();
        running.node.address = ready_address(&ready)?.unwrap_or(address);
        Ok(running)
    }

    fn wait_for(
        &mut self,
        begun: Instant,
        complaint: &str,
        mut happened: impl FnMut(&Self) -> bool,
    ) -> Result<()> {
        while !happened(self) {
            if let Some(status) = self.child.try_wait().doing("look at the node")? {
                return Err(broken(&self.options, format!("ended with {status}")));
            }
            if begun.elapsed() > READY_TIME_MAX {
                return Err(broken(&self.options, complaint.to_owned()));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Stops it with SIGTERM and waits until it is gone.
    pub fn stop(mut self) -> Result<()> {
        rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM)
            .doing("stop the node")?;
        let begun = Instant::now();
        while self.child.try_wait().doing("look at the node")?.is_none() {
            if begun.elapsed() > STOP_TIME_MAX {
                return Err(broken(&self.options, "does not stop".to_owned()));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Ends it with SIGKILL.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill().doing("kill the node")?;
        self.child.wait().doing("wait for the killed node")?;
        Ok(())
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for RunningNode {
    fn drop(&mut self) {
        // It is gone already after `stop` and `kill`; both calls then do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn broken(options: &NodeOptions, what: String) -> BenchError {
    BenchError::Node {
        binary: options.binary.clone(),
        what,
    }
}

/// The address of the client port in a readiness file.
fn ready_address(path: &Path) -> Result<Option<SocketAddr>> {
    let text = fs::read_to_string(path).doing("read the readiness file")?;
    let config: toml::Table = text.parse().map_err(|error| BenchError::Results {
        path: path.to_owned(),
        what: format!("{error}"),
    })?;
    let address = config.get("tcp").and_then(|tcp| tcp.get("address"));
    Ok(address.and_then(|address| address.as_str()?.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readiness_file_names_the_address() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("ready.toml");
        fs::write(&path, "[tcp]\naddress = \"127.0.0.1:7\"\n").expect("a write");
        let address = ready_address(&path).expect("it is TOML");
        assert_eq!(address, Some(([127, 0, 0, 1], 7).into()));
        fs::write(&path, "[http]\n").expect("a write");
        assert_eq!(ready_address(&path).expect("it is TOML"), None);
        fs::write(&path, "[tcp").expect("a write");
        assert!(ready_address(&path).is_err());
    }

    #[test]
    fn a_program_that_ends_at_once_is_told() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let started = RunningNode::start(&NodeOptions {
            binary: "/bin/false".into(),
            directory: directory.path().to_owned(),
            environment: Vec::new(),
        });
        assert!(matches!(started, Err(BenchError::Node { .. })));
    }
}
