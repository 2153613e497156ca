//! A node as a child process: built, started on free ports, killed, stopped.
//!
//! Invariants:
//! 1. A [`Node`] signals the process that it started and no other, by its id; dropping it kills and
//!    reaps that process, whatever went wrong in between.
//! 2. A node is ready when its runtime file appears. The file of an earlier life is removed before
//!    the process starts, so that it cannot be taken for the new one.
//! 3. Every wait has a deadline, and a process that ended is noticed before it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long a node may take until it serves.
pub const READY_DEADLINE: Duration = Duration::from_secs(60);

/// How long a node may take to stop after SIGTERM.
pub const STOP_DEADLINE: Duration = Duration::from_secs(5);

/// How often a file or a process is looked at while waiting for it.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// Bytes of the log's end that an error shows.
const LOG_TAIL_BYTES: usize = 4096;

/// Names the binary to start instead of one that is built.
pub const BINARY_VARIABLE: &str = "PAWL_BINARY";

/// Why a node could not be built, started or stopped.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Cargo could not be started or its output not be read.
    #[error("cargo: {0}")]
    Cargo(io::Error),
    /// Cargo failed, or built no binary of that name.
    #[error("building the node failed: {0}")]
    Build(String),
    /// A file of the node could not be read, written or removed.
    #[error("{}: {error}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The process could not be started or signalled.
    #[error("process: {0}")]
    Process(io::Error),
    /// The process ended by itself.
    #[error("the node ended by itself with {status}; the end of its log:\n{log}")]
    Ended {
        /// How it ended.
        status: ExitStatus,
        /// What it said.
        log: String,
    },
    /// The process did not do in time what it was expected to.
    #[error("the node is not {what} after {seconds} s; the end of its log:\n{log}")]
    Late {
        /// What was expected.
        what: &'static str,
        /// The deadline.
        seconds: u64,
        /// What it said.
        log: String,
    },
    /// The runtime file does not say what it should.
    #[error("the runtime file {}: {reason}", path.display())]
    RuntimeFile {
        /// Which one.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
}

/// Where a node listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addresses {
    /// The binary protocol over TCP.
    pub tcp: SocketAddr,
    /// Metrics and health.
    pub http: SocketAddr,
}

/// What a node is started with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeOptions {
    /// The binary.
    pub binary: PathBuf,
    /// The data directory.
    pub data: PathBuf,
    /// Where standard output and error go; every start appends.
    pub log: PathBuf,
    /// Further variables, which win over those of this module.
    pub environment: Vec<(String, String)>,
}

impl NodeOptions {
    /// A node with its data and its log in `folder`.
    pub fn in_folder(binary: &Path, folder: &Path) -> NodeOptions {
        NodeOptions {
            binary: binary.to_path_buf(),
            data: folder.join("data"),
            log: folder.join("node.log"),
            environment: Vec::new(),
        }
    }

    /// The same with one more variable.
    pub fn with(mut self, name: &str, value: &str) -> NodeOptions {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    fn runtime_file(&self) -> PathBuf {
        self.data.join("runtime").join("current_config.toml")
    }

    /// Whether any life of this node has panicked (a server never does).
    pub fn has_panicked(&self) -> bool {
        fs::read(&self.log).is_ok_and(|log| {
            let needle = b"panicked at";
            log.windows(needle.len()).any(|window| window == needle)
        })
    }

    fn log_tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let start = log.len().saturating_sub(LOG_TAIL_BYTES);
        String::from_utf8_lossy(&log[start..]).into_owned()
    }
}

/// The binary of the node: the one named by [`BINARY_VARIABLE`], else the one that cargo builds in
/// the profile of this program, else the one beside this program.
pub fn binary() -> Result<PathBuf, NodeError> {
    if let Some(path) = std::env::var_os(BINARY_VARIABLE) {
        return Ok(PathBuf::from(path));
    }
    if std::env::var_os("CARGO").is_none()
        && let Ok(own) = std::env::current_exe()
    {
        let beside = own.with_file_name("pawl");
        if beside.is_file() {
            return Ok(beside);
        }
    }
    build()
}

fn build() -> Result<PathBuf, NodeError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let profile = match cfg!(debug_assertions) {
        true => "dev",
        false => "release",
    };
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--package", "pawl", "--bin", "pawl"])
        .args(["--profile", profile, "--message-format", "json"])
        .arg("--manifest-path")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(NodeError::Cargo)?;
    if !output.status.success() {
        return Err(NodeError::Build(output.status.to_string()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let path = text.lines().filter_map(executable).next_back();
    path.ok_or_else(|| NodeError::Build("cargo named no binary".to_owned()))
}

/// The path in one of cargo's messages, if it is about the binary `pawl`.
fn executable(line: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    (message["target"]["name"] == "pawl").then_some(())?;
    message["executable"].as_str().map(PathBuf::from)
}

/// A running node. Dropping it kills it.
#[derive(Debug)]
pub struct Node {
    child: Child,
    options: NodeOptions,
}

impl Node {
    /// Starts the process and does not wait for it.
    pub fn spawn(options: &NodeOptions) -> Result<Node, NodeError> {
        let file = |path: &Path, error| NodeError::File {
            path: path.to_path_buf(),
            error,
        };
        fs::create_dir_all(&options.data).map_err(|error| file(&options.data, error))?;
        let runtime = options.runtime_file();
        match fs::remove_file(&runtime) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(file(&runtime, error));
            }
            _ => (),
        }
        let log = File::options()
            .create(true)
            .append(true)
            .open(&options.log)
            .map_err(|error| file(&options.log, error))?;
        let mut command = Command::new(&options.binary);
        environment(&mut command, options);
        command
            .current_dir(&options.data)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(NodeError::Process)?)
            .stderr(log);
        Ok(Node {
            child: command.spawn().map_err(NodeError::Process)?,
            options: options.clone(),
        })
    }

    /// Starts the process and waits until it serves.
    pub fn start(options: &NodeOptions) -> Result<(Node, Addresses), NodeError> {
        let mut node = Node::spawn(options)?;
        let addresses = node.ready()?;
        Ok((node, addresses))
    }

    /// Waits until the node serves, and says where.
    pub fn ready(&mut self) -> Result<Addresses, NodeError> {
        let path = self.options.runtime_file();
        let deadline = Instant::now() + READY_DEADLINE;
        loop {
            match fs::read_to_string(&path) {
                Ok(text) => return addresses(&path, &text),
                Err(error) if error.kind() == io::ErrorKind::NotFound => (),
                Err(error) => return Err(NodeError::File { path, error }),
            }
            self.check_running()?;
            if Instant::now() >= deadline {
                return Err(self.late("ready", READY_DEADLINE));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// An error if the process has ended by itself.
    pub fn check_running(&mut self) -> Result<(), NodeError> {
        match self.child.try_wait().map_err(NodeError::Process)? {
            None => Ok(()),
            Some(status) => Err(NodeError::Ended {
                status,
                log: self.options.log_tail(),
            }),
        }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL, and waits for the end. An error if the node had ended by itself before.
    pub fn kill(mut self) -> Result<(), NodeError> {
        self.check_running()?;
        self.child.kill().map_err(NodeError::Process)?;
        self.child.wait().map_err(NodeError::Process)?;
        Ok(())
    }

    /// SIGTERM, and waits for the end, which must come in time and be a success.
    pub fn stop(mut self) -> Result<(), NodeError> {
        self.check_running()?;
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).map_err(|error| NodeError::Process(error.into()))?;
        let deadline = Instant::now() + STOP_DEADLINE;
        loop {
            match self.child.try_wait().map_err(NodeError::Process)? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    let log = self.options.log_tail();
                    return Err(NodeError::Ended { status, log });
                }
                None if Instant::now() >= deadline => {
                    return Err(self.late("stopped", STOP_DEADLINE));
                }
                None => std::thread::sleep(LOOK_INTERVAL),
            }
        }
    }

    fn late(&self, what: &'static str, deadline: Duration) -> NodeError {
        NodeError::Late {
            what,
            seconds: deadline.as_secs(),
            log: self.options.log_tail(),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Both fail only where the process has ended and was reaped, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a node of a test is told: free ports, its data directory, known credentials.
fn environment(command: &mut Command, options: &NodeOptions) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("IGGY_") || text.starts_with("PAWL_") {
            command.env_remove(name);
        }
    }
    command
        .env("IGGY_SYSTEM_PATH", &options.data)
        .env("IGGY_TCP_ADDRESS", "127.0.0.1:0")
        .env("IGGY_HTTP_ADDRESS", "127.0.0.1:0")
        .env("IGGY_QUIC_ENABLED", "false")
        .env("IGGY_WEBSOCKET_ENABLED", "false")
        .env("IGGY_ROOT_USERNAME", "iggy")
        .env("IGGY_ROOT_PASSWORD", "iggy")
        .envs(
            options
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        );
}

/// The addresses in the runtime file.
fn addresses(path: &Path, text: &str) -> Result<Addresses, NodeError> {
    let wrong = |reason: String| NodeError::RuntimeFile {
        path: path.to_path_buf(),
        reason,
    };
    let table: toml::Table = text.parse().map_err(|error| wrong(format!("{error}")))?;
    let address = |section: &str| {
        let text = table
            .get(section)
            .and_then(|section| section.get("address"))
            .and_then(|address| address.as_str())
            .ok_or_else(|| wrong(format!("no address in [{section}]")))?;
        let address: SocketAddr = text
            .parse()
            .map_err(|_| wrong(format!("{text} in [{section}] is not an address")))?;
        match address.port() {
            0 => Err(wrong(format!("port 0 in [{section}]"))),
            _ => Ok(address),
        }
    };
    Ok(Addresses {
        tcp: address("tcp")?,
        http: address("http")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A "node" that never becomes ready: it sleeps for a day.
    fn sleeper(folder: &Path) -> NodeOptions {
        let script = folder.join("sleeper");
        fs::write(&script, "#!/bin/sh\nexec sleep 86400\n").expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&script, mode).expect("made executable");
        NodeOptions::in_folder(&script, folder)
    }

    #[test]
    fn a_dropped_node_is_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let node = Node::spawn(&sleeper(folder.path())).expect("started");
        let proc = PathBuf::from(format!("/proc/{}", node.id()));
        assert!(proc.exists());
        drop(node);
        assert!(!proc.exists());
    }

    #[test]
    fn a_node_that_ends_by_itself_is_reported_with_its_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut options = sleeper(folder.path());
        fs::write(&options.binary, "#!/bin/sh\necho no room; exit 3\n").expect("written");
        options.environment.clear();
        match Node::start(&options) {
            Err(NodeError::Ended { status, log }) => {
                assert_eq!(status.code(), Some(3));
                assert_eq!(log, "no room\n");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_runtime_file_of_an_earlier_life_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = sleeper(folder.path());
        let runtime = options.runtime_file();
        fs::create_dir_all(runtime.parent().expect("a parent")).expect("made");
        fs::write(&runtime, "").expect("written");
        let _node = Node::spawn(&options).expect("started");
        assert!(!runtime.exists());
    }

    #[test]
    fn a_runtime_file_must_name_real_addresses() {
        let path = Path::new("current_config.toml");
        let text = "[tcp]\naddress = \"127.0.0.1:1\"\n[http]\naddress = \"127.0.0.1:2\"\n";
        let found = addresses(path, text).expect("both are there");
        assert_eq!((found.tcp.port(), found.http.port()), (1, 2));
        assert!(addresses(path, &text.replace(":2", ":0")).is_err());
        assert!(addresses(path, &text.replace("[http]", "[quic]")).is_err());
        assert!(addresses(path, "[tcp").is_err());
    }
}
