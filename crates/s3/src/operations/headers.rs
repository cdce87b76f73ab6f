//! Headers of objects: S3's in Swift's names, and back.
//!
//! Always holds: user metadata comes back under the name it was sent with; `_` travels as `=5F`, as Swift's servers
//! (like OpenStack's) do not take names with underscores.

use super::{encryption, tag_set};
use crate::error::{INVALID_STORAGE_CLASS, METADATA_TOO_LARGE, S3Error};
use http::HeaderMap;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH,
    CONTENT_RANGE, CONTENT_TYPE, ETAG, EXPIRES, HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    IF_UNMODIFIED_SINCE, LAST_MODIFIED,
};
use peer::message::header_names::{X_ETAG_IS_AT, X_OBJECT_TAGS};
use vocabulary::names::quote;

/// What an object keeps besides its metadata, under the same name on both sides.
static KEPT: [HeaderName; 7] = [
    CACHE_CONTROL,
    CONTENT_DISPOSITION,
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_TYPE,
    EXPIRES,
    ROBOTS_TAG,
];

const ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");

/// When Swift is to delete the object: not S3's, but taken and shown as OpenStack's s3api does.
pub(super) static DELETE_AT: HeaderName = HeaderName::from_static("x-delete-at");
static DELETE_AFTER: HeaderName = HeaderName::from_static("x-delete-after");

/// What an answer with an object says besides, under the same name on both sides.
static SHOWN: [HeaderName; 4] = [ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, LAST_MODIFIED];

/// Headers that most objects are stored with, and more.
const STORED: usize = 6;

/// Bytes of names and values of user metadata (AWS, "Working with object metadata").
const MOST_METADATA: usize = 2 * 1024;

/// The entity tag of an object that S3 has made of parts.
pub(super) const S3_ETAG: &str = "x-object-sysmeta-s3api-etag";
static OWN_ETAG: HeaderName = HeaderName::from_static(S3_ETAG);
static STATIC_LARGE: HeaderName = HeaderName::from_static("x-static-large-object");
static STORAGE_CLASS: HeaderName = HeaderName::from_static("x-amz-storage-class");

/// Where conditions find it.
pub(super) const SHOWN_ETAG: HeaderValue = HeaderValue::from_static(S3_ETAG);

/// The headers with which an object of this request is stored.
pub(super) fn stored(request: &HeaderMap) -> Result<HeaderMap, S3Error> {
    let mut out = HeaderMap::with_capacity(STORED);
    for name in KEPT.iter().chain([&DELETE_AT, &DELETE_AFTER]) {
        if let Some(value) = request.get(name) {
            out.insert(name, value.clone());
        }
    }
    if let Some(class) = request.get(&STORAGE_CLASS)
        && class != "STANDARD"
    {
        return Err(INVALID_STORAGE_CLASS.into());
    }
    let mut size = 0;
    for name in request.keys() {
        let Some(name_of_user) = name.as_str().strip_prefix("x-amz-meta-") else {
            continue;
        };
        let values: Vec<&[u8]> = request.get_all(name).iter().map(|value| value.as_bytes()).collect();
        let value = values.join(&b","[..]);
        size += name_of_user.len() + value.len();
        let stored = format!("x-object-meta-{}", escaped(name_of_user));
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(stored), HeaderValue::from_bytes(&value)) {
            out.insert(name, value);
        }
    }
    if let Some(tags) = tag_set::of_header(request)? {
        out.insert(X_OBJECT_TAGS, tags);
    }
    if size > MOST_METADATA {
        return Err(METADATA_TOO_LARGE
            .about("MaxSizeAllowed", MOST_METADATA.to_string())
            .with("Size", size.to_string()));
    }
    Ok(out)
}

/// What a POST has to say again so that the object keeps it.
pub(super) fn own_metadata(swift: &HeaderMap) -> HeaderMap {
    let kept = swift.iter().filter(|(name, _)| {
        name.as_str().starts_with("x-object-meta-")
            || *name == "x-delete-at"
            || (KEPT.contains(name) && *name != CONTENT_TYPE)
    });
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The headers of an answer with an object, from Swift's.
pub(super) fn shown(swift: &HeaderMap) -> HeaderMap {
    let mut out = HeaderMap::with_capacity(swift.len() + 4);
    for name in KEPT.iter().chain(&SHOWN) {
        if let Some(value) = swift.get(name) {
            out.insert(name, value.clone());
        }
    }
    for (name, value) in swift {
        if let Some(name) = name.as_str().strip_prefix("x-object-meta-")
            && let Ok(name) = HeaderName::try_from(format!("x-amz-meta-{}", unescaped(name)))
        {
            out.insert(name, value.clone());
        }
    }
    if let Some(etag) = etag(swift) {
        out.insert(ETAG, etag);
    }
    encryption::show(&mut out, swift);
    if let Some(expiry) = expiry(swift) {
        out.insert("x-amz-expiration", expiry);
    }
    if let Some(count) = tag_set::count(swift) {
        out.insert("x-amz-tagging-count", count);
    }
    out
}

/// When Swift deletes the object, as S3 says it of what a rule of the bucket will delete.
fn expiry(swift: &HeaderMap) -> Option<HeaderValue> {
    expiry_by(delete_at(swift)?, "swift-object-expiration")
}

/// When Swift deletes the object.
pub(super) fn delete_at(swift: &HeaderMap) -> Option<u64> {
    swift.get(&DELETE_AT)?.to_str().ok()?.parse().ok()
}

/// When a rule deletes the object.
pub(super) fn expiry_by(at: u64, rule: &str) -> Option<HeaderValue> {
    let date = vocabulary::calendar::http(at);
    HeaderValue::from_str(&format!("expiry-date=\"{date}\", rule-id=\"{}\"", quote(rule))).ok()
}

/// The bytes of a whole object, of which an answer may have a part.
pub(super) fn size(swift: &HeaderMap) -> Option<u64> {
    let text = |name| swift.get(name)?.to_str().ok();
    match text(CONTENT_RANGE) {
        Some(range) => range.rsplit_once('/')?.1.parse().ok(),
        None => text(CONTENT_LENGTH)?.parse().ok(),
    }
}

/// The entity tag as S3 shows it: in quotes; that of the parts for an object made of parts, and for a large object of
/// Swift's one with a hyphen, so that no client takes it for an MD5.
pub(super) fn etag(swift: &HeaderMap) -> Option<HeaderValue> {
    let is_large = swift
        .get(&STATIC_LARGE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"));
    let own = swift.get(&OWN_ETAG).and_then(|value| value.to_str().ok());
    let own = own.filter(|own| !own.is_empty());
    let plain = swift.get(ETAG).and_then(|value| value.to_str().ok())?.trim_matches('"');
    let text = match (own, is_large) {
        (Some(own), _) => ["\"", own.trim_matches('"'), "\""].concat(),
        (None, true) => ["\"", plain, "-N\""].concat(),
        (None, false) => ["\"", plain, "\""].concat(),
    };
    HeaderValue::try_from(text).ok()
}

/// The entity tag of what a copy has made: never that of the parts of its source.
pub(super) fn etag_of_copy(swift: &HeaderMap) -> Option<HeaderValue> {
    let mut plain = HeaderMap::new();
    plain.insert(ETAG, swift.get(ETAG)?.clone());
    etag(&plain)
}

/// Takes off a copy what its source has as an object made of parts.
pub(super) fn forget_parts(copy: &mut HeaderMap) {
    for name in [
        S3_ETAG,
        "x-object-sysmeta-s3api-upload-id",
        "x-object-sysmeta-s3api-part-numbers",
        "x-object-sysmeta-s3api-checksum",
    ] {
        copy.insert(HeaderName::from_static(name), HeaderValue::from_static(""));
    }
}

/// What a signed URL asks an answer's headers to be.
pub(super) fn override_with(headers: &mut HeaderMap, parameters: &[(String, String)]) {
    // The first of a name is the one that counts.
    for (parameter, value) in parameters.iter().rev() {
        if let Some(name) = parameter.strip_prefix("response-")
            && let Some(name) = KEPT.iter().find(|kept| kept.as_str() == name)
            && let Ok(value) = HeaderValue::from_str(value)
        {
            headers.insert(name, value);
        }
    }
}

/// Takes over the conditions of a read, which are Swift's as well, and says where the entity tag is that they are
/// about.
pub(super) fn put_conditions(request: &HeaderMap, ask: &mut HeaderMap) {
    for name in &CONDITIONS {
        if let Some(value) = request.get(name) {
            ask.insert(name, value.clone());
            ask.insert(X_ETAG_IS_AT, SHOWN_ETAG);
        }
    }
}

static CONDITIONS: [HeaderName; 4] = [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE];

/// `_` as Swift's servers take it: `=5f`, in the spelling that header names have in this process
/// ([`vocabulary::header_name`]).
const UNDERSCORE: &str = "%3d5f";

fn escaped(name: &str) -> String {
    name.replace('_', UNDERSCORE)
}

fn unescaped(name: &str) -> String {
    name.replace(UNDERSCORE, "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_comes_back_under_its_name() {
        let mut sent = HeaderMap::new();
        sent.insert("x-amz-meta-foo_bar", HeaderValue::from_static("1"));
        sent.append("x-amz-meta-twice", HeaderValue::from_static("a"));
        sent.append("x-amz-meta-twice", HeaderValue::from_static("b"));
        sent.insert("x-amz-acl", HeaderValue::from_static("private"));
        sent.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        let stored = stored(&sent).unwrap();
        let equals = vocabulary::header_name::encode_text("x-object-meta-foo=5fbar");
        assert_eq!(stored.len(), 3);
        assert_eq!(stored[&*equals], "1");
        let back = shown(&stored);
        assert_eq!(
            (&back["x-amz-meta-foo_bar"], &back["x-amz-meta-twice"]),
            (&sent["x-amz-meta-foo_bar"], &HeaderValue::from_static("a,b"))
        );
        sent.insert("x-amz-meta-long", HeaderValue::from_str(&"x".repeat(2048)).unwrap());
        assert_eq!(super::stored(&sent).unwrap_err().code, METADATA_TOO_LARGE);
    }

    #[test]
    fn tags_say_whether_they_are_digests() {
        let of = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            etag(&pairs.collect()).unwrap()
        };
        assert_eq!(of(&[("etag", "abc")]), "\"abc\"");
        assert_eq!(
            of(&[("etag", "\"abc\""), ("x-static-large-object", "True")]),
            "\"abc-N\""
        );
        assert_eq!(
            of(&[("etag", "abc"), ("x-object-sysmeta-s3api-etag", "def-2")]),
            "\"def-2\""
        );
    }
}
