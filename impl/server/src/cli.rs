//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::config::Overrides;

/// What `--help` says below the flags.
const AFTER_HELP: &str = "\
Examples:
  pawl                                   start a node; data goes to ./local_data
  pawl --data-dir /var/lib/pawl          start a node with its data elsewhere
  pawl --with-default-root-credentials   start a node whose first user is iggy / iggy
  pawl inspect local_data/anchor         say in words what a file of a data directory holds

Settings come from a TOML file (--config, or IGGY_CONFIG_PATH, or ./pawl.toml), then from the
environment (IGGY_TCP_ADDRESS, or PAWL_TCP_ADDRESS, which wins), then from flags. The user of the
first start is IGGY_ROOT_USERNAME with IGGY_ROOT_PASSWORD; without them, a password is made up and
printed once.

Exit codes: 0 stopped as asked, 1 cannot start, 2 wrong command line, 74 the disk failed.";

/// A durable message-streaming server for the clients of Apache Iggy.
#[derive(Parser, Debug)]
#[command(name = "pawl", version, after_help = AFTER_HELP)]
pub struct Cli {
    /// What to do; without it, a node is started.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Flags of the start.
    #[command(flatten)]
    pub start: StartArgs,
}

/// What else the program does.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Start a node (what happens without a command)
    Start,
    /// Say in words what a file of a data directory holds
    Inspect {
        /// A log segment, an anchor, a snapshot, or a partition segment
        file: PathBuf,
    },
    /// Print the version of the program and of the protocol
    Version,
}

/// Flags of the start.
#[derive(Args, Debug, Default, Clone)]
pub struct StartArgs {
    /// The number of this replica; 0 on a node alone
    #[arg(long, value_name = "N")]
    pub replica_id: Option<u8>,
    /// Remove the data directory first: everything that was stored is gone
    #[arg(short, long)]
    pub fresh: bool,
    /// Name the first user iggy with password iggy, where the environment does not say otherwise
    #[arg(long)]
    pub with_default_root_credentials: bool,
    /// Read settings from this TOML file
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Keep data in this directory [default: local_data]
    #[arg(short, long, value_name = "DIR")]
    pub data_dir: Option<String>,
    /// Listen for clients here [default: 127.0.0.1:8090]
    #[arg(long, value_name = "IP:PORT")]
    pub tcp_address: Option<String>,
    /// Serve metrics and health here [default: 127.0.0.1:3000]
    #[arg(long, value_name = "IP:PORT")]
    pub http_address: Option<String>,
}

impl StartArgs {
    /// What these flags say about the configuration.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            config_path: self.config.clone(),
            data_dir: self.data_dir.clone(),
            tcp_address: self.tcp_address.clone(),
            http_address: self.http_address.clone(),
            replica_id: self.replica_id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse<const N: usize>(arguments: [&str; N]) -> Cli {
        Cli::try_parse_from(arguments).expect("valid arguments")
    }

    #[test]
    fn flags_that_other_tools_use_are_accepted() {
        let cli = parse(["pawl", "--replica-id", "0", "--fresh"]);
        assert_eq!(cli.start.replica_id, Some(0));
        assert!(cli.start.fresh);
        let cli = parse(["pawl", "-f", "--with-default-root-credentials"]);
        assert!(cli.start.fresh && cli.start.with_default_root_credentials);
        assert!(cli.command.is_none());
    }

    #[test]
    fn commands() {
        assert!(matches!(
            parse(["pawl", "version"]).command,
            Some(Command::Version)
        ));
        assert!(matches!(
            parse(["pawl", "inspect", "x"]).command,
            Some(Command::Inspect { .. })
        ));
        assert!(Cli::try_parse_from(["pawl", "--replica-id", "many"]).is_err());
    }
}
