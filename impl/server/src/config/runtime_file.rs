//! The file that tells tools that the node serves, and where.
//!
//! It appears whole: written under another name, flushed, renamed. It holds the effective
//! configuration without secrets (there are none in it) and the addresses really bound.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::SocketAddr;

use super::Config;

/// Where the listeners of this node really are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BoundAddresses {
    /// The binary protocol over TCP.
    pub tcp: Option<SocketAddr>,
    /// HTTP.
    pub http: Option<SocketAddr>,
}

/// Writes `config` with the `bound` addresses. QUIC and WebSocket keep their configured address and
/// are marked as not enabled, since this release does not serve them.
pub fn write_runtime_file(config: &Config, bound: BoundAddresses) -> io::Result<()> {
    let mut effective = config.clone();
    if let Some(address) = bound.tcp {
        effective.tcp.address = address.to_string();
    }
    if let Some(address) = bound.http {
        effective.http.address = address.to_string();
    }
    effective.tcp.enabled = bound.tcp.is_some();
    effective.http.enabled = bound.http.is_some();
    effective.quic.enabled = false;
    effective.websocket.enabled = false;

    let text = toml::to_string(&effective).map_err(io::Error::other)?;
    let path = config.runtime_file();
    let folder = path
        .parent()
        .expect("the path has a folder and a file name");
    fs::create_dir_all(folder)?;
    let temporary = path.with_extension("toml.tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, &path)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_names_the_bound_addresses_and_reads_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut config = Config::default();
        config.system.path = folder.path().display().to_string();
        config.tcp.address = "127.0.0.1:0".to_owned();
        let bound = BoundAddresses {
            tcp: Some(([127, 0, 0, 1], 4711).into()),
            http: None,
        };
        write_runtime_file(&config, bound).expect("written");

        let text = fs::read_to_string(config.runtime_file()).expect("there");
        let table: toml::Table = text.parse().expect("TOML");
        let address = |section: &str| table[section]["address"].as_str();
        assert_eq!(address("tcp"), Some("127.0.0.1:4711"));
        assert_eq!(address("http"), Some("127.0.0.1:3000"));
        assert_eq!(address("quic"), Some("127.0.0.1:8080"));
        assert_eq!(address("websocket"), Some("127.0.0.1:8092"));
        assert_eq!(table["quic"]["enabled"].as_bool(), Some(false));
        let config: Config = toml::from_str(&text).expect("the configuration");
        assert!(!config.http.enabled);
    }
}
