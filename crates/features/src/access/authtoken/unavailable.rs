//! What is known in place of an answer of Keystone, and when the log says so. Holds no password and no token.
//!
//! Always holds: however many clients ask meanwhile, the log has at most one line for each reason per
//! [`BETWEEN_LINES`].

use identity::keystone::TokenError;
use parking_lot::Mutex;
use peer::PeerError;
use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use std::time::Duration;

/// Between two lines of the log.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// Why a token could not be judged.
#[derive(Debug, Clone, thiserror::Error)]
pub(in crate::access) enum Unavailable {
    #[error("Keystone cannot be reached: {0}")]
    Unreachable(#[from] PeerError),
    #[error("Keystone refused the gateway's own user with {0}; look at username, password and project_name")]
    Login(u16),
    #[error("Keystone answered {0} when asked about a token")]
    Status(u16),
    #[error("Keystone answered {0} when asked about a signature; the gateway's user must be allowed to ask it")]
    Signature(u16),
    #[error("Keystone does not answer; it is asked again every second")]
    Away,
    #[error("Keystone answers too slowly for all that ask; this question was not sent")]
    Crowded,
    #[error(transparent)]
    Shape(#[from] TokenError),
}

/// When there may be another line for each reason, and how many there would have been before.
#[derive(Debug, Default)]
pub(super) struct UnavailableLog(Mutex<HashMap<Discriminant<Unavailable>, (Duration, u64)>>);

impl UnavailableLog {
    /// The end of a line about this that is due at `now`; nothing while it is too early for one.
    pub(super) fn line(&self, why: &Unavailable, now: Duration) -> Option<String> {
        let mut reasons = self.0.lock();
        let (next, left_out) = reasons.entry(discriminant(why)).or_default();
        if now < *next {
            *left_out += 1;
            return None;
        }
        *next = now + BETWEEN_LINES;
        Some(match std::mem::take(left_out) {
            0 => String::new(),
            more => format!(" ({more} more since the last such line)"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_failures_are_one_line() {
        let (log, at) = (UnavailableLog::default(), Duration::from_secs);
        let (one, other) = (Unavailable::Crowded, Unavailable::Login(401));
        assert_eq!(log.line(&one, at(7)).as_deref(), Some(""));
        assert!((0..1000).all(|_| log.line(&one, at(16)).is_none()));
        assert_eq!(log.line(&other, at(16)).as_deref(), Some(""), "a reason of its own");
        let expected = " (1000 more since the last such line)";
        assert_eq!(log.line(&one, at(17)).as_deref(), Some(expected));
        assert_eq!(log.line(&one, at(40)).as_deref(), Some(""));
    }
}
