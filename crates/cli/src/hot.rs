//! `tavola hot`: the partitions that are asked for most, hottest first.

use clap::Args;

use crate::system_table::{ReadOptions, number, print_json, print_lines};
use crate::text_table::{Cell, TextTable};

#[derive(Args, Debug)]
pub(crate) struct HotOptions {
    #[command(flatten)]
    read: ReadOptions,
}

pub(crate) fn run(options: &HotOptions) -> anyhow::Result<()> {
    let mut rows = options.read.rows("TavolaHotPartitions")?;
    rows.sort_by(|a, b| number(b, "RequestsPerSecond").total_cmp(&number(a, "RequestsPerSecond")));
    if options.read.json {
        return print_json(&rows);
    }
    if rows.is_empty() {
        return print_lines(&["No partition was asked for in the last minutes".to_owned()]);
    }
    let mut table = TextTable::new(&["TABLE", "PARTITION", "REQUESTS/S", "SHARE", "+/-", "KB/S"]);
    for row in &rows {
        table.push(vec![
            Cell::text(row.partition_key()),
            Cell::text(format!("{:?}", row.row_key())),
            Cell::number(format!("{:.1}", number(row, "RequestsPerSecond"))),
            Cell::number(format!("{:.1} %", 100.0 * number(row, "Share"))),
            Cell::number(format!("{:.1}", number(row, "Error"))),
            Cell::number(format!("{:.1}", number(row, "BytesPerSecond") / 1024.0)),
        ]);
    }
    print_lines(&table.lines())
}
