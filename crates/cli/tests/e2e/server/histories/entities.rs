//! The workload of single requests: everyone changes and reads the same few entities.

use super::EPISODE_OPERATIONS;
use super::kills::Kills;
use super::linearizable::{Operation, check};
use super::recorder::{IfMatch, Recorder, SentChange, SentKind};
use super::rows::Call;
use super::session::{Reading, Session};
use crate::support::Random;

const CLIENTS: usize = 6;
const ROWS: usize = 3;

/// Runs an episode and checks it entity by entity.
pub(super) fn run(
    table: &str,
    kills: &Kills,
    recorder: &Recorder,
    random: &mut Random,
) -> Vec<Operation> {
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let mut random = Random::new(random.next());
                scope.spawn(move || {
                    let mut session = Session::new(number, table, ROWS, kills, recorder);
                    for _ in 0..EPISODE_OPERATIONS / CLIENTS {
                        act(&mut session, &mut random);
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
    for row in 0..ROWS {
        let of_row: Vec<_> =
            history.iter().filter(|operation| touches(&operation.call, row)).cloned().collect();
        let checked = check(vec![None; ROWS], &of_row);
        assert!(checked.is_ok(), "row {row} of {table} is not linearizable: {:#?}", checked.err());
    }
    history
}

fn touches(call: &Call, row: usize) -> bool {
    match call {
        Call::Read(rows) => rows.contains(&row),
        Call::Write(_, changes) => changes.iter().any(|change| change.row == row),
    }
}

fn act(session: &mut Session<'_>, random: &mut Random) {
    let row = random.below(ROWS);
    let known = |random: &mut Random| match session.etag(row) {
        Some(etag) if !random.one_in(4) => IfMatch::Etag(etag),
        _ => IfMatch::Any,
    };
    let kind = match random.below(20) {
        0..6 => {
            session.get(row);
            return;
        }
        6 => {
            session.query(&[row], Reading::Named);
            return;
        }
        7..10 => SentKind::Insert,
        10 => SentKind::Replace(IfMatch::None),
        11 => SentKind::Merge(IfMatch::None),
        12..14 => SentKind::Replace(known(random)),
        14..17 => SentKind::Merge(known(random)),
        _ => SentKind::Delete(known(random)),
    };
    let amount = i64::try_from(random.below(1000)).expect("a small number");
    session.write(&SentChange { row, kind, amount });
}
