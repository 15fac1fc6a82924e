//! Tables of figures, as Markdown that is also readable as it stands.

use std::fmt::Write as _;

/// Rows under headings; the first column is text, the others stand right.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<const COLUMNS: usize>(headings: [&str; COLUMNS]) -> Self {
        Self { rows: vec![headings.map(str::to_owned).to_vec()] }
    }

    pub fn row<const COLUMNS: usize>(&mut self, cells: [String; COLUMNS]) {
        assert_eq!(COLUMNS, self.rows[0].len(), "a row has a cell under each heading");
        self.rows.push(Vec::from(cells));
    }

    pub fn to_markdown(&self) -> String {
        let columns = self.rows[0].len();
        let widths: Vec<_> = (0..columns)
            .map(|column| {
                self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3)
            })
            .collect();
        let mut out = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                match column {
                    0 => write!(out, "| {cell:<width$} "),
                    _ => write!(out, "| {cell:>width$} "),
                }
                .expect("a text takes every write");
            }
            out.push_str("|\n");
            if index == 0 {
                for (column, width) in widths.iter().enumerate() {
                    let dashes = "-".repeat(width + if column == 0 { 2 } else { 1 });
                    out.extend(["|", &dashes, if column == 0 { "" } else { ":" }]);
                }
                out.push_str("|\n");
            }
        }
        out
    }
}

/// A number as people read it: `1,234,567`, `12.3`, `0.45`.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    match magnitude {
        _ if !value.is_finite() => "-".to_owned(),
        100.0.. => grouped(value.round() as i64),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Microseconds in the unit that keeps them short.
pub fn micros(value: f64) -> String {
    match value {
        1e6.. => format!("{} s", number(value / 1e6)),
        1e4.. => format!("{} ms", number(value / 1e3)),
        _ => format!("{} us", number(value)),
    }
}

pub fn megabytes(bytes: u64) -> String {
    format!("{} MB", number(bytes as f64 / 1e6))
}

/// A count as people read it.
pub fn count(value: u64) -> String {
    grouped(i64::try_from(value).unwrap_or(i64::MAX))
}

fn grouped(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut out = if value < 0 { "-".to_owned() } else { String::new() };
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned_markdown() {
        let mut table = Table::new(["Workload", "per second"]);
        table.row(["get".to_owned(), number(36_700.4)]);
        table.row(["transactions".to_owned(), number(829.0)]);
        let expected = "\
| Workload     | per second |
|--------------|-----------:|
| get          |     36,700 |
| transactions |        829 |
";
        assert_eq!(table.to_markdown(), expected);
    }

    #[test]
    fn numbers_have_three_digits_or_groups() {
        let cases = [
            (0.456, "0.46"),
            (9.99, "9.99"),
            (12.34, "12.3"),
            (999.6, "1,000"),
            (1_234_567.0, "1,234,567"),
            (-2500.0, "-2,500"),
            (f64::NAN, "-"),
        ];
        for (value, expected) in cases {
            assert_eq!(number(value), expected);
        }
        assert_eq!((count(26), count(1_000)), ("26".to_owned(), "1,000".to_owned()));
    }

    #[test]
    fn durations_choose_their_unit() {
        for (value, expected) in [
            (850.0, "850 us"),
            (9_999.0, "9,999 us"),
            (12_340.0, "12.3 ms"),
            (2_500_000.0, "2.50 s"),
        ] {
            assert_eq!(micros(value), expected);
        }
    }
}
