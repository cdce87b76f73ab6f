//! Signatures of version 2, which old clients send; `[filter:s3api]` may refuse them.
//!
//! Source: AWS, "Signing and authenticating REST requests (AWS Signature Version 2)".

use super::{S3Signature, TOKEN, check_skew, sent_name};
use crate::error::{ACCESS_DENIED, INVALID_ARGUMENT, INVALID_REQUEST, S3Error};
use crate::payload::PayloadHash;
use crate::post_form::PostForm;
use identity::SignedRequest;
use request_pipeline::Request;
use settings::S3ApiSettings;
use vocabulary::calendar;

/// The parameters that are signed.
const SIGNED: [&str; 32] = [
    "acl",
    "cors",
    "delete",
    "encryption",
    "legal-hold",
    "lifecycle",
    "location",
    "logging",
    "notification",
    "object-lock",
    "partNumber",
    "policy",
    "policyStatus",
    "requestPayment",
    "response-cache-control",
    "response-content-disposition",
    "response-content-encoding",
    "response-content-language",
    "response-content-type",
    "response-expires",
    "restore",
    "retention",
    "tagging",
    "torrent",
    "uploadId",
    "uploads",
    "versionId",
    "versioning",
    "versions",
    "website",
    "publicAccessBlock",
    "ownershipControls",
];

/// An end that is no time of this century: milliseconds, or a time added to a time.
const LATEST_EXPIRY: u64 = 1 << 32;

/// Of `Authorization: AWS key:signature`.
pub(super) fn of_header(
    request: &Request,
    header: &str,
    bucket: Option<&str>,
    settings: &S3ApiSettings,
    now: u64,
) -> Result<S3Signature, S3Error> {
    check_allowed(settings)?;
    let (access_key, signature) = header["AWS ".len()..].trim().rsplit_once(':').ok_or_else(|| {
        INVALID_ARGUMENT.saying("AWS authorization header is invalid. Expected AwsAccessKeyId:signature")
    })?;
    let amz_date = request.header("x-amz-date");
    let date = amz_date.or(request.header("date"));
    let signed_at = date
        .and_then(calendar::parse_http)
        .ok_or_else(|| ACCESS_DENIED.saying("AWS authentication requires a valid Date or x-amz-date header"))?;
    check_skew(signed_at, now, settings)?;
    let signed_date = if amz_date.is_some() {
        ""
    } else {
        date.unwrap_or_default()
    };
    Ok(signature_of(request, access_key, signature, signed_date, bucket))
}

/// Of `?AWSAccessKeyId=…&Expires=…&Signature=…`.
pub(super) fn of_query(
    request: &Request,
    bucket: Option<&str>,
    settings: &S3ApiSettings,
    now: u64,
) -> Result<S3Signature, S3Error> {
    check_allowed(settings)?;
    let parameter = |name: &str| {
        request
            .param(name)
            .and_then(Result::ok)
            .filter(|value| !value.is_empty())
    };
    let (Some(access_key), Some(signature), Some(expires)) = (
        parameter("AWSAccessKeyId"),
        parameter("Signature"),
        parameter("Expires"),
    ) else {
        return Err(ACCESS_DENIED
            .saying("Query-string authentication requires the Signature, Expires and AWSAccessKeyId parameters"));
    };
    let ends = expires.parse::<u64>().ok().filter(|ends| *ends < LATEST_EXPIRY);
    let ends =
        ends.ok_or_else(|| ACCESS_DENIED.saying(format!("Invalid date (should be seconds since epoch): {expires}")))?;
    if now > ends {
        return Err(ACCESS_DENIED.saying("Request has expired").with("Expires", expires));
    }
    Ok(signature_of(request, &access_key, &signature, &expires, bucket))
}

/// Of the fields of a form: its policy is what was signed.
pub(super) fn of_form(form: &PostForm, policy: &str, settings: &S3ApiSettings) -> Result<S3Signature, S3Error> {
    check_allowed(settings)?;
    let field = |name: &str| form.field(name).unwrap_or_default().to_owned();
    Ok(S3Signature {
        signed: SignedRequest {
            access_key: field("awsaccesskeyid"),
            signature: field("signature"),
            string_to_sign: policy.to_owned(),
            alternative: None,
            canonical_request: None,
            scope: None,
            session_token: None,
        },
        payload: PayloadHash::Unsigned,
        time: String::new(),
    })
}

fn check_allowed(settings: &S3ApiSettings) -> Result<(), S3Error> {
    if settings.allow_signature_v2 {
        return Ok(());
    }
    Err(INVALID_REQUEST
        .saying("The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256."))
}

fn signature_of(request: &Request, access_key: &str, signature: &str, date: &str, bucket: Option<&str>) -> S3Signature {
    let header = |name: &str| request.header(name).unwrap_or_default();
    let head = format!(
        "{}\n{}\n{}\n{date}\n{}",
        request.method,
        header("content-md5"),
        header("content-type"),
        amz_headers(request),
    );
    let mut path = bucket.map_or_else(String::new, |bucket| format!("/{bucket}"));
    path.push_str(&request.raw_path);
    let parameters = signed_parameters(request);
    // SDKs sign a bucket with a slash behind it that they do not send.
    let is_bucket = path
        .strip_prefix('/')
        .is_some_and(|rest| !rest.is_empty() && !rest.contains('/'));
    S3Signature {
        signed: SignedRequest {
            access_key: access_key.to_owned(),
            signature: signature.to_owned(),
            alternative: is_bucket.then(|| format!("{head}{path}/{parameters}")),
            string_to_sign: format!("{head}{path}{parameters}"),
            canonical_request: None,
            scope: None,
            session_token: None,
        },
        payload: request
            .header("x-amz-content-sha256")
            .map_or(PayloadHash::Unsigned, PayloadHash::of_whole),
        time: String::new(),
    }
}

fn amz_headers(request: &Request) -> String {
    let names = request.headers.keys().map(|name| name.as_str());
    let names = names.filter(|name| name.starts_with("x-amz-"));
    let mut signed: Vec<(String, String)> = names
        .map(|name| {
            let values = request.headers.get_all(name).iter();
            let values: Vec<_> = values
                .map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
                .collect();
            // Signed in the spelling that the client knows.
            (sent_name(name).into_owned(), values.join(","))
        })
        .collect();
    // A token that stands in the address was signed as the header that it stands for.
    if let Some(Ok(token)) = request.param(TOKEN)
        && !request.headers.contains_key(TOKEN)
    {
        signed.push((TOKEN.to_owned(), token));
    }
    signed.sort_unstable();
    signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect()
}

/// The signed parameters in order, behind a question mark.
fn signed_parameters(request: &Request) -> String {
    let mut pairs: Vec<(String, Option<String>)> = request
        .query
        .split('&')
        .filter_map(|pair| {
            let (name, value) = pair
                .split_once('=')
                .map_or((pair, None), |(name, value)| (name, Some(value)));
            let value = value.and_then(|value| vocabulary::names::unquote(&value.replace('+', " ")).ok());
            SIGNED
                .contains(&name)
                .then(|| (name.to_owned(), value.filter(|value| !value.is_empty())))
        })
        .collect();
    pairs.sort();
    let pairs: Vec<String> = pairs
        .into_iter()
        .map(|(name, value)| match value {
            Some(value) => format!("{name}={value}"),
            None => name,
        })
        .collect();
    match pairs.is_empty() {
        true => String::new(),
        false => format!("?{}", pairs.join("&")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    fn request(method: Method, target: &str, headers: &[(&'static str, &str)]) -> request_pipeline::ClientRequest {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Request::new(method, path.into(), path.into());
        request.query = query.into();
        for (name, value) in headers {
            request
                .headers
                .append(*name, http::HeaderValue::from_str(value).unwrap());
        }
        request
    }

    /// The examples of AWS's page.
    #[test]
    fn aws_own_examples() {
        let date = "Tue, 27 Mar 2007 21:15:45 +0000";
        let upload = request(
            Method::PUT,
            "/photos/puppy.jpg",
            &[
                ("content-type", "image/jpeg"),
                ("x-amz-date", date),
                ("x-amz-meta-b", " 2 "),
                ("x-amz-meta-a", "1"),
            ],
        );
        let signature = signature_of(&upload, "k", "s", "", Some("awsexamplebucket1"));
        assert_eq!(
            signature.signed.string_to_sign,
            "PUT\n\nimage/jpeg\n\nx-amz-date:Tue, 27 Mar 2007 21:15:45 +0000\nx-amz-meta-a:1\nx-amz-meta-b:2\n\
             /awsexamplebucket1/photos/puppy.jpg"
        );
        let list = request(Method::GET, "/b/?prefix=photos&acl&uploadId=a%2Bb&versionId=", &[]);
        let signature = signature_of(&list, "k", "s", date, None);
        assert_eq!(
            signature.signed.string_to_sign,
            format!("GET\n\n\n{date}\n/b/?acl&uploadId=a+b&versionId")
        );
    }
}
