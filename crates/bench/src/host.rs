//! What the host of a virtual machine takes of its processors, and rounds that are measured again because of it.
//!
//! Servers that are compared take turns. One that is measured while the host is busy loses against one that is not, and
//! one that needs all processors loses more than one that needs one of them: that says something about the host.

use std::fs;

/// The share of the processors that the host may take away during a round.
const STOLEN_MAX: f64 = 0.05;

/// How often a round is measured again. After that the one counts which was disturbed least.
const AGAIN_MAX: usize = 3;

/// Prepares and measures, and again if the host was busy while measuring. Gives the share of the processors that it took,
/// too, where that is known.
///
/// # Errors
/// The first one of `measure`.
pub fn undisturbed<T>(
    prepare: impl FnMut(),
    measure: impl FnMut() -> anyhow::Result<T>,
) -> anyhow::Result<(T, Option<f64>)> {
    least_disturbed(prepare, measure, ProcessorTime::now)
}

fn least_disturbed<T>(
    mut prepare: impl FnMut(),
    mut measure: impl FnMut() -> anyhow::Result<T>,
    mut now: impl FnMut() -> Option<ProcessorTime>,
) -> anyhow::Result<(T, Option<f64>)> {
    let mut once = || -> anyhow::Result<(T, Option<f64>)> {
        prepare();
        let before = now();
        let measured = measure()?;
        let stolen = now().zip(before).map(|(now, before)| now.stolen_since(before));
        Ok((measured, stolen))
    };
    let mut least = once()?;
    for _ in 0..AGAIN_MAX {
        let Some(stolen) = least.1.filter(|stolen| *stolen > STOLEN_MAX) else { break };
        println!("{:>14} the host took {:.0} % away: measured again", "", stolen * 100.0);
        let again = once()?;
        if again.1.is_some_and(|again| again < stolen) {
            least = again;
        }
    }
    Ok(least)
}

/// The largest of some shares, of those that are known.
pub fn most(shares: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    shares.into_iter().flatten().reduce(f64::max)
}

/// Time of all processors since the system started, in its own unit.
#[derive(Clone, Copy, Debug)]
struct ProcessorTime {
    stolen: u64,
    all: u64,
}

impl ProcessorTime {
    /// `None` where the system does not tell.
    fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        // user nice system idle iowait irq softirq steal; what follows is in user and nice already.
        let times = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(8);
        let times: Vec<u64> = times.map_while(|time| time.parse().ok()).collect();
        Some(Self { stolen: *times.get(7)?, all: times.iter().sum() })
    }

    fn stolen_since(self, before: Self) -> f64 {
        let all = self.all.saturating_sub(before.all);
        self.stolen.saturating_sub(before.stolen) as f64 / all.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measures rounds of which the host takes these shares, in percent; gives the number of the round that counts.
    fn rounds(percents: &[u64]) -> (usize, Option<f64>) {
        let (mut prepared, mut number, mut times) = (0, 0, Vec::new());
        for (at, stolen) in percents.iter().enumerate() {
            let all = 100 * at as u64;
            times.push(ProcessorTime { stolen: 0, all });
            times.push(ProcessorTime { stolen: *stolen, all: all + 100 });
        }
        let mut times = times.into_iter();
        let measure = || {
            number += 1;
            Ok(number)
        };
        let measured = least_disturbed(|| prepared += 1, measure, || times.next()).unwrap();
        assert_eq!((prepared, times.count()), (percents.len(), 0), "another number of rounds");
        measured
    }

    #[test]
    fn what_the_host_disturbs_is_measured_again() {
        assert_eq!(rounds(&[5]), (1, Some(0.05)));
        assert_eq!(rounds(&[60, 4]), (2, Some(0.04)));
        assert_eq!(rounds(&[60, 30, 70, 40]), (2, Some(0.30)));
    }

    #[test]
    fn where_the_host_is_unknown_once_is_enough() {
        let mut number = 0;
        let measure = || {
            number += 1;
            Ok(number)
        };
        assert_eq!(least_disturbed(|| {}, measure, || None).unwrap(), (1, None));
        assert_eq!(number, 1);
    }

    #[test]
    fn a_round_that_fails_is_not_measured_again() {
        let mut number = 0;
        let measure = || -> anyhow::Result<()> {
            number += 1;
            anyhow::bail!("broken")
        };
        let busy = || Some(ProcessorTime { stolen: 0, all: 0 });
        assert_eq!(least_disturbed(|| {}, measure, busy).unwrap_err().to_string(), "broken");
        assert_eq!(number, 1);
    }

    #[test]
    fn stolen_time_is_the_eighth_of_all() {
        let stat = "cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        let time = ProcessorTime::parse(stat).unwrap();
        assert_eq!((time.stolen, time.all), (80, 360));
        assert!(
            ProcessorTime::parse("cpu  1 2 3\n").is_none() && ProcessorTime::parse("").is_none()
        );
    }
}
