//! Whether Keystone answers at the moment.
//!
//! Always holds: after a question that Keystone did not answer, one each [`REST`] is sent to find out whether it does
//! again, until it does; all others are refused at once. So requests with tokens that the gateway does not know keep no
//! places for as long as Keystone hangs. While Keystone answers others, one that it is slow about is no outage.

use parking_lot::Mutex;
use std::time::Duration;

/// Between two questions to a Keystone that does not answer.
pub(super) const REST: Duration = Duration::from_secs(1);

/// See the module's header. Times are those of a clock that does not jump.
///
#[derive(Debug, Default)]
pub(super) struct KeystoneOutage(Mutex<State>);

/// Whether a question may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passage {
    /// Beside others, of which there may be so many.
    InTurn,
    /// It is the only one for a while, during an outage, and waits for none of those that hang.
    AtOnce,
    /// It may not.
    None,
}

#[derive(Debug, Default)]
struct State {
    /// When the next question is sent, where the last one had no answer.
    next: Option<Duration>,
    /// When Keystone answered last.
    answered: Option<Duration>,
}

impl KeystoneOutage {
    /// Whether a question may be sent now.
    pub(super) fn passage(&self, now: Duration) -> Passage {
        let mut state = self.0.lock();
        match state.next {
            None => Passage::InTurn,
            Some(next) if now < next => Passage::None,
            Some(_) => {
                state.next = Some(now + REST);
                Passage::AtOnce
            }
        }
    }

    /// Keystone does not answer.
    pub(super) fn failed(&self, now: Duration) {
        self.0.lock().next = Some(now + REST);
    }

    /// Something that was begun at `began` had no answer until `now`; whether Keystone is the reason, as it has
    /// answered nothing else either.
    pub(super) fn late(&self, began: Duration, now: Duration) -> bool {
        let mut state = self.0.lock();
        let is_silent = state.answered.is_none_or(|answered| answered < began);
        if is_silent {
            state.next = Some(now + REST);
        }
        is_silent
    }

    /// Keystone has answered, whatever.
    pub(super) fn over(&self, now: Duration) {
        let mut state = self.0.lock();
        state.next = None;
        state.answered = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl KeystoneOutage {
        fn lets_pass(&self, now: Duration) -> bool {
            self.passage(now) != Passage::None
        }
    }

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
        outage.over(at(2010));
        assert!(outage.lets_pass(at(2010)) && outage.lets_pass(at(2010)));
    }

    #[test]
    fn a_question_that_is_late_is_an_outage_where_no_other_is_answered() {
        let (outage, at) = (KeystoneOutage::default(), Duration::from_secs);
        assert!(outage.late(at(0), at(5)) && !outage.lets_pass(at(5)));
        outage.over(at(7));
        assert!(!outage.late(at(6), at(11)) && outage.lets_pass(at(11)));
        assert!(outage.late(at(8), at(13)) && !outage.lets_pass(at(13)));
    }
}
