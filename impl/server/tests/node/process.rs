//! The program as a process: flags, readiness, signals, kills, ports, exit codes.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pawl_wire::primitives::PollingStrategy;

use crate::util::{Client, until};

/// A started process. It is killed when the test ends early.
struct Process {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pawl(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pawl"));
    command
        .current_dir(folder)
        .env_clear()
        .env("IGGY_SYSTEM_PATH", folder.join("data"))
        .env("IGGY_TCP_ADDRESS", "127.0.0.1:0")
        .env("IGGY_HTTP_ADDRESS", "127.0.0.1:0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn spawn(mut command: Command) -> Process {
    let mut child = command.spawn().expect("the program starts");
    let output = BufReader::new(child.stdout.take().expect("piped"));
    Process { child, output }
}

impl Process {
    /// Waits until it serves; the address of its binary protocol, by the runtime file.
    fn address(&mut self, folder: &Path) -> SocketAddr {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        if !line.contains("serves") {
            panic!("it does not serve: {line} {}", self.errors());
        }
        let path = folder.join("data/runtime/current_config.toml");
        let text = std::fs::read_to_string(path).expect("the runtime file");
        let table: toml::Table = text.parse().expect("TOML");
        for section in ["tcp", "http", "quic", "websocket"] {
            let address = table[section]["address"].as_str().expect("an address");
            address.parse::<SocketAddr>().expect("an address");
        }
        let tcp = table["tcp"]["address"].as_str().expect("an address");
        tcp.parse().expect("an address")
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("signalled");
    }

    fn ended(&mut self) -> ExitStatus {
        self.child.wait().expect("it ends")
    }

    fn errors(&mut self) -> String {
        let mut text = String::new();
        let stderr = self.child.stderr.as_mut().expect("piped");
        stderr.read_to_string(&mut text).expect("text");
        text
    }
}

#[test]
fn sigterm_stops_within_five_seconds_and_everything_acknowledged_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = || {
        let mut command = pawl(folder.path());
        command.args(["--replica-id", "0", "--with-default-root-credentials"]);
        spawn(command)
    };
    let mut process = start();
    let address = process.address(folder.path());
    let mut client = Client::connect(address);
    client.sign_in();
    client.create_topic("s", 1);
    for number in 0..100u64 {
        assert_eq!(client.send_ok(&[&number.to_le_bytes()]), number);
    }
    let begin = Instant::now();
    process.signal(rustix::process::Signal::TERM);
    assert!(process.ended().success());
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert!(!process.errors().contains("panicked at"));

    let mut process = start();
    let mut client = Client::connect(process.address(folder.path()));
    client.sign_in();
    let found = client.poll_ok(PollingStrategy::First, 1_000);
    assert!(found.iter().map(|(offset, _)| *offset).eq(0..100));
    process.signal(rustix::process::Signal::INT);
    assert!(process.ended().success());
}

#[test]
fn sigkill_under_load_loses_nothing_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = || {
        let mut command = pawl(folder.path());
        command.arg("--with-default-root-credentials");
        spawn(command)
    };
    let mut process = start();
    let address = process.address(folder.path());
    let mut client = Client::connect(address);
    client.sign_in();
    client.create_topic("s", 1);
    let mut acknowledged = 0u64;
    for round in 0..3 {
        let killer = {
            let pid = rustix::process::Pid::from_child(&process.child);
            let after = 200 + round * 171;
            move |sent: u64| {
                if sent == after {
                    rustix::process::kill_process(pid, rustix::process::Signal::KILL)
                        .expect("killed");
                }
            }
        };
        for sent in 0.. {
            killer(sent);
            let payload = (acknowledged).to_le_bytes();
            let send = pawl_wire::primitives::Partitioning::Partition(0);
            match client.send_payloads(send, &[&payload]) {
                crate::util::Answer::Payload(..) => acknowledged += 1,
                crate::util::Answer::Closed => break,
                other => panic!("{other:?}"),
            }
        }
        process.ended();
        process = start();
        client = Client::connect(process.address(folder.path()));
        client.sign_in();
        let found = client.poll_ok(PollingStrategy::First, 100_000);
        assert!(found.len() as u64 >= acknowledged);
        for (at, (offset, _)) in found.iter().enumerate() {
            assert_eq!(*offset, at as u64);
        }
        // One more may have been stored whose acknowledgement was lost.
        assert!(found.len() as u64 <= acknowledged + round + 1);
        acknowledged = found.len() as u64;
    }
}

#[test]
fn the_root_password_is_made_up_and_told_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = spawn(pawl(folder.path()));
    let address = process.address(folder.path());
    let mut password = None;
    while password.is_none() {
        let mut line = String::new();
        assert_ne!(process.output.read_line(&mut line).expect("a line"), 0);
        let told = line.split_once("with password ");
        password = told.and_then(|(_, rest)| Some(rest.split(' ').next()?.to_owned()));
    }
    let password = password.expect("told");
    let mut client = Client::connect(address);
    assert_ne!(client.login("iggy", &password).header().op, 0);
    process.signal(rustix::process::Signal::TERM);
    assert!(process.ended().success());

    let mut process = spawn(pawl(folder.path()));
    process.address(folder.path());
    process.signal(rustix::process::Signal::TERM);
    let mut rest = String::new();
    process.output.read_to_string(&mut rest).expect("text");
    assert!(!rest.contains(&password) && !process.errors().contains(&password));
    for entry in std::fs::read_dir(folder.path().join("data/wal")).expect("the log") {
        let bytes = std::fs::read(entry.expect("an entry").path()).expect("a file");
        let found = bytes
            .windows(password.len())
            .any(|w| w == password.as_bytes());
        assert!(!found, "spec SES-30: the password stands in the log");
    }
}

fn refused(command: Command) -> String {
    let mut process = spawn(command);
    let status = process.ended();
    assert_eq!(status.code(), Some(1));
    let errors = process.errors();
    assert!(!errors.contains("panicked at"), "{errors}");
    errors
}

#[test]
fn a_port_in_use_stops_the_start_and_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = taken.local_addr().expect("an address").to_string();
    for variable in ["IGGY_TCP_ADDRESS", "PAWL_HTTP_ADDRESS"] {
        let mut command = pawl(folder.path());
        command.env(variable, &address);
        assert!(refused(command).contains(&address));
    }
    assert!(
        !folder.path().join("data/anchor").exists(),
        "no data was touched"
    );
}

#[test]
fn a_data_directory_in_use_stops_the_start_and_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut first = spawn(pawl(folder.path()));
    first.address(folder.path());
    let data = folder.path().join("data").display().to_string();
    assert!(refused(pawl(folder.path())).contains(&data));
}

/// spec ANS-32, ANS-35
#[test]
fn settings_that_are_not_served_or_wrong_stop_the_start_and_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    for (variable, value, key) in [
        ("IGGY_CLUSTER_ENABLED", "true", "cluster.enabled"),
        ("IGGY_TCP_TLS_ENABLED", "true", "tcp.tls.enabled"),
        ("IGGY_HEARTBEAT_INTERVAL", "soon", "heartbeat.interval"),
        ("IGGY_ROOT_USERNAME", "alone", "IGGY_ROOT_PASSWORD"),
    ] {
        let mut command = pawl(folder.path());
        command.env(variable, value);
        let errors = refused(command);
        assert!(errors.contains(key), "{variable}: {errors}");
    }
}

#[test]
fn fresh_removes_what_was_there() {
    let folder = tempfile::tempdir().expect("a folder");
    for fresh in [false, true] {
        let mut command = pawl(folder.path());
        command.arg("--with-default-root-credentials");
        if fresh {
            command.arg("--fresh");
        }
        let mut process = spawn(command);
        let mut client = Client::connect(process.address(folder.path()));
        client.sign_in();
        client.create_topic("s", 1);
        process.signal(rustix::process::Signal::TERM);
        assert!(process.ended().success());
    }
}

#[test]
fn version_help_and_inspect_say_something() {
    let folder = tempfile::tempdir().expect("a folder");
    for (argument, expected) in [
        ("version", "protocol 0.11.0"),
        ("--version", "pawl"),
        ("--help", "IGGY_ROOT_USERNAME"),
    ] {
        let mut command = pawl(folder.path());
        let output = command.arg(argument).output().expect("it runs");
        assert!(output.status.success());
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(expected), "{argument}: {text}");
    }
    let mut process = spawn(pawl(folder.path()));
    process.address(folder.path());
    process.signal(rustix::process::Signal::TERM);
    process.ended();
    let mut command = pawl(folder.path());
    let anchor = folder.path().join("data/anchor");
    let output = command
        .arg("inspect")
        .arg(anchor)
        .output()
        .expect("it runs");
    assert!(output.status.success() && !output.stdout.is_empty());
    let mut command = pawl(folder.path());
    let output = command
        .args(["inspect", "nothing"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_connection_waits_in_the_queue_while_the_node_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = spawn(pawl(folder.path()));
    let address = process.address(folder.path());
    until(|| Client::connect(address).is_alive());
}
