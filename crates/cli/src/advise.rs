//! `tavola advise`: which indexes would help the queries that ran, and which help none.

use clap::Args;
use tavola_client::Entity;

use crate::system_table::{ReadOptions, number, print_json, print_lines, text};
use crate::text_table::{Cell, TextTable};

#[derive(Args, Debug)]
pub(crate) struct AdviseOptions {
    #[command(flatten)]
    read: ReadOptions,

    /// Also the queries that scan and that no index would help, with the reason
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(options: &AdviseOptions) -> anyhow::Result<()> {
    let mut rows = options.read.rows("TavolaAdvice")?;
    rows.retain(|row| options.all || text(row, "Action") != "none");
    rows.sort_by(|a, b| number(b, "GainSeconds").total_cmp(&number(a, "GainSeconds")));
    if options.read.json {
        return print_json(&rows);
    }
    if rows.is_empty() {
        return print_lines(&["Nothing to advise from the queries since the start".to_owned()]);
    }
    let mut table =
        TextTable::new(&["ACTION", "TABLE", "INDEX", "KEYS", "INCLUDE", "GAIN", "PRICE"]);
    for row in &rows {
        table.push(vec![
            Cell::text(text(row, "Action")),
            Cell::text(row.partition_key()),
            Cell::text(text(row, "Name")),
            Cell::text(text(row, "Keys")),
            Cell::text(text(row, "Include")),
            Cell::number(seconds(number(row, "GainSeconds"))),
            Cell::number(seconds(number(row, "PriceSeconds"))),
        ]);
    }
    let mut lines = table.lines().into_iter();
    let mut printed: Vec<_> = lines.next().into_iter().collect();
    for (line, row) in lines.zip(&rows) {
        printed.push(line);
        printed.extend(details(row).map(|detail| format!("        {detail}")));
    }
    print_lines(&printed)
}

/// What the figures rest on, and what there is to say beside them.
fn details(row: &Entity) -> impl Iterator<Item = String> {
    let shapes = text(row, "Shapes").lines().map(str::to_owned);
    let note = Some(text(row, "Note")).filter(|note| !note.is_empty()).map(str::to_owned);
    shapes.chain(note).collect::<Vec<_>>().into_iter()
}

fn seconds(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.1} ms", seconds * 1e3) } else { format!("{seconds:.1} s") }
}
