//! From a filter to a program over stored entities.
//!
//! Constants are folded, and long chains of equalities become sets, so that a filter of a thousand ids costs a row one
//! look-up. How a program runs is said in [`crate::table::stored`].

use std::collections::HashMap;

use super::expr::{Comparison, Expr, Literal, Operator};
use crate::name_list::NameList;
use crate::table::stored::key::push_ordered;
use crate::table::stored::program::{KeyPart, Membership, Node, Source};
use crate::table::stored::{EdmType, Program};

/// From this many equalities on, a chain of them becomes a set.
const SET_TERMS_MIN: usize = 4;

impl Program {
    pub fn new(expr: &Expr) -> Self {
        let mut compiler = Compiler::default();
        let root = compiler.node(expr);
        Self { root, names: compiler.names, reads_keys: compiler.reads_keys }
    }
}

#[derive(Default)]
struct Compiler {
    names: NameList<Box<[u8]>>,
    reads_keys: bool,
}

impl Compiler {
    fn node(&mut self, expr: &Expr) -> Node {
        match expr {
            Expr::Constant(value) => Node::Constant(*value),
            Expr::Compare(comparison) => self.comparison(comparison),
            Expr::Not(inner) => match self.node(inner) {
                Node::Constant(value) => Node::Constant(!value),
                node => Node::Not(Box::new(node)),
            },
            Expr::And(terms) => self.chain(terms, Operator::Ne, true, Node::And),
            Expr::Or(terms) => self.chain(terms, Operator::Eq, false, Node::Or),
        }
    }

    /// A chain whose terms with the `collected` operator become sets. A term equal to `neutral` says nothing,
    /// and one that is the opposite says everything.
    fn chain(
        &mut self,
        terms: &[Expr],
        collected: Operator,
        neutral: bool,
        build: fn(Vec<Node>) -> Node,
    ) -> Node {
        let mut sets: HashMap<(Source, EdmType), Vec<&Comparison>> = HashMap::new();
        for term in terms {
            if let Some((source, comparison)) = self.collectable(term, collected) {
                let key = (source, comparison.literal.edm_type());
                sets.entry(key).or_default().push(comparison);
            }
        }
        sets.retain(|_, comparisons| comparisons.len() >= SET_TERMS_MIN);
        let mut nodes = Vec::new();
        for term in terms {
            let key = self
                .collectable(term, collected)
                .map(|(source, comparison)| (source, comparison.literal.edm_type()));
            let node = match key.and_then(|key| Some((key, sets.get_mut(&key)?))) {
                // The set stands where its first term stood.
                Some(((source, edm_type), comparisons)) => {
                    let comparisons = std::mem::take(comparisons);
                    if comparisons.is_empty() {
                        continue;
                    }
                    let payloads =
                        comparisons.iter().filter_map(|it| payload(source, &it.literal)).collect();
                    Node::In(Membership { source, edm_type, payloads, negated: neutral })
                }
                None => self.node(term),
            };
            match node {
                Node::Constant(value) if value == neutral => {}
                Node::Constant(value) => return Node::Constant(value),
                node => nodes.push(node),
            }
        }
        match nodes.len() {
            0 => Node::Constant(neutral),
            1 => nodes.remove(0),
            _ => build(nodes),
        }
    }

    /// A comparison with the operator, whose literal can be looked up in a set.
    fn collectable<'e>(
        &mut self,
        term: &'e Expr,
        operator: Operator,
    ) -> Option<(Source, &'e Comparison)> {
        let Expr::Compare(comparison) = term else { return None };
        if comparison.operator != operator {
            return None;
        }
        let source = self.source(&comparison.property);
        payload(source, &comparison.literal)?;
        Some((source, comparison))
    }

    fn comparison(&mut self, comparison: &Comparison) -> Node {
        let operator = comparison.operator;
        match (self.source(&comparison.property), &comparison.literal) {
            (Source::Slot(slot), literal) => {
                Node::Property { slot, operator, literal: literal.clone() }
            }
            (Source::Key(part), Literal::String(text)) => {
                Node::Key { part, operator, ordered: ordered(text) }
            }
            (Source::Timestamp, Literal::DateTime(moment)) => {
                Node::Timestamp { operator, moment: *moment }
            }
            (Source::Key(_) | Source::Timestamp, _) => Node::Constant(operator.holds_on_mismatch()),
        }
    }

    fn source(&mut self, property: &str) -> Source {
        match property {
            "PartitionKey" => self.key(KeyPart::Partition),
            "RowKey" => self.key(KeyPart::Row),
            "Timestamp" => Source::Timestamp,
            name => Source::Slot(self.slot(name)),
        }
    }

    fn key(&mut self, part: KeyPart) -> Source {
        self.reads_keys = true;
        Source::Key(part)
    }

    fn slot(&mut self, name: &str) -> usize {
        self.names.insert(name.as_bytes().into()).0
    }
}

/// The bytes that a stored value has if, and only if, it equals the literal. Numbers have none, because they
/// equal numbers of other types, and a timestamp is not worth a set.
fn payload(source: Source, literal: &Literal) -> Option<Box<[u8]>> {
    match (source, literal) {
        (Source::Key(_), Literal::String(text)) => Some(ordered(text)),
        (Source::Key(_) | Source::Timestamp, _) => None,
        (_, Literal::String(text)) => Some(text.as_bytes().into()),
        (_, Literal::Guid(guid)) => Some(Box::new(*guid)),
        (_, Literal::Binary(bytes)) => Some(bytes.as_slice().into()),
        (_, Literal::DateTime(moment)) => Some(Box::new(moment.0.to_le_bytes())),
        (_, Literal::Boolean(_) | Literal::Int32(_) | Literal::Int64(_) | Literal::Double(_)) => {
            None
        }
    }
}

fn ordered(text: &str) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(text.len());
    push_ordered(&mut bytes, text);
    bytes.into()
}
