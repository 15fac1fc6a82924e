//! The checker on histories that are known to be right and wrong.

use super::linearizable::{Operation, check};
use super::rows::{Call, Change, Condition, Kind, Outcome, Refusal, Row};

const ROWS: usize = 2;

/// A history in the making. Each operation has the moments at which it began and ended.
#[derive(Default)]
struct History(Vec<Operation>);

impl History {
    fn operation(mut self, from: u64, to: Option<u64>, call: Call, outcome: Outcome) -> Self {
        let client = self.0.len();
        self.0.push(Operation { client, invoked: from, returned: to, call, outcome });
        self
    }

    /// A write of one row that was done.
    fn wrote(self, from: u64, to: u64, number: u64, kind: Kind) -> Self {
        self.wrote_all(from, to, number, &[(0, kind)])
    }

    fn wrote_all(self, from: u64, to: u64, number: u64, changes: &[(usize, Kind)]) -> Self {
        self.operation(from, Some(to), write(number, changes), Outcome::Done)
    }

    fn refused(self, from: u64, to: u64, number: u64, kind: Kind, refusal: Refusal) -> Self {
        let outcome = Outcome::Refused(0, refusal);
        self.operation(from, Some(to), write(number, &[(0, kind)]), outcome)
    }

    /// A write that was never answered.
    fn lost(self, from: u64, to: Option<u64>, number: u64, kind: Kind) -> Self {
        self.operation(from, to, write(number, &[(0, kind)]), Outcome::Unknown)
    }

    /// A read of row 0 that saw the write `number`, or nothing.
    fn read(self, from: u64, to: u64, number: Option<u64>) -> Self {
        self.read_all(from, to, &[(0, number)])
    }

    fn read_all(self, from: u64, to: u64, found: &[(usize, Option<u64>)]) -> Self {
        let rows = found.iter().map(|(row, _)| *row).collect();
        let found = found.iter().map(|(_, number)| number.map(row)).collect();
        self.operation(from, Some(to), Call::Read(rows), Outcome::Found(found))
    }

    #[track_caller]
    fn is_good(&self) {
        let checked = check(vec![None; ROWS], &self.0);
        assert!(checked.is_ok(), "{:#?}", checked.err());
    }

    /// It is wrong, and the operation at this place shows it.
    #[track_caller]
    fn is_bad_at(&self, place: usize) {
        let violation = check(vec![None; ROWS], &self.0).expect_err("this cannot have been");
        assert_eq!(violation.operation.client, place, "{violation:#?}");
    }
}

fn write(number: u64, changes: &[(usize, Kind)]) -> Call {
    let change = |(row, kind): &(usize, Kind)| Change { row: *row, kind: *kind, amount: 0 };
    Call::Write(number, changes.iter().map(change).collect())
}

fn row(number: u64) -> Row {
    Row { number, base: number, amount: 0 }
}

const UPSERT: Kind = Kind::Replace(Condition::None);
const DELETE: Kind = Kind::Delete(Condition::Exists);

fn replace_if(version: u64) -> Kind {
    Kind::Replace(Condition::Version(version))
}

fn history() -> History {
    History::default()
}

#[test]
fn one_after_the_other_is_right() {
    history()
        .read(0, 1, None)
        .wrote(2, 3, 1, Kind::Insert)
        .refused(4, 5, 2, Kind::Insert, Refusal::AlreadyThere)
        .read(6, 7, Some(1))
        .wrote(8, 9, 3, replace_if(1))
        .refused(10, 11, 4, replace_if(1), Refusal::OtherVersion)
        .wrote(12, 13, 5, DELETE)
        .refused(14, 15, 6, replace_if(3), Refusal::Missing)
        .read(16, 17, None)
        .is_good();
}

#[test]
fn what_overlaps_may_come_in_any_order() {
    // Both reads overlap both writes; they see them in the order 2, 1.
    history()
        .wrote(0, 100, 1, UPSERT)
        .wrote(0, 100, 2, UPSERT)
        .read(10, 20, Some(2))
        .read(30, 40, Some(1))
        .read(110, 120, Some(1))
        .is_good();
    // A read that overlaps a write may see it before it is answered, or not.
    history().wrote(0, 10, 1, UPSERT).read(5, 6, Some(1)).read(7, 8, Some(1)).is_good();
    history().wrote(0, 10, 1, UPSERT).read(5, 6, None).is_good();
}

#[test]
fn what_was_never_answered_may_have_been_done_or_not() {
    history().lost(0, None, 1, UPSERT).read(5, 6, None).read(7, 8, Some(1)).is_good();
    history().lost(0, None, 1, UPSERT).read(5, 6, None).wrote(7, 8, 2, Kind::Insert).is_good();
    history().lost(0, Some(10), 1, UPSERT).read(11, 12, Some(1)).is_good();
    history().lost(0, Some(10), 1, UPSERT).read(11, 12, None).is_good();
    // A delete that nobody heard of lets an insert succeed.
    history()
        .wrote(0, 1, 1, Kind::Insert)
        .lost(2, None, 2, DELETE)
        .wrote(3, 4, 3, Kind::Insert)
        .is_good();
}

#[test]
fn an_effect_after_the_last_possible_moment_is_wrong() {
    // Killed at 10 and not there at 12: it can never come.
    history().lost(0, Some(10), 1, UPSERT).read(11, 12, None).read(13, 14, Some(1)).is_bad_at(2);
    // Seen, it is there for good.
    history().lost(0, None, 1, UPSERT).read(1, 2, Some(1)).read(3, 4, None).is_bad_at(2);
}

#[test]
fn a_lost_update_is_wrong() {
    history()
        .wrote(0, 1, 1, Kind::Insert)
        .wrote(2, 10, 2, replace_if(1))
        .wrote(3, 11, 3, replace_if(1))
        .is_bad_at(2);
}

#[test]
fn a_lost_write_is_wrong() {
    history().wrote(0, 1, 1, UPSERT).wrote(2, 3, 2, UPSERT).read(4, 5, Some(1)).is_bad_at(2);
    history().wrote(0, 1, 1, UPSERT).read(2, 3, None).is_bad_at(1);
}

#[test]
fn a_stale_read_is_wrong() {
    history()
        .wrote(0, 1, 1, UPSERT)
        .wrote(2, 20, 2, UPSERT)
        .read(5, 6, Some(2))
        .read(7, 8, Some(1))
        .is_bad_at(3);
}

#[test]
fn a_value_from_nowhere_is_wrong() {
    history().wrote(0, 1, 1, UPSERT).read(2, 3, Some(7)).is_bad_at(1);
}

#[test]
fn a_resurrected_row_is_wrong() {
    history().wrote(0, 1, 1, Kind::Insert).wrote(2, 3, 2, DELETE).read(4, 5, Some(1)).is_bad_at(2);
    history()
        .wrote(0, 1, 1, Kind::Insert)
        .wrote(2, 3, 2, DELETE)
        .refused(4, 5, 3, Kind::Insert, Refusal::AlreadyThere)
        .is_bad_at(2);
}

#[test]
fn a_wrong_refusal_is_wrong() {
    history()
        .wrote(0, 1, 1, Kind::Insert)
        .refused(2, 3, 2, replace_if(1), Refusal::OtherVersion)
        .is_bad_at(1);
    // Of a transaction the first change that cannot be made is told.
    let both = write(2, &[(0, Kind::Insert), (1, DELETE)]);
    let told = Outcome::Refused(1, Refusal::Missing);
    history().wrote(0, 1, 1, Kind::Insert).operation(2, Some(3), both, told).is_bad_at(1);
}

#[test]
fn a_merge_that_loses_what_it_was_merged_into_is_wrong() {
    let merged = |base| Outcome::Found(vec![Some(Row { number: 2, base, amount: 0 })]);
    let written =
        || history().wrote(0, 1, 1, Kind::Insert).wrote(2, 3, 2, Kind::Merge(Condition::Exists));
    written().operation(4, Some(5), Call::Read(vec![0]), merged(1)).is_good();
    written().operation(4, Some(5), Call::Read(vec![0]), merged(2)).is_bad_at(2);
}

#[test]
fn a_torn_transaction_is_wrong() {
    let founded = || history().wrote_all(0, 1, 1, &[(0, UPSERT), (1, UPSERT)]);
    // By one request, while the transaction is under way.
    founded()
        .read_all(3, 4, &[(0, Some(2)), (1, Some(1))])
        .wrote_all(2, 10, 2, &[(0, UPSERT), (1, UPSERT)])
        .is_bad_at(1);
    // By two: the second row must be as new as the first.
    founded()
        .read_all(3, 4, &[(0, Some(2))])
        .read_all(5, 6, &[(1, Some(1))])
        .wrote_all(2, 10, 2, &[(0, UPSERT), (1, UPSERT)])
        .is_bad_at(2);
    // Half of it is left after a crash.
    let lost = write(2, &[(0, UPSERT), (1, UPSERT)]);
    founded()
        .operation(2, Some(5), lost, Outcome::Unknown)
        .read_all(6, 7, &[(0, Some(1)), (1, Some(2))])
        .is_bad_at(2);
}

#[test]
fn a_dirty_read_is_wrong() {
    // The transaction fails at its second change; its first must never be seen, not even meanwhile.
    let failing = write(2, &[(0, UPSERT), (1, Kind::Insert)]);
    let refused = Outcome::Refused(1, Refusal::AlreadyThere);
    let founded = history().wrote_all(0, 1, 1, &[(0, UPSERT), (1, UPSERT)]);
    founded.operation(2, Some(10), failing, refused).read(3, 4, Some(2)).is_bad_at(2);
}
