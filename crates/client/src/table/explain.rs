//! What a query cost, told by the service that ran it; or foreseen, where the service tells nothing.
//!
//! A Tavola explains every page that it is asked to explain, in headers. Azure and its emulators ignore the question: then
//! what the filter says by itself is all there is to know.

use std::fmt;

use tavola_wire::explain;

use super::filter::QueryCost;
use crate::core::response::Answer;

/// What a Tavola server did for a page.
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::{Entity, QueryOptions, QueryReport, filter};
///
/// let options = QueryOptions {
///     filter: Some(filter!(PartitionKey == "Sales" && LastName == "Jones")),
///     explain: true,
///     ..Default::default()
/// };
/// let mut pages = people.query_entities::<Entity>(options).by_page();
/// while let Some(page) = pages.try_next().await? {
///     if let Some(QueryReport { kind, rows_examined, rows_returned, .. }) = page.report {
///         println!("{kind}: {rows_examined} examined for {rows_returned}");
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueryReport {
    /// `point`, `range`, `partition scan` or `table scan`; `index` if an index found the rows.
    pub kind: String,
    /// Rows that the server looked at.
    pub rows_examined: u64,
    /// Rows that it sent.
    pub rows_returned: u64,
    /// The indexes that found the rows.
    pub index: Option<IndexUse>,
    /// Indexes that might have helped, each with the reason why it was not used: `building`, `too-wide` and so on.
    pub indexes_not_used: Vec<(String, String)>,
}

/// How indexes found the rows of a page.
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::{IndexUse, filter};
///
/// let explanation = people.explain_query(filter!(Town == "Redmond")).await?;
/// if let Some(IndexUse { names, how, entries, .. }) = explanation.index() {
///     println!("{} ({how}): {entries} entries passed", names.join(" and "));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexUse {
    /// One, or several that were used together.
    pub names: Vec<String>,
    /// In the server's words, as `ordered covering`: its page about indexes has them all.
    pub how: String,
    /// Rows of the indexes that were passed.
    pub entries: u64,
}

/// What a query costs: [`TableClient::explain_query`](super::TableClient::explain_query).
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::{QueryCost, QueryExplanation, filter};
///
/// let explanation: QueryExplanation = people.explain_query(filter!(Town == "Redmond")).await?;
/// assert_eq!(explanation.estimate, QueryCost::TableScan);
/// match (&explanation.report, explanation.index()) {
///     (Some(report), Some(index)) => println!("{} did it: {} rows", index.names[0], report.rows_examined),
///     (Some(report), None) => println!("{} rows examined", report.rows_examined),
///     // Azure does not say. Tests that run anywhere are content with the estimate.
///     (None, _) => println!("{}", explanation.estimate),
/// }
/// // In a line, as "index ByTown (ordered): 20 entries passed, 20 rows examined, 20 returned".
/// println!("{explanation}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueryExplanation {
    /// What the filter says by itself: what the query costs on Azure.
    pub estimate: QueryCost,
    /// What the service did, for one page; `None` if it does not say.
    pub report: Option<QueryReport>,
}

impl QueryExplanation {
    /// The indexes that found the rows.
    pub fn index(&self) -> Option<&IndexUse> {
        self.report.as_ref()?.index.as_ref()
    }
}

impl fmt::Display for QueryExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.report {
            Some(report) => write!(f, "{report}"),
            None => write!(f, "{}, as far as the filter tells", self.estimate),
        }
    }
}

impl fmt::Display for QueryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.index {
            Some(IndexUse { names, how, entries }) => {
                let names = names.join(" and ");
                write!(f, "{} {names} ({how}): {entries} entries passed, ", self.kind)?;
            }
            None => write!(f, "{}: ", self.kind)?,
        }
        write!(f, "{} rows examined, {} returned", self.rows_examined, self.rows_returned)?;
        for (name, reason) in &self.indexes_not_used {
            write!(f, "; {name} not used: {reason}")?;
        }
        Ok(())
    }
}

/// Reads what a page says of itself; `None` if it says nothing.
pub(super) fn report(answer: &Answer) -> Option<QueryReport> {
    let count = |name| answer.header(name).and_then(|text| text.parse().ok());
    let words = |name| answer.header(name).map(|text| text.split(',').map(str::trim));
    let index = answer.header(explain::INDEX_USE).map(|how| IndexUse {
        names: words(explain::INDEX).into_iter().flatten().map(str::to_owned).collect(),
        how: how.to_owned(),
        entries: count(explain::INDEX_ENTRIES).unwrap_or_default(),
    });
    let not_used = words(explain::INDEX_NOT_USED).into_iter().flatten();
    let not_used = not_used.filter_map(|reason| reason.split_once('='));
    Some(QueryReport {
        kind: answer.header(explain::QUERY_KIND)?.to_owned(),
        rows_examined: count(explain::ROWS_EXAMINED)?,
        rows_returned: count(explain::ROWS_RETURNED)?,
        index,
        indexes_not_used: not_used
            .map(|(name, reason)| (name.to_owned(), reason.to_owned()))
            .collect(),
    })
}
