//! The workload of transactions: amounts move between the rows of a partition, and their sum stays.
//!
//! Some transactions read first and write on condition that nothing has changed, some write all rows whatever they
//! hold, and some would spoil the sum but must fail as a whole. Readers query the partition, which shows one state, and
//! get rows one by one, which must never go back in time. The whole partition is checked as one object.

use super::EPISODE_OPERATIONS;
use super::kills::Kills;
use super::linearizable::{Operation, check};
use super::recorder::{Heard, IfMatch, Recorder, SeenRow, SentChange, SentKind};
use super::rows::{Outcome, State};
use super::session::{Reading, Session};
use crate::support::Random;

const WRITERS: usize = 4;
const READERS: usize = 3;
const ROWS: usize = 4;
const AMOUNT: i64 = 1000;
const SUM: i64 = AMOUNT * ROWS as i64;

/// Runs an episode and checks it.
pub(super) fn run(
    table: &str,
    kills: &Kills,
    recorder: &Recorder,
    random: &mut Random,
) -> Vec<Operation> {
    let mut founder = Session::new(WRITERS + READERS, table, ROWS, kills, recorder);
    let insert = |row| SentChange { row, kind: SentKind::Insert, amount: AMOUNT };
    let founded = founder.transact(&(0..ROWS).map(insert).collect::<Vec<_>>());
    assert!(matches!(founded, Heard::Done(_)), "{founded:?}");
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..WRITERS + READERS)
            .map(|number| {
                let mut random = Random::new(random.next());
                scope.spawn(move || {
                    let mut session = Session::new(number, table, ROWS, kills, recorder);
                    // A writer's turn is often two requests.
                    for _ in 0..EPISODE_OPERATIONS / (2 * WRITERS + READERS) {
                        match number < WRITERS {
                            true => write(&mut session, &mut random),
                            false => read(&mut session, &mut random),
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| kills.run(random));
        let ended: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
        kills.finish();
        assert!(ended.iter().all(Result::is_ok), "a client failed");
    });
    let history = recorder.history();
    assert_sum(&history);
    let nothing: State = vec![None; ROWS];
    let checked = check(nothing, &history);
    assert!(checked.is_ok(), "{table} is not linearizable: {:#?}", checked.err());
    history
}

/// The same promise in another way, without the checker: one page of a partition never shows half a transfer.
fn assert_sum(history: &[Operation]) {
    let mut whole = 0;
    for operation in history {
        let Outcome::Found(rows) = &operation.outcome else { continue };
        if rows.len() == ROWS {
            let sum: i64 = rows.iter().flatten().map(|row| row.amount).sum();
            assert_eq!(sum, SUM, "{operation:?}");
            whole += 1;
        }
    }
    assert!(whole > 0, "nobody looked at the whole partition");
}

fn write(session: &mut Session<'_>, random: &mut Random) {
    match random.below(6) {
        0..4 => transfer(session, random),
        4 => distribute(session, random),
        _ => spoil(session, random),
    }
}

/// Moves an amount between two rows that nobody else has changed since they were read.
fn transfer(session: &mut Session<'_>, random: &mut Random) {
    let Heard::Found(found) = session.query_all() else { return };
    let from = random.below(ROWS);
    let to = (from + 1 + random.below(ROWS - 1)) % ROWS;
    let moved = i64::try_from(random.below(100)).expect("a small number");
    let change = |row: usize, by: i64, kind: fn(IfMatch) -> SentKind| {
        let SeenRow { row: seen, etag } = found[row].clone().expect("no row is ever deleted");
        SentChange { row, kind: kind(IfMatch::Etag(etag)), amount: seen.amount + by }
    };
    session.transact(&[
        change(from, -moved, SentKind::Merge),
        change(to, moved, if random.one_in(2) { SentKind::Merge } else { SentKind::Replace }),
    ]);
}

/// Writes all rows anew, whatever they hold.
fn distribute(session: &mut Session<'_>, random: &mut Random) {
    let mut left = SUM;
    let changes = (0..ROWS).map(|row| {
        let most = usize::try_from(left).expect("amounts are not negative here");
        let share = i64::try_from(random.below(most + 1)).expect("a small number");
        let amount = if row + 1 == ROWS { left } else { share };
        left -= amount;
        SentChange { row, kind: SentKind::Replace(IfMatch::None), amount }
    });
    session.transact(&changes.collect::<Vec<_>>());
}

/// Writes amounts out of nothing, and fails because a row exists already.
fn spoil(session: &mut Session<'_>, random: &mut Random) {
    let fails = random.below(ROWS);
    let changes = (0..ROWS).map(|row| SentChange {
        row,
        kind: if row == fails { SentKind::Insert } else { SentKind::Replace(IfMatch::None) },
        amount: SUM,
    });
    session.transact(&changes.collect::<Vec<_>>());
}

fn read(session: &mut Session<'_>, random: &mut Random) {
    let first = random.below(ROWS);
    match random.below(4) {
        0 => {
            session.query_all();
        }
        1 => {
            session.query(&[first, (first + 1) % ROWS], Reading::Named);
        }
        _ => {
            session.get(first);
        }
    }
}
