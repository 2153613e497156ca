//! Kinds of configuration values that are more than a number: spans of time, byte counts, cores.
//!
//! Each reads the text that a person writes and writes it back in the same form, so that the
//! effective configuration can be fed to a node again.

use std::fmt;
use std::time::Duration;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A span of time: humantime text (`5s`, `1 m 30 s`), or `0`, `none`, `disabled`, `unlimited`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span(pub Duration);

/// A count of bytes: text with a unit (`2 MB`, `64 MiB`) or a bare number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByteCount(pub u64);

/// Which cores get a shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CpuAllocation {
    /// One shard for each core that the process may run on.
    All,
    /// This many shards.
    Count(usize),
    /// One shard for each of the cores `start..end`.
    Range(usize, usize),
}

impl Span {
    /// Whole milliseconds.
    pub const fn from_millis(ms: u64) -> Span {
        Span(Duration::from_millis(ms))
    }

    /// Whole seconds.
    pub const fn from_secs(seconds: u64) -> Span {
        Span(Duration::from_secs(seconds))
    }
}

/// Reads a span of time.
pub fn parse_span(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if matches!(text, "0" | "none" | "disabled" | "unlimited") {
        return Ok(Duration::ZERO);
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    if rest.is_empty() {
        return Err("an empty text is not a span of time".to_owned());
    }
    while !rest.is_empty() {
        let (number, unit, after) = split_quantity(rest)
            .ok_or_else(|| format!("`{text}` is not a span of time such as `5s` or `1m 30s`"))?;
        let number: u64 = number
            .parse()
            .map_err(|_| format!("`{number}` is not a whole number"))?;
        let part = span_unit(unit, number)
            .ok_or_else(|| format!("`{unit}` is not a unit of time (us, ms, s, m, h, days)"))?;
        total = total
            .checked_add(part)
            .ok_or_else(|| format!("`{text}` is too long"))?;
        rest = after;
    }
    Ok(total)
}

fn span_unit(unit: &str, number: u64) -> Option<Duration> {
    let seconds = |factor: u64| number.checked_mul(factor).map(Duration::from_secs);
    match unit {
        "ns" | "nsec" => Some(Duration::from_nanos(number)),
        "us" | "usec" | "µs" => Some(Duration::from_micros(number)),
        "ms" | "msec" | "millis" => Some(Duration::from_millis(number)),
        "s" | "sec" | "secs" | "second" | "seconds" => seconds(1),
        "m" | "min" | "mins" | "minute" | "minutes" => seconds(60),
        "h" | "hr" | "hrs" | "hour" | "hours" => seconds(3600),
        "d" | "day" | "days" => seconds(86_400),
        "w" | "week" | "weeks" => seconds(7 * 86_400),
        _ => None,
    }
}

/// Splits `12 ms rest` into number, unit and rest.
fn split_quantity(text: &str) -> Option<(&str, &str, &str)> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(text.len());
    if digits == 0 {
        return None;
    }
    let (number, rest) = text.split_at(digits);
    let rest = rest.trim_start();
    let letters = rest
        .find(|c: char| !c.is_alphabetic())
        .unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(letters);
    Some((number, unit, rest.trim_start()))
}

/// Reads a count of bytes.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    if matches!(text, "0" | "none" | "disabled" | "unlimited") {
        return Ok(0);
    }
    let wrong = || format!("`{text}` is not a size such as `2 MB` or `64 MiB`");
    let (number, unit, rest) = split_quantity(text).ok_or_else(wrong)?;
    if !rest.is_empty() {
        return Err(wrong());
    }
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" | "byte" | "bytes" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "kib" | "k" => 1 << 10,
        "mib" | "m" => 1 << 20,
        "gib" | "g" => 1 << 30,
        "tib" | "t" => 1 << 40,
        _ => return Err(wrong()),
    };
    if let Ok(whole) = number.replace('_', "").parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(wrong);
    }
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let bytes = number * factor as f64;
    if bytes.is_finite() && bytes < u64::MAX as f64 {
        Ok(bytes as u64)
    } else {
        Err(wrong())
    }
}

/// Reads which cores get a shard.
pub fn parse_cpu_allocation(text: &str) -> Result<CpuAllocation, String> {
    let text = text.trim();
    if text == "all" || text.starts_with("numa:") {
        return Ok(CpuAllocation::All);
    }
    let wrong = || format!("`{text}` is not `all`, a count from 1, or a range such as `0..4`");
    if let Some((start, end)) = text.split_once("..") {
        let start: usize = start.trim().parse().map_err(|_| wrong())?;
        let end: usize = end.trim().parse().map_err(|_| wrong())?;
        if start < end {
            return Ok(CpuAllocation::Range(start, end));
        }
        return Err(wrong());
    }
    match text.parse() {
        Ok(count) if count > 0 => Ok(CpuAllocation::Count(count)),
        _ => Err(wrong()),
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.0.as_micros();
        match us {
            0 => write!(f, "0"),
            _ if us.is_multiple_of(1_000_000) => write!(f, "{} s", us / 1_000_000),
            _ if us.is_multiple_of(1_000) => write!(f, "{} ms", us / 1_000),
            _ => write!(f, "{us} us"),
        }
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
            if self.0 >= unit && self.0.is_multiple_of(unit) {
                return write!(f, "{} {name}", self.0 / unit);
            }
        }
        write!(f, "{} B", self.0)
    }
}

impl fmt::Display for CpuAllocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CpuAllocation::All => write!(f, "all"),
            CpuAllocation::Count(count) => write!(f, "{count}"),
            CpuAllocation::Range(start, end) => write!(f, "{start}..{end}"),
        }
    }
}

/// Text or whole number, read by one parser.
struct TextOrNumber<T> {
    what: &'static str,
    parse: fn(&str) -> Result<T, String>,
}

impl<T> Visitor<'_> for TextOrNumber<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        let what = "a span of time such as `5s`";
        let visitor = TextOrNumber {
            what,
            parse: parse_span,
        };
        deserializer.deserialize_any(visitor).map(Span)
    }
}

impl<'de> Deserialize<'de> for ByteCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ByteCount, D::Error> {
        let what = "a size such as `64 MiB`";
        let visitor = TextOrNumber {
            what,
            parse: parse_bytes,
        };
        deserializer.deserialize_any(visitor).map(ByteCount)
    }
}

impl<'de> Deserialize<'de> for CpuAllocation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CpuAllocation, D::Error> {
        deserializer.deserialize_any(TextOrNumber {
            what: "`all`, a count, or a range such as `0..4`",
            parse: parse_cpu_allocation,
        })
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for ByteCount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for CpuAllocation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_as_people_write_them() {
        for (text, ms) in [
            ("5s", 5_000),
            ("1 m", 60_000),
            ("1m 30s", 90_000),
            ("2 days", 172_800_000),
            ("250 ms", 250),
            ("0", 0),
            ("none", 0),
            ("disabled", 0),
            ("unlimited", 0),
        ] {
            assert_eq!(parse_span(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "5", "s", "5 parsecs", "-1s", "99999999999999999999s"] {
            assert!(parse_span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_read_as_people_write_them() {
        for (text, bytes) in [
            ("2 MB", 2_000_000),
            ("64 MiB", 64 << 20),
            ("64MiB", 64 << 20),
            ("1.5 KiB", 1536),
            ("4096", 4096),
            ("16 GiB", 16 << 30),
            ("0", 0),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "MiB", "3 apples", "1 MiB 2", "99999999999 TiB"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn cores_are_all_a_count_or_a_range() {
        assert_eq!(parse_cpu_allocation("all"), Ok(CpuAllocation::All));
        assert_eq!(parse_cpu_allocation("numa:auto"), Ok(CpuAllocation::All));
        assert_eq!(parse_cpu_allocation("3"), Ok(CpuAllocation::Count(3)));
        assert_eq!(parse_cpu_allocation("1..4"), Ok(CpuAllocation::Range(1, 4)));
        for text in ["0", "4..4", "x", "1..", "-1"] {
            assert!(parse_cpu_allocation(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for ms in [0, 5, 1_500, 60_000] {
            let span = Span::from_millis(ms);
            assert_eq!(parse_span(&span.to_string()), Ok(span.0));
        }
        for bytes in [0, 1, 1024, 64 << 20, 3 << 30, 1_000_001] {
            let text = ByteCount(bytes).to_string();
            assert_eq!(parse_bytes(&text), Ok(bytes), "{text}");
        }
    }
}
