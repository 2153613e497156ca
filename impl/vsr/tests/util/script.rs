//! Scripts of one node: commands in, effects out, as text.
//!
//! A script is a file of paragraphs. The first line of a paragraph, after `>`, is a command; the
//! lines below are what it must print. `PAWL_SCRIPTS=write` writes them anew, for review.

use std::fmt::Write;
use std::path::PathBuf;

use pawl_vsr::{Input, LogSpace};
use pawl_wire::entry::EntryKind;
use pawl_wire::ids::{Lsn, Op};

use super::node::{Node, config, request};

/// Runs the script of this name and compares.
pub fn run(name: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/scripts")
        .join(format!("{name}.txt"));
    let script = std::fs::read_to_string(&path).expect("the script is there");
    let mut runner = Runner {
        node: None,
        ticket: 0,
    };
    let mut written = String::new();
    for line in script.lines() {
        if line.starts_with('#') || line.is_empty() {
            // Comments and the lines between paragraphs stand as they are.
            writeln!(written, "{line}").expect("a string takes everything");
        } else if let Some(command) = line.strip_prefix("> ") {
            writeln!(written, "{line}").expect("a string takes everything");
            for word in runner.run(command) {
                writeln!(written, "{word}").expect("a string takes everything");
            }
        }
    }
    if std::env::var_os("PAWL_SCRIPTS").is_some() {
        std::fs::write(&path, &written).expect("the script can be written");
        return;
    }
    assert_eq!(
        written, script,
        "{name}: PAWL_SCRIPTS=write shows what has changed"
    );
}

struct Runner {
    node: Option<Node>,
    ticket: u64,
}

impl Runner {
    fn run(&mut self, command: &str) -> Vec<String> {
        let words: Vec<&str> = command.split_whitespace().collect();
        if words[0] == "format" {
            let node = Node::format(config(1, 0));
            let printed = node.words.clone();
            self.node = Some(node);
            return printed;
        }
        let node = self.node.as_mut().expect("a script begins with format");
        node.words.clear();
        match words.as_slice() {
            ["request", "client", client, "number", number, "now", now] => {
                self.ticket += 1;
                let client = parse(client).into();
                node.step(Input::Request(request(
                    self.ticket,
                    client,
                    parse(number),
                    b"body",
                    parse(now),
                )));
            }
            ["request", "kind", kind, "bytes", bytes, "claimed", claimed] => {
                self.ticket += 1;
                let body = vec![0; parse(bytes) as usize];
                let mut request = request(self.ticket, 1000, self.ticket, &body, 0);
                request.header.kind = parse(kind) as u8;
                request.header.body_bytes = parse(claimed) as u32;
                node.step(Input::Request(request));
            }
            ["delete", "client", client, "number", number] => {
                self.ticket += 1;
                let client = parse(client).into();
                let mut request = request(self.ticket, client, parse(number), b"body", 0);
                request.header.kind = EntryKind::DeleteTopic as u8;
                node.step(Input::Request(request));
            }
            ["flush"] => node.flush(),
            ["durable", lsn] => node.step(Input::Durable(Lsn(parse(lsn)))),
            ["snapshot", "written"] => node.finish_snapshot(),
            ["snapshot", "written", op] => {
                node.step(Input::SnapshotWritten { op: Op(parse(op)) });
            }
            ["snapshot", "failed"] => {
                let (op, _) = node.writing.take().expect("a checkpoint is being written");
                node.step(Input::SnapshotFailed { op });
            }
            ["space", "low"] => node.step(Input::LogSpace(LogSpace::Low)),
            ["space", "ample"] => node.step(Input::LogSpace(LogSpace::Ample)),
            ["disk", "failed"] => node.step(Input::DiskFailed),
            ["crash"] => node.crash(node.flushed),
            ["crash", "kept", kept] => node.crash(Lsn(parse(kept))),
            ["restart"] => match node.restart() {
                Ok(()) => {}
                Err(error) => return vec![format!("refused: {error}")],
            },
            ["state"] => return vec![state(node)],
            _ => panic!("no such command: {command}"),
        }
        node.words.clone()
    }
}

fn parse(word: &str) -> u64 {
    word.parse().expect("a number")
}

fn state(node: &Node) -> String {
    let replica = node.replica();
    let mut state = format!(
        "{:?} {} head {} durable {} commit {} applied {} in flight {}",
        replica.status(),
        replica.view(),
        replica.op_head().0,
        replica.durable_op().0,
        replica.commit().0,
        replica.applied().0,
        replica.requests_in_flight(),
    );
    for (reason, count) in replica.ignored().iter().filter(|(_, count)| *count > 0) {
        write!(state, ", ignored {reason:?} {count}").expect("a string takes everything");
    }
    state
}
