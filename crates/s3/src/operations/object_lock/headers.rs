//! Object lock in headers: what a write asks for, what an answer with an object says; dates; digests.
//!
//! Source: AWS, PutObject, CopyObject, CreateMultipartUpload, HeadObject.

use super::super::Operation;
use crate::error::{INVALID_ARGUMENT, INVALID_REQUEST, S3Error};
use http::{HeaderMap, HeaderName, HeaderValue};
use peer::message::header_names::X_BUCKET_LOCK;
use request_pipeline::{ClientRequest, object_lock_in};
use vocabulary::Timestamp;
use vocabulary::calendar;
use vocabulary::object_lock::{BucketLock, ObjectLock, Retention, RetentionMode};

/// What these names begin with.
const OF_LOCK: &str = "x-amz-object-lock-";
pub(crate) const MODE: &str = "x-amz-object-lock-mode";
pub(crate) const UNTIL: &str = "x-amz-object-lock-retain-until-date";
pub(crate) const HOLD: &str = "x-amz-object-lock-legal-hold";

/// Whether the container keeps versions.
pub(crate) const VERSIONS: &str = "x-versions-enabled";
/// Of CreateBucket.
const WANTED: &str = "x-amz-bucket-object-lock-enabled";

/// Whether a bucket is to be made with a lock.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let wanted = headers.get(WANTED);
    wanted.is_some_and(|wanted| wanted.as_bytes().eq_ignore_ascii_case(b"true"))
}

/// Makes the PUT or POST of a container one of a bucket with a lock.
pub(crate) fn enable(request: &mut ClientRequest, lock: &BucketLock) {
    request.set_header(VERSIONS, "true");
    // Its letters, digits and signs are a header's.
    if let Ok(value) = HeaderValue::from_str(&lock.to_string()) {
        request.headers.insert(X_BUCKET_LOCK, value);
    }
}

/// What a write asks for; nothing where no header speaks of it.
pub(crate) fn asked(headers: &HeaderMap, now: Timestamp) -> Result<Option<ObjectLock>, S3Error> {
    if !headers.keys().any(|name| name.as_str().starts_with(OF_LOCK)) {
        return Ok(None);
    }
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let refuse = |name: &'static str, why: &str| INVALID_ARGUMENT.saying(why).with("ArgumentName", name);
    let retention = match (text(MODE), text(UNTIL)) {
        (None, None) => None,
        (Some(mode), Some(until)) => {
            let mode = RetentionMode::read(mode).ok_or_else(|| refuse(MODE, "Unknown wormMode directive."))?;
            let until = seconds(until);
            let until =
                until.ok_or_else(|| refuse(UNTIL, "The retain until date must be provided in ISO 8601 format"))?;
            if is_past(until, now) {
                return Err(refuse(UNTIL, "The retain until date must be in the future!"));
            }
            Some(Retention { mode, until })
        }
        (mode, _) => {
            let missing = if mode.is_some() { UNTIL } else { MODE };
            return Err(refuse(
                missing,
                "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied",
            ));
        }
    };
    let hold = match text(HOLD) {
        None => None,
        Some("ON") => Some(true),
        Some("OFF") => Some(false),
        Some(_) => return Err(refuse(HOLD, "Legal Hold must be either of 'ON' or 'OFF'")),
    };
    let retention = retention.map(|kept| ObjectLock::of_retention(Some(kept), now));
    let hold = hold.map(|hold| ObjectLock::of_hold(hold, now));
    Ok(match (retention, hold) {
        (None, None) => None,
        (retention, hold) => Some(retention.unwrap_or_default().merged(hold.unwrap_or_default())),
    })
}

/// Adds to the headers of an answer what keeps the object.
pub(crate) fn show(answer: &mut HeaderMap, swift: &HeaderMap) {
    let lock = object_lock_in(swift);
    let mut set = |name, text: &str| {
        if let Ok(value) = HeaderValue::from_str(text) {
            answer.insert(HeaderName::from_static(name), value);
        }
    };
    if let Some(kept) = lock.retention.and_then(|set| set.value) {
        set(MODE, kept.mode.name());
        set(UNTIL, &date(kept.until));
    }
    if let Some(hold) = lock.hold {
        set(HOLD, if hold.value { "ON" } else { "OFF" });
    }
}

/// The first whole second of a time in ISO 8601 that is not before it.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let (seconds, rest) = calendar::parse_iso(text.trim(), calendar::LAST_SECOND)?;
    let digits = rest.strip_prefix('.').map_or(0, |fraction| {
        1 + fraction.bytes().take_while(u8::is_ascii_digit).count()
    });
    let (fraction, zone) = rest.split_at(digits);
    let has_more = fraction.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    let is_fraction = digits != 1;
    let is_utc = matches!(zone, "Z" | "z" | "" | "+00:00" | "-00:00");
    (is_fraction && is_utc).then_some(seconds + u64::from(has_more))
}

/// `2030-01-01T00:00:00.000Z`, in which seconds are printed.
pub(crate) fn date(until: u64) -> String {
    format!("{}.000Z", calendar::iso(until, 'T'))
}

/// Whether it has come.
pub(crate) fn is_past(until: u64, now: Timestamp) -> bool {
    until <= now.seconds()
}

/// Whether a body comes with a digest, which what locks must have.
pub(crate) fn has_digest(headers: &HeaderMap) -> bool {
    headers.contains_key("content-md5")
        || headers.contains_key("x-amz-trailer")
        || headers.keys().any(|name| name.as_str().starts_with("x-amz-checksum-"))
        || headers.contains_key("x-amz-sdk-checksum-algorithm")
}

impl Operation<'_> {
    /// What the request asks to keep its object, if it does; refused in a bucket whose objects cannot be locked.
    pub(crate) async fn asked_lock(&self) -> Result<Option<ObjectLock>, S3Error> {
        let lock = asked(&self.request.headers, self.service.world.clock.now())?;
        if lock.is_some() {
            self.locked_bucket().await?;
        }
        Ok(lock)
    }

    /// The same of a PutObject, whose body must come with a digest then.
    pub(crate) async fn asked_lock_of_body(&self) -> Result<Option<ObjectLock>, S3Error> {
        let lock = self.asked_lock().await?;
        if lock.is_some() && !has_digest(&self.request.headers) {
            return Err(INVALID_REQUEST.saying(
                "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock \
                 parameters",
            ));
        }
        Ok(lock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_round_up_to_seconds() {
        for (text, expected) in [
            ("2030-01-01T00:00:00Z", Some(1_893_456_000)),
            ("2030-01-01T00:00:00", Some(1_893_456_000)),
            ("2030-01-01T00:00:00.000Z", Some(1_893_456_000)),
            ("2030-01-01T00:00:00.000000001Z", Some(1_893_456_001)),
            ("2030-01-01T00:00:00+00:00", Some(1_893_456_000)),
            ("2030-01-01T00:00:00+01:00", None),
            ("2030-01-01T00:00:00.Z", None),
            ("2030-02-30T00:00:00Z", None),
            ("2030-01-01", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
        assert_eq!(date(1_893_456_000), "2030-01-01T00:00:00.000Z");
    }

    #[test]
    fn headers_of_writes_are_read_or_refused() {
        let now = Timestamp::from_seconds(1_893_455_000);
        let future = "2030-01-01T00:00:00Z";
        for (pairs, refusal) in [
            (&[][..], None),
            (&[(MODE, "GOVERNANCE"), (UNTIL, future), (HOLD, "ON")], None),
            (&[(HOLD, "OFF")], None),
            (&[(HOLD, "on")], Some(HOLD)),
            (&[(MODE, "GOVERNANCE")], Some(UNTIL)),
            (&[(UNTIL, future)], Some(MODE)),
            (&[(MODE, "X"), (UNTIL, future)], Some(MODE)),
            (&[(MODE, "GOVERNANCE"), (UNTIL, "2029-01-01T00:00:00Z")], Some(UNTIL)),
            (&[(MODE, "GOVERNANCE"), (UNTIL, "soon")], Some(UNTIL)),
        ] {
            let headers = pairs
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            let headers: HeaderMap = headers.collect();
            match (asked(&headers, now), refusal) {
                (Err(error), Some(name)) => assert_eq!(error.fields[0].1, name, "{pairs:?}"),
                (Ok(lock), None) => {
                    let mut swift = HeaderMap::new();
                    request_pipeline::set_object_lock(&mut swift, &lock.unwrap_or_default());
                    let mut shown = HeaderMap::new();
                    show(&mut shown, &swift);
                    assert_eq!(shown.len(), headers.len(), "{pairs:?}");
                }
                (found, _) => panic!("{pairs:?}: {found:?}"),
            }
        }
    }
}
