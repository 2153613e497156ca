//! Durations and sizes as text: `7 days`, `1h 30m`, `128 MiB`, or a bare number.
//!
//! Numbers are whole and decimal. Words for no limit and for the server's default are accepted too,
//! since clients print them.

use crate::topic_options::UNLIMITED;

/// Microseconds of a text: a bare number is microseconds, else a sum of numbers with units.
pub(crate) fn parse_duration_us(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    if let Some(word) = parse_word(&text) {
        return Some(word);
    }
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let mut rest = text.as_str();
    let mut total = 0u64;
    while !rest.is_empty() {
        let (number, unit, tail) = split_quantity(rest)?;
        total = total.checked_add(number.checked_mul(duration_unit_us(unit)?)?)?;
        rest = tail;
    }
    (!text.is_empty()).then_some(total)
}

/// Bytes of a text: a number, with a unit or without.
pub(crate) fn parse_size_bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    if let Some(word) = parse_word(&text) {
        return Some(word);
    }
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let (number, unit, tail) = split_quantity(&text)?;
    match tail.is_empty() {
        true => number.checked_mul(size_unit_bytes(unit)?),
        false => None,
    }
}

fn parse_word(text: &str) -> Option<u64> {
    match text {
        "never" | "never_expire" | "unlimited" => Some(UNLIMITED),
        "server_default" | "default" => Some(0),
        _ => None,
    }
}

/// Splits `12 unit tail` into its parts; spaces around each are dropped.
fn split_quantity(text: &str) -> Option<(u64, &str, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let number = text[..digits].parse().ok()?;
    let rest = text[digits..].trim_start();
    let unit = rest
        .find(|c: char| c.is_ascii_digit() || c.is_whitespace())
        .unwrap_or(rest.len());
    Some((number, &rest[..unit], rest[unit..].trim_start()))
}

fn duration_unit_us(unit: &str) -> Option<u64> {
    const SECOND: u64 = 1_000_000;
    const DAY: u64 = 86_400 * SECOND;
    Some(match unit {
        "us" | "usec" | "µs" | "micros" => 1,
        "ms" | "msec" | "millis" => 1_000,
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "m" | "min" | "mins" | "minute" | "minutes" => 60 * SECOND,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600 * SECOND,
        "d" | "day" | "days" => DAY,
        "w" | "week" | "weeks" => 7 * DAY,
        _ => return None,
    })
}

fn size_unit_bytes(unit: &str) -> Option<u64> {
    Some(match unit {
        "b" | "byte" | "bytes" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "ki" | "kib" => 1 << 10,
        "mi" | "mib" => 1 << 20,
        "gi" | "gib" => 1 << 30,
        "ti" | "tib" => 1 << 40,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_sums_of_quantities() {
        const DAY: u64 = 86_400_000_000;
        let table = [
            ("0", Some(0)),
            ("1000000", Some(1_000_000)),
            ("7 days", Some(7 * DAY)),
            (" 7days ", Some(7 * DAY)),
            ("1h 30m", Some(5_400_000_000)),
            ("1h30m", Some(5_400_000_000)),
            ("1 Week", Some(7 * DAY)),
            ("5ms", Some(5_000)),
            ("5 µs", Some(5)),
            ("never", Some(u64::MAX)),
            ("server_default", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("18446744073709551615 days", None),
            ("", None),
            ("days", None),
            ("7 parsecs", None),
            ("-1", None),
            ("1.5h", None),
            ("1h 30", None),
        ];
        for (text, value) in table {
            assert_eq!(parse_duration_us(text), value, "{text:?}");
        }
    }

    #[test]
    fn sizes_are_a_number_and_a_unit() {
        let table = [
            ("134217728", Some(128 << 20)),
            ("128 MiB", Some(128 << 20)),
            ("128mib", Some(128 << 20)),
            ("1 GB", Some(1_000_000_000)),
            ("1 GiB", Some(1 << 30)),
            ("12 B", Some(12)),
            ("unlimited", Some(u64::MAX)),
            ("18446744073709551615 KiB", None),
            ("1 MiB 1", None),
            ("MiB", None),
            ("", None),
            ("1 furlong", None),
        ];
        for (text, value) in table {
            assert_eq!(parse_size_bytes(text), value, "{text:?}");
        }
    }
}
