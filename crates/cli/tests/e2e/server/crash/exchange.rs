//! Sends changes and holds the answers against what the ledger says must happen.

use super::ledger::{Ledger, RowChange};
use super::round::Round;
use crate::support::{Batch, Client};
use crate::table::model::store::{Change, Property};

/// Sends one change as a request of its own.
pub(super) fn send_alone(
    client: &Client,
    table: &str,
    ledger: &mut Ledger,
    change: RowChange,
    round: &Round,
) -> std::io::Result<()> {
    let request = change.change.request(client, table, change.keys());
    let bytes = text_bytes(&change);
    let refusal = ledger.begin(vec![change]);
    let answer = request.try_send()?;
    if let Some((_, status, code)) = refusal {
        answer.expect_error(status, code);
        round.count_refused();
    } else {
        let answer = answer.expect(204);
        ledger.acknowledge(&[answer.header("etag").map(str::to_owned)]);
        round.count_acknowledged(bytes);
    }
    Ok(())
}

/// Sends changes of one partition as a transaction.
pub(super) fn send_together(
    client: &Client,
    table: &str,
    ledger: &mut Ledger,
    changes: Vec<RowChange>,
    round: &Round,
) -> std::io::Result<()> {
    let batch = changes.iter().fold(Batch::new(), |batch, change| {
        change.change.add_to(batch, client, table, change.keys())
    });
    let bytes = changes.iter().map(text_bytes).sum();
    let refusal = ledger.begin(changes);
    let reply = batch.try_send(client)?;
    if let Some((index, status, code)) = refusal {
        reply.expect_failure(status, code, index);
        round.count_refused();
    } else {
        let parts = reply.expect_done(batch.len());
        let etags: Vec<_> =
            parts.iter().map(|part| part.header("etag").map(str::to_owned)).collect();
        ledger.acknowledge(&etags);
        round.count_acknowledged(bytes);
    }
    Ok(())
}

/// The size of a change as far as it matters: its texts.
fn text_bytes(change: &RowChange) -> usize {
    let (Change::Insert(properties)
    | Change::Replace(_, properties)
    | Change::Merge(_, properties)) = &change.change
    else {
        return 0;
    };
    let texts = properties.0.values().map(|property| match property {
        Property::Text(text) => text.len(),
        _ => 0,
    });
    texts.sum()
}
