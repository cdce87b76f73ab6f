//! The signature of a request: where it stands, what it signs, whether its time is near ours.
//!
//! | question | file |
//! |---|---|
//! | version 4: headers, presigned URLs, what is signed | `v4.rs` |
//! | version 2 likewise | `v2.rs` |
//!
//! Whether the secret fits is for the authenticator to say ([`identity::SignedRequest`]).

mod v2;
mod v4;

use crate::error::{
    ACCESS_DENIED, EXPIRED_TOKEN, INVALID_ACCESS_KEY, INVALID_ARGUMENT, INVALID_TOKEN, REQUEST_TIME_TOO_SKEWED,
    S3Error, SERVICE_UNAVAILABLE, SIGNATURE_DOES_NOT_MATCH,
};
use crate::payload::PayloadHash;
use crate::post_form::PostForm;
use http::HeaderName;
use http::header::AUTHORIZATION;
use identity::{SignatureRefusal, SignedRequest};
use request_pipeline::{Request, Response};
use settings::S3ApiSettings;
use std::borrow::Cow;

/// What comes with a temporary key.
const TOKEN: &str = "x-amz-security-token";
static TOKEN_HEADER: HeaderName = HeaderName::from_static(TOKEN);

/// A signature that was read, and what it says of the body.
#[derive(Debug)]
pub struct S3Signature {
    /// For the authenticator.
    pub signed: SignedRequest,
    /// What was signed of the body.
    pub payload: PayloadHash,
    /// The time of signing as it was sent (`20130524T000000Z`), which the chunks of a signed body repeat.
    pub time: String,
}

/// Reads the signature of a call of the security token service, whose body has this hash.
pub fn of_sts(request: &Request, hash: String, settings: &S3ApiSettings, now: u64) -> Result<S3Signature, S3Error> {
    let header = request.header("authorization").unwrap_or_default();
    let mut signature = v4::of_sts(request, header, hash, settings, now)?;
    signature.signed.session_token = request.header(TOKEN).map(str::to_owned);
    Ok(signature)
}

/// Reads the signature of a request; nothing when it has none. `bucket` is that of the host, in virtual-hosted style.
pub fn read(
    request: &Request,
    bucket: Option<&str>,
    settings: &S3ApiSettings,
    now: u64,
) -> Result<Option<S3Signature>, S3Error> {
    let mut read = read_signature(request, bucket, settings, now)?;
    if let Some(signature) = &mut read {
        let header = request.headers.get(&TOKEN_HEADER);
        let header = header
            .and_then(|header| std::str::from_utf8(header.as_bytes()).ok())
            .map(str::to_owned);
        // In an address it has the spelling of either version of signatures.
        let parameter = || {
            if request.query.is_empty() {
                return None;
            }
            ["X-Amz-Security-Token", TOKEN]
                .into_iter()
                .find_map(|name| request.param(name)?.ok())
        };
        signature.signed.session_token = header.or_else(parameter);
    }
    Ok(read)
}

fn read_signature(
    request: &Request,
    bucket: Option<&str>,
    settings: &S3ApiSettings,
    now: u64,
) -> Result<Option<S3Signature>, S3Error> {
    let header = request.headers.get(AUTHORIZATION);
    let header = header
        .and_then(|header| std::str::from_utf8(header.as_bytes()).ok())
        .unwrap_or_default();
    if header.starts_with("AWS4-HMAC-SHA256") {
        return v4::of_header(request, header, settings, now).map(Some);
    }
    if header.starts_with("AWS ") {
        return v2::of_header(request, header, bucket, settings, now).map(Some);
    }
    if has_parameter(request, "X-Amz-Algorithm") || has_parameter(request, "X-Amz-Credential") {
        return v4::of_query(request, settings, now).map(Some);
    }
    if has_parameter(request, "AWSAccessKeyId") {
        return v2::of_query(request, bucket, settings, now).map(Some);
    }
    Ok(None)
}

/// Reads the signature of a form; nothing when it has neither one nor a policy.
pub fn of_form(form: &PostForm, settings: &S3ApiSettings) -> Result<Option<S3Signature>, S3Error> {
    let names = ["x-amz-signature", "x-amz-credential", "signature", "awsaccesskeyid"];
    let is_signed = names.iter().any(|name| form.field(name).is_some());
    match (form.field("policy"), is_signed) {
        (None, false) => Ok(None),
        (None, true) => Err(INVALID_ARGUMENT.saying("Bucket POST must contain a field named 'policy'.")),
        (Some(_), false) => Err(INVALID_ARGUMENT.saying("Bucket POST must contain a signature of its policy.")),
        (Some(policy), true) => {
            let mut signature = match form.field("awsaccesskeyid") {
                Some(_) => v2::of_form(form, policy, settings)?,
                None => v4::of_form(form, policy, settings)?,
            };
            signature.signed.session_token = form.field(TOKEN).map(str::to_owned);
            Ok(Some(signature))
        }
    }
}

/// Why an authenticator has refused a signature.
pub(crate) fn refusal(response: &Response) -> S3Error {
    match response.extensions().get::<SignatureRefusal>() {
        Some(SignatureRefusal::UnknownKey | SignatureRefusal::WrongSignature) => SIGNATURE_DOES_NOT_MATCH.into(),
        Some(SignatureRefusal::InactiveKey) => INVALID_ACCESS_KEY.into(),
        Some(SignatureRefusal::InvalidToken) => INVALID_TOKEN.into(),
        Some(SignatureRefusal::ExpiredToken) => EXPIRED_TOKEN.into(),
        None if response.status() == 503 => SERVICE_UNAVAILABLE.into(),
        None => ACCESS_DENIED.into(),
    }
}

/// Whether a request carries a signature of S3, good or bad.
pub fn is_signed(request: &Request) -> bool {
    let header = request.headers.get(AUTHORIZATION).map(|value| value.as_bytes());
    header.is_some_and(|header| header.starts_with(b"AWS4-HMAC-SHA256") || header.starts_with(b"AWS "))
        || (!request.query.is_empty()
            && ["X-Amz-Algorithm", "X-Amz-Credential", "AWSAccessKeyId"]
                .iter()
                .any(|name| has_parameter(request, name)))
}

fn has_parameter(request: &Request, name: &str) -> bool {
    request.query.contains(name) && request.param(name).is_some()
}

/// The name of a header as its client sent it, in lower case.
fn sent_name(name: &str) -> Cow<'_, str> {
    match vocabulary::header_name::decode(name) {
        // Nothing in it was encoded.
        Cow::Borrowed(_) => Cow::Borrowed(name),
        Cow::Owned(decoded) => Cow::Owned(String::from_utf8_lossy(&decoded).into_owned()),
    }
}

/// A signature that is to be good for a while: not before its time, not after its end.
fn check_expiry(signed_at: u64, seconds: u64, now: u64) -> Result<(), S3Error> {
    if now > signed_at.saturating_add(seconds) {
        return Err(ACCESS_DENIED
            .saying("Request has expired")
            .with("ServerTime", vocabulary::calendar::iso(now, 'T')));
    }
    Ok(())
}

/// A request must have been signed near our time: seconds since 1970.
fn check_skew(signed_at: u64, now: u64, settings: &S3ApiSettings) -> Result<(), S3Error> {
    let allowed = settings.allowable_clock_skew.as_secs();
    if signed_at.abs_diff(now) > allowed {
        return Err(S3Error::from(REQUEST_TIME_TOO_SKEWED)
            .with("ServerTime", vocabulary::calendar::iso(now, 'T'))
            .with("MaxAllowedSkewMilliseconds", (allowed * 1000).to_string()));
    }
    Ok(())
}
