//! What is known in place of an answer of Keystone, and when the log says so. Holds no password and no token.
//!
//! Always holds: however many clients ask meanwhile, the log has at most one line per [`BETWEEN_LINES`].

use identity::keystone::TokenError;
use parking_lot::Mutex;
use peer::PeerError;
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

/// When there was a line, and how many there would have been since.
#[derive(Debug, Default)]
pub(super) struct UnavailableLog(Mutex<(Option<Duration>, u64)>);

impl UnavailableLog {
    /// The end of a line that is due at `now`; nothing while it is too early for one.
    pub(super) fn line(&self, now: Duration) -> Option<String> {
        let (next, left_out) = &mut *self.0.lock();
        if next.is_some_and(|next| now < next) {
            *left_out += 1;
            return None;
        }
        *next = Some(now + BETWEEN_LINES);
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
        assert_eq!(log.line(at(7)).as_deref(), Some(""));
        assert!((0..1000).all(|_| log.line(at(16)).is_none()));
        assert_eq!(
            log.line(at(17)).as_deref(),
            Some(" (1000 more since the last such line)")
        );
        assert_eq!(log.line(at(40)).as_deref(), Some(""));
    }
}
