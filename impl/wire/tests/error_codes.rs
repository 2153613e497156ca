//! The table of error codes is the one of the specification.

use std::fmt::Write;
use std::path::Path;

use pawl_wire::error_code::{ErrorCode, RetryClass};

const TSV: &str = include_str!("../../../spec/vectors/v11-errors.tsv");
const COLUMNS_MAX: usize = 100;
const HEAD: &str = "\
//! Generated from `spec/vectors/v11-errors.tsv` by the test `error_codes`; do not edit.

use crate::error_code::{RetryClass, error_codes};

error_codes! {
";

fn rows() -> Vec<[&'static str; 4]> {
    let mut lines = TSV.lines();
    assert_eq!(lines.next(), Some("code\tname\thttp_status\tclass"));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            fields.try_into().expect("a row has four fields")
        })
        .collect()
}

fn class(name: &str) -> RetryClass {
    match name {
        "transient" => RetryClass::NotAccepted,
        "unknown-outcome" => RetryClass::UnknownOutcome,
        "terminal" => RetryClass::Terminal,
        other => panic!("class {other} is not known"),
    }
}

fn variant(name: &str) -> String {
    name.split('_')
        .map(|word| word[..1].to_uppercase() + &word[1..])
        .collect()
}

fn rendered() -> String {
    let mut out = String::from(HEAD);
    for [code, name, status, class_name] in rows() {
        let (variant, class) = (variant(name), class(class_name));
        let row = format!("    {code} {variant} \"{name}\" {status} {class:?};");
        match row.len() <= COLUMNS_MAX {
            true => writeln!(out, "{row}"),
            false => writeln!(
                out,
                "    {code} {variant}\n        \"{name}\" {status} {class:?};"
            ),
        }
        .expect("text grows");
    }
    out + "}\n"
}

#[test]
fn generated_table_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/error_code_table.rs");
    if std::env::var_os("PAWL_REGENERATE").is_some() {
        std::fs::write(&path, rendered()).expect("the table can be written");
    }
    let table = std::fs::read_to_string(&path).expect("the table can be read");
    assert!(table == rendered(), "run this test with PAWL_REGENERATE=1");
}

#[test]
fn codes_names_statuses_and_classes_agree_with_the_specification() {
    let rows = rows();
    assert_eq!(rows.len(), 240);
    assert_eq!(ErrorCode::ALL.len(), rows.len());
    for (row, code) in rows.iter().zip(ErrorCode::ALL) {
        let [number, name, status, class_name] = row;
        assert_eq!(code.code().to_string(), *number);
        assert_eq!(code.name(), *name);
        assert_eq!(code.http_status().to_string(), *status);
        assert_eq!(code.class(), class(class_name));
        assert_eq!(ErrorCode::from_u32(code.code()), Some(*code));
    }
}

#[test]
fn unknown_numbers_have_no_code() {
    let known = (0..=u16::MAX as u32).filter(|code| ErrorCode::from_u32(*code).is_some());
    assert_eq!(known.count(), 240);
    assert_eq!(ErrorCode::from_u32(u32::MAX), None);
}
