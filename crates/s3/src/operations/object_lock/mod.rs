//! Object lock: buckets whose versions are kept until a time, or until a legal hold ends.
//!
//! | what | file |
//! |---|---|
//! | PutObjectLockConfiguration, GetObjectLockConfiguration, buckets made with a lock | `bucket.rs` |
//! | PutObjectRetention, GetObjectRetention, PutObjectLegalHold, GetObjectLegalHold | here |
//! | the headers of writes and answers | `headers.rs` |
//! | objects made of parts, whose parts are locked with them | `parts.rs` |
//!
//! A lock is in the metadata of a version (`vocabulary::object_lock`). What it forbids is refused behind this: by the
//! features of versions (`features`, `versioning/object_lock.rs`) and by object servers. So this file only says what a
//! client wants, and in S3's words why it was refused.
//! Always holds: only versions are locked, never what a later write would replace; the parts of an object are locked
//! before it, and not freed before it; a client that bypasses GOVERNANCE owns the account or is allowed to by the
//! bucket's policy, within the limits of its access key.

pub(super) mod bucket;
pub(super) mod headers;
pub(super) mod parts;

use super::bucket::empty;
use super::{Done, Operation, document, not_implemented};
use crate::authority::actions;
use crate::error::{ACCESS_DENIED, INVALID_ARGUMENT, INVALID_REQUEST, MALFORMED_XML, NO_SUCH_OBJECT_LOCK, S3Error};
use crate::payload::collect;
use crate::xml::{Element, XmlWriter};
use headers::{date, has_digest, is_past};
use http::{HeaderMap, Method};
use peer::message::header_names::X_LOCK_CHANGE;
use request_pipeline::{BypassesGovernance, ClientRequest, object_lock_in, set_object_lock};
use vocabulary::object_lock::{ObjectLock, Retention, RetentionMode};

/// Bytes of a document.
const LARGEST_DOCUMENT: u64 = 8 * 1024;

/// The operations of the sub-resources `object-lock`, `retention` and `legal-hold`.
pub(super) async fn run(operation: Operation<'_>) -> Done {
    let subresource = operation.call.subresource().unwrap_or_default();
    let method = operation.request.method.clone();
    match (operation.call.key.is_some(), method, subresource) {
        (false, Method::GET, "object-lock") => bucket::get(operation).await,
        (false, Method::PUT, "object-lock") => bucket::put(operation).await,
        (true, Method::GET, "retention") => get_retention(operation).await,
        (true, Method::PUT, "retention") => put_retention(operation).await,
        (true, Method::GET, "legal-hold") => get_hold(operation).await,
        (true, Method::PUT, "legal-hold") => put_hold(operation).await,
        _ => Err(not_implemented(subresource)),
    }
}

/// GetObjectRetention.
async fn get_retention(operation: Operation<'_>) -> Done {
    operation.locked_bucket().await?;
    let version = operation.version().await?;
    let retention = object_lock_in(&version.headers).retention.and_then(|set| set.value);
    let retention = retention.ok_or_else(|| NO_SUCH_OBJECT_LOCK.about("Key", operation.key()))?;
    let mut xml = XmlWriter::document("Retention");
    xml.text("Mode", retention.mode.name());
    xml.text("RetainUntilDate", &date(retention.until));
    Ok(document(xml))
}

/// GetObjectLegalHold.
async fn get_hold(operation: Operation<'_>) -> Done {
    operation.locked_bucket().await?;
    let version = operation.version().await?;
    let hold = object_lock_in(&version.headers).hold;
    let hold = hold.ok_or_else(|| NO_SUCH_OBJECT_LOCK.about("Key", operation.key()))?;
    let mut xml = XmlWriter::document("LegalHold");
    xml.text("Status", if hold.value { "ON" } else { "OFF" });
    Ok(document(xml))
}

/// PutObjectRetention. An empty document takes a retention away.
async fn put_retention(mut operation: Operation<'_>) -> Done {
    let document = operation.lock_document("Retention").await?;
    operation.locked_bucket().await?;
    let now = operation.service.world.clock.now();
    let wanted = read_retention(&document)?;
    if wanted.is_some_and(|wanted| is_past(wanted.until, now)) {
        return Err(INVALID_ARGUMENT.saying("The retain until date must be in the future!"));
    }
    let bypasses = operation.bypasses_governance(operation.key()).await;
    operation.change(ObjectLock::of_retention(wanted, now), bypasses).await
}

/// PutObjectLegalHold.
async fn put_hold(mut operation: Operation<'_>) -> Done {
    let document = operation.lock_document("LegalHold").await?;
    operation.locked_bucket().await?;
    let hold = match document.text_of("Status") {
        Some("ON") => true,
        Some("OFF") => false,
        _ => return Err(MALFORMED_XML.into()),
    };
    let now = operation.service.world.clock.now();
    operation.change(ObjectLock::of_hold(hold, now), false).await
}

/// What a document of a retention says; nothing in it is none.
fn read_retention(document: &Element) -> Result<Option<Retention>, S3Error> {
    let mode = document.text_of("Mode");
    let until = document.text_of("RetainUntilDate");
    match (mode, until) {
        (None, None) if document.children.is_empty() => Ok(None),
        (Some(mode), Some(until)) => Ok(Some(Retention {
            mode: RetentionMode::read(mode).ok_or(MALFORMED_XML)?,
            until: headers::seconds(until).ok_or(MALFORMED_XML)?,
        })),
        _ => Err(MALFORMED_XML.into()),
    }
}

/// The version that a request is about.
struct LockedVersion {
    id: String,
    headers: HeaderMap,
}

impl Operation<'_> {
    async fn lock_document(&mut self, root: &str) -> Result<Element, S3Error> {
        if !has_digest(&self.request.headers) {
            return Err(
                INVALID_REQUEST.saying("Missing required header for this request: Content-MD5 OR x-amz-checksum-*")
            );
        }
        let signed = self.signed_body();
        let body = collect(&mut self.request, signed.as_deref(), LARGEST_DOCUMENT).await?;
        let document = Element::parse(&body).map_err(|_| MALFORMED_XML)?;
        match document.name == root {
            true => Ok(document),
            false => Err(MALFORMED_XML.into()),
        }
    }

    /// Looks at the version that is named, or at the current one.
    async fn version(&self) -> Result<LockedVersion, S3Error> {
        let named = self.call.parameter("versionId").filter(|version| !version.is_empty());
        let mut head = self.further(Method::HEAD, self.container().with_object(self.key()));
        head.set_header("x-newest", "true");
        self.aim_at_version(&mut head, named);
        let response = self.send(head).await;
        if !response.status().is_success() {
            return match named {
                Some(version) => Err(self.version_refusal(&response, version).await),
                None => Err(self.refusal(&response).await),
            };
        }
        let shown = response.headers().get("x-object-version-id");
        let id = shown.and_then(|id| id.to_str().ok()).unwrap_or("null").to_owned();
        Ok(LockedVersion {
            id,
            headers: response.headers().clone(),
        })
    }

    /// Changes what keeps the version that is meant, and its parts.
    async fn change(&self, lock: ObjectLock, bypasses: bool) -> Done {
        let version = self.version().await?;
        if version.id == "null" {
            return Err(INVALID_REQUEST.saying(
                "The object was written before its bucket kept versions; only versions can be locked. Copy it to itself.",
            ));
        }
        let before = object_lock_in(&version.headers);
        let now = self.service.world.clock.now();
        if !before.may_become(&lock, now, bypasses) {
            return Err(ACCESS_DENIED.saying("The object's retention cannot be weakened."));
        }
        let parts = match parts::is_made_of_parts(&version.headers) {
            true => self.part_names(&version.id).await?,
            false => Vec::new(),
        };
        // What makes it stay longer comes to the parts first, what frees it to the object.
        let frees = lock.hold.is_some_and(|hold| !hold.value) || weakens(&before, &lock);
        if !frees {
            self.lock_parts(&parts, &lock, bypasses).await?;
        }
        let mut post = self.further(Method::POST, self.container().with_object(self.key()));
        self.aim_at_version(&mut post, Some(&version.id));
        lock_change(&mut post, &lock, bypasses);
        let response = self.send(post).await;
        if !response.status().is_success() {
            return Err(self.version_refusal(&response, &version.id).await);
        }
        if frees {
            self.lock_parts(&parts, &lock, bypasses).await?;
        }
        let mut answer = empty(200);
        super::versions::show(answer.headers_mut(), &version.headers);
        Ok(answer)
    }

    /// Whether the client wants to bypass GOVERNANCE retentions, and may.
    pub(super) async fn bypasses_governance(&self, key: &str) -> bool {
        actions::wants_bypass(&self.request.headers) && (self.policy_bypasses(key) || self.owns_account().await)
    }
}

/// Whether a retention becomes a shorter one, or none.
fn weakens(before: &ObjectLock, new: &ObjectLock) -> bool {
    let until = |lock: &ObjectLock| lock.retention.and_then(|set| set.value).map_or(0, |kept| kept.until);
    new.retention.is_some() && until(new) < until(before)
}

/// Makes a POST a change of what keeps an object, and of nothing else.
fn lock_change(post: &mut ClientRequest, lock: &ObjectLock, bypasses: bool) {
    post.headers
        .insert(X_LOCK_CHANGE, http::HeaderValue::from_static("true"));
    set_object_lock(&mut post.headers, lock);
    if bypasses {
        post.extensions.insert(BypassesGovernance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retentions_are_read() {
        let read = |text: &str| {
            let document = Element::parse(text.as_bytes()).unwrap();
            read_retention(&document).map_err(|error| error.code.name)
        };
        let kept = |mode, until| Ok(Some(Retention { mode, until }));
        for (inner, expected) in [
            ("", Ok(None)),
            (
                "<Mode>GOVERNANCE</Mode><RetainUntilDate>2030-01-01T00:00:00Z</RetainUntilDate>",
                kept(RetentionMode::Governance, 1_893_456_000),
            ),
            (
                "<Mode>COMPLIANCE</Mode><RetainUntilDate>2030-01-01T00:00:00.001Z</RetainUntilDate>",
                kept(RetentionMode::Compliance, 1_893_456_001),
            ),
            ("<Mode>GOVERNANCE</Mode>", Err("MalformedXML")),
            (
                "<RetainUntilDate>2030-01-01T00:00:00Z</RetainUntilDate>",
                Err("MalformedXML"),
            ),
            (
                "<Mode>governance</Mode><RetainUntilDate>2030-01-01T00:00:00Z</RetainUntilDate>",
                Err("MalformedXML"),
            ),
            (
                "<Mode>GOVERNANCE</Mode><RetainUntilDate>tomorrow</RetainUntilDate>",
                Err("MalformedXML"),
            ),
            ("<Other/>", Err("MalformedXML")),
        ] {
            assert_eq!(read(&format!("<Retention>{inner}</Retention>")), expected, "{inner}");
        }
    }

    #[test]
    fn what_frees_comes_last_to_the_parts() {
        let at = vocabulary::Timestamp::from_seconds;
        let kept = |until| {
            let mode = RetentionMode::Governance;
            ObjectLock::of_retention(Some(Retention { mode, until }), at(1))
        };
        let none = ObjectLock::of_retention(None, at(2));
        assert!(weakens(&kept(9), &kept(8)) && weakens(&kept(9), &none));
        assert!(!weakens(&kept(9), &kept(9)) && !weakens(&ObjectLock::default(), &kept(1)));
        assert!(!weakens(&kept(9), &ObjectLock::of_hold(true, at(2))));
    }
}
