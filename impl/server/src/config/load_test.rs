use std::io::Write;

use super::*;
use crate::config::{ByteCount, CpuAllocation, Span};

fn from_environment<const N: usize>(pairs: [(&str, &str); N]) -> Result<Loaded, ConfigError> {
    load(&Environment::from_pairs(pairs), &Overrides::default())
}

fn from_file(text: &str) -> Result<Loaded, ConfigError> {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("written");
    let overrides = Overrides {
        config_path: Some(file.path().to_owned()),
        ..Overrides::default()
    };
    load(&Environment::default(), &overrides)
}

#[test]
fn defaults_are_valid() {
    let loaded = from_environment([]).expect("the defaults");
    assert_eq!(loaded.config, Config::default());
    assert!(loaded.warnings.is_empty());
}

#[test]
fn environment_names_are_the_dotted_keys() {
    let loaded = from_environment([
        ("IGGY_TCP_ADDRESS", "0.0.0.0:0"),
        ("IGGY_SYSTEM_PATH", "1234"),
        ("IGGY_SYSTEM_SHARDING_CPU_ALLOCATION", "3"),
        ("IGGY_SYSTEM_SHARDING_PIN_CORES", "false"),
        ("IGGY_QUIC_ENABLED", "false"),
        ("IGGY_HEARTBEAT_INTERVAL", "5 s"),
        ("IGGY_MESSAGE_BUS_MAX_MESSAGE_SIZE", "32 MiB"),
        ("IGGY_HTTP_ADDRESS", ""),
        ("PATH", "/bin"),
    ])
    .expect("valid");
    let config = loaded.config;
    assert_eq!(config.tcp.address, "0.0.0.0:0");
    assert_eq!(config.system.path, "1234");
    assert_eq!(
        config.system.sharding.cpu_allocation,
        CpuAllocation::Count(3)
    );
    assert!(!config.system.sharding.pin_cores);
    assert!(!config.quic.enabled);
    assert_eq!(config.heartbeat.interval, Span::from_secs(5));
    assert_eq!(config.message_bus.max_message_size, ByteCount(32 << 20));
    assert_eq!(config.http.address, "127.0.0.1:3000");
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn own_prefix_wins_over_the_drop_in_one() {
    let loaded = from_environment([
        ("PAWL_TCP_ADDRESS", "127.0.0.1:2"),
        ("IGGY_TCP_ADDRESS", "127.0.0.1:1"),
    ])
    .expect("valid");
    assert_eq!(loaded.config.tcp.address, "127.0.0.1:2");
}

#[test]
fn flags_win_over_environment_and_file() {
    let environment = Environment::from_pairs([("PAWL_TCP_ADDRESS", "127.0.0.1:2")]);
    let overrides = Overrides {
        tcp_address: Some("127.0.0.1:3".to_owned()),
        data_dir: Some("elsewhere".to_owned()),
        ..Overrides::default()
    };
    let loaded = load(&environment, &overrides).expect("valid");
    assert_eq!(loaded.config.tcp.address, "127.0.0.1:3");
    assert_eq!(loaded.config.system.path, "elsewhere");
}

#[test]
fn unknown_keys_warn() {
    let loaded = from_environment([
        ("IGGY_TCP_COLOUR", "red"),
        ("IGGY_SYSTEM_MESSAGE_DEDUPLICATION_ENABLED", "true"),
        ("IGGY_ROOT_PASSWORD", "secret"),
    ])
    .expect("a warning is no refusal");
    assert_eq!(loaded.warnings.len(), 2, "{:?}", loaded.warnings);
    assert!(!format!("{:?}", loaded.warnings).contains("secret"));

    let loaded = from_file("[tcp]\ncolour = 1\naddress = \"127.0.0.1:7\"\n").expect("valid");
    assert_eq!(loaded.config.tcp.address, "127.0.0.1:7");
    assert_eq!(loaded.warnings.len(), 1);
    assert!(loaded.warnings[0].contains("tcp.colour"));
}

#[test]
fn bad_values_are_refused_by_name() {
    for (variable, value, key) in [
        ("IGGY_TCP_ADDRESS", "nowhere", "tcp.address"),
        ("IGGY_TCP_ENABLED", "perhaps", "tcp.enabled"),
        ("IGGY_HEARTBEAT_INTERVAL", "soon", "heartbeat.interval"),
        (
            "IGGY_SYSTEM_SHARDING_CPU_ALLOCATION",
            "0",
            "system.sharding.cpu_allocation",
        ),
        (
            "IGGY_MESSAGE_BUS_MAX_MESSAGE_SIZE",
            "1 GiB",
            "message_bus.max_message_size",
        ),
        (
            "PAWL_MEMORY_REQUEST_BYTES_MAX",
            "1 MiB",
            "memory.request_bytes_max",
        ),
        ("PAWL_CACHE_BYTES_MAX", "lots", "cache.bytes_max"),
        ("IGGY_SYSTEM_LOGGING_LEVEL", "loud", "system.logging.level"),
        (
            "IGGY_HTTP_METRICS_ENDPOINT",
            "metrics",
            "http.metrics.endpoint",
        ),
    ] {
        let error = from_environment([(variable, value)]).expect_err(variable);
        assert!(error.to_string().contains(key), "{variable}: {error}");
    }
    let error = from_file("[heartbeat]\ninterval = \"soon\"\n").expect_err("bad value");
    assert!(error.to_string().contains("heartbeat.interval"), "{error}");
    assert!(from_file("tcp = ").is_err());
}

#[test]
fn settings_that_became_topic_options_are_refused() {
    let error = from_environment([("IGGY_SYSTEM_SEGMENT_SIZE", "1 GiB")]).expect_err("moved");
    assert!(matches!(error, ConfigError::Moved { key } if key == "system.segment.size"));
    let error = from_file("[system.segment]\nsize = \"1 GiB\"\n").expect_err("moved");
    assert!(matches!(error, ConfigError::Moved { .. }));
}

/// spec ANS-35
#[test]
fn what_is_not_served_is_refused_by_name() {
    for (variable, key) in [
        ("IGGY_CLUSTER_ENABLED", "cluster.enabled"),
        ("IGGY_TCP_TLS_ENABLED", "tcp.tls.enabled"),
        (
            "IGGY_SYSTEM_ENCRYPTION_ENABLED",
            "system.encryption.enabled",
        ),
    ] {
        let error = from_environment([(variable, "true")]).expect_err(variable);
        assert!(matches!(error, ConfigError::NotServed { key: named, .. } if named == key));
    }
    let overrides = Overrides {
        replica_id: Some(1),
        ..Overrides::default()
    };
    let error = load(&Environment::default(), &overrides).expect_err("no cluster");
    assert!(matches!(error, ConfigError::ReplicaId(1)));
}

#[test]
fn a_file_that_a_flag_names_must_exist() {
    let overrides = Overrides {
        config_path: Some("/does/not/exist.toml".into()),
        ..Overrides::default()
    };
    let error = load(&Environment::default(), &overrides).expect_err("missing");
    assert!(matches!(error, ConfigError::File { .. }));
    let loaded = from_environment([("IGGY_CONFIG_PATH", "/does/not/exist.toml")]).expect("fine");
    assert_eq!(loaded.warnings.len(), 1);
}

#[test]
fn dotenv_lines() {
    let pair = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
    assert_eq!(dotenv_line("A=b"), pair("A", "b"));
    assert_eq!(dotenv_line(" export A = \"b c\" "), pair("A", "b c"));
    assert_eq!(dotenv_line("# A=b"), None);
    assert_eq!(dotenv_line(""), None);
}
