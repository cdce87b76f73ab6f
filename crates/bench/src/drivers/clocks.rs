//! How far apart the clocks of a driver and its controller are.
//!
//! The controller asks several times and believes the answer that came fastest: the driver's clock was read somewhere
//! between question and answer (Cristian's algorithm).
//! Always holds: works begin by monotonic clocks, so that one that is set while a run lasts moves nothing.

use super::channel::DriverChannel;
use super::message::{DriverTime, FromDriver, ToDriver, wall_micros};
use std::fmt;
use std::time::Duration;
use vocabulary::Fault;
use world::World;

/// Questions of one reading.
const QUESTIONS: usize = 8;
/// For each of them.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is known of a driver's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ClockReading {
    /// Microseconds by which the driver's time of day is ahead; below 0 when it is behind.
    ahead: i64,
    /// Microseconds by which the driver has been running longer; below 0 when it was started later.
    older: i64,
    /// Of the question that this is from: the reading is right to half of it.
    pub(super) round_trip: Duration,
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

fn difference(one: u64, other: u64) -> i64 {
    i64::try_from(i128::from(one) - i128::from(other)).unwrap_or(i64::MAX)
}

impl ClockReading {
    /// Asks a driver.
    pub(super) async fn take(world: &World, channel: &mut DriverChannel) -> Result<Self, Fault> {
        let mut best: Option<Self> = None;
        for _ in 0..QUESTIONS {
            let (asked, wall) = (world.clock.elapsed(), wall_micros(world.clock.now()));
            channel.sender.send(&ToDriver::Clock).await;
            let answer = world.timeout(PATIENCE, channel.next_message::<FromDriver>()).await;
            let answer = answer.map_err(|late| Fault::peer(late.to_string()))?;
            let time = match answer {
                Ok(Some(FromDriver::Clock(time))) => time,
                Ok(Some(FromDriver::Busy { serves })) => {
                    return Err(Fault::peer(format!("it serves another run, that of {serves}")));
                }
                Ok(Some(FromDriver::Refused { why })) => return Err(Fault::peer(why)),
                Ok(Some(_)) => return Err(Fault::peer("it did not answer what it was asked")),
                Ok(None) => return Err(Fault::peer("it has ended the connection")),
                Err(error) => return Err(Fault::peer(error.to_string())),
            };
            let reading = Self::of(asked, wall, world.clock.elapsed(), time);
            if best.is_none_or(|best| reading.round_trip < best.round_trip) {
                best = Some(reading);
            }
        }
        // There was a question, and each that is not answered returns above.
        Ok(best.unwrap_or_default())
    }

    fn of(asked: Duration, wall: u64, answered: Duration, time: DriverTime) -> Self {
        let round_trip = answered.saturating_sub(asked);
        let half = micros(round_trip / 2);
        let asked = u64::try_from(asked.as_micros()).unwrap_or(u64::MAX);
        Self {
            ahead: difference(time.wall, wall).saturating_sub(half),
            older: difference(time.elapsed, asked).saturating_sub(half),
            round_trip,
        }
    }

    /// Refuses clocks that are further apart than `bound`.
    pub(super) fn check(&self, bound: Duration) -> Result<(), Fault> {
        match Duration::from_micros(self.ahead.unsigned_abs()) > bound {
            true => Err(Fault::peer(format!(
                "its clock is {self}, and --clock-bound allows {bound:?}: set the clocks (NTP), or raise the bound"
            ))),
            false => Ok(()),
        }
    }

    /// By how many milliseconds the driver's time of day is ahead.
    pub(super) fn offset_millis(&self) -> f64 {
        self.ahead as f64 / 1e3
    }

    /// By how many microseconds the driver's time of day is ahead.
    pub(super) fn ahead(&self) -> i64 {
        self.ahead
    }

    /// What the driver's measure says at a time of ours.
    pub(super) fn theirs(&self, ours: Duration) -> Duration {
        shifted(ours, self.older)
    }

    /// What our measure says at a time of the driver's.
    pub(super) fn ours(&self, theirs: Duration) -> Duration {
        shifted(theirs, self.older.saturating_neg())
    }
}

fn shifted(time: Duration, by: i64) -> Duration {
    let by_much = Duration::from_micros(by.unsigned_abs());
    match by < 0 {
        true => time.saturating_sub(by_much),
        false => time.saturating_add(by_much),
    }
}

impl fmt::Display for ClockReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ahead, half) = (self.offset_millis(), self.round_trip.as_secs_f64() * 500.0);
        let side = if self.ahead < 0 { "behind" } else { "ahead" };
        write!(f, "{:.2} ms {side} (to {half:.2} ms)", ahead.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::{ClockReading, DriverTime};
    use std::time::Duration;

    #[test]
    fn a_reading_says_how_far_apart_clocks_are() {
        let (asked, answered) = (Duration::from_millis(5000), Duration::from_millis(5004));
        let time = DriverTime {
            wall: 1_000_000_000_052_000,
            elapsed: 3_002_000,
        };
        let reading = ClockReading::of(asked, 1_000_000_000_000_000, answered, time);
        assert_eq!(reading.to_string(), "50.00 ms ahead (to 2.00 ms)");
        assert_eq!((reading.offset_millis(), reading.older), (50.0, -2_000_000));
        assert_eq!(reading.theirs(Duration::from_secs(9)), Duration::from_secs(7));
        assert_eq!(reading.ours(Duration::from_secs(7)), Duration::from_secs(9));
        assert!(reading.check(Duration::from_millis(50)).is_ok());
        let refused = reading.check(Duration::from_millis(49)).unwrap_err().to_string();
        assert!(refused.starts_with("its clock is 50.00 ms ahead"), "{refused}");
    }
}
