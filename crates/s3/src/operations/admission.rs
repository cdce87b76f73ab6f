//! May the request do what it asks, beside what the account's own authorisation says: limits of access keys.
//!
//! Comes in: an operation before anything of it has happened. Goes out: leave to go on, or a refusal.
//! Always holds: all that a request needs is looked at before anything happens; a limit never allows more than the
//! account's own authorisation does.
//! Deliberately absent: ACLs, which are Swift's own, checked by the verbs.

use super::Operation;
use crate::authority::actions::{self, Need};
use crate::error::{ACCESS_DENIED, S3Error};
use identity::KeyLimits;
use std::sync::Arc;

impl Operation<'_> {
    /// Looks at all that the request needs.
    pub(super) fn admit(&self) -> Result<(), S3Error> {
        let needs = actions::needs(&self.request.method, &self.call, &self.request.headers);
        needs.iter().try_for_each(|need| self.is_within_limits(need))
    }

    /// Looks at one key of those that a request deletes.
    pub(super) fn admit_deletion(&self, key: &str, version: Option<&str>) -> Result<(), S3Error> {
        self.is_within_limits(&actions::deletion(self.bucket(), key, version))
    }

    /// Whether a bucket is among those that the client is shown.
    pub(super) fn shows_bucket(&self, bucket: &str) -> bool {
        self.limits().is_none_or(|limits| limits.allow_bucket(bucket))
    }

    fn limits(&self) -> Option<&KeyLimits> {
        self.request.extensions.get::<Arc<KeyLimits>>().map(Arc::as_ref)
    }

    fn is_within_limits(&self, need: &Need) -> Result<(), S3Error> {
        let Some(limits) = self.limits() else {
            return Ok(());
        };
        let has_bucket = need.bucket.as_deref().is_none_or(|bucket| limits.allow_bucket(bucket));
        match has_bucket && limits.allow_action(need.action.name, need.action.kind) {
            true => Ok(()),
            false => Err(ACCESS_DENIED.saying("The access key is not allowed to do this.")),
        }
    }
}
