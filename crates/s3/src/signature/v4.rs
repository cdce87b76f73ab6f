//! Signatures of version 4.
//!
//! Always holds: `host` is signed, and so is every `x-amz-` header, so that nothing in between can add one; what is
//! signed has each header once, so that it is not much longer than the request's head.
//! Source: AWS, "Authenticating Requests (AWS Signature Version 4)".

use super::{S3Signature, check_expiry, check_skew, sent_name};
use crate::error::{
    ACCESS_DENIED, AUTHORIZATION_HEADER_MALFORMED, AUTHORIZATION_QUERY_PARAMETERS, INVALID_ARGUMENT, INVALID_REQUEST,
    S3Error,
};
use crate::payload::PayloadHash;
use crate::post_form::PostForm;
use http::{HeaderMap, HeaderName};
use identity::{SignedRequest, SigningScope};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};
use request_pipeline::Request;
use settings::S3ApiSettings;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::HashSet;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// What AWS encodes: all but letters, digits and `-._~`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// In paths slashes stay.
const ENCODED_IN_PATH: &AsciiSet = &ENCODED.remove(b'/');

/// A week, the longest that a presigned URL may be good for: seconds.
const LONGEST_EXPIRY: u64 = 604_800;

static CONTENT_SHA256: HeaderName = HeaderName::from_static("x-amz-content-sha256");
static DATE: HeaderName = HeaderName::from_static("x-amz-date");

/// Bytes that most requests take in the form that is signed.
const USUAL_CANONICAL: usize = 512;

/// The parts that a signature has wherever it stands.
struct Parts {
    credential: String,
    signed_headers: String,
    signature: String,
    time: String,
}

/// Of `Authorization`.
pub(super) fn of_header(
    request: &Request,
    header: &str,
    settings: &S3ApiSettings,
    now: u64,
) -> Result<S3Signature, S3Error> {
    let parts = parts_of_header(request, &header[ALGORITHM.len()..])?;
    let payload = text_of(request, &CONTENT_SHA256).map(PayloadHash::parse);
    if let Some(PayloadHash::Sha256(text)) = &payload
        && !is_digest(text)
    {
        return Err(INVALID_ARGUMENT
            .saying(
                "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, \
                 STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER, or a valid sha256 value.",
            )
            .with("ArgumentName", "x-amz-content-sha256")
            .with("ArgumentValue", text.clone()));
    }
    let payload = payload
        .ok_or_else(|| INVALID_REQUEST.saying("Missing required header for this request: x-amz-content-sha256"))?;
    finish_of_header(request, parts, payload, "s3", settings, now)
}

/// Of `Authorization` of a call of the security token service, whose body has this hash.
pub(super) fn of_sts(
    request: &Request,
    header: &str,
    hash: String,
    settings: &S3ApiSettings,
    now: u64,
) -> Result<S3Signature, S3Error> {
    let header = header.strip_prefix(ALGORITHM).ok_or(AUTHORIZATION_HEADER_MALFORMED)?;
    let parts = parts_of_header(request, header)?;
    finish_of_header(request, parts, PayloadHash::Sha256(hash), "sts", settings, now)
}

fn finish_of_header(
    request: &Request,
    parts: Parts,
    payload: PayloadHash,
    service: &str,
    settings: &S3ApiSettings,
    now: u64,
) -> Result<S3Signature, S3Error> {
    let signed_at = seconds(&parts.time).ok_or_else(no_date)?;
    let scope = scope(&parts, service, settings, |message| {
        AUTHORIZATION_HEADER_MALFORMED.saying(message)
    })?;
    check_skew(signed_at, now, settings)?;
    finish(request, parts, scope, payload, "")
}

/// The parts behind the name of the algorithm.
fn parts_of_header(request: &Request, header: &str) -> Result<Parts, S3Error> {
    let mut found = [None, None, None];
    for part in header.split(',') {
        let (name, value) = part.trim().split_once('=').unwrap_or((part.trim(), ""));
        let at = match name {
            "Credential" => 0,
            "SignedHeaders" => 1,
            "Signature" => 2,
            _ => continue,
        };
        found[at] = Some(value.to_owned());
    }
    let [Some(credential), Some(signed_headers), Some(signature)] = found else {
        return Err(AUTHORIZATION_HEADER_MALFORMED.into());
    };
    Ok(Parts {
        credential,
        signed_headers,
        signature,
        time: time_of_headers(request)?,
    })
}

/// Of a presigned URL.
pub(super) fn of_query(request: &Request, settings: &S3ApiSettings, now: u64) -> Result<S3Signature, S3Error> {
    let parameter = |name: &str| request.param(name).and_then(Result::ok).unwrap_or_default();
    if parameter("X-Amz-Algorithm") != ALGORITHM {
        return Err(AUTHORIZATION_QUERY_PARAMETERS.saying("X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256\""));
    }
    let parts = Parts {
        credential: parameter("X-Amz-Credential"),
        signed_headers: parameter("X-Amz-SignedHeaders"),
        signature: parameter("X-Amz-Signature"),
        time: parameter("X-Amz-Date"),
    };
    let is_complete = [&parts.credential, &parts.signed_headers, &parts.signature, &parts.time]
        .iter()
        .all(|part| !part.is_empty())
        && request.param("X-Amz-Expires").is_some();
    if !is_complete {
        return Err(AUTHORIZATION_QUERY_PARAMETERS.saying(
            "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature, \
             X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.",
        ));
    }
    let refuse = |message: &str| AUTHORIZATION_QUERY_PARAMETERS.saying(message);
    let scope = scope(&parts, "s3", settings, refuse)?;
    let signed_at = seconds(&parts.time)
        .ok_or_else(|| refuse("X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\""))?;
    let expires = parameter("X-Amz-Expires");
    if expires.starts_with('-') {
        return Err(refuse("X-Amz-Expires must be non-negative"));
    }
    let expires: i64 = expires
        .parse()
        .map_err(|_| refuse("X-Amz-Expires should be a number"))?;
    let expires = expires.unsigned_abs();
    if expires > LONGEST_EXPIRY {
        return Err(refuse(
            "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than \
             604800 seconds",
        ));
    }
    if signed_at > now {
        check_skew(signed_at, now, settings)?;
    }
    check_expiry(signed_at, expires, now)?;
    let payload = text_of(request, &CONTENT_SHA256);
    let payload = payload.map_or(PayloadHash::Unsigned, PayloadHash::of_whole);
    finish(request, parts, scope, payload, "X-Amz-Signature")
}

/// Of the fields of a form: its policy is what was signed.
pub(super) fn of_form(form: &PostForm, policy: &str, settings: &S3ApiSettings) -> Result<S3Signature, S3Error> {
    let field = |name: &str| form.field(name).unwrap_or_default().to_owned();
    let refuse = |message: &str| INVALID_ARGUMENT.saying(message);
    if field("x-amz-algorithm") != ALGORITHM {
        return Err(refuse("X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256\""));
    }
    let parts = Parts {
        credential: field("x-amz-credential"),
        signed_headers: String::new(),
        signature: field("x-amz-signature"),
        time: field("x-amz-date"),
    };
    let (access_key, scope) = scope(&parts, "s3", settings, refuse)?;
    Ok(S3Signature {
        signed: SignedRequest {
            access_key,
            signature: parts.signature,
            string_to_sign: policy.to_owned(),
            alternative: None,
            canonical_request: None,
            scope: Some(scope),
            session_token: None,
        },
        payload: PayloadHash::Unsigned,
        time: parts.time,
    })
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The time of signing: `X-Amz-Date`, else `Date`, in the long form of ISO 8601.
fn time_of_headers(request: &Request) -> Result<String, S3Error> {
    if let Some(time) = text_of(request, &DATE) {
        return Ok(time.to_owned());
    }
    let date = request.header("date").ok_or_else(no_date)?;
    if seconds(date).is_some() {
        return Ok(date.to_owned());
    }
    let found = vocabulary::calendar::parse_http(date).ok_or_else(no_date)?;
    Ok(long_form(found))
}

fn no_date() -> S3Error {
    ACCESS_DENIED.saying("AWS authentication requires a valid Date or x-amz-date header")
}

/// `20130524T000000Z` of seconds since 1970.
pub(crate) fn long_form(time: u64) -> String {
    let text = vocabulary::calendar::iso(time, 'T');
    let digits: String = text
        .chars()
        .filter(|character| !matches!(character, '-' | ':'))
        .take(15)
        .collect();
    digits + "Z"
}

/// Seconds since 1970 of `20130524T000000Z`.
fn seconds(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    if bytes.len() != 16 || bytes[8] != b'T' || bytes[15] != b'Z' || !text.is_ascii() {
        return None;
    }
    let two = |at: usize| {
        text[at..at + 2]
            .parse::<u8>()
            .ok()
            .filter(|_| bytes[at].is_ascii_digit())
    };
    let year = text[..4].parse::<u16>().ok().filter(|_| bytes[0].is_ascii_digit())?;
    vocabulary::calendar::seconds_of([year, two(4)?.into(), two(6)?.into()], [two(9)?, two(11)?, two(13)?])
}

/// `KEY/20130524/us-east-1/s3/aws4_request`: the access key may hold slashes.
fn scope(
    parts: &Parts,
    ours: &str,
    settings: &S3ApiSettings,
    refuse: impl Fn(&str) -> S3Error,
) -> Result<(String, SigningScope), S3Error> {
    let mut split = parts.credential.rsplitn(5, '/');
    let (end, service, region, date, key) = (split.next(), split.next(), split.next(), split.next(), split.next());
    let (Some("aws4_request"), Some(service), Some(region), Some(date), Some(key)) = (end, service, region, date, key)
    else {
        return Err(refuse(
            "Error parsing the X-Amz-Credential parameter; the Credential is mal-formed; expecting \
             \"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request\".",
        ));
    };
    if service != ours {
        return Err(refuse(&format!(
            "Error parsing the X-Amz-Credential parameter; incorrect service \"{service}\". This endpoint belongs to \
             \"{ours}\"."
        )));
    }
    if region != settings.location && !(region == "us-east-1" && settings.location.eq_ignore_ascii_case("us")) {
        let wrong = format!(
            "Error parsing the X-Amz-Credential parameter; the region '{region}' is wrong; expecting '{}'",
            settings.location
        );
        return Err(refuse(&wrong).with("Region", settings.location.clone()));
    }
    if parts.time.get(..8) != Some(date) {
        return Err(refuse(&format!(
            "Error parsing the X-Amz-Credential parameter; incorrect date \"{date}\". This date is not the same as \
             X-Amz-Date: \"{}\".",
            parts.time.get(..8).unwrap_or_default()
        )));
    }
    let scope = SigningScope {
        date: date.to_owned(),
        region: region.to_owned(),
        service: service.to_owned(),
    };
    Ok((key.to_owned(), scope))
}

fn finish(
    request: &Request,
    parts: Parts,
    (access_key, scope): (String, SigningScope),
    payload: PayloadHash,
    without: &str,
) -> Result<S3Signature, S3Error> {
    let names = signed_names(&parts.signed_headers, &request.headers)?;
    let mut canonical = String::with_capacity(USUAL_CANONICAL);
    canonical += request.method.as_str();
    canonical.push('\n');
    add_canonical_path(&request.raw_path, &mut canonical);
    canonical.push('\n');
    if !request.query.is_empty() {
        canonical += &canonical_query(&request.query, without);
    }
    canonical.push('\n');
    add_canonical_headers(&names, &request.headers, &mut canonical);
    for part in ["\n", &parts.signed_headers, "\n", payload.text()] {
        canonical += part;
    }
    let hash = vocabulary::hex::encode(Sha256::digest(canonical.as_bytes()));
    let scope_text = scope.text();
    let string_to_sign = [ALGORITHM, "\n", &parts.time, "\n", &scope_text, "\n", &hash].concat();
    Ok(S3Signature {
        signed: SignedRequest {
            access_key,
            signature: parts.signature,
            string_to_sign,
            alternative: None,
            canonical_request: Some(canonical),
            scope: Some(scope),
            session_token: None,
        },
        payload,
        time: parts.time,
    })
}

/// The names of the signed headers; all that change what a request means must be among them.
fn signed_names<'a>(text: &'a str, headers: &HeaderMap) -> Result<Vec<&'a str>, S3Error> {
    let names: Vec<&str> = text.split(';').collect();
    let mut seen = HashSet::with_capacity(names.len());
    if !names.iter().all(|name| seen.insert(name.to_ascii_lowercase())) {
        return Err(AUTHORIZATION_HEADER_MALFORMED.saying("The same header is named twice in SignedHeaders."));
    }
    let is_signed = |name: &str| seen.contains(name);
    let missing: Vec<Cow<'_, str>> = headers
        .keys()
        .map(|name| name.as_str())
        .filter(|name| name.starts_with("x-amz-") && *name != "x-amz-content-sha256")
        .chain(["host"])
        .map(sent_name)
        .filter(|name| !is_signed(name))
        .collect();
    if missing.is_empty() {
        return Ok(names);
    }
    Err(ACCESS_DENIED
        .saying("There were headers present in the request which were not signed")
        .with("HeadersNotSigned", missing.join(", ")))
}

/// A header's text; nothing where it is none.
fn text_of<'a>(request: &'a Request, name: &HeaderName) -> Option<&'a str> {
    std::str::from_utf8(request.headers.get(name)?.as_bytes()).ok()
}

/// Any spelling of a path in the one that is signed.
fn add_canonical_path(raw: &str, out: &mut String) {
    let decoded: Cow<'_, [u8]> = percent_decode(raw.as_bytes()).into();
    out.extend(percent_encode(&decoded, ENCODED_IN_PATH));
}

/// Parameters in order of their encoded names and values.
fn canonical_query(query: &str, without: &str) -> String {
    let canonical = |text: &str| {
        let decoded: Vec<u8> = percent_decode(text.replace('+', " ").as_bytes()).collect();
        percent_encode(&decoded, ENCODED).to_string()
    };
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (canonical(name), canonical(value)))
        .filter(|(name, _)| name != without)
        .collect();
    pairs.sort();
    let shown: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    shown.join("&")
}

/// `name:value` lines, values trimmed and white space in them made single.
fn add_canonical_headers(names: &[&str], headers: &HeaderMap, out: &mut String) {
    for name in names {
        let here = vocabulary::header_name::encode_text(name);
        let begin = out.len();
        out.push_str(name);
        out[begin..].make_ascii_lowercase();
        out.push(':');
        for (number, value) in headers.get_all(&*here).iter().enumerate() {
            if number > 0 {
                out.push(',');
            }
            let text = String::from_utf8_lossy(value.as_bytes());
            for (number, word) in text.split_ascii_whitespace().enumerate() {
                if number > 0 {
                    out.push(' ');
                }
                out.push_str(word);
            }
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests;
