//! The command line of `pawl-conformance`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};

use pawl_conformance::kill::{self, KillOptions};

/// What `--help` says below the flags.
const EXIT_CODES: &str = "\
Exit codes: 0 everything held, 1 something was found (it is printed, and the data directory is
kept), 2 wrong command line, 3 the run could not begin or its report not be written.";

/// Small enough that logs are drained during a run.
const LOG_BYTES_MAX: &str = "160 MiB";

/// Small enough that polls read from the disk.
const CACHE_BYTES_MAX: &str = "4 MiB";

/// Holds a server to the specification from outside.
#[derive(Parser, Debug)]
#[command(name = "pawl-conformance", version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Kill a node at random instants under load; then compare everything that was acknowledged
    Kill(KillArgs),
}

#[derive(Args, Debug)]
#[command(after_help = EXIT_CODES)]
struct KillArgs {
    /// Rounds; each kills the node one to three times under load
    #[arg(long, default_value_t = 50)]
    rounds: u64,
    /// Of everything that is drawn; without it, a new one is taken and printed
    #[arg(long)]
    seed: Option<u64>,
    /// Clients that write at once, each with an identity that outlives its connections
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=512))]
    clients: u16,
    /// The longest load before a kill, in milliseconds
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u64).range(5..))]
    load_ms_max: u64,
    /// Write the report to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The node's binary; without it, PAWL_BINARY or the one that cargo builds
    #[arg(long, value_name = "FILE")]
    node: Option<PathBuf>,
    /// A further setting of the node
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    environment: Vec<(String, String)>,
}

fn main() -> ExitCode {
    let Command::Kill(args) = Cli::parse().command;
    run_kill(args)
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

fn run_kill(args: KillArgs) -> ExitCode {
    let seed = args.seed.unwrap_or_else(fresh_seed);
    println!(
        "kill test: {} rounds, {} clients, seed {seed}",
        args.rounds, args.clients
    );
    let mut environment = vec![
        ("PAWL_LOG_BYTES_MAX".to_owned(), LOG_BYTES_MAX.to_owned()),
        (
            "PAWL_CACHE_BYTES_MAX".to_owned(),
            CACHE_BYTES_MAX.to_owned(),
        ),
    ];
    environment.extend(args.environment);
    let options = KillOptions {
        rounds: args.rounds,
        seed,
        clients: args.clients,
        load_ms_max: args.load_ms_max,
        binary: args.node,
        environment,
    };
    let bar = ProgressBar::new(args.rounds).with_style(
        ProgressStyle::with_template("{bar:40} round {pos}/{len} [{elapsed}] {msg}")
            .expect("the template is well formed"),
    );
    let report = kill::run(&options, &|text| bar.set_message(text.to_owned()), &|_| {
        bar.inc(1)
    });
    bar.finish_and_clear();
    let report = match report {
        Ok(report) => report,
        Err(failure) => {
            eprintln!("the run could not begin: {failure}");
            return ExitCode::from(3);
        }
    };
    println!("{}", report.table());
    for violation in &report.violations {
        println!("FOUND: {violation}");
    }
    if let Some(path) = args.json {
        let json = serde_json::to_string_pretty(&report).expect("the report has text keys");
        if let Err(error) = std::fs::write(&path, json + "\n") {
            eprintln!("{}: {error}", path.display());
            return ExitCode::from(3);
        }
    }
    match report.violations.is_empty() {
        true => {
            println!("kill test: passed, seed {seed}");
            ExitCode::SUCCESS
        }
        false => {
            println!("kill test: FAILED, seed {seed}");
            ExitCode::FAILURE
        }
    }
}

/// A seed that differs from run to run.
fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_micros() as u64)
}
