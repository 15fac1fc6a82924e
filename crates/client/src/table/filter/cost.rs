//! What a filter makes the service do, before it is asked to.

use std::fmt;

use tavola_wire::table::filter::{Comparison, Expr, Literal, Operator, Plan, QueryKind};

use super::Filter;

/// How a query finds its entities, from the cheapest to the dearest. The words are those of the Table Design Guide.
///
/// ```
/// use tavola_client::{Filter, QueryCost, filter};
///
/// /// For tests: no query of this program may scan a table.
/// fn is_cheap(filter: &Filter) -> bool {
///     filter.cost() < QueryCost::TableScan
/// }
///
/// assert!(is_cheap(&filter!(PartitionKey == "Sales" && Age > 30)));
/// assert_eq!(filter!(Age > 30).cost().to_string(), "table scan");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueryCost {
    /// Both keys are given: one entity is looked up.
    Point,
    /// One partition and a range of row keys: what is read is what is in the range.
    RowRange,
    /// One partition, all of its rows.
    PartitionScan,
    /// Several partitions or all of them, on any number of servers.
    TableScan,
}

impl fmt::Display for QueryCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Point => "point query",
            Self::RowRange => "row range query",
            Self::PartitionScan => "partition scan",
            Self::TableScan => "table scan",
        })
    }
}

/// A query that reads more than it finds.
///
/// ```
/// use tavola_client::{QueryCost, ScanWarning, filter};
///
/// let Some(ScanWarning { cost, advice }) = filter!(PartitionKey == "Sales" && Age > 30).warning()
/// else {
///     panic!("the whole partition is read")
/// };
/// assert_eq!(cost, QueryCost::PartitionScan);
/// assert!(advice.contains("RowKey"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanWarning {
    /// [`QueryCost::PartitionScan`] or [`QueryCost::TableScan`].
    pub cost: QueryCost,
    /// What would make it cheaper.
    pub advice: &'static str,
}

impl fmt::Display for ScanWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this is a {}: {}", self.cost, self.advice)
    }
}

impl Filter {
    /// What the query costs on Azure, which finds keys only if they stand at the top of the filter, joined by `and`.
    ///
    /// ```
    /// use tavola_client::{QueryCost, filter};
    ///
    /// assert_eq!(filter!(PartitionKey == "Sales" && RowKey == "1").cost(), QueryCost::Point);
    /// assert_eq!(filter!(PartitionKey == "Sales" && RowKey >= "B").cost(), QueryCost::RowRange);
    /// assert_eq!(filter!(PartitionKey == "Sales" && Age > 30).cost(), QueryCost::PartitionScan);
    /// assert_eq!(filter!(Name == "Jens").cost(), QueryCost::TableScan);
    /// ```
    pub fn cost(&self) -> QueryCost {
        let terms = match self.expr() {
            Expr::And(terms) => terms.as_slice(),
            term => std::slice::from_ref(term),
        };
        let compares = |name: &str, is_wanted: fn(Operator) -> bool| {
            terms.iter().any(|term| match term {
                Expr::Compare(Comparison { property, operator, literal: Literal::String(_) }) => {
                    property == name && is_wanted(*operator)
                }
                _ => false,
            })
        };
        let is_equal = |operator| operator == Operator::Eq;
        if !compares("PartitionKey", is_equal) {
            QueryCost::TableScan
        } else if compares("RowKey", is_equal) {
            QueryCost::Point
        } else if compares("RowKey", |operator| operator != Operator::Ne) {
            QueryCost::RowRange
        } else {
            QueryCost::PartitionScan
        }
    }

    /// What the query costs on Tavola, which finds keys under `or` and `not` too.
    ///
    /// ```
    /// use tavola_client::{Filter, QueryCost};
    ///
    /// let two = Filter::key("Sales", "1") | Filter::key("Sales", "2");
    /// assert_eq!(two.cost_on_tavola(), QueryCost::Point);
    /// assert_eq!(two.cost(), QueryCost::TableScan);
    /// ```
    pub fn cost_on_tavola(&self) -> QueryCost {
        match Plan::new(self.expr()).kind {
            QueryKind::Point => QueryCost::Point,
            QueryKind::Range => QueryCost::RowRange,
            QueryKind::PartitionScan => QueryCost::PartitionScan,
            QueryKind::TableScan => QueryCost::TableScan,
        }
    }

    /// A warning if the query reads more than it finds.
    ///
    /// ```
    /// use tavola_client::filter;
    ///
    /// let warning = filter!(Name == "Jens").warning().unwrap();
    /// assert!(warning.to_string().starts_with("this is a table scan: "));
    /// assert_eq!(filter!(PartitionKey == "Sales" && RowKey == "1").warning(), None);
    /// ```
    pub fn warning(&self) -> Option<ScanWarning> {
        let advice = match self.cost() {
            QueryCost::Point | QueryCost::RowRange => return None,
            QueryCost::PartitionScan => "bound the RowKey too, or keep a copy under another RowKey",
            QueryCost::TableScan if matches!(self.expr(), Expr::Or(_)) => {
                "ask for each alternative in a query of its own, in parallel"
            }
            QueryCost::TableScan => {
                "give the PartitionKey, or keep an index entity for what is asked by"
            }
        };
        Some(ScanWarning { cost: self.cost(), advice })
    }
}
