//! Filter text to [`Expr`], with the service's errors.
//!
//! The parser keeps its own stack: clients that combine filters in a loop write one pair of parentheses per
//! term, and thousands of those must cost memory from the heap only. Chains that such parentheses nest are
//! flattened as they close, so the depth of a tree counts changes between `and`, `or` and `not` alone, and that
//! is what [`DEPTH_MAX`] limits.
//!
//! `not` takes the whole comparison after it (`not a eq b` is `not (a eq b)`), unlike strict OData.

use std::collections::VecDeque;

use super::expr::{Comparison, Expr, Literal, Operator};
use super::lexer::{Lexer, Spanned, Token};
use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;

/// Levels of a filter's tree. Everything that visits a tree recurses, and this keeps the stack small; the
/// filters that clients write stay below ten.
pub(crate) const DEPTH_MAX: usize = 200;

const ARITHMETIC: [&str; 5] = ["add", "sub", "mul", "div", "mod"];

/// Reads a `$filter` value, percent-decoded. Empty or blank text matches everything.
///
/// # Errors
///
/// - 400 `InvalidInput`: syntax, malformed literals, comparisons with `null`, a key joined as if it were a
///   truth value, deeper than [`DEPTH_MAX`].
/// - 501 `NotImplemented`: functions, arithmetic, two properties or two literals compared.
pub fn parse(text: &str) -> Result<Expr> {
    let parser = Parser::new(text)?;
    if parser.next.token == Token::End {
        return Ok(Expr::ALL);
    }
    parser.filter()
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The token to be read next.
    next: Spanned<'a>,
    stack: Vec<Frame>,
}

/// What waits for its right side.
enum Frame {
    Open,
    Not,
    Chain(Kind, Partial),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    And,
    Or,
}

impl Kind {
    /// The operator as error texts spell it.
    fn name(self) -> &'static str {
        match self {
            Self::And => "And",
            Self::Or => "Or",
        }
    }
}

/// What an operand of `and`, `or` and `not` is. The service knows the types of the system properties alone; any other
/// property may be a truth value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OperandType {
    Boolean,
    String,
    DateTime,
}

impl OperandType {
    fn of(property: &str) -> Self {
        match property {
            "PartitionKey" | "RowKey" => Self::String,
            "Timestamp" => Self::DateTime,
            _ => Self::Boolean,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Boolean => "Edm.Boolean",
            Self::String => "Edm.String",
            Self::DateTime => "Edm.DateTime",
        }
    }
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self> {
        let mut lexer = Lexer::new(text);
        let next = lexer.next()?;
        Ok(Self { lexer, next, stack: Vec::new() })
    }

    fn filter(mut self) -> Result<Expr> {
        loop {
            let mut operand = self.operand()?;
            loop {
                while let Some(Frame::Not) = self.stack.last() {
                    self.stack.pop();
                    operand = operand.negated()?;
                }
                match self.next.token {
                    Token::Word("and") => {
                        let left = self.join(operand, |kind| kind == Kind::And)?;
                        self.stack.push(Frame::Chain(Kind::And, left));
                        break;
                    }
                    Token::Word("or") => {
                        let left = self.join(operand, |_| true)?;
                        self.stack.push(Frame::Chain(Kind::Or, left));
                        break;
                    }
                    Token::Close => {
                        operand = self.join(operand, |_| true)?;
                        let Some(Frame::Open) = self.stack.pop() else {
                            return Err(self.unexpected());
                        };
                        self.advance()?;
                    }
                    Token::End => {
                        let whole = self.join(operand, |_| true)?;
                        let closed = self.stack.is_empty();
                        return if closed { Ok(whole.finish().0) } else { Err(self.unexpected()) };
                    }
                    Token::Word(word) if ARITHMETIC.contains(&word) => {
                        return Err(not_implemented());
                    }
                    _ => return Err(self.unexpected()),
                }
            }
            self.advance()?;
        }
    }

    /// Joins `right` with the chains on top of the stack that bind at least as tightly as what follows.
    fn join(&mut self, mut right: Partial, binds: impl Fn(Kind) -> bool) -> Result<Partial> {
        let binding = |frame: &mut Frame| matches!(frame, Frame::Chain(kind, _) if binds(*kind));
        while let Some(Frame::Chain(kind, left)) = self.stack.pop_if(binding) {
            right = left.joined(kind, right)?;
        }
        Ok(right)
    }

    /// Reads opening parentheses and `not`s onto the stack, then one comparison, bare property or constant.
    fn operand(&mut self) -> Result<Partial> {
        loop {
            match self.next.token {
                Token::Open => self.stack.push(Frame::Open),
                Token::Word("not") => self.stack.push(Frame::Not),
                _ => return self.comparison(),
            }
            self.advance()?;
        }
    }

    fn comparison(&mut self) -> Result<Partial> {
        let Spanned { token: left, end } = self.side()?;
        let Token::Word(word) = self.next.token else {
            return self.alone(&left, end);
        };
        if ARITHMETIC.contains(&word) {
            return Err(not_implemented());
        }
        let Some(operator) = Operator::from_keyword(word) else {
            return self.alone(&left, end);
        };
        self.advance()?;
        let right = self.side()?.token;
        let (property, written, literal) = match (left, right) {
            (Token::Word(property), Token::Literal(literal)) => (property, operator, literal),
            (Token::Literal(literal), Token::Word(property)) => {
                (property, operator.flipped(), literal)
            }
            (Token::Word(_), Token::Null) | (Token::Null, Token::Word(_)) => {
                return Err(null_compared(operator));
            }
            _ => return Err(not_implemented()),
        };
        let property = property.to_owned();
        Ok(Partial::leaf(Expr::Compare(Comparison { property, operator: written, literal })))
    }

    /// One side of a comparison: a property, a literal or `null`.
    fn side(&mut self) -> Result<Spanned<'a>> {
        match &self.next.token {
            Token::Word(word) if is_reserved(word) => Err(self.unexpected()),
            Token::Word(_) => {
                let word = self.advance()?;
                if self.next.token == Token::Open { Err(not_implemented()) } else { Ok(word) }
            }
            Token::Literal(_) | Token::Null => self.advance(),
            Token::Open | Token::Close | Token::End => Err(self.unexpected()),
        }
    }

    /// An operand that no operator follows: a bare property or a constant.
    fn alone(&self, token: &Token<'_>, end: usize) -> Result<Partial> {
        match token {
            Token::Word(property) => {
                let is_true = Expr::Compare(Comparison {
                    property: (*property).to_owned(),
                    operator: Operator::Eq,
                    literal: Literal::Boolean(true),
                });
                Ok(Partial { operand: OperandType::of(property), ..Partial::leaf(is_true) })
            }
            Token::Literal(Literal::Boolean(value)) => Ok(Partial::leaf(Expr::Constant(*value))),
            _ => Err(self.lexer.syntax_error(end)),
        }
    }

    fn advance(&mut self) -> Result<Spanned<'a>> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.next, next))
    }

    fn unexpected(&self) -> StorageError {
        self.lexer.syntax_error(self.next.end)
    }
}

fn is_reserved(word: &str) -> bool {
    matches!(word, "and" | "or" | "not") || Operator::from_keyword(word).is_some()
}

fn not_implemented() -> StorageError {
    ErrorCode::NotImplemented.into()
}

fn null_compared(operator: Operator) -> StorageError {
    if matches!(operator, Operator::Eq | Operator::Ne) {
        return ErrorCode::InvalidInput.into();
    }
    StorageError::with_detail(
        ErrorCode::InvalidInput,
        format!(
            "The operator '{}' is not supported for the 'null' literal; only equality checks are supported.",
            operator.name()
        ),
    )
}

fn incompatible_operand(operand: OperandType) -> StorageError {
    StorageError::with_detail(
        ErrorCode::InvalidInput,
        format!(
            "A unary operator with an incompatible type was detected. Found operand type '{}' for \
             operator kind 'Not'.",
            operand.name()
        ),
    )
}

fn incompatible_operands(left: OperandType, right: OperandType, kind: Kind) -> StorageError {
    StorageError::with_detail(
        ErrorCode::InvalidInput,
        format!(
            "A binary operator with incompatible types was detected. Found operand types '{}' and '{}' for \
             operator kind '{}'.",
            left.name(),
            right.name(),
            kind.name()
        ),
    )
}

/// A part of the tree that may still grow into a longer chain.
struct Partial {
    node: Node,
    depth: usize,
    operand: OperandType,
}

enum Node {
    Done(Expr),
    /// Two or more terms. A deque, because a chain nested to the right grows at its front.
    Chain(Kind, VecDeque<Expr>),
}

impl Partial {
    fn leaf(expr: Expr) -> Self {
        Self { node: Node::Done(expr), depth: 1, operand: OperandType::Boolean }
    }

    fn finish(self) -> (Expr, usize) {
        let expr = match self.node {
            Node::Done(expr) => expr,
            Node::Chain(Kind::And, terms) => Expr::And(terms.into()),
            Node::Chain(Kind::Or, terms) => Expr::Or(terms.into()),
        };
        (expr, self.depth)
    }

    fn negated(self) -> Result<Self> {
        if self.operand != OperandType::Boolean {
            return Err(incompatible_operand(self.operand));
        }
        let (expr, depth) = self.finish();
        Self::limited(Node::Done(Expr::Not(Box::new(expr))), depth + 1)
    }

    fn joined(self, kind: Kind, right: Self) -> Result<Self> {
        if [self.operand, right.operand] != [OperandType::Boolean; 2] {
            return Err(incompatible_operands(self.operand, right.operand, kind));
        }
        let (mut left, left_depth) = self.into_terms(kind);
        let (mut right, right_depth) = right.into_terms(kind);
        // The shorter side moves, so that every term moves at most log n times.
        let terms = if left.len() >= right.len() {
            left.append(&mut right);
            left
        } else {
            left.into_iter().rev().for_each(|term| right.push_front(term));
            right
        };
        Self::limited(Node::Chain(kind, terms), left_depth.max(right_depth) + 1)
    }

    /// The terms of a chain of this kind, or itself as the only one; and the depth of the deepest term.
    fn into_terms(self, wanted: Kind) -> (VecDeque<Expr>, usize) {
        match self.node {
            Node::Chain(kind, terms) if kind == wanted => (terms, self.depth - 1),
            node => {
                let (expr, depth) = Self { node, ..self }.finish();
                (VecDeque::from([expr]), depth)
            }
        }
    }

    fn limited(node: Node, depth: usize) -> Result<Self> {
        if depth > DEPTH_MAX {
            return Err(ErrorCode::InvalidInput.into());
        }
        Ok(Self { node, depth, operand: OperandType::Boolean })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match parse(text) {
            Ok(expr) => expr.to_string(),
            Err(error) => format!("{} {error}", error.status()),
        }
    }

    #[test]
    fn every_operator_is_known_by_its_keyword() {
        for operator in Operator::ALL {
            assert_eq!(Operator::from_keyword(operator.keyword()), Some(operator));
        }
        assert_eq!(Operator::from_keyword("EQ"), None);
    }

    #[test]
    fn the_grammar_is_that_of_the_reference() {
        let cases = [
            ("", "true"),
            (" \t ", "true"),
            ("true", "true"),
            ("false", "false"),
            ("(false)", "false"),
            ("Active", "Active eq true"),
            ("not Active and B", "not (Active eq true) and B eq true"),
            ("a eq 1 and b eq 2 or c eq 3", "(a eq 1 and b eq 2) or c eq 3"),
            ("a eq 1 or b eq 2 and c eq 3", "a eq 1 or (b eq 2 and c eq 3)"),
            ("(a eq 1 or b eq 2) and c eq 3", "(a eq 1 or b eq 2) and c eq 3"),
            ("not a eq 1", "not (a eq 1)"),
            ("not not a eq 1", "not (not (a eq 1))"),
            ("not(a eq 1)", "not (a eq 1)"),
            ("not (a eq 1) or b eq 2", "not (a eq 1) or b eq 2"),
            ("not (a eq 1 or b eq 2)and(c eq 3)", "not (a eq 1 or b eq 2) and c eq 3"),
            ("'a' lt RowKey", "RowKey gt 'a'"),
            ("5L ge A", "A le 5L"),
            ("1 eq A", "A eq 1"),
            ("(PartitionKey eq 'p') and (RowKey ge 'r')", "PartitionKey eq 'p' and RowKey ge 'r'"),
            ("((a eq 1) or (b eq 2)) or (c eq 3)", "a eq 1 or b eq 2 or c eq 3"),
            ("a eq 1 or (b eq 2 or (c eq 3))", "a eq 1 or b eq 2 or c eq 3"),
            ("A\teq\t1", "A eq 1"),
            ("A eq'x'", "A eq 'x'"),
            ("\u{c4}rger_1 eq '\u{e4}'", "\u{c4}rger_1 eq '\u{e4}'"),
            ("X eq X'0A'", "X eq X'0a'"),
            ("D ge 1e+20", "D ge 1e20"),
            ("add eq 1", "add eq 1"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn syntax_errors_say_where_the_offending_token_ends() {
        let cases = [
            ("aaa bbb ccc", 7),
            ("A Eq 1", 4),
            ("A eq 1 And B eq 2", 10),
            ("A eq", 4),
            ("A eq ", 5),
            ("eq 1", 2),
            ("A eq and", 8),
            ("not", 3),
            ("(A eq 1", 7),
            ("A eq 1)", 7),
            ("()", 2),
            (")", 1),
            ("A eq 1 5", 8),
            ("A eq 1 and", 10),
            ("A eq 1 or or B", 12),
            ("(A) eq 1", 6),
            ("A eq (1)", 6),
            ("5", 1),
            ("'text'", 6),
            ("null", 4),
            ("A = 1", 3),
            ("A eq \"x\"", 6),
            ("a/b eq 1", 2),
            ("\u{1F600}\u{e9} bbb ccc", 6),
        ];
        for (text, position) in cases {
            let error = parse(text).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidInput, "{text}");
            let message = format!("Syntax error at position {position} in '{text}'.");
            assert_eq!(error.message(), message, "{text}");
        }
    }

    #[test]
    fn what_the_service_lacks_is_not_implemented() {
        for text in [
            "startswith(Name, 'a')",
            "substringof('a', Name)",
            "length(Name) eq 3",
            "year (When) eq 2020",
            "A eq length(B)",
            "not startswith(Name,'a') eq true",
            "unknown()",
            "A add 1 eq 2",
            "1 sub A eq 2",
            "A eq 1 mul 2",
            "PartitionKey eq RowKey",
            "A eq True",
            "1 eq 1",
            "true eq false",
            "null eq null",
            "'a' lt 'b'",
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!((error.status(), error.code()), (501, ErrorCode::NotImplemented), "{text}");
            assert_eq!(
                error.message(),
                "The requested operation is not implemented on the specified resource."
            );
        }
    }

    #[test]
    fn null_compares_with_nothing() {
        let invalid = "400 InvalidInput: One of the request inputs is not valid.";
        for text in ["A eq null", "A ne null", "null eq A"] {
            assert_eq!(shown(text), invalid, "{text}");
        }
        for (text, name) in [
            ("A lt null", "LessThan"),
            ("A le null", "LessThanOrEqual"),
            ("A gt null", "GreaterThan"),
            ("null ge A", "GreaterThanOrEqual"),
        ] {
            let expected = format!(
                "400 InvalidInput: The operator '{name}' is not supported for the 'null' literal; \
                 only equality checks are supported."
            );
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn a_key_is_no_truth_value() {
        let binary = |left: &str, right: &str, kind: &str| {
            format!(
                "400 InvalidInput: A binary operator with incompatible types was detected. Found operand \
                 types 'Edm.{left}' and 'Edm.{right}' for operator kind '{kind}'."
            )
        };
        for (text, expected) in [
            ("(PartitionKey ) and (RowKey ge '000050')", binary("String", "Boolean", "And")),
            ("RowKey ge '000050' or PartitionKey", binary("Boolean", "String", "Or")),
            ("A eq 1 and B eq 2 and RowKey", binary("Boolean", "String", "And")),
            ("A and (((Timestamp)))", binary("Boolean", "DateTime", "And")),
            ("PartitionKey or RowKey and Timestamp", binary("String", "DateTime", "And")),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
        assert_eq!(
            shown("not (RowKey)"),
            "400 InvalidInput: A unary operator with an incompatible type was detected. Found operand \
             type 'Edm.String' for operator kind 'Not'."
        );
        assert_eq!(shown("(RowKey)"), "RowKey eq true");
        assert_eq!(shown("A and RowKey eq 5"), "A eq true and RowKey eq 5");
    }

    #[test]
    fn an_integer_beyond_32_bits_wants_its_suffix() {
        assert_eq!(
            parse("A eq 5454161346626").unwrap_err().message(),
            "Unrecognized 'Edm.Int32' literal '5454161346626' at '5' in 'A eq 5454161346626'."
        );
        assert_eq!(shown("A eq 5454161346626L"), "A eq 5454161346626L");
    }

    #[test]
    fn long_chains_are_flat_however_they_are_nested() {
        const TERMS: usize = 10_000;
        let plain = vec!["A eq 1"; TERMS].join(" or ");
        let left = format!("{}A eq 1{}", "(".repeat(TERMS - 1), " or A eq 1)".repeat(TERMS - 1));
        let right = format!("{}A eq 1{}", "A eq 1 or (".repeat(TERMS - 1), ")".repeat(TERMS - 1));
        for text in [plain, left, right] {
            let Expr::Or(terms) = parse(&text).unwrap() else { panic!("no chain") };
            assert_eq!(terms.len(), TERMS);
        }
        let parentheses = format!("{}A{}", "(".repeat(TERMS), ")".repeat(TERMS));
        assert_eq!(shown(&parentheses), "A eq true");
    }

    #[test]
    fn depth_is_limited() {
        let nots = |count| format!("{}A", "not ".repeat(count));
        assert!(parse(&nots(DEPTH_MAX - 1)).is_ok());
        assert_eq!(
            shown(&nots(DEPTH_MAX)),
            "400 InvalidInput: One of the request inputs is not valid."
        );
        let mixed = |count| format!("{}A{}", "A and (A or (".repeat(count), "))".repeat(count));
        assert!(parse(&mixed(DEPTH_MAX / 2 - 1)).is_ok());
        assert!(parse(&mixed(DEPTH_MAX / 2)).is_err());
        assert!(parse(&mixed(5000)).is_err());
        assert!(parse(&nots(20_000)).is_err());
        assert!(parse(&"(".repeat(60_000)).is_err());
    }
}
