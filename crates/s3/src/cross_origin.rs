//! Pages of other origins that speak S3: their browsers' preflights, and what they may see of an answer.
//!
//! A preflight has no signature, so that the bucket it is about is not known: the operator names the origins that may
//! send requests (`cors_preflight_allow_origin`). What a page may read of an answer the bucket's container says
//! (`X-Container-Meta-Access-Control-Allow-Origin`), as for requests of Swift.
//! Always holds: a request of Swift's own API is never taken for one of S3; an answer is shown to no page that the
//! container does not allow.
//! Source: the answers of OpenStack's s3api.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW, CONTENT_TYPE, HeaderValue, VARY,
};
use http::{HeaderMap, HeaderName, Method};
use request_pipeline::cors::{self, CorsSettings};
use request_pipeline::{ContainerInfo, Request, Response, reply};

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, PUT, POST, DELETE, OPTIONS");
const DEPENDS_ON: HeaderValue = HeaderValue::from_static("Origin, Access-Control-Request-Headers");

/// Parameters of presigned URLs.
const SIGNED: [&str; 2] = ["AWSAccessKeyId", "X-Amz-Credential"];

/// Headers of every answer of S3 that pages may see.
const ALWAYS_EXPOSED: [&str; 2] = ["x-amz-request-id", "x-amz-id-2"];

/// Whether this asks what a page may ask of S3: for a presigned URL, or with a signature in its headers.
pub(crate) fn is_preflight(request: &Request) -> bool {
    if request.method != Method::OPTIONS || cors::origin(&request.headers).is_none() {
        return false;
    }
    let is_of_swift = ["/v1/", "/v1.0/"].iter().any(|prefix| request.path.starts_with(prefix));
    let is_to_be_signed = names(&request.headers).any(|name| name == "authorization");
    (is_to_be_signed && !is_of_swift) || SIGNED.iter().any(|name| request.param(name).is_some())
}

/// The answer to a preflight.
pub(crate) fn preflight(request: &Request, allowed: &[String]) -> Response {
    let origin = cors::origin(&request.headers);
    let is_allowed = |origin: &&HeaderValue| {
        let mut allowed = allowed.iter().map(|allowed| allowed.trim());
        allowed.any(|allowed| allowed == "*" || allowed.as_bytes() == origin.as_bytes())
    };
    let Some(origin) = origin.filter(is_allowed) else {
        return reply::status(401);
    };
    let mut response = reply::html(200, String::new());
    let headers = response.headers_mut();
    headers.remove(CONTENT_TYPE);
    headers.insert(ALLOW, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(VARY, DEPENDS_ON);
    let asked: Vec<String> = names(&request.headers).collect();
    if !asked.is_empty()
        && let Ok(asked) = HeaderValue::try_from(asked.join(", "))
    {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked);
    }
    response
}

/// The headers that a page wants to send, in lower case.
fn names(headers: &HeaderMap) -> impl Iterator<Item = String> {
    let asked = headers.get(ACCESS_CONTROL_REQUEST_HEADERS);
    let asked = asked.and_then(|asked| asked.to_str().ok()).unwrap_or_default();
    let names = asked.split(',').map(|name| name.trim().to_ascii_lowercase());
    names.filter(|name| !name.is_empty())
}

/// Adds to an answer about a bucket what a page of this origin may see of it.
pub(crate) fn show(response: &mut Response, origin: &HeaderValue, bucket: &ContainerInfo, settings: &CorsSettings) {
    cors::decorate(response, origin, bucket, settings);
    let headers = response.headers_mut();
    let Some(exposed) = headers.get(ACCESS_CONTROL_EXPOSE_HEADERS) else {
        return;
    };
    let mut exposed: Vec<String> = exposed
        .to_str()
        .unwrap_or_default()
        .split(", ")
        .map(str::to_owned)
        .collect();
    let is_metadata = |name: &&str| name.starts_with("x-amz-meta-");
    let metadata = headers.keys().map(HeaderName::as_str).filter(is_metadata);
    exposed.extend(metadata.chain(ALWAYS_EXPOSED).map(str::to_owned));
    if let Ok(exposed) = HeaderValue::try_from(exposed.join(", ")) {
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use request_pipeline::ClientRequest;

    fn request(target: &str, headers: &[(&'static str, &'static str)]) -> ClientRequest {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Request::new(Method::OPTIONS, path.into(), path.into());
        request.query = query.into();
        for (name, value) in headers {
            request.headers.insert(*name, HeaderValue::from_static(value));
        }
        request
    }

    const ORIGIN: (&str, &str) = ("origin", "http://a.b");
    const SIGNS: (&str, &str) = ("access-control-request-headers", "Authorization,, x-amz-date");

    #[test]
    fn preflights_of_s3_are_not_those_of_swift() {
        for (target, headers, is_s3) in [
            ("/b/k", &[ORIGIN, SIGNS][..], true),
            ("/b/k", &[SIGNS], false),
            ("/b/k", &[("origin", ""), SIGNS], false),
            ("/b/k", &[ORIGIN], false),
            (
                "/b/k",
                &[ORIGIN, ("access-control-request-headers", "x-auth-token")],
                false,
            ),
            ("/v1/AUTH_test/c", &[ORIGIN, SIGNS], false),
            ("/b/k?AWSAccessKeyId=x", &[ORIGIN], true),
            ("/b/k?X-Amz-Credential=x", &[ORIGIN], true),
        ] {
            assert_eq!(is_preflight(&request(target, headers)), is_s3, "{target} {headers:?}");
        }
    }

    #[test]
    fn only_origins_that_are_named_may_send_requests() {
        let asked = request("/b/k", &[ORIGIN, SIGNS]);
        for (allowed, status) in [("", 401), ("http://c", 401), ("http://c, http://a.b", 200), ("*", 200)] {
            let allowed: Vec<String> = allowed.split(',').map(str::to_owned).collect();
            assert_eq!(preflight(&asked, &allowed).status(), status, "{allowed:?}");
        }
        let answer = preflight(&asked, &["*".into()]);
        assert_eq!(answer.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], "http://a.b");
        assert_eq!(
            answer.headers()[ACCESS_CONTROL_ALLOW_HEADERS],
            "authorization, x-amz-date"
        );
        assert_eq!(answer.headers()[VARY], "Origin, Access-Control-Request-Headers");
    }

    #[test]
    fn pages_see_metadata_under_its_name_in_s3() {
        let bucket = ContainerInfo {
            meta: [("access-control-allow-origin".to_owned(), "http://a.b".to_owned())].into(),
            ..ContainerInfo::default()
        };
        let settings = CorsSettings {
            allow_origin: Vec::new(),
            expose_headers: Vec::new(),
            strict: true,
        };
        let seen = |origin: &'static str| {
            let mut response = reply::html(200, String::new());
            response
                .headers_mut()
                .insert("x-amz-meta-a", HeaderValue::from_static("1"));
            show(&mut response, &HeaderValue::from_static(origin), &bucket, &settings);
            let exposed = response.headers().get(ACCESS_CONTROL_EXPOSE_HEADERS).cloned();
            exposed.map(|exposed| exposed.to_str().unwrap().to_owned())
        };
        let exposed = seen("http://a.b").unwrap();
        assert!(
            exposed.ends_with(", x-amz-meta-a, x-amz-request-id, x-amz-id-2"),
            "{exposed}"
        );
        assert_eq!(seen("http://c"), None);
    }
}
