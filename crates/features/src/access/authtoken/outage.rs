//! Whether Keystone answers at the moment.
//!
//! Always holds: after a question that Keystone did not answer, one each [`REST`] is sent to find out whether it does
//! again, until it does; all others are refused at once. So requests with tokens that the gateway does not know keep no
//! places for as long as Keystone hangs.

use parking_lot::Mutex;
use std::time::Duration;

/// Between two questions to a Keystone that does not answer.
pub(super) const REST: Duration = Duration::from_secs(1);

/// See the module's header. Times are those of a clock that does not jump.
///
/// Holds when the next question is sent, where the last one had no answer.
#[derive(Debug, Default)]
pub(super) struct KeystoneOutage(Mutex<Option<Duration>>);

impl KeystoneOutage {
    /// Whether a question may be sent now; one that may is the only one for a while, during an outage.
    pub(super) fn lets_pass(&self, now: Duration) -> bool {
        let mut next = self.0.lock();
        match *next {
            None => true,
            Some(next) if now < next => false,
            Some(_) => {
                *next = Some(now + REST);
                true
            }
        }
    }

    /// A question had no answer, or waits for too long to be sent.
    pub(super) fn failed(&self, now: Duration) {
        *self.0.lock() = Some(now + REST);
    }

    /// Keystone has answered, whatever.
    pub(super) fn over(&self) {
        *self.0.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_question_at_a_time_finds_out_whether_it_is_over() {
        let (outage, at) = (KeystoneOutage::default(), Duration::from_millis);
        assert!(outage.lets_pass(at(0)) && outage.lets_pass(at(0)));
        outage.failed(at(10));
        assert!(!outage.lets_pass(at(10)) && !outage.lets_pass(at(1009)));
        assert!(outage.lets_pass(at(1010)));
        assert!(!outage.lets_pass(at(1010)) && !outage.lets_pass(at(2009)));
        outage.failed(at(2009));
        assert!(!outage.lets_pass(at(3008)));
        outage.over();
        assert!(outage.lets_pass(at(2010)) && outage.lets_pass(at(2010)));
    }
}
