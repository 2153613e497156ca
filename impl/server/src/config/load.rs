//! Where the configuration comes from: defaults, then the TOML file, then the environment (`IGGY_`,
//! then `PAWL_`), then flags; the later one wins.
//!
//! An unknown key is a warning, a bad value a refusal that names the key and where it stands, and a
//! key that asks for something this release does not serve is a refusal too: silence would let an
//! operator believe that, say, data is encrypted.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use figment::providers::{Format, Serialized, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};

use super::Config;
use crate::limits::FRAME_BYTES_CEILING;

/// Prefixes of environment variables; the later one wins.
const PREFIXES: [&str; 2] = ["IGGY_", "PAWL_"];

/// File that is read when none is named.
const FILE_DEFAULT: &str = "pawl.toml";

/// Read from the environment, but not configuration.
const NOT_CONFIGURATION: [&str; 7] = [
    "ROOT_USERNAME",
    "ROOT_PASSWORD",
    "CONFIG_PATH",
    "ENV_PATH",
    "DISPLAY_CONFIG",
    "SHARD_RUNTIME_CAPACITY",
    "SHARD_EVENT_INTERVAL",
];

/// Keys that became options of a topic. To ignore them would change what is kept or how safely.
const MOVED_TO_TOPICS: [&str; 7] = [
    "system.topic.max_size",
    "system.topic.message_expiry",
    "system.partition.enforce_fsync",
    "system.partition.messages_required_to_save",
    "system.partition.size_of_messages_required_to_save",
    "system.segment.size",
    "system.segment.preallocate",
];

/// Why a node does not start with this configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file that a flag names cannot be read.
    #[error("the configuration file {path} cannot be read: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: std::io::Error,
    },
    /// A value is wrong.
    #[error("the value of `{key}` ({source_name}) is refused: {reason}")]
    Value {
        /// The key, dotted.
        key: String,
        /// Where it stands.
        source_name: String,
        /// What is wrong.
        reason: String,
    },
    /// The file is not TOML.
    #[error("the configuration is not readable ({source_name}): {reason}")]
    Syntax {
        /// Where.
        source_name: String,
        /// What is wrong.
        reason: String,
    },
    /// A key that became an option of a topic.
    #[error("`{key}` is no setting of the server: give it as an option when a topic is created")]
    Moved {
        /// The key.
        key: &'static str,
    },
    /// A key asks for what this release does not do.
    #[error("`{key}` asks for {what}, which this release does not serve")]
    NotServed {
        /// The key.
        key: &'static str,
        /// What it asks for.
        what: &'static str,
    },
    /// The number of a replica without a cluster.
    #[error("--replica-id {0} is refused: a node without a cluster is replica 0")]
    ReplicaId(u8),
}

/// The variables that a node looks at.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
}

/// What the command line says; it wins over everything else.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The TOML file.
    pub config_path: Option<PathBuf>,
    /// `system.path`
    pub data_dir: Option<String>,
    /// `tcp.address`
    pub tcp_address: Option<String>,
    /// `http.address`
    pub http_address: Option<String>,
    /// Number of this replica.
    pub replica_id: Option<u8>,
}

/// The effective configuration and what to tell about it.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Each is logged as a warning.
    pub warnings: Vec<String>,
}

impl Environment {
    /// The process's variables, with those of a `.env` file below them.
    pub fn of_process() -> Environment {
        let mut variables = BTreeMap::new();
        let file = std::env::var("IGGY_ENV_PATH").unwrap_or_else(|_| ".env".to_owned());
        if let Ok(text) = std::fs::read_to_string(file) {
            variables.extend(text.lines().filter_map(dotenv_line));
        }
        variables.extend(
            std::env::vars_os()
                .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))),
        );
        Environment { variables }
    }

    /// Exactly these variables.
    pub fn from_pairs<const N: usize>(pairs: [(&str, &str); N]) -> Environment {
        let variables = pairs
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Environment { variables }
    }

    /// The value of `PAWL_<name>`, else of `IGGY_<name>`; an empty one counts as unset.
    pub fn get(&self, name: &str) -> Option<&str> {
        PREFIXES
            .iter()
            .rev()
            .filter_map(|prefix| self.variables.get(&format!("{prefix}{name}")))
            .map(String::as_str)
            .find(|value| !value.is_empty())
    }
}

/// `NAME=value` of a `.env` file.
fn dotenv_line(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    if line.starts_with('#') {
        return None;
    }
    let (name, value) = line.split_once('=')?;
    let value = value.trim();
    let unquoted = ['"', '\'']
        .iter()
        .find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q));
    Some((name.trim().to_owned(), unquoted.unwrap_or(value).to_owned()))
}

/// One key with one value, and the name of the place where it was found.
struct Single {
    key: String,
    value: Value,
    place: String,
}

impl Provider for Single {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.place.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let nested = figment::util::nest(&self.key, self.value.clone());
        let dict = nested.into_dict().unwrap_or_default();
        Ok(Profile::Default.collect(dict))
    }
}

/// Puts the configuration together.
pub fn load(environment: &Environment, overrides: &Overrides) -> Result<Loaded, ConfigError> {
    let mut warnings = Vec::new();
    let defaults = Value::serialize(Config::default()).expect("the defaults are serialisable");
    let known = flatten(&defaults);

    let mut figment = Figment::from(Serialized::defaults(Config::default()));
    if let Some(path) = config_file(environment, overrides, &mut warnings)? {
        figment = merge_file(figment, &path, &known, &mut warnings)?;
    }
    for prefix in PREFIXES {
        figment = merge_environment(figment, environment, prefix, &known, &mut warnings)?;
    }
    figment = merge_flags(figment, overrides);

    let config: Config = figment.extract().map_err(value_error)?;
    check(&config)?;
    match overrides.replica_id {
        None | Some(0) => {}
        Some(number) => return Err(ConfigError::ReplicaId(number)),
    }
    Ok(Loaded { config, warnings })
}

/// The file to read: a flag's must exist, the environment's and the default one may be missing.
fn config_file(
    environment: &Environment,
    overrides: &Overrides,
    warnings: &mut Vec<String>,
) -> Result<Option<PathBuf>, ConfigError> {
    if let Some(path) = &overrides.config_path {
        return match std::fs::metadata(path) {
            Ok(_) => Ok(Some(path.clone())),
            Err(reason) => Err(ConfigError::File {
                path: path.clone(),
                reason,
            }),
        };
    }
    if let Some(path) = environment.get("CONFIG_PATH") {
        if Path::new(path).exists() {
            return Ok(Some(PathBuf::from(path)));
        }
        warnings.push(format!("the configuration file {path} does not exist"));
        return Ok(None);
    }
    Ok(Some(PathBuf::from(FILE_DEFAULT)).filter(|path| path.exists()))
}

fn merge_file(
    figment: Figment,
    path: &Path,
    known: &BTreeMap<String, Value>,
    warnings: &mut Vec<String>,
) -> Result<Figment, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|reason| ConfigError::File {
        path: path.to_owned(),
        reason,
    })?;
    let toml = Toml::string(&text);
    let data = toml.data().map_err(|error| ConfigError::Syntax {
        source_name: path.display().to_string(),
        reason: error.to_string(),
    })?;
    let dict = data.into_values().next().unwrap_or_default();
    let sections = sections_of(known);
    for (key, value) in flatten(&Value::from(dict)) {
        refuse_moved(&key)?;
        if key.starts_with("cluster.") || known.contains_key(&key) {
            continue;
        }
        if sections.contains(&key) && value.as_dict().is_none() {
            continue; // A value where a section belongs: extraction names the key.
        }
        warnings.push(format!("unknown key `{key}` in {}", path.display()));
    }
    Ok(figment.merge(toml))
}

fn merge_environment(
    mut figment: Figment,
    environment: &Environment,
    prefix: &str,
    known: &BTreeMap<String, Value>,
    warnings: &mut Vec<String>,
) -> Result<Figment, ConfigError> {
    let by_name: BTreeMap<String, &String> = known
        .keys()
        .map(|key| (environment_name(key), key))
        .collect();
    for (variable, text) in &environment.variables {
        let Some(name) = variable.strip_prefix(prefix) else {
            continue;
        };
        if text.is_empty() || NOT_CONFIGURATION.contains(&name) {
            continue;
        }
        if let Some(key) = MOVED_TO_TOPICS
            .iter()
            .find(|key| environment_name(key) == name)
        {
            return Err(ConfigError::Moved { key });
        }
        match by_name.get(name) {
            Some(key) => {
                figment = figment.merge(Single {
                    key: (*key).clone(),
                    value: value_of(text, &known[*key]),
                    place: format!("environment variable {variable}"),
                });
            }
            // The roster is read when clusters are served; a node alone has no use for it.
            None if name.starts_with("CLUSTER_") || name == "MESSAGE_BUS_RECONNECT_PERIOD" => {}
            None => warnings.push(format!("unknown environment variable {variable}")),
        }
    }
    Ok(figment)
}

fn merge_flags(mut figment: Figment, overrides: &Overrides) -> Figment {
    for (key, flag, value) in [
        ("system.path", "--data-dir", &overrides.data_dir),
        ("tcp.address", "--tcp-address", &overrides.tcp_address),
        ("http.address", "--http-address", &overrides.http_address),
    ] {
        if let Some(value) = value {
            figment = figment.merge(Single {
                key: key.to_owned(),
                value: Value::from(value.clone()),
                place: format!("flag {flag}"),
            });
        }
    }
    figment
}

/// A text from the environment as the kind of value that the key has.
fn value_of(text: &str, default: &Value) -> Value {
    match default {
        Value::String(..) => Value::from(text),
        _ => text.parse().unwrap_or_else(|_| Value::from(text)),
    }
}

fn environment_name(key: &str) -> String {
    key.to_ascii_uppercase().replace('.', "_")
}

/// All keys below `value`, dotted, with their values.
fn flatten(value: &Value) -> BTreeMap<String, Value> {
    let mut flat = BTreeMap::new();
    let mut open: Vec<(String, &Value)> = vec![(String::new(), value)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Dict(_, dict) => open.extend(dict.iter().map(|(name, value)| {
                let dotted = match path.as_str() {
                    "" => name.clone(),
                    path => format!("{path}.{name}"),
                };
                (dotted, value)
            })),
            value => {
                flat.insert(path, value.clone());
            }
        }
    }
    flat
}

fn sections_of(known: &BTreeMap<String, Value>) -> BTreeSet<String> {
    let mut sections = BTreeSet::new();
    for key in known.keys() {
        for (dot, _) in key.match_indices('.') {
            sections.insert(key[..dot].to_owned());
        }
    }
    sections
}

fn refuse_moved(key: &str) -> Result<(), ConfigError> {
    match MOVED_TO_TOPICS.iter().find(|moved| **moved == key) {
        Some(key) => Err(ConfigError::Moved { key }),
        None => Ok(()),
    }
}

fn value_error(error: figment::Error) -> ConfigError {
    let source_name = match &error.metadata {
        Some(metadata) if metadata.source.is_some() || metadata.name.contains(' ') => {
            metadata.name.to_string()
        }
        _ => "configuration file".to_owned(),
    };
    ConfigError::Value {
        key: error.path.join("."),
        source_name,
        reason: error.kind.to_string(),
    }
}

/// Rules that a type cannot say.
fn check(config: &Config) -> Result<(), ConfigError> {
    address(&config.tcp.address, "tcp.address")?;
    address(&config.http.address, "http.address")?;
    address(&config.quic.address, "quic.address")?;
    address(&config.websocket.address, "websocket.address")?;
    if !config.http.metrics.endpoint.starts_with('/') {
        return Err(refused(
            "http.metrics.endpoint",
            "it does not start with `/`",
        ));
    }
    if config.system.path.is_empty() {
        return Err(refused("system.path", "it is empty"));
    }
    let frame_bytes = config.message_bus.max_message_size.0;
    if !(4096..=FRAME_BYTES_CEILING).contains(&frame_bytes) {
        let reason = "it is not between 4 KiB and 256 MiB";
        return Err(refused("message_bus.max_message_size", reason));
    }
    if config.memory.request_bytes_max.0 < 2 * frame_bytes {
        let reason = "it is below two of the largest frames (message_bus.max_message_size)";
        return Err(refused("memory.request_bytes_max", reason));
    }
    let level = &config.system.logging.level;
    if !["error", "warn", "info", "debug", "trace"].contains(&level.as_str()) {
        let reason = "it is not one of error, warn, info, debug, trace";
        return Err(refused("system.logging.level", reason));
    }
    check_served(config)
}

/// Refuses what this release does not serve, by name (spec ANS-35).
fn check_served(config: &Config) -> Result<(), ConfigError> {
    let asked = [
        (
            config.cluster.enabled,
            "cluster.enabled",
            "a cluster of several nodes",
        ),
        (config.tcp.tls.enabled, "tcp.tls.enabled", "TLS"),
        (config.http.tls.enabled, "http.tls.enabled", "TLS"),
        (config.websocket.tls.enabled, "websocket.tls.enabled", "TLS"),
        (
            config.system.encryption.enabled,
            "system.encryption.enabled",
            "encryption at rest",
        ),
    ];
    match asked.into_iter().find(|(asked, ..)| *asked) {
        Some((_, key, what)) => Err(ConfigError::NotServed { key, what }),
        None => Ok(()),
    }
}

fn refused(key: &str, reason: &str) -> ConfigError {
    ConfigError::Value {
        key: key.to_owned(),
        source_name: "effective value".to_owned(),
        reason: reason.to_owned(),
    }
}

/// The socket address that `text` names.
pub(crate) fn address(text: &str, key: &str) -> Result<SocketAddr, ConfigError> {
    let mut found = text.to_socket_addrs().map_err(|_| {
        refused(
            key,
            &format!("`{text}` is not an address such as 0.0.0.0:8090"),
        )
    })?;
    found
        .next()
        .ok_or_else(|| refused(key, &format!("`{text}` names no address")))
}

#[cfg(test)]
#[path = "load_test.rs"]
mod tests;
