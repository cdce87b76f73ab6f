//! What an S3 request is about: bucket, key, parameters, sub-resource.
//!
//! Always holds: names and parameters are decoded; they are UTF-8 without NUL.

use crate::error::{INVALID_URI, S3Error};
use http::Method;
use request_pipeline::Request;
use vocabulary::names::unquote;

/// A request of S3, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Call {
    /// The bucket; absent in requests of the whole service.
    pub bucket: Option<String>,
    /// The key; may hold slashes anywhere.
    pub key: Option<String>,
    /// Parameters in the order sent, decoded; one without `=` has an empty value.
    pub parameters: Vec<(String, String)>,
}

/// Parameters that name a part of a bucket or an object, or an operation on it.
const SUBRESOURCES: [&str; 42] = [
    "abac",
    "accelerate",
    "acl",
    "analytics",
    "annotation",
    "attributes",
    "cors",
    "delete",
    "encryption",
    "intelligent-tiering",
    "inventory",
    "legal-hold",
    "lifecycle",
    "location",
    "logging",
    "metadataAnnotationTable",
    "metadataConfiguration",
    "metadataInventoryTable",
    "metadataJournalTable",
    "metadataTable",
    "metrics",
    "notification",
    "object-lock",
    "ownershipControls",
    "partNumber",
    "policy",
    "policyStatus",
    "publicAccessBlock",
    "renameObject",
    "replication",
    "requestPayment",
    "restore",
    "retention",
    "select",
    "session",
    "tagging",
    "torrent",
    "uploadId",
    "uploads",
    "versioning",
    "versions",
    "website",
];

/// Parameters of signatures, of headers that SDKs sign in presigned URLs, and of SDKs, which change nothing of what is
/// done.
const NEUTRAL: [&str; 14] = [
    "AWSAccessKeyId",
    "Expires",
    "Signature",
    "Cache-Control",
    "Content-Disposition",
    "Content-Encoding",
    "Content-Language",
    "Content-MD5",
    "Content-Type",
    "x-id",
    "max-keys",
    "prefix",
    "delimiter",
    "encoding-type",
];

impl S3Call {
    /// Of a request: path style, or virtual-hosted style below one of `domains`.
    pub fn read(request: &Request, domains: &[String]) -> Result<Self, S3Error> {
        let path = request.path.strip_prefix('/').unwrap_or(&request.path);
        if path.contains('\0') {
            return Err(INVALID_URI.into());
        }
        let (bucket, key) = match bucket_of_host(request, domains) {
            Some(bucket) => (bucket, path),
            None => {
                let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
                (bucket.to_owned(), key)
            }
        };
        let parameters = parameters(&request.query)?;
        Ok(Self {
            bucket: Some(bucket).filter(|bucket| !bucket.is_empty()),
            key: Some(key.to_owned()).filter(|key| !key.is_empty()),
            parameters,
        })
    }

    /// The first value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut found = self.parameters.iter().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// The sub-resource that is asked for, if any.
    pub fn subresource(&self) -> Option<&'static str> {
        if self.parameters.is_empty() {
            return None;
        }
        SUBRESOURCES.into_iter().find(|name| self.parameter(name).is_some())
    }

    /// A parameter that has no meaning here, in a request that changes something: it may ask for less than the whole,
    /// so that going on without it could destroy what is to be kept.
    pub fn unknown_of_write(&self, method: &Method) -> Option<&str> {
        if *method == Method::GET || *method == Method::HEAD {
            return None;
        }
        let is_known = |name: &str| {
            let lower = name.to_ascii_lowercase();
            SUBRESOURCES.contains(&name)
                || NEUTRAL.contains(&name)
                || name == "versionId"
                || lower.starts_with("x-amz-")
                || lower.starts_with("response-")
        };
        let mut names = self.parameters.iter().map(|(name, _)| name.as_str());
        names.find(|name| !is_known(name))
    }
}

/// The bucket in front of one of the cluster's own names in `Host`.
pub fn bucket_of_host(request: &Request, domains: &[String]) -> Option<String> {
    if domains.is_empty() {
        return None;
    }
    let host = request.header("host")?;
    let host = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let host = host
        .map_or(request.header("host")?, |(host, _)| host)
        .to_ascii_lowercase();
    domains.iter().find_map(|domain| {
        let domain = domain.trim_start_matches('.').to_ascii_lowercase();
        let bucket = host.strip_suffix(&domain)?.strip_suffix('.')?;
        (!bucket.is_empty()).then(|| bucket.to_owned())
    })
}

fn parameters(query: &str) -> Result<Vec<(String, String)>, S3Error> {
    let decode = |text: &str| {
        unquote(&text.replace('+', " "))
            .ok()
            .filter(|text| !text.contains('\0'))
    };
    let mut found = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(name), Some(value)) = (decode(name), decode(value)) else {
            return Err(INVALID_URI.into());
        };
        found.push((name, value));
    }
    Ok(found)
}

/// The name of a bucket as it may be: lengths and characters of DNS, or S3's older rule.
pub fn is_bucket_name(name: &str, is_dns_compliant: bool) -> bool {
    let (least, most) = (3, if is_dns_compliant { 63 } else { 255 });
    if name.len() < least || name.len() > most {
        return false;
    }
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if !is_dns_compliant {
        return name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
    }
    let bytes = name.as_bytes();
    let ends_plain = bytes.first().copied().is_some_and(is_plain) && bytes.last().copied().is_some_and(is_plain);
    let has_dots = name.contains('.');
    let is_address = has_dots && name.split('.').count() == 4 && name.split('.').all(|part| part.parse::<u8>().is_ok());
    let has_odd_dots = has_dots && ["..", ".-", "-."].iter().any(|odd| name.contains(odd));
    ends_plain
        && !is_address
        && !has_odd_dots
        && bytes.iter().all(|byte| is_plain(*byte) || matches!(byte, b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn read(method: Method, host: &str, target: &str) -> S3Call {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let decoded = unquote(path).unwrap();
        let mut request = Request::new(method, path.into(), decoded.into());
        request.query = query.into();
        request.headers.insert("host", HeaderValue::from_str(host).unwrap());
        S3Call::read(&request, &["s3.example.com".into()]).unwrap()
    }

    #[test]
    fn both_styles_name_bucket_and_key() {
        for (host, target, bucket, key) in [
            ("s3.example.com", "/", None, None),
            ("s3.example.com:8080", "/b", Some("b"), None),
            ("s3.example.com", "/b/", Some("b"), None),
            ("s3.example.com", "/b//k%2f/", Some("b"), Some("/k//")),
            ("other", "/b/k", Some("b"), Some("k")),
            ("b.c.s3.example.com:80", "/k/l", Some("b.c"), Some("k/l")),
            ("B.S3.example.com", "/", Some("b"), None),
            ("notS3.example.com", "/", None, None),
        ] {
            let call = read(Method::GET, host, target);
            assert_eq!(
                (call.bucket.as_deref(), call.key.as_deref()),
                (bucket, key),
                "{host} {target}"
            );
        }
    }

    #[test]
    fn names_of_buckets() {
        for (name, dns, older) in [
            ("abc", true, true),
            ("ab", false, false),
            ("a.b-c", true, true),
            ("a..b", false, true),
            ("a.-b", false, true),
            ("Abc", false, true),
            ("192.168.1.1", false, true),
            ("b+segments", false, false),
            ("-ab", false, true),
        ] {
            assert_eq!(
                (is_bucket_name(name, true), is_bucket_name(name, false)),
                (dns, older),
                "{name}"
            );
        }
    }

    #[test]
    fn unknown_parameters_stop_writes_only() {
        let call = |method: Method, query: &str| read(method, "h", &format!("/b?{query}"));
        for (query, unknown) in [
            ("unknown", Some("unknown")),
            ("versionId=1&x-id=X", None),
            ("Content-Type=text%2Fplain&Expires=1", None),
            ("X-Amz-Date=1", None),
        ] {
            assert_eq!(
                call(Method::DELETE, query).unknown_of_write(&Method::DELETE),
                unknown,
                "{query}"
            );
            assert_eq!(call(Method::GET, query).unknown_of_write(&Method::GET), None);
        }
        let call = call(Method::GET, "acl&prefix=a+b%2B&prefix=c");
        assert_eq!(
            (call.subresource(), call.parameter("prefix")),
            (Some("acl"), Some("a b+"))
        );
    }
}
