//! What S3's clients send: documents, bodies in chunks, signatures, policies of forms, tokens of listings.

use crate::input::{block_on, body, cut, text};
use http::{HeaderName, HeaderValue, Method};
use request_pipeline::Request;
use s3::authority::policy::LARGEST_POLICY;
use s3::parsers::{
    read_access_list, read_bucket_policy, read_chunks, read_cors_rules, read_form_policy, read_lifecycle_rules,
    read_listing_token, read_notification_rules, read_signature, read_stored_cors_rules, read_stored_lifecycle_rules,
    read_stored_notification_rules, read_xml,
};
use settings::S3ApiSettings;

/// Nothing here comes in more than one piece of this size.
const WHOLE: usize = 1 << 20;
/// The least bytes of an element.
const SHORTEST_ELEMENT: usize = 4;

/// Documents: no entity makes more of them than was sent.
pub(crate) fn s3_xml(bytes: &[u8]) {
    if let Some((elements, depth, length)) = read_xml(bytes) {
        assert!(elements * SHORTEST_ELEMENT <= bytes.len());
        assert!(depth <= 33, "{depth} levels");
        assert!(length <= bytes.len());
    }
    assert!(read_access_list(bytes).is_none_or(|grants| grants <= 100));
}

/// `aws-chunked`: the first byte is the size of pieces, the second the length of the object, its highest bit whether
/// headers come behind.
pub(crate) fn s3_chunks(bytes: &[u8]) {
    let (size, rest) = cut(bytes);
    let Some((length, sent)) = rest.split_first() else {
        return;
    };
    let (length, has_trailer) = (u64::from(length & 0x7f), length & 0x80 != 0);
    let whole = block_on(read_chunks(body(sent, WHOLE), length, has_trailer));
    let pieces = block_on(read_chunks(body(sent, size), length, has_trailer));
    assert_eq!(pieces.is_ok(), whole.is_ok(), "pieces of {size}");
    if let (Ok(pieces), Ok(whole)) = (pieces, whole) {
        assert_eq!(pieces, whole, "pieces of {size}");
        assert_eq!(whole.0.len() as u64, length);
    }
}

/// A request: its line, then headers, one a line.
pub(crate) fn s3_signature(bytes: &[u8]) {
    let text = text(bytes);
    let mut lines = text.lines();
    let line = lines.next().unwrap_or_default();
    let (path, query) = line.split_once('?').unwrap_or((line, ""));
    let mut request = Request::new(Method::GET, path.into(), path.into());
    request.query = query.to_owned();
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.trim().parse::<HeaderValue>()) {
            request.headers.append(name, value);
        }
    }
    let settings = S3ApiSettings::default();
    let read = read_signature(&request, &settings, 1_369_353_600);
    if let Ok(Some((access_key, signed))) = &read {
        assert!(access_key.len() <= text.len() && !signed.is_empty());
    }
    assert_eq!(read_signature(&request, &settings, 1_369_353_600), read);
}

/// Policies of buckets: what is stored is read again, and says the same.
pub(crate) fn s3_bucket_policy(bytes: &[u8]) {
    let key = text(&bytes[..bytes.len().min(64)]);
    if let Some((statements, stored, verdict)) = read_bucket_policy(bytes, &key) {
        assert!(statements <= bytes.len() && stored.len() <= LARGEST_POLICY);
        assert!(stored.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        assert_eq!(
            read_bucket_policy(stored.as_bytes(), &key),
            Some((statements, stored, verdict))
        );
    }
}

/// Lifecycle rules, as clients send them and as containers keep them: what is stored is read again as the same.
pub(crate) fn s3_lifecycle_rules(bytes: &[u8]) {
    let read = [read_lifecycle_rules(bytes), read_stored_lifecycle_rules(&text(bytes))];
    for (rules, stored) in read.into_iter().flatten() {
        assert!(stored.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        assert_eq!(read_stored_lifecycle_rules(&stored), Some((rules, stored)));
    }
}

/// CORS rules, as clients send them and as containers keep them: what is stored and what is printed is read again as
/// the same; a rule is found for what it names.
pub(crate) fn s3_cors_rules(bytes: &[u8]) {
    if let Some(read) = read_cors_rules(bytes) {
        let (rules, stored, document, is_found) = &read;
        assert!((1..=100).contains(rules) && *is_found);
        assert!(stored.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        assert_eq!(read_stored_cors_rules(stored), Some(read.clone()));
        assert_eq!(read_cors_rules(document.as_bytes()), Some(read));
    }
    // What an operator or OpenStack's gateway may have left there: no text panics, and what can be read is stored
    // alike.
    if let Some(read) = read_stored_cors_rules(&text(bytes)) {
        assert_eq!(read_stored_cors_rules(&read.1), Some(read.clone()));
    }
}

/// Notification rules, as clients send them and as containers keep them: what is stored can stand in a header; it and
/// what is printed is read again as the same.
pub(crate) fn s3_notification_rules(bytes: &[u8]) {
    if let Some(read) = read_notification_rules(bytes) {
        let (rules, stored, document) = &read;
        assert!(stored.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        assert_eq!(*rules == 0, stored.is_empty());
        assert_eq!(read_notification_rules(document.as_bytes()), Some(read.clone()));
        if *rules > 0 {
            assert_eq!(read_stored_notification_rules(stored), Some(read));
        }
    }
    if let Some(read) = read_stored_notification_rules(&text(bytes)) {
        assert_eq!(read_stored_notification_rules(&read.1), Some(read.clone()));
    }
}

/// Policies of forms.
pub(crate) fn s3_form_policy(bytes: &[u8]) {
    if let Some(conditions) = read_form_policy(bytes) {
        assert!(conditions <= bytes.len());
    }
}

/// Continuation tokens: one that is taken is the one that its name has.
pub(crate) fn s3_listing_token(bytes: &[u8]) {
    let token = text(bytes);
    if let Some((name, again)) = read_listing_token(&token) {
        assert_eq!(again, token);
        assert!(name.len() <= token.len() && !name.contains('\0'));
    }
}
