//! The parsers of bytes that clients send, for fuzz targets (`crates/fuzz`) and tests: plain functions, nothing but
//! reading.

use crate::authority::actions;
use crate::authority::policy::{BucketPolicy, PolicyFacts, PolicyVerdict};
use crate::call::{S3Call, bucket_of_host};
use crate::checksum::Trailer;
use crate::chunked::ChunkedBody;
use crate::operations::listing::{name_of_token, token_of_name};
use crate::post_form::read_policy;
use crate::signature;
use crate::xml::Element;
use notification::NotificationRules;
use peer::Body;
use request_pipeline::Request;
use settings::S3ApiSettings;

/// How many elements a document has, how deep they lie and the bytes of their names and texts; nothing where it is
/// refused.
pub fn read_xml(document: &[u8]) -> Option<(usize, usize, usize)> {
    fn measure(element: &Element) -> (usize, usize, usize) {
        let own = element.name.len() + element.text.len();
        element.children.iter().map(measure).fold((1, 1, own), |sum, child| {
            (sum.0 + child.0, sum.1.max(child.1 + 1), sum.2 + child.2)
        })
    }
    Element::parse(document).ok().map(|root| measure(&root))
}

/// How many grants the document of an access control list has; nothing where it is refused.
pub fn read_access_list(document: &[u8]) -> Option<usize> {
    crate::acl::read(document).ok().map(|list| list.grants.len())
}

/// The bytes of an unsigned body in chunks, with what came behind them; the code of the refusal where it is refused.
pub async fn read_chunks(
    body: Body,
    length: u64,
    has_trailer: bool,
) -> Result<(Vec<u8>, Option<String>), &'static str> {
    let trailer = Trailer::default();
    let mut chunked = ChunkedBody::new(body, None, has_trailer, length, trailer.clone());
    let mut bytes = Vec::new();
    while let Some(piece) = chunked.next().await {
        match piece {
            Ok(piece) => bytes.extend_from_slice(&piece),
            Err(Some(error)) => return Err(error.code.name),
            Err(None) => return Err("the body broke off"),
        }
    }
    Ok((bytes, trailer.checksum().map(|(_, value)| value)))
}

/// What is signed of a request, and by which access key; nothing where there is no signature, the code of the refusal
/// where it is refused.
pub fn read_signature(
    request: &Request,
    settings: &S3ApiSettings,
    now: u64,
) -> Result<Option<(String, String)>, &'static str> {
    let refusal = |error: crate::error::S3Error| error.code.name;
    S3Call::read(request, &settings.storage_domain).map_err(refusal)?;
    let signature = signature::read(request, None, settings, now).map_err(refusal)?;
    Ok(signature.map(|signature| (signature.signed.access_key, signature.signed.string_to_sign)))
}

/// Whether a request has a signature that was made with this secret; the code of the refusal where it is refused.
pub fn is_signed_with(
    request: &Request,
    settings: &S3ApiSettings,
    now: u64,
    secret: &str,
) -> Result<bool, &'static str> {
    let bucket = bucket_of_host(request, &settings.storage_domain);
    let signature = signature::read(request, bucket.as_deref(), settings, now).map_err(|error| error.code.name)?;
    Ok(signature.is_some_and(|signature| signature.signed.is_signed_with(secret)))
}

/// The name that a continuation token stands for, and the token of that name; nothing where it is refused.
pub fn read_listing_token(token: &str) -> Option<(String, String)> {
    let name = name_of_token(token).ok()?;
    let again = token_of_name(&name);
    Some((name, again))
}

/// How many conditions the policy of a form has; nothing where it is refused.
pub fn read_form_policy(policy: &[u8]) -> Option<usize> {
    read_policy(policy).ok().map(|policy| policy.conditions.len())
}

/// Lifecycle rules in a document: how many, and their text as it is stored; nothing where they are refused.
pub fn read_lifecycle_rules(document: &[u8]) -> Option<(usize, String)> {
    let rules = crate::operations::lifecycle::document::read(document).ok()?;
    Some((rules.rules.len(), rules.to_text().ok()?))
}

/// The same of stored text.
pub fn read_stored_lifecycle_rules(text: &str) -> Option<(usize, String)> {
    let rules = lifecycle::LifecycleRules::of_text(text).ok()?;
    Some((rules.rules.len(), rules.to_text().ok()?))
}

/// Notification rules in a document: how many, their text as it is stored, and the document that is printed of them;
/// nothing where they are refused.
pub fn read_notification_rules(document: &[u8]) -> Option<(usize, String, String)> {
    describe_notifications(crate::operations::notification::document::read(document).ok()?)
}

/// The same of stored text.
pub fn read_stored_notification_rules(text: &str) -> Option<(usize, String, String)> {
    describe_notifications(NotificationRules::of_text(text).ok()?)
}

fn describe_notifications(rules: NotificationRules) -> Option<(usize, String, String)> {
    let document = crate::operations::notification::document::print(&rules).finish();
    Some((rules.rules.len(), rules.to_text().ok()?, document))
}

/// CORS rules in a document: how many, their text as it is stored, the document that is printed of them, and whether
/// the last rule or one before it is found for its own origin and method; nothing where they are refused.
pub fn read_cors_rules(document: &[u8]) -> Option<(usize, String, String, bool)> {
    describe_cors(crate::bucket_cors::document::read(document).ok()?)
}

/// The same of stored text.
pub fn read_stored_cors_rules(text: &str) -> Option<(usize, String, String, bool)> {
    describe_cors(crate::bucket_cors::CorsRules::of_text(text).ok()?)
}

fn describe_cors(rules: crate::bucket_cors::CorsRules) -> Option<(usize, String, String, bool)> {
    let document = crate::bucket_cors::document::print(&rules).finish();
    let is_found = rules.rules.last().is_none_or(|rule| {
        let pairs = rule.origins.first().zip(rule.methods.first());
        pairs.is_none_or(|(origin, method)| rules.find(origin, method, &[]).is_some())
    });
    Some((rules.rules.len(), rules.to_text().ok()?, document, is_found))
}

/// A policy of bucket `b`: how many statements it has, its text as it is stored, and what it says of the deletion of a
/// key; nothing where it is refused.
pub fn read_bucket_policy(policy: &[u8], key: &str) -> Option<(usize, String, PolicyVerdict)> {
    let policy = BucketPolicy::read(policy, "b").ok()?;
    let facts = PolicyFacts {
        principal: Some("a:u".to_owned()),
        source: [10, 0, 0, 1].into(),
        is_secure: true,
        now: 1_800_000_000,
        texts: vec![("s3:prefix", key.to_owned())],
    };
    let (statements, text) = (policy.statements(), policy.text().to_owned());
    let verdict = policy.about(&facts, false).verdict(&actions::deletion("b", key, None));
    Some((statements, text, verdict))
}
