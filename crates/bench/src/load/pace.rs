//! When requests begin.
//!
//! In a closed loop a request begins once its worker's last one has ended. In an open loop requests are due at times
//! that the store has no say in; one that is due while all workers wait for answers begins late, and its time is
//! measured from when it was due. Otherwise a store that stalls would be asked less meanwhile, and the stall would be
//! counted once, instead of once for each user that it kept waiting ("coordinated omission").
//! Always holds: due times of one pace only grow; on average they are as far apart as the rate says.

use crate::workload::Arrivals;
use std::time::Duration;

/// A timer wakes its worker a little late, which is not the store's doing: a worker that waited for a due time measures
/// from its own wake-up, if that came so soon after.
pub const TIMER_SLACK: Duration = Duration::from_millis(2);

/// Due times, shared by the workers of one thread.
pub struct ArrivalPace {
    arrivals: Arrivals,
    /// Seconds between two requests, on average.
    distance: f64,
    /// The next due time, in seconds after the start.
    next: f64,
    dice: fastrand::Rng,
}

impl ArrivalPace {
    /// One of `parts` threads that make up the work's rate together.
    pub fn new(arrivals: Arrivals, part: usize, parts: usize, seed: u64) -> Self {
        let parts = parts.max(1) as f64;
        let distance = match arrivals {
            Arrivals::AsAnswered => 0.0,
            Arrivals::Constant(rate) | Arrivals::Poisson(rate) => parts / rate.max(1e-9),
        };
        let mut dice = fastrand::Rng::with_seed(seed);
        let next = match arrivals {
            Arrivals::AsAnswered => 0.0,
            Arrivals::Constant(_) => distance * part as f64 / parts,
            Arrivals::Poisson(_) => waiting_time(distance, &mut dice),
        };
        Self {
            arrivals,
            distance,
            next,
            dice,
        }
    }

    /// The pace of one of `parts` drivers: at equal distances their requests fall between each other's.
    pub fn beside_others(mut self, threads: usize, part: u32, parts: u32) -> Self {
        if let Arrivals::Constant(_) = self.arrivals {
            self.next += self.distance / threads.max(1) as f64 * f64::from(part) / f64::from(parts.max(1));
        }
        self
    }

    /// When the next request is due, after the start of the work; nothing in a closed loop.
    pub fn due(&mut self) -> Option<Duration> {
        let due = self.next;
        self.next += match self.arrivals {
            Arrivals::AsAnswered => return None,
            Arrivals::Constant(_) => self.distance,
            Arrivals::Poisson(_) => waiting_time(self.distance, &mut self.dice),
        };
        Some(Duration::try_from_secs_f64(due).unwrap_or(Duration::MAX))
    }
}

/// Between two events that are independent of each other: exponentially distributed.
fn waiting_time(mean: f64, dice: &mut fastrand::Rng) -> f64 {
    -mean * (1.0 - dice.f64()).ln()
}

#[cfg(test)]
mod tests {
    use super::ArrivalPace;
    use crate::workload::Arrivals;
    use std::time::Duration;

    #[test]
    fn threads_make_up_the_rate_together() {
        let mut due: Vec<Duration> = (0..4)
            .flat_map(|part| {
                let mut pace = ArrivalPace::new(Arrivals::Constant(1000.0), part, 4, 1);
                (0..250).filter_map(move |_| pace.due()).collect::<Vec<_>>()
            })
            .collect();
        due.sort();
        for (number, due) in due.iter().enumerate() {
            assert_eq!(due.as_micros().div_ceil(10) * 10 / 1000, number as u128, "{due:?}");
        }
        assert_eq!(ArrivalPace::new(Arrivals::AsAnswered, 0, 1, 1).due(), None);
    }

    #[test]
    fn independent_arrivals_have_their_rate_and_their_spread() {
        let mut pace = ArrivalPace::new(Arrivals::Poisson(1000.0), 0, 1, 7);
        let due: Vec<f64> = (0..100_000)
            .filter_map(|_| pace.due())
            .map(|due| due.as_secs_f64())
            .collect();
        let distances: Vec<f64> = due.windows(2).map(|two| two[1] - two[0]).collect();
        let mean = distances.iter().sum::<f64>() / distances.len() as f64;
        let spread = (distances.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / distances.len() as f64).sqrt();
        assert!(
            (mean - 0.001).abs() < 0.00002 && (spread - 0.001).abs() < 0.00003,
            "{mean} {spread}"
        );
    }
}
