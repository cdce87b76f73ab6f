//! What becomes known about a request on its way, for its line in the access log.
//!
//! Always holds: all clones belong to one request of a client and to what features ask on its behalf;
//! the line is written once. Deliberately absent: the line itself (`proxy_logging` in `features`).

use parking_lot::Mutex;
use std::sync::Arc;
use vocabulary::{EntityPath, PolicyIndex};

/// Shared by all code that handles one request.
#[derive(Clone, Default)]
pub struct AccessNotes(Arc<Mutex<AccessFacts>>);

/// What has been noted so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessFacts {
    /// The requesting user, for the log: `test:tester`.
    pub user: Option<String>,
    /// The storage policy of the container in question.
    pub policy: Option<PolicyIndex>,
    /// Anything worth knowing, like `x-delete-at:1700000000`.
    pub remarks: Vec<String>,
    /// Which feature asked by itself: `TU`, `SLO`, …; `None` for what the client asked.
    pub source: Option<&'static str>,
    /// What it is about, where its path is not one of Swift's.
    pub entity: Option<Arc<EntityPath>>,
    logged: bool,
}

impl AccessNotes {
    /// For what the feature known as `source` asks by itself: it has a line of its own.
    pub fn of_feature(source: &'static str) -> Self {
        let notes = Self::default();
        notes.0.lock().source = Some(source);
        notes
    }

    /// Notes who asked.
    pub fn set_user(&self, user: impl Into<String>) {
        self.0.lock().user = Some(user.into());
    }

    /// Notes that the feature known as `source` has made it what it is.
    pub fn set_source(&self, source: &'static str) {
        self.0.lock().source = Some(source);
    }

    /// Notes the storage policy.
    pub fn set_policy(&self, policy: PolicyIndex) {
        self.0.lock().policy = Some(policy);
    }

    /// Notes what it is about.
    pub fn set_entity(&self, entity: impl Into<Arc<EntityPath>>) {
        self.0.lock().entity = Some(entity.into());
    }

    /// Notes something worth knowing.
    pub fn remark(&self, text: impl Into<String>) {
        self.0.lock().remarks.push(text.into());
    }

    /// Takes over writing the line; `false` when it is being written already.
    pub fn claim_line(&self) -> bool {
        !std::mem::replace(&mut self.0.lock().logged, true)
    }

    /// Whether the line is being written already.
    pub fn is_line_claimed(&self) -> bool {
        self.0.lock().logged
    }

    /// The requesting user, as far as it is known.
    pub fn user(&self) -> Option<String> {
        self.0.lock().user.clone()
    }

    /// All of it.
    pub fn read(&self) -> AccessFacts {
        self.0.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_per_request() {
        let notes = AccessNotes::default();
        notes.clone().set_user("a:b");
        assert_eq!(notes.read().user.as_deref(), Some("a:b"));
        assert!(notes.claim_line());
        assert!(!notes.clone().claim_line());
        assert!(AccessNotes::of_feature("TU").claim_line());
    }
}
