//! The rows of a partition as one client at a time would see them: what each request does and answers.
//!
//! An ETag stands for the write that made it, and writes have numbers that all clients share; so a state needs no
//! ETags, and a condition names a number.

/// What a row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Row {
    /// The write that changed it last.
    pub number: u64,
    /// The write that made or replaced it last; a merge leaves it.
    pub base: u64,
    pub amount: i64,
}

/// The rows by their place in the partition.
pub(super) type State = Vec<Option<Row>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// An upsert: whatever there is.
    None,
    Exists,
    /// The ETag of this write.
    Version(u64),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Insert,
    Replace(Condition),
    Merge(Condition),
    Delete(Condition),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub row: usize,
    pub kind: Kind,
    pub amount: i64,
}

#[derive(Clone, Debug)]
pub(super) enum Call {
    /// Rows read by one request.
    Read(Vec<usize>),
    /// A single change, or a transaction.
    Write(u64, Vec<Change>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Missing,
    AlreadyThere,
    OtherVersion,
}

#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Found(Vec<Option<Row>>),
    Done,
    /// The first change that could not be made.
    Refused(usize, Refusal),
    /// The connection was lost.
    Unknown,
}

/// The states that a call with this outcome may leave behind; none if it cannot have had this outcome.
pub(super) fn step(state: &State, call: &Call, outcome: &Outcome) -> Vec<State> {
    match (call, outcome) {
        (Call::Read(rows), Outcome::Found(found)) => {
            let is_right = rows.iter().zip(found).all(|(row, found)| state[*row] == *found);
            if is_right { vec![state.clone()] } else { Vec::new() }
        }
        (Call::Read(_), _) => vec![state.clone()],
        (Call::Write(number, changes), outcome) => {
            match (write(state, *number, changes), outcome) {
                (Ok(after), Outcome::Done) => vec![after],
                (Ok(after), Outcome::Unknown) => vec![after, state.clone()],
                (Err(_), Outcome::Unknown) => vec![state.clone()],
                (Err((index, why)), Outcome::Refused(at, told)) if (index, why) == (*at, *told) => {
                    vec![state.clone()]
                }
                _ => Vec::new(),
            }
        }
    }
}

/// All of the changes, or the first that cannot be made.
fn write(state: &State, number: u64, changes: &[Change]) -> Result<State, (usize, Refusal)> {
    let mut after = state.clone();
    for (index, change) in changes.iter().enumerate() {
        let stored = state[change.row];
        if let Some(refusal) = refusal(change.kind, stored) {
            return Err((index, refusal));
        }
        let base = match (change.kind, stored) {
            (Kind::Merge(_), Some(stored)) => stored.base,
            // What is merged into nothing has no base.
            (Kind::Merge(_), None) => 0,
            _ => number,
        };
        let is_delete = matches!(change.kind, Kind::Delete(_));
        after[change.row] = (!is_delete).then_some(Row { number, base, amount: change.amount });
    }
    Ok(after)
}

fn refusal(kind: Kind, stored: Option<Row>) -> Option<Refusal> {
    let condition = match kind {
        Kind::Insert => return stored.map(|_| Refusal::AlreadyThere),
        Kind::Replace(condition) | Kind::Merge(condition) | Kind::Delete(condition) => condition,
    };
    match (condition, stored) {
        (Condition::None, _) | (Condition::Exists, Some(_)) => None,
        (_, None) => Some(Refusal::Missing),
        (Condition::Version(version), Some(stored)) => {
            (version != stored.number).then_some(Refusal::OtherVersion)
        }
    }
}
