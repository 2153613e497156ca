//! The program `pawl`.

use std::process::ExitCode;

use clap::Parser;
use pawl_server::boot::{Node, NodeEnd, Start, StartError, greeting};
use pawl_server::cli::{Cli, Command, StartArgs};
use pawl_server::config::{Environment, Loaded, load};
use pawl_server::signals::Signals;
use pawl_server::{EXIT_DISK_FAILED, PROTOCOL_TEXT, SERVER_VERSION, logging};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command {
        None | Some(Command::Start) => start(&cli.start),
        Some(Command::Version) => {
            println!("pawl {SERVER_VERSION}, protocol {PROTOCOL_TEXT}");
            ExitCode::SUCCESS
        }
        Some(Command::Inspect { file }) => inspect(&file),
    }
}

fn inspect(file: &std::path::Path) -> ExitCode {
    match pawl_store::inspect(file) {
        Ok(lines) => {
            for line in lines {
                println!("{line}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => fail(&format!("{} cannot be read: {error}", file.display())),
    }
}

fn start(arguments: &StartArgs) -> ExitCode {
    let environment = Environment::of_process();
    let Loaded { config, warnings } = match load(&environment, &arguments.overrides()) {
        Ok(loaded) => loaded,
        Err(error) => return fail(&error.to_string()),
    };
    logging::start(&config.system.logging.level);
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => return fail(&format!("signals cannot be caught: {error}")),
    };
    let node = Node::start(Start {
        config: config.clone(),
        environment,
        default_root_credentials: arguments.with_default_root_credentials,
        fresh: arguments.fresh,
        disk: None,
    });
    let node = match node {
        Ok(node) => node,
        Err(StartError::Log(failure)) => {
            eprintln!("pawl: {failure}");
            return ExitCode::from(EXIT_DISK_FAILED);
        }
        Err(error) => return fail(&error.to_string()),
    };
    print!("{}", greeting(&node, &config));
    if let Err(error) = signals.stop(node.stopper()) {
        return fail(&format!("signals cannot be awaited: {error}"));
    }
    match node.wait() {
        NodeEnd::Stopped => ExitCode::SUCCESS,
        NodeEnd::Failed(failure) => {
            eprintln!("pawl: {failure}");
            ExitCode::from(EXIT_DISK_FAILED)
        }
    }
}

fn fail(message: &str) -> ExitCode {
    eprintln!("pawl: {message}");
    ExitCode::FAILURE
}
