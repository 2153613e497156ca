//! Tables as text for a terminal and as Markdown for a file, and numbers as people read them.

use comfy_table::{CellAlignment, Table as TextTable, presets};

/// Rows of text under a header. The first column is flush left, all others right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub fn new<const N: usize>(header: [&str; N]) -> Table {
        Table {
            header: header.map(str::to_owned).to_vec(),
            rows: Vec::new(),
        }
    }

    /// Appends a row, which has as many cells as the header.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.header.len(), "a row fills the table");
        self.rows.push(cells);
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let mut table = TextTable::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY);
        table.set_header(&self.header);
        table.add_rows(&self.rows);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.to_string()
    }

    /// For a Markdown file.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut rule = vec!["---:".to_owned(); self.header.len()];
        if let Some(first) = rule.first_mut() {
            *first = "---".to_owned();
        }
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        line(&self.header) + &line(&rule) + &rows
    }
}

/// A number with thousands set apart; decimals only where they say something.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let decimals = match value.abs() {
        0.0..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    let whole_end = text.find('.').unwrap_or(text.len());
    let (whole, fraction) = text.split_at(whole_end);
    let (sign, digits) = match whole.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", whole),
    };
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["case", "msgs/s"]);
        table.row(vec!["send".to_owned(), number(1234.0)]);
        table
    }

    #[test]
    fn markdown_has_a_header_a_rule_and_rows() {
        let expected = "| case | msgs/s |\n| --- | ---: |\n| send | 1,234 |\n";
        assert_eq!(table().markdown(), expected);
    }

    #[test]
    fn text_holds_every_cell() {
        let text = table().text();
        for cell in ["case", "msgs/s", "send", "1,234"] {
            assert!(text.contains(cell), "{text}");
        }
    }

    #[test]
    fn numbers_are_grouped_and_shortened() {
        assert_eq!(number(0.0), "0.00");
        assert_eq!(number(1.234), "1.23");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(999.4), "999");
        assert_eq!(number(1000.0), "1,000");
        assert_eq!(number(1_234_567.0), "1,234,567");
        assert_eq!(number(-1000.0), "-1,000");
        assert_eq!(number(f64::NAN), "-");
    }

    #[test]
    #[should_panic(expected = "a row fills the table")]
    fn a_short_row_is_refused() {
        table().row(vec![]);
    }
}
