//! Waiting: M/M/c for processors, M/G/1 for what serves one request at a time, and who of several is the last.
//!
//! Sources: M/M/c by Erlang's C formula; M/G/1 by Pollaczek and Khinchine, its second moment by Takács
//! (L. Kleinrock, "Queueing Systems", volume 1, 1975, sections 3.5 and 5.7); order statistics of exponential times by
//! Rényi (1953). All are compared with simulations in this file's tests.
//! Always holds: a server that is asked for more than it bears has no answer ([`None`]), never a negative one.

/// Mean and variance of a time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TimeMoments {
    /// In seconds.
    pub mean: f64,
    /// In seconds squared.
    pub variance: f64,
}

impl std::ops::Add for TimeMoments {
    type Output = Self;

    /// One time after another that does not depend on it.
    fn add(self, other: Self) -> Self {
        Self {
            mean: self.mean + other.mean,
            variance: self.variance + other.variance,
        }
    }
}

/// The first three moments of a service time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ServiceMoments {
    /// E\[S\].
    pub first: f64,
    /// E\[S²\].
    pub second: f64,
    /// E\[S³\].
    pub third: f64,
}

impl ServiceMoments {
    /// Of a time with this mean and this variance over mean squared: the third moment is that of a gamma distribution.
    pub fn gamma(mean: f64, squared_variation: f64) -> Self {
        let second = mean * mean * (1.0 + squared_variation);
        Self {
            first: mean,
            second,
            third: mean * second * (1.0 + 2.0 * squared_variation),
        }
    }

    /// Of a time that is one of several, with these probabilities.
    pub fn mixture(parts: impl IntoIterator<Item = (f64, Self)>) -> Self {
        parts.into_iter().fold(Self::default(), |sum, (share, part)| Self {
            first: sum.first + share * part.first,
            second: sum.second + share * part.second,
            third: sum.third + share * part.third,
        })
    }

    /// Mean and variance.
    pub fn moments(self) -> TimeMoments {
        TimeMoments {
            mean: self.first,
            variance: (self.second - self.first * self.first).max(0.0),
        }
    }
}

/// The probability that a request waits for one of `servers` that are asked for `offered` of them on average.
pub fn erlang_c(servers: u32, offered: f64) -> Option<f64> {
    if offered >= f64::from(servers) || servers == 0 {
        return None;
    }
    // Erlang's B by its recursion, which cannot overflow.
    let blocked = (1..=servers).fold(1.0, |blocked, count| {
        offered * blocked / (f64::from(count) + offered * blocked)
    });
    let busy = offered / f64::from(servers);
    Some(blocked / (1.0 - busy * (1.0 - blocked)))
}

/// How long a request waits for one of several servers, its own service left out: M/M/c.
pub fn wait_for_servers(servers: u32, arrivals: f64, service: f64) -> Option<TimeMoments> {
    if arrivals <= 0.0 || service <= 0.0 {
        return Some(TimeMoments::default());
    }
    let waits = erlang_c(servers, arrivals * service)?;
    // A request that waits at all waits for an exponential time.
    let each = 1.0 / (f64::from(servers) / service - arrivals);
    let mean = waits * each;
    Some(TimeMoments {
        mean,
        variance: 2.0 * waits * each * each - mean * mean,
    })
}

/// How long a request waits for a single server, its own service left out: M/G/1.
pub fn wait_for_server(arrivals: f64, service: ServiceMoments) -> Option<TimeMoments> {
    let busy = arrivals * service.first;
    if busy >= 1.0 {
        return None;
    }
    let mean = arrivals * service.second / (2.0 * (1.0 - busy));
    Some(TimeMoments {
        mean,
        variance: mean * mean + arrivals * service.third / (3.0 * (1.0 - busy)),
    })
}

/// How long it takes until `first` of `all` equal and independent times are over.
///
/// The time is taken for a fixed one plus an exponential one of its mean and variance. That is exact for M/M/1 and a
/// fixed transfer; for times that vary less the answer errs on the slow side.
pub fn order_statistic(time: TimeMoments, first: u32, all: u32) -> TimeMoments {
    let spread = time.variance.max(0.0).sqrt();
    let gaps = (0..first.min(all)).map(|gone| 1.0 / f64::from(all - gone));
    let (mean, variance) = gaps.fold((0.0, 0.0), |(mean, variance), gap| (mean + gap, variance + gap * gap));
    TimeMoments {
        mean: (time.mean + spread * (mean - 1.0)).max(0.0),
        variance: time.variance * variance,
    }
}

#[cfg(test)]
mod tests {
    use super::{ServiceMoments, TimeMoments, erlang_c, order_statistic, wait_for_server, wait_for_servers};

    fn exponential(random: &mut fastrand::Rng, mean: f64) -> f64 {
        -mean * (1.0 - random.f64()).ln()
    }

    /// Mean and variance of waits, by Lindley's recursion for one queue in front of several servers.
    fn simulated(servers: usize, arrivals: f64, mut service: impl FnMut(&mut fastrand::Rng) -> f64) -> TimeMoments {
        let mut random = fastrand::Rng::with_seed(7);
        let mut free = vec![0.0_f64; servers];
        let (mut now, mut sum, mut squares) = (0.0, 0.0, 0.0);
        let count = 400_000;
        for _ in 0..count {
            now += exponential(&mut random, 1.0 / arrivals);
            let earliest = (0..servers).min_by(|a, b| free[*a].total_cmp(&free[*b])).unwrap();
            let wait = (free[earliest] - now).max(0.0);
            free[earliest] = now + wait + service(&mut random);
            sum += wait;
            squares += wait * wait;
        }
        let mean = sum / f64::from(count);
        TimeMoments {
            mean,
            variance: squares / f64::from(count) - mean * mean,
        }
    }

    fn assert_near(one: TimeMoments, other: TimeMoments) {
        assert!((one.mean / other.mean - 1.0).abs() < 0.04, "{one:?} {other:?}");
        assert!((one.variance / other.variance - 1.0).abs() < 0.12, "{one:?} {other:?}");
    }

    #[test]
    fn erlangs_table_is_met() {
        // 2 servers, 1 Erlang: 1/3. 1 server: its utilisation. 10 servers, 8 Erlang: 0.409 (printed tables).
        assert!((erlang_c(2, 1.0).unwrap() - 1.0 / 3.0).abs() < 1e-12);
        assert!((erlang_c(1, 0.7).unwrap() - 0.7).abs() < 1e-12);
        assert!((erlang_c(10, 8.0).unwrap() - 0.409).abs() < 1e-3);
        assert_eq!((erlang_c(4, 4.0), erlang_c(0, 0.0)), (None, None));
    }

    #[test]
    fn waits_are_those_of_a_simulation() {
        for (servers, arrivals) in [(1, 0.7), (4, 3.2)] {
            let predicted = wait_for_servers(servers, arrivals, 1.0).unwrap();
            let seen = simulated(servers as usize, arrivals, |random| exponential(random, 1.0));
            assert_near(predicted, seen);
        }
        // Half of the requests take four times as long as the others, in fixed times.
        let mixed = ServiceMoments::mixture([
            (0.5, ServiceMoments::gamma(0.4, 0.0)),
            (0.5, ServiceMoments::gamma(1.6, 0.0)),
        ]);
        let seen = simulated(1, 0.6, |random| if random.bool() { 0.4 } else { 1.6 });
        assert_near(wait_for_server(0.6, mixed).unwrap(), seen);
        assert_eq!(wait_for_server(1.0, mixed), None);
    }

    #[test]
    fn an_exponential_service_makes_mg1_mm1() {
        let general = wait_for_server(0.8, ServiceMoments::gamma(1.0, 1.0)).unwrap();
        let exponential = wait_for_servers(1, 0.8, 1.0).unwrap();
        assert!((general.mean - exponential.mean).abs() < 1e-9);
        assert!((general.variance - exponential.variance).abs() < 1e-9);
    }

    #[test]
    fn a_quorum_of_replicas_is_the_second_of_three() {
        let time = TimeMoments {
            mean: 1.5,
            variance: 1.0,
        };
        let (mut random, count) = (fastrand::Rng::with_seed(3), 200_000);
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..count {
            let mut times = [(); 3].map(|()| 0.5 + exponential(&mut random, 1.0));
            times.sort_by(f64::total_cmp);
            sum += times[1];
            squares += times[1] * times[1];
        }
        let mean = sum / f64::from(count);
        let seen = TimeMoments {
            mean,
            variance: squares / f64::from(count) - mean * mean,
        };
        assert_near(order_statistic(time, 2, 3), seen);
    }
}
