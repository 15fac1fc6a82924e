//! The protocol once more, slowly and from its description alone: what the targets hold the readers to.

use std::cmp::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tavola_wire::Ticks;
use tavola_wire::table::filter::{Comparison, Expr, Literal, Operator};
use tavola_wire::table::stored::key::push_entity_key;
use tavola_wire::table::stored::{EntityWriter, set_timestamp};

/// The signature of a text, as the protocol writes it.
pub fn hmac_base64(secret: &[u8], text: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key of any length");
    mac.update(text.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

/// Percent-decoding byte by byte; `None` for what cannot be decoded.
pub fn decode_slowly(raw: &[u8], plus_is_space: bool) -> Option<String> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < raw.len() {
        let (byte, length) = match raw[at] {
            b'%' => {
                let digits = raw.get(at + 1..at + 3)?;
                let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
                let digits = is_hex.then(|| std::str::from_utf8(digits).unwrap())?;
                (u8::from_str_radix(digits, 16).unwrap(), 3)
            }
            b'+' if plus_is_space => (b' ', 1),
            byte => (byte, 1),
        };
        out.push(byte);
        at += length;
    }
    String::from_utf8(out).ok()
}

/// An entity that was never encoded.
#[derive(Clone, Debug)]
pub struct Row {
    pub partition_key: String,
    pub row_key: String,
    pub timestamp: Ticks,
    pub properties: Vec<(String, Literal)>,
}

impl Row {
    pub fn key(&self) -> Vec<u8> {
        let mut key = Vec::new();
        push_entity_key(&mut key, &self.partition_key, &self.row_key);
        key
    }

    pub fn entity(&self) -> Vec<u8> {
        let mut writer = EntityWriter::new();
        for (name, value) in &self.properties {
            writer.push(name, value.as_value());
        }
        let mut bytes = writer.finish();
        set_timestamp(&mut bytes, self.timestamp);
        bytes
    }

    fn value(&self, property: &str) -> Option<Literal> {
        match property {
            "PartitionKey" => Some(Literal::String(self.partition_key.clone())),
            "RowKey" => Some(Literal::String(self.row_key.clone())),
            "Timestamp" => Some(Literal::DateTime(self.timestamp)),
            name => self.properties.iter().find(|it| it.0 == name).map(|it| it.1.clone()),
        }
    }

    /// Whether the row matches, by the rules of the service: a missing property fails every comparison, and
    /// between types that do not compare the stored value is the lesser.
    pub fn matches(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Constant(value) => *value,
            Expr::Not(inner) => !self.matches(inner),
            Expr::And(terms) => !terms.iter().any(|term| !self.matches(term)),
            Expr::Or(terms) => terms.iter().any(|term| self.matches(term)),
            Expr::Compare(Comparison { property, operator, literal }) => {
                let Some(stored) = self.value(property) else { return false };
                compares(&stored, *operator, literal)
            }
        }
    }
}

/// Whether a comparison holds of a stored value.
pub fn compares(stored: &Literal, operator: Operator, literal: &Literal) -> bool {
    let order = order(stored, literal);
    match operator {
        Operator::Eq => order == Some(Ordering::Equal),
        Operator::Ne => order != Some(Ordering::Equal),
        Operator::Gt => order == Some(Ordering::Greater),
        Operator::Ge => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        Operator::Lt => order == Some(Ordering::Less),
        Operator::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
    }
}

/// How a stored value stands to a literal; `None` when one of them is no number.
pub fn order(stored: &Literal, literal: &Literal) -> Option<Ordering> {
    Some(match (stored, literal) {
        (Literal::String(a), Literal::String(b)) => a.encode_utf16().cmp(b.encode_utf16()),
        (Literal::Boolean(a), Literal::Boolean(b)) => a.cmp(b),
        (Literal::Int32(a), Literal::Int32(b)) => a.cmp(b),
        (Literal::Int64(a), Literal::Int32(b)) => a.cmp(&i64::from(*b)),
        (Literal::Int64(a), Literal::Int64(b)) => a.cmp(b),
        (Literal::Double(a), Literal::Int32(b)) => return a.partial_cmp(&f64::from(*b)),
        (Literal::Double(a), Literal::Int64(b)) => return a.partial_cmp(&(*b as f64)),
        (Literal::Double(a), Literal::Double(b)) => return a.partial_cmp(b),
        (Literal::DateTime(a), Literal::DateTime(b)) => a.cmp(b),
        (Literal::Guid(a), Literal::Guid(b)) => a.cmp(b),
        (Literal::Binary(a), Literal::Binary(b)) => a.cmp(b),
        _ => Ordering::Less,
    })
}
