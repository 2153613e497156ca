use super::*;

fn entry(key_kind: u8, key: &[u8], value_kind: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![key_kind];
    out.extend_from_slice(&(key.len() as u32).to_le_bytes());
    out.extend_from_slice(key);
    out.push(value_kind);
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(value);
    out
}

#[test]
fn entries_keep_the_order_of_the_block() {
    let block = [
        entry(2, b"b", 3, &[1]),
        entry(2, b"a", 200, b"unknown kind"),
    ]
    .concat();
    let options = Options::new(&block).expect("well formed");
    let entries: Vec<(&str, u8)> = options.iter().map(|(key, tlv)| (key, tlv.kind)).collect();
    assert_eq!(entries, [("b", 3), ("a", 200)]);
    assert_eq!(options.as_bytes(), block);
    let kept = keep_options(&options);
    let sorted = [
        entry(2, b"a", 200, b"unknown kind"),
        entry(2, b"b", 3, &[1]),
    ]
    .concat();
    assert_eq!(encode_options(&kept), sorted);
}

#[test]
fn malformed_entries_are_refused() {
    let table = [
        entry(0, b"k", 1, b"v"),
        entry(2, b"k", 0, b"v"),
        entry(1, b"k", 1, b"v"),
        entry(2, b"", 1, b"v"),
        entry(2, b"k", 1, b""),
        entry(2, &[b'k'; 256], 1, b"v"),
        entry(2, b"k", 1, &[0; 256]),
        entry(2, &[0xff], 1, b"v"),
        [entry(2, b"k", 1, b"v"), entry(2, b"k", 1, b"w")].concat(),
        [entry(2, b"k", 1, b"v"), vec![0]].concat(),
    ];
    for block in table {
        assert!(Options::new(&block).is_err(), "{block:?}");
    }
    let whole = entry(2, b"key", 1, b"value");
    for cut in 1..whole.len() {
        assert!(Options::new(&whole[..cut]).is_err(), "{cut}");
    }
}

#[test]
fn limits_in_entries_and_bytes_hold() {
    let block = |count: usize, value: &[u8]| -> Vec<u8> {
        (0..count)
            .flat_map(|index| entry(2, format!("{index:04}").as_bytes(), 1, value))
            .collect()
    };
    assert!(Options::new(&block(OPTIONS_COUNT_MAX, b"v")).is_ok());
    assert!(Options::new(&block(OPTIONS_COUNT_MAX + 1, b"v")).is_err());
    let entry_bytes = entry(2, b"0000", 1, &[0; 200]).len();
    let fit = OPTIONS_BYTES_MAX / entry_bytes;
    assert!(Options::new(&block(fit, &[0; 200])).is_ok());
    assert!(Options::new(&block(fit + 1, &[0; 200])).is_err());
}

#[test]
fn user_headers_may_have_any_key_and_end_at_the_first_damage() {
    let bytes = [entry(1, &[0xff], 2, b"v"), entry(1, &[0xff], 3, &[1])].concat();
    assert!(UserHeaders::new(&bytes).all(|entry| entry.is_ok()));
    assert_eq!(UserHeaders::new(&bytes).count(), 2);
    let mut headers = UserHeaders::new(&bytes[..bytes.len() - 1]);
    assert!(headers.next().is_some_and(|entry| entry.is_ok()));
    assert!(headers.next().is_some_and(|entry| entry.is_err()));
    assert!(headers.next().is_none());
}
