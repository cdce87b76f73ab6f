//! What a server has refused and ended, counted, and put into the log in one line for many.
//!
//! Always holds: however many connections come, the log has at most one line per [`BETWEEN_LINES`] about them.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Between two lines of the log.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// Why a connection or a request was not served, or a connection not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum ServerRefusal {
    /// As many connections as there may be, none of them idle.
    Connections,
    /// As many connections of that address as there may be.
    Address,
    /// No request ended in time for another one.
    Requests,
    /// As many requests of that account as there may be.
    Account,
    /// An idle connection made room for a new one.
    Idle,
    /// The head of a request did not come in time.
    Head,
    /// The client sent or took too little.
    Slow,
    /// Long answers that wait for their clients took too much memory.
    Memory,
    /// A connection without TLS, where the cluster requires it.
    Plain,
    /// No TLS came about: the certificate is not the cluster's, has ended, or none was shown.
    Handshake,
    /// The certificate's roles do not go with the request.
    Forbidden,
}

impl ServerRefusal {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Connections,
        Self::Address,
        Self::Requests,
        Self::Account,
        Self::Idle,
        Self::Head,
        Self::Slow,
        Self::Memory,
        Self::Plain,
        Self::Handshake,
        Self::Forbidden,
    ];

    /// As metrics have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Address => "address",
            Self::Requests => "requests",
            Self::Account => "account",
            Self::Idle => "idle",
            Self::Head => "head",
            Self::Slow => "slow",
            Self::Memory => "memory",
            Self::Plain => "plain",
            Self::Handshake => "handshake",
            Self::Forbidden => "role",
        }
    }

    /// As the log has it, behind a number.
    fn sentence(self) -> &'static str {
        match self {
            Self::Connections => "connections refused (max_connections)",
            Self::Address => "connections refused (max_connections_per_address)",
            Self::Requests => "requests refused (max_clients)",
            Self::Account => "requests refused (max_requests_per_account)",
            Self::Idle => "idle connections closed to make room (max_connections)",
            Self::Head => "connections closed whose request did not come in time (client_header_timeout)",
            Self::Slow => "connections closed that moved too few bytes (min_transfer_rate)",
            Self::Memory => "connections closed whose clients left long answers waiting in memory",
            Self::Plain => "connections without TLS closed (cluster_tls)",
            Self::Handshake => "TLS handshakes failed (cluster_tls)",
            Self::Forbidden => "requests refused that the certificate's role may not make (cluster_tls)",
        }
    }
}

/// How often each; clones count together.
#[derive(Debug, Clone, Default)]
pub struct ServerRefusals(Arc<[AtomicU64; ServerRefusal::ALL.len()]>);

impl ServerRefusals {
    /// One more.
    pub fn add(&self, refusal: ServerRefusal) {
        if let Some(count) = self.0.get(refusal as usize) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// So far.
    pub fn count(&self, refusal: ServerRefusal) -> u64 {
        self.0.get(refusal as usize).map_or(0, |count| count.load(Relaxed))
    }
}

/// Writes the lines.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog {
    written: [u64; ServerRefusal::ALL.len()],
    last: Option<Duration>,
    /// The latest refusal that a number does not explain.
    example: Option<String>,
}

impl RefusalLog {
    /// One of the refusals to come, in words.
    pub(crate) fn explain(&mut self, example: String) {
        self.example = Some(example);
    }

    /// What to write at `now`, if there is something new.
    pub(crate) fn line(&mut self, refusals: &ServerRefusals, now: Duration) -> Option<String> {
        if self.last.is_some_and(|last| now.saturating_sub(last) < BETWEEN_LINES) {
            return None;
        }
        let mut line = String::new();
        for (refusal, written) in ServerRefusal::ALL.into_iter().zip(&mut self.written) {
            let count = refusals.count(refusal);
            let new = count.saturating_sub(*written);
            *written = count;
            if new > 0 {
                let separator = if line.is_empty() { "" } else { "; " };
                // Writing to a String cannot fail.
                let _ = write!(line, "{separator}{new} {}", refusal.sentence());
            }
        }
        if line.is_empty() {
            return None;
        }
        if let Some(example) = self.example.take() {
            // Writing to a String cannot fail.
            let _ = write!(line, "; the latest: {example}");
        }
        self.last = Some(now);
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_refusals_are_one_line() {
        let (refusals, mut log) = (ServerRefusals::default(), RefusalLog::default());
        let at = Duration::from_secs;
        assert_eq!(log.line(&refusals, at(100)), None);
        for _ in 0..1000 {
            refusals.add(ServerRefusal::Connections);
        }
        refusals.add(ServerRefusal::Slow);
        assert_eq!(
            log.line(&refusals, at(101)).as_deref(),
            Some(
                "1000 connections refused (max_connections); 1 connections closed that moved too few bytes (min_transfer_rate)"
            )
        );
        refusals.add(ServerRefusal::Head);
        assert_eq!(log.line(&refusals, at(102)), None);
        assert!(
            log.line(&refusals, at(111))
                .is_some_and(|line| line.starts_with("1 connections closed whose"))
        );
        assert_eq!(log.line(&refusals, at(130)), None);
        refusals.add(ServerRefusal::Plain);
        log.explain("10.0.0.9:55 spoke plain".into());
        assert_eq!(
            log.line(&refusals, at(131)).as_deref(),
            Some("1 connections without TLS closed (cluster_tls); the latest: 10.0.0.9:55 spoke plain")
        );
    }
}
