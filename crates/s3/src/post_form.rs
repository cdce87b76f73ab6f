//! Uploads by HTML forms: a POST of `multipart/form-data` to a bucket, with a policy that is signed in place of the
//! request.
//!
//! Comes in: such a POST. Goes out: the PUT of an object that it stands for, its body the form's file as it comes.
//! Always holds: every field that means something is allowed by a condition of the policy; no more than
//! [`MOST_OF_FIELDS`] bytes are kept before the file; a file that is smaller or larger than the policy says becomes no
//! object. What comes behind the file is not looked at.
//! Source: AWS, "Browser-based uploads using POST" (versions 4 and 2 of signatures).

use crate::error::{
    ACCESS_DENIED, INCOMPLETE_BODY, INVALID_ARGUMENT, INVALID_POLICY_DOCUMENT, MALFORMED_POST_REQUEST, S3Error,
};
use crate::payload::SizeRange;
use crate::xml::XmlWriter;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream::unfold;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use peer::{Body, BodyError};
use request_pipeline::multipart::{Broken, Multipart, parameters_of};
use request_pipeline::{ClientRequest, Request, Response, WriteOrigin, reply};
use serde_json::Value;
use std::sync::Arc;
use vocabulary::names::quote;
use world::Clock;

/// Bytes of all fields together. AWS takes 20 KiB.
const MOST_OF_FIELDS: usize = 64 * 1024;
/// Fields, so that many empty ones cost no more.
const MOST_FIELDS: usize = 256;

/// Fields that no condition has to allow.
const FREE: [&str; 5] = ["x-amz-signature", "signature", "awsaccesskeyid", "file", "policy"];

/// Fields that become headers of the object under the same name.
const HEADERS: [&str; 7] = [
    "cache-control",
    "content-type",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
    "content-md5",
];

/// The fields before the file, their names in lower case, in the order sent.
pub(crate) struct PostForm {
    fields: Vec<(String, String)>,
    /// The key, the file's name in its place.
    pub(crate) key: String,
    sizes: Option<(u64, u64)>,
}

/// Whether a request is such a form: of a bucket, which has one name in its path or stands in its host.
pub(crate) fn is_form(request: &Request, has_bucket_in_host: bool) -> bool {
    let path = request.path.trim_matches('/');
    let is_of_bucket = match has_bucket_in_host {
        true => path.is_empty(),
        false => !path.is_empty() && !path.contains('/'),
    };
    let kind = request.header("content-type").unwrap_or_default();
    request.method == Method::POST
        && is_of_bucket
        && kind
            .split(';')
            .next()
            .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("multipart/form-data"))
}

impl PostForm {
    /// Reads the fields of a form, and makes the request one that puts its file.
    pub(crate) async fn open(request: &mut ClientRequest, clock: Arc<dyn Clock>) -> Result<Self, S3Error> {
        let kind = request.header("content-type").unwrap_or_default();
        let parameters = parameters_of(kind.split_once(';').unwrap_or_default().1);
        let boundary = parameters.into_iter().find(|(name, _)| name == "boundary");
        let boundary = boundary.map(|(_, value)| value).filter(|value| !value.is_empty());
        let boundary = boundary.ok_or(MALFORMED_POST_REQUEST)?;
        let body = std::mem::replace(&mut request.body, Body::empty());
        let mut form = Multipart::new(body, &boundary, clock);
        form.start().await.map_err(refusal)?;
        let mut fields: Vec<(String, String)> = Vec::new();
        let mut left = MOST_OF_FIELDS;
        let file = loop {
            let part = form.part().await.map_err(refusal)?;
            let part =
                part.ok_or_else(|| INVALID_ARGUMENT.saying("POST requires exactly one file upload per request."))?;
            let name = part.name.clone().unwrap_or_default().to_ascii_lowercase();
            if name == "file" {
                break part;
            }
            // What the policy is asked about is what is done.
            if fields.iter().any(|(known, _)| *known == name) {
                return Err(INVALID_ARGUMENT
                    .saying("The form has a field twice.")
                    .with("ArgumentName", name));
            }
            let value = form.value(left + 1).await.map_err(refusal)?;
            left = left
                .checked_sub(name.len() + value.len())
                .filter(|_| fields.len() < MOST_FIELDS)
                .ok_or_else(|| MALFORMED_POST_REQUEST.saying("The fields before the file are too large."))?;
            fields.push((name, String::from_utf8(value).map_err(|_| MALFORMED_POST_REQUEST)?));
        };
        let filename = file.filename.unwrap_or_default();
        // Browsers of old sent the whole path.
        let filename = filename.rsplit(['/', '\\']).next().unwrap_or_default();
        let mut form_read = Self {
            fields,
            key: String::new(),
            sizes: None,
        };
        let key = form_read.field("key").unwrap_or_default();
        form_read.key = key.replace("${filename}", filename);
        if form_read.key.is_empty() {
            return Err(INVALID_ARGUMENT
                .saying("Bucket POST must contain a field named 'key'.")
                .with("ArgumentName", "key"));
        }
        form_read.make_put(request, file.content_type);
        request.body = file_of(form);
        Ok(form_read)
    }

    /// The field of this name.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut found = self.fields.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }

    fn make_put(&self, request: &mut ClientRequest, type_of_file: Option<Vec<u8>>) {
        request.method = Method::PUT;
        request.extensions.insert(WriteOrigin::Post);
        for name in ["content-length", "content-type", "content-encoding", "content-md5"] {
            request.headers.remove(name);
        }
        let theirs: Vec<HeaderName> = request
            .headers
            .keys()
            .filter(|name| name.as_str().starts_with("x-amz-"))
            .cloned()
            .collect();
        for name in theirs {
            request.headers.remove(name);
        }
        request
            .headers
            .insert("transfer-encoding", HeaderValue::from_static("chunked"));
        if let Some(value) = type_of_file.and_then(|value| HeaderValue::from_bytes(&value).ok()) {
            request.headers.insert(CONTENT_TYPE, value);
        }
        for (name, value) in &self.fields {
            let header = match name.as_str() {
                "acl" => "x-amz-acl",
                name if HEADERS.contains(&name) => name,
                name if [
                    "x-amz-meta-",
                    "x-amz-checksum-",
                    "x-amz-object-lock-",
                    "x-amz-server-side-encryption",
                ]
                .iter()
                .any(|prefix| name.starts_with(prefix)) =>
                {
                    name
                }
                "x-amz-storage-class" => "x-amz-storage-class",
                _ => continue,
            };
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(header), HeaderValue::from_bytes(value.as_bytes())) {
                request.headers.insert(name, value);
            }
        }
    }

    /// Refuses what the policy does not allow; one that is not there allows everything that the bucket is open to.
    pub(crate) fn check_policy(&mut self, bucket: &str, now: u64) -> Result<(), S3Error> {
        let Some(text) = self.field("policy") else {
            return Ok(());
        };
        let policy = STANDARD.decode(text.trim()).map_err(|_| invalid("it is not base64"))?;
        let policy = read_policy(&policy)?;
        if now > policy.expiration {
            return Err(denied("FormPolicy expired."));
        }
        let mut allowed: Vec<String> = Vec::new();
        let mut sizes = None;
        for condition in policy.conditions {
            let shown = match &condition {
                Condition::Field { name, .. } if name.ends_with("customer-key") => name.clone(),
                condition => format!("{condition:?}"),
            };
            match condition {
                Condition::Sizes(least, most) => sizes = Some((least, most)),
                Condition::Field { name, is_prefix, value } => {
                    let found = match name.as_str() {
                        "bucket" => bucket,
                        "key" => &self.key,
                        name => self.field(name).unwrap_or_default(),
                    };
                    let holds = if is_prefix {
                        found.starts_with(&value)
                    } else {
                        found == value
                    };
                    // `key` is what the form says before the file's name is in its place.
                    let holds_as_sent = is_prefix && name == "key" && self.field("key") == Some(&value);
                    if !holds && !holds_as_sent {
                        return Err(denied(&format!("FormPolicy Condition failed: {shown}")));
                    }
                    allowed.push(name);
                }
            }
        }
        let is_free = |name: &str| FREE.contains(&name) || name.starts_with("x-ignore-");
        let extra = self.fields.iter().map(|(name, _)| name);
        let mut extra = extra.filter(|name| !is_free(name) && !allowed.contains(name));
        if let Some(name) = extra.next() {
            return Err(denied(&format!("Extra input fields: {name}")));
        }
        self.sizes = sizes;
        Ok(())
    }

    /// Leaves with the request how large its body may be.
    pub(crate) fn limit(&self, request: &mut Request) {
        if let Some((least, most)) = self.sizes {
            request.extensions.insert(SizeRange(least, most));
        }
    }

    /// The answer that the form asks for, once its object is there.
    pub(crate) fn answer(&self, bucket: &str, stored: Response, base: &str) -> Response {
        let etag = stored.headers().get("etag").cloned();
        let etag_text = etag.as_ref().and_then(|etag| etag.to_str().ok()).unwrap_or_default();
        let url = format!("{base}/{}", quote(&format!("{bucket}/{}", self.key)));
        let redirect = self.field("success_action_redirect").or(self.field("redirect"));
        let redirect = redirect.filter(|to| to.starts_with("http://") || to.starts_with("https://"));
        let mut answer = match (redirect, self.field("success_action_status")) {
            (Some(to), _) => {
                let joint = if to.contains('?') { '&' } else { '?' };
                let query = [("bucket", bucket), ("key", &self.key), ("etag", etag_text)]
                    .map(|(name, value)| format!("{name}={}", quote(value).replace('/', "%2F")));
                let mut answer = without_body(303);
                if let Ok(value) = HeaderValue::try_from(format!("{to}{joint}{}", query.join("&"))) {
                    answer.headers_mut().insert(LOCATION, value);
                }
                return answer;
            }
            (None, Some("201")) => {
                let mut xml = XmlWriter::plain("PostResponse");
                xml.text("Location", &url);
                xml.text("Bucket", bucket);
                xml.text("Key", &self.key);
                xml.text("ETag", etag_text);
                reply::with_body(201, HeaderValue::from_static("application/xml"), xml.finish())
            }
            (None, Some("200")) => without_body(200),
            _ => without_body(204),
        };
        if let Ok(value) = HeaderValue::try_from(url) {
            answer.headers_mut().insert(LOCATION, value);
        }
        for name in [
            "etag",
            "x-amz-version-id",
            "x-amz-server-side-encryption",
            "x-amz-server-side-encryption-customer-algorithm",
            "x-amz-server-side-encryption-customer-key-md5",
        ] {
            if let Some(value) = stored.headers().get(name) {
                answer.headers_mut().insert(name, value.clone());
            }
        }
        answer
    }
}

/// What a policy says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FormPolicy {
    /// Seconds since 1970.
    expiration: u64,
    pub(crate) conditions: Vec<Condition>,
}

fn invalid(why: &str) -> S3Error {
    INVALID_POLICY_DOCUMENT.saying(format!("Invalid FormPolicy: {why}"))
}

/// Reads a policy, which is JSON.
pub(crate) fn read_policy(policy: &[u8]) -> Result<FormPolicy, S3Error> {
    let policy: Value = serde_json::from_slice(policy).map_err(|_| invalid("Invalid JSON."))?;
    let expiration = policy["expiration"].as_str().and_then(expiration);
    let conditions = policy["conditions"].as_array();
    let conditions = conditions.ok_or_else(|| invalid("it has no conditions"))?.iter();
    let conditions =
        conditions.map(|condition| read_condition(condition).ok_or_else(|| invalid("a condition has another form")));
    Ok(FormPolicy {
        expiration: expiration.ok_or_else(|| invalid("it has no expiration"))?,
        conditions: conditions.collect::<Result<_, _>>()?,
    })
}

/// What a condition of a policy says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Field {
        name: String,
        is_prefix: bool,
        value: String,
    },
    Sizes(u64, u64),
}

/// `{"acl": "private"}`, `["eq", "$acl", "private"]`, `["starts-with", "$key", "a"]`, `["content-length-range", 1, 2]`.
fn read_condition(condition: &Value) -> Option<Condition> {
    if let Some(object) = condition.as_object() {
        let (name, value) = object.iter().next().filter(|_| object.len() == 1)?;
        return Some(Condition::Field {
            name: name.to_ascii_lowercase(),
            is_prefix: false,
            value: value.as_str()?.to_owned(),
        });
    }
    let [kind, first, second] = condition.as_array()?.as_slice() else {
        return None;
    };
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let kind = kind.as_str()?.to_ascii_lowercase();
    if kind == "content-length-range" {
        return Some(Condition::Sizes(number(first)?, number(second)?));
    }
    let is_prefix = kind == "starts-with";
    (is_prefix || kind == "eq").then_some(())?;
    Some(Condition::Field {
        name: first.as_str()?.strip_prefix('$')?.to_ascii_lowercase(),
        is_prefix,
        value: second.as_str()?.to_owned(),
    })
}

/// `2007-12-01T12:00:00.000Z`: seconds since 1970.
fn expiration(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z')?;
    let (seconds, rest) = vocabulary::calendar::parse_iso(text, 59)?;
    let is_fraction = |rest: &str| {
        rest.strip_prefix('.')
            .is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
    };
    (rest.is_empty() || is_fraction(rest)).then_some(seconds)
}

fn denied(why: &str) -> S3Error {
    ACCESS_DENIED.saying(format!("Invalid according to FormPolicy: {why}"))
}

fn refusal(broken: Broken) -> S3Error {
    match broken {
        Broken::Client(BodyError::TimedOut) => crate::error::REQUEST_TIMEOUT.into(),
        Broken::Client(_) | Broken::End => INCOMPLETE_BODY.into(),
        Broken::Start | Broken::Headers => MALFORMED_POST_REQUEST.into(),
    }
}

/// A status without a body.
fn without_body(status: u16) -> Response {
    reply::html(status, String::new()).map(|_| Body::empty())
}

/// The bytes of the part that has been begun, then what is left of the form, which is thrown away.
fn file_of(form: Multipart) -> Body {
    let bytes = unfold(Some(form), |form| async move {
        let mut form = form?;
        match form.chunk().await {
            Ok(Some(chunk)) => Some((Ok(chunk), Some(form))),
            Ok(None) => None,
            Err(Broken::Client(error)) => Some((Err(error), None)),
            Err(_) => Some((Err(BodyError::Abandoned), None)),
        }
    });
    Body::stream(bytes, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(fields: &[(&str, &str)], conditions: &str) -> PostForm {
        let policy = format!("{{\"expiration\": \"2030-01-01T00:00:00.5Z\", \"conditions\": [{conditions}]}}");
        let mut all: Vec<(String, String)> = fields.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        all.push(("policy".into(), STANDARD.encode(policy)));
        let key = all
            .iter()
            .find(|(name, _)| name == "key")
            .map(|(_, value)| value.clone());
        PostForm {
            fields: all,
            key: key.unwrap_or_default(),
            sizes: None,
        }
    }

    /// One that is dropped would leave the object without the lock that its client has asked for.
    #[test]
    fn fields_of_an_object_lock_become_headers() {
        let names = [
            "x-amz-object-lock-mode",
            "x-amz-object-lock-retain-until-date",
            "x-amz-object-lock-legal-hold",
        ];
        let mut request = Request::new(Method::POST, "/b".into(), "/b".into());
        form(&names.map(|name| (name, "v")), "").make_put(&mut request, None);
        for name in names {
            assert_eq!(request.headers.get(name).unwrap(), "v");
        }
    }

    #[test]
    fn a_policy_allows_what_it_names() {
        let check = |fields: &[(&str, &str)], conditions: &str| {
            let mut form = form(fields, conditions);
            let checked = form.check_policy("b", 1_800_000_000).map_err(|error| error.code.name);
            checked.map(|()| form.sizes)
        };
        let key = ("key", "a/b");
        assert_eq!(
            check(&[key], r#"{"bucket": "b"}, ["starts-with", "$key", "a/"]"#),
            Ok(None)
        );
        assert_eq!(
            check(&[key], r#"["eq", "$key", "a/b"], ["content-length-range", 1, "20"]"#),
            Ok(Some((1, 20)))
        );
        assert_eq!(check(&[key], r#"{"bucket": "c"}, {"key": "a/b"}"#), Err("AccessDenied"));
        assert_eq!(check(&[key], r#"["starts-with", "$key", "b"]"#), Err("AccessDenied"));
        assert_eq!(check(&[key], ""), Err("AccessDenied"));
        assert_eq!(check(&[key, ("acl", "x")], r#"{"key": "a/b"}"#), Err("AccessDenied"));
        assert_eq!(check(&[key, ("x-ignore-a", "x")], r#"{"key": "a/b"}"#), Ok(None));
        for bad in [
            "1",
            "[]",
            r#"["ends-with", "$key", "b"]"#,
            r#"{"key": 1}"#,
            r#"{"key": "a", "b": "c"}"#,
            r#"["eq", "key", "a"]"#,
        ] {
            assert_eq!(check(&[key], bad), Err("InvalidPolicyDocument"), "{bad}");
        }
        assert_eq!(
            form(&[key], "").check_policy("b", 1_900_000_000).unwrap_err().code,
            ACCESS_DENIED
        );
    }
}
