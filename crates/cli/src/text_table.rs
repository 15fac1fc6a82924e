//! Rows for people: columns that line up. Numbers stand at the right of theirs.

/// A table in the making.
pub(crate) struct TextTable {
    rows: Vec<Vec<Cell>>,
}

pub(crate) struct Cell {
    text: String,
    is_number: bool,
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_number: false }
    }

    pub(crate) fn number(number: impl Into<String>) -> Self {
        Self { text: number.into(), is_number: true }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

impl TextTable {
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|name| Cell::text(*name)).collect()] }
    }

    pub(crate) fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// The lines, without spaces at their ends.
    pub(crate) fn lines(mut self) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<_> = (0..columns).map(|column| self.width(column)).collect();
        self.line_up_heads();
        let line = |row: &Vec<Cell>| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| {
                let space = " ".repeat(width - cell.width());
                if cell.is_number { space + &cell.text } else { cell.text.clone() + &space }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        self.rows.iter().map(line).collect()
    }

    fn width(&self, column: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(column)).map(Cell::width).max().unwrap_or(0)
    }

    /// The name of a column of numbers stands at the right as they do.
    fn line_up_heads(&mut self) {
        let Some((head, rows)) = self.rows.split_first_mut() else { return };
        for (column, name) in head.iter_mut().enumerate() {
            name.is_number =
                rows.first().and_then(|row| row.get(column)).is_some_and(|cell| cell.is_number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = TextTable::new(&["TABLE", "RATE", "NOTE"]);
        table.push(vec![Cell::text("customers"), Cell::number("7.5"), Cell::text("")]);
        table.push(vec![Cell::text("Größe"), Cell::number("1200.0"), Cell::text("hot")]);
        assert_eq!(
            table.lines(),
            ["TABLE        RATE  NOTE", "customers     7.5", "Größe      1200.0  hot"]
        );
    }
}
