//! Writes on a condition (`If-None-Match: *`, `If-Match`), deletions on one (`If-Match`), and those that must not meet
//! another of the same key: CompleteMultipartUpload and AbortMultipartUpload.
//!
//! The write lock of the key is taken when the body is there, then the key is looked at, then the last piece of the
//! body is let go; storage takes it only under the lock (`request-pipeline`, `write_lock.rs`). So of all writers with a
//! condition one is decided at a time, and each sees what those before it have written.
//! Always holds: who is answered 412 or 404 has written nothing; a condition is decided by the newest of what most of
//! the key's primaries have, or not at all (409, 503).
//! Deliberately absent: writes without a condition, which are ordered by their time as everywhere in Swift.

use super::{Operation, headers};
use crate::error::{
    CONDITIONAL_REQUEST_CONFLICT, INVALID_REQUEST, NO_SUCH_KEY, NOT_IMPLEMENTED, PRECONDITION_FAILED, S3Error,
    SERVICE_UNAVAILABLE,
};
use crate::payload::{Verdict, released_by};
use http::header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
use http::{HeaderMap, Method};
use parking_lot::Mutex;
use peer::Body;
use peer::message::header_names::{X_TIMESTAMP, X_WRITE_LOCK};
use request_pipeline::{ClientRequest, LockRefusal, Next, ObjectStanding, WriteLock};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::Timestamp;

/// Longer than a look at the key and the end of a PUT take; who dies with the lock holds others up for so long.
pub(super) const LEASE: Duration = Duration::from_secs(15);
/// The same where a thousand parts are looked at under the lock.
pub(super) const LONG_LEASE: Duration = Duration::from_secs(60);

/// What must hold for a write to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WriteCondition {
    /// There is no such key.
    Absent,
    /// There is one, with this entity tag; `*` is any, of deletions only.
    Present(String),
}

impl WriteCondition {
    fn read(headers: &HeaderMap) -> Result<Option<Self>, S3Error> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        if let Some(name) = [IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE]
            .iter()
            .find(|name| headers.contains_key(*name))
        {
            return Err(NOT_IMPLEMENTED.about("Header", name.as_str()));
        }
        match (text(IF_NONE_MATCH), text(IF_MATCH)) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(INVALID_REQUEST.saying("If-Match and If-None-Match exclude each other.")),
            (Some("*"), None) => Ok(Some(Self::Absent)),
            (Some(_), None) => Err(NOT_IMPLEMENTED.about("Header", "If-None-Match")),
            (None, Some("*")) => Err(NOT_IMPLEMENTED.about("Header", "If-Match")),
            (None, Some(etag)) => Ok(Some(Self::Present(etag.trim_matches('"').to_owned()))),
        }
    }

    /// Whether it holds for a key with this entity tag (in quotes), or for one that is not there.
    fn judge(&self, etag: Option<&str>, key: &str) -> Result<(), S3Error> {
        let failed = |name| Err(PRECONDITION_FAILED.about("Condition", name));
        match (self, etag) {
            (Self::Absent, None) => Ok(()),
            (Self::Absent, Some(_)) => failed("If-None-Match"),
            (Self::Present(_), None) => Err(NO_SUCH_KEY.about("Key", key)),
            (Self::Present(wanted), Some(etag)) if wanted == "*" || *wanted == etag.trim_matches('"') => Ok(()),
            (Self::Present(_), Some(_)) => failed("If-Match"),
        }
    }
}

/// What a write has to pass before it may end.
pub(super) struct WriteGate {
    lock: Option<WriteLock>,
    condition: Option<WriteCondition>,
    /// A look at the key.
    head: Mutex<ClientRequest>,
    next: Next,
    key: String,
}

impl Operation<'_> {
    /// The gate of a write of the key, where the client names a condition; one that does not hold now is refused at
    /// once, before the body is read.
    pub(super) async fn condition(&self) -> Result<Option<Arc<WriteGate>>, S3Error> {
        if WriteCondition::read(&self.request.headers)?.is_none() {
            return Ok(None);
        }
        let gate = self.write_gate().await?;
        gate.look(None).await?;
        Ok(Some(Arc::new(gate)))
    }

    /// The gate of a deletion of a key with this entity tag (`*`: any), where the client names one; it has been passed.
    pub(super) async fn pass_to_delete(
        &self,
        key: &str,
        version: Option<&str>,
        etag: Option<&str>,
    ) -> Result<Option<WriteGate>, S3Error> {
        let Some(etag) = etag else { return Ok(None) };
        if version.is_some() {
            return Err(NOT_IMPLEMENTED.saying("A condition of a deletion is about the current version."));
        }
        let gate = WriteGate {
            condition: Some(WriteCondition::Present(etag.trim().trim_matches('"').to_owned())),
            ..self.bare_gate_of(key).await
        };
        gate.pass(LEASE).await?;
        Ok(Some(gate))
    }

    /// The gate of a write of the key, with the client's condition if there is one.
    pub(super) async fn write_gate(&self) -> Result<WriteGate, S3Error> {
        let condition = WriteCondition::read(&self.request.headers)?;
        Ok(WriteGate {
            condition,
            ..self.bare_gate().await
        })
    }

    /// The same without a condition.
    pub(super) async fn bare_gate(&self) -> WriteGate {
        self.bare_gate_of(self.key()).await
    }

    async fn bare_gate_of(&self, key: &str) -> WriteGate {
        let entity = self.container().with_object(key);
        let container = self.next.info().container(&self.account().account, self.bucket()).await;
        let mut random = [0; 16];
        self.service.world.random.fill(&mut random);
        let random = vocabulary::hex::encode(random);
        let trans_id = &self.request.trans_id;
        let lock = self
            .next
            .write_locks()
            .and_then(|locks| WriteLock::new(locks, entity.clone(), container.policy, &random, trans_id));
        WriteGate {
            lock,
            condition: None,
            head: Mutex::new(self.newest(entity)),
            next: self.next.clone(),
            key: key.to_owned(),
        }
    }

    /// HEAD of the newest of all replicas, with any client's rights.
    pub(super) fn newest(&self, entity: vocabulary::EntityPath) -> ClientRequest {
        let mut head = self.further(Method::HEAD, entity).preauthorised();
        head.set_header("x-newest", "true");
        head
    }
}

impl WriteGate {
    /// Says in the request that writes under which lock it does.
    pub(super) fn mark(&self, headers: &mut HeaderMap) {
        if let Some(lock) = &self.lock {
            headers.insert(X_WRITE_LOCK, lock.header());
        }
    }

    /// The body, the end of it once the gate has been passed; why not is in the verdict.
    pub(super) async fn guard(self: &Arc<Self>, body: Body, verdict: &Verdict) -> Result<Body, S3Error> {
        if body.length() == Some(0) {
            // It may end without being read.
            self.pass(LEASE).await?;
            return Ok(body);
        }
        let gate = self.clone();
        Ok(released_by(body, verdict.clone(), async move {
            gate.pass(LEASE).await.map(drop)
        }))
    }

    /// Takes the lock, and looks whether the condition holds. From here on no other writer with a condition does
    /// anything before this is dropped.
    pub(super) async fn pass(&self, lease: Duration) -> Result<ObjectStanding, S3Error> {
        let standing = self.lock_for(lease).await?;
        if self.condition.is_some() {
            self.look(standing).await?;
        }
        Ok(standing.unwrap_or_default())
    }

    /// Takes the lock or keeps it; nothing where storage knows no locks.
    async fn lock_for(&self, lease: Duration) -> Result<Option<ObjectStanding>, S3Error> {
        let Some(lock) = &self.lock else { return Ok(None) };
        match lock.take(lease).await {
            Ok(standing) => Ok(Some(standing)),
            Err(LockRefusal::Unknown) => Ok(None),
            Err(LockRefusal::Held) => Err(CONDITIONAL_REQUEST_CONFLICT.into()),
            Err(LockRefusal::Unavailable) => {
                Err(SERVICE_UNAVAILABLE.saying("Most of the servers of this key are needed to decide the request."))
            }
        }
    }

    /// Whether the condition holds; `standing` is what most of the primaries have.
    async fn look(&self, standing: Option<ObjectStanding>) -> Result<(), S3Error> {
        let Some(condition) = &self.condition else {
            return Ok(());
        };
        let head = self.head.lock().without_body();
        let found = self.next.clone().run(head).await;
        let is_there = match found.status().as_u16() {
            200..=299 => true,
            404 => false,
            _ => return Err(SERVICE_UNAVAILABLE.into()),
        };
        if standing.is_some_and(|standing| is_older(found.headers(), is_there, standing)) {
            return Err(CONDITIONAL_REQUEST_CONFLICT.into());
        }
        let etag = headers::etag(found.headers()).filter(|_| is_there);
        condition.judge(etag.as_ref().and_then(|etag| etag.to_str().ok()), &self.key)
    }
}

/// Whether what was found is not what most of the primaries have: one that has the newest did not answer.
fn is_older(found: &HeaderMap, is_there: bool, standing: ObjectStanding) -> bool {
    if is_there != standing.is_there {
        return true;
    }
    // What stands behind a link has a time of its own.
    if !is_there
        || ["x-object-version-id", "content-location"]
            .iter()
            .any(|name| found.contains_key(*name))
    {
        return false;
    }
    let time: Option<Timestamp> = found
        .get(X_TIMESTAMP)
        .and_then(|value| value.to_str().ok()?.parse().ok());
    time < standing.timestamp
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn condition(pairs: &[(&'static str, &'static str)]) -> Result<Option<WriteCondition>, &'static str> {
        let pairs = pairs.iter().map(|(name, value)| {
            let name = http::HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        WriteCondition::read(&pairs.collect()).map_err(|error| error.code.name)
    }

    #[test]
    fn conditions_are_read() {
        assert_eq!(condition(&[]), Ok(None));
        assert_eq!(condition(&[("if-none-match", "*")]), Ok(Some(WriteCondition::Absent)));
        assert_eq!(condition(&[("if-none-match", "\"x\"")]), Err("NotImplemented"));
        assert_eq!(condition(&[("if-match", "*")]), Err("NotImplemented"));
        assert_eq!(condition(&[("if-modified-since", "x")]), Err("NotImplemented"));
        assert_eq!(
            condition(&[("if-match", "\"x-2\"")]),
            Ok(Some(WriteCondition::Present("x-2".into())))
        );
        assert_eq!(
            condition(&[("if-match", "x"), ("if-none-match", "*")]),
            Err("InvalidRequest")
        );
    }

    #[test]
    fn conditions_are_judged() {
        let present = |etag: &str| WriteCondition::Present(etag.into());
        for (condition, etag, refusal) in [
            (WriteCondition::Absent, None, None),
            (WriteCondition::Absent, Some("\"a\""), Some("PreconditionFailed")),
            (present("a"), Some("\"a\""), None),
            (present("a"), Some("\"b\""), Some("PreconditionFailed")),
            (present("a"), None, Some("NoSuchKey")),
        ] {
            let found = condition.judge(etag, "k").map_err(|error| error.code.name).err();
            assert_eq!(found, refusal, "{condition:?} {etag:?}");
        }
    }

    #[test]
    fn a_look_that_is_older_than_what_most_have_decides_nothing() {
        let headers = |time: &str| HeaderMap::from_iter([(X_TIMESTAMP, HeaderValue::from_str(time).unwrap())]);
        let standing = |seconds, is_there| ObjectStanding {
            timestamp: Some(Timestamp::from_seconds(seconds)),
            is_there,
            ..ObjectStanding::default()
        };
        assert!(is_older(&headers("1.00000"), true, standing(2, true)));
        assert!(!is_older(&headers("2.00000"), true, standing(2, true)));
        assert!(!is_older(&headers("3.00000"), true, standing(2, true)));
        assert!(is_older(&headers("3.00000"), true, standing(2, false)));
        assert!(is_older(&HeaderMap::new(), false, standing(2, true)));
        assert!(!is_older(&HeaderMap::new(), false, ObjectStanding::default()));
    }
}
