//! Pages of other origins that speak S3: their browsers' preflights, and what they may see of an answer.
//!
//! A preflight has no signature, so that the account of the bucket it is about is not known. It is answered by the CORS
//! rules of any account's bucket of that name (`bucket_cors/index.rs`), else by the operator's list of origins that may
//! send requests (`cors_preflight_allow_origin`). What a page may read of an answer the rules of its bucket say; where
//! there are none, the bucket's container does (`X-Container-Meta-Access-Control-Allow-Origin`), as for requests of
//! Swift.
//! Always holds: a request of Swift's own API is never taken for one of S3; an answer is shown to no page that the
//! bucket does not allow; no account's rules take from another's bucket what the operator's list allows.
//! Source: AWS, "How does Amazon S3 evaluate the CORS configuration on a bucket"; without rules, the answers of
//! OpenStack's s3api.

use crate::bucket_cors::index::{CorsIndex, CorsIndexUnavailable, FoundCors};
use crate::bucket_cors::{self, CorsRule, CorsRules};
use crate::call::{S3Call, is_bucket_name};
use crate::error::{ACCESS_FORBIDDEN, SERVICE_UNAVAILABLE};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ALLOW, CONTENT_TYPE,
    HeaderValue, VARY,
};
use http::{HeaderMap, HeaderName, Method};
use request_pipeline::cors::{self, CorsSettings};
use request_pipeline::{ClientRequest, ContainerInfo, Next, Request, Response, reply, set_header};
use settings::S3ApiSettings;

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, PUT, POST, DELETE, OPTIONS");
const DEPENDS_ON: HeaderValue = HeaderValue::from_static("Origin, Access-Control-Request-Headers");

/// Parameters of presigned URLs.
const SIGNED: [&str; 2] = ["AWSAccessKeyId", "X-Amz-Credential"];

/// Headers of every answer of S3 that pages may see.
const ALWAYS_EXPOSED: [&str; 2] = ["x-amz-request-id", "x-amz-id-2"];

/// Whether this asks what a page may ask of S3: for a presigned URL, with a signature in its headers, or of a host that
/// names a bucket.
pub(crate) fn is_preflight(request: &Request, has_bucket_host: bool) -> bool {
    if request.method != Method::OPTIONS || cors::origin(&request.headers).is_none() {
        return false;
    }
    let is_of_swift = ["/v1/", "/v1.0/"].iter().any(|prefix| request.path.starts_with(prefix));
    let is_to_be_signed = names(&request.headers).any(|name| name == "authorization");
    has_bucket_host || (is_to_be_signed && !is_of_swift) || SIGNED.iter().any(|name| request.param(name).is_some())
}

/// The answer to a preflight.
pub(crate) async fn preflight(
    mut request: ClientRequest,
    next: Next,
    settings: &S3ApiSettings,
    index: &CorsIndex,
) -> Response {
    let call = S3Call::read(&request, &settings.storage_domain).ok();
    let is_name = |name: &String| is_bucket_name(name, settings.dns_compliant_bucket_names);
    let found = match call.as_ref().and_then(|call| call.bucket.clone()).filter(is_name) {
        Some(bucket) => {
            request.api_version = "v1".into();
            let fitting = |rules: &CorsRules| fitting(&request, rules);
            index.find(&request, &next, &bucket, fitting).await
        }
        None => Ok(FoundCors::default()),
    };
    let is_about_object = call.is_some_and(|call| call.key.is_some());
    decide(&request, is_about_object, found, &settings.cors_preflight_allow_origin)
}

/// By the rules of buckets of this name first, then by the operator's list.
fn decide(
    request: &Request,
    is_about_object: bool,
    found: Result<FoundCors, CorsIndexUnavailable>,
    allowed: &[String],
) -> Response {
    let rule = found.as_ref().ok().and_then(|found| found.rule.as_ref());
    if let Some(mut answer) = rule.and_then(|rule| by_rule(request, rule)) {
        for name in ["x-amz-id-2", "x-amz-request-id"] {
            set_header(answer.headers_mut(), name, &request.trans_id);
        }
        return answer;
    }
    let as_operator_says = by_origin(request, allowed);
    if as_operator_says.status().is_success() {
        return as_operator_says;
    }
    match found {
        Err(error) => {
            tracing::warn!("CORS rules cannot be looked at: {error}");
            SERVICE_UNAVAILABLE.saying("The CORS rules of the bucket cannot be looked at.")
        }
        Ok(found) if !found.has_rules => return as_operator_says,
        Ok(_) => ACCESS_FORBIDDEN
            .about(
                "Method",
                request
                    .header(ACCESS_CONTROL_REQUEST_METHOD.as_str())
                    .unwrap_or_default(),
            )
            .with("ResourceType", if is_about_object { "OBJECT" } else { "BUCKET" }),
    }
    .answer(&request.trans_id)
}

/// The rule among those of a bucket that fits what a preflight asks.
fn fitting(request: &Request, rules: &CorsRules) -> Option<CorsRule> {
    let origin = cors::origin(&request.headers)?.to_str().ok()?;
    let method = request.header(ACCESS_CONTROL_REQUEST_METHOD.as_str())?;
    let asked: Vec<String> = names(&request.headers).collect();
    rules.find(origin, method, &asked).cloned()
}

/// What a rule that fits says.
fn by_rule(request: &Request, rule: &CorsRule) -> Option<Response> {
    let origin = cors::origin(&request.headers)?;
    let asked: Vec<String> = names(&request.headers).collect();
    let mut response = reply::html(200, String::new());
    let headers = response.headers_mut();
    headers.remove(CONTENT_TYPE);
    rule.show(headers, origin, &asked);
    bucket_cors::vary(headers);
    Some(response)
}

/// What the operator's list of origins says.
fn by_origin(request: &Request, allowed: &[String]) -> Response {
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

/// Adds to an answer about a bucket what a page of this origin, which sent a request with this method, may see of it.
pub(crate) fn show(
    response: &mut Response,
    (origin, method): (&HeaderValue, &Method),
    bucket: &ContainerInfo,
    settings: &CorsSettings,
) {
    if let Some(text) = bucket_cors::text_in_info(bucket) {
        return show_by_rules(response, (origin, method), &text);
    }
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

/// What the bucket's rules say; of rules that cannot be read, nothing.
fn show_by_rules(response: &mut Response, (origin, method): (&HeaderValue, &Method), text: &str) {
    let headers = response.headers_mut();
    bucket_cors::vary(headers);
    let rules = match CorsRules::of_text(text) {
        Ok(rules) => rules,
        Err(error) => return tracing::warn!("{error}"),
    };
    let rule = origin
        .to_str()
        .ok()
        .and_then(|origin| rules.find(origin, method.as_str(), &[]));
    if let Some(rule) = rule {
        rule.show(headers, origin, &[]);
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
            assert_eq!(
                is_preflight(&request(target, headers), false),
                is_s3,
                "{target} {headers:?}"
            );
        }
    }

    #[test]
    fn a_host_that_names_a_bucket_is_s3s() {
        assert!(is_preflight(&request("/k", &[ORIGIN]), true));
        assert!(!is_preflight(&request("/k", &[]), true));
    }

    #[test]
    fn rules_of_buckets_come_before_the_operators_list() {
        let rules = || CorsRules::of_text(r#"[{"o":["http://a.*"],"m":["PUT"],"h":["*"],"age":7}]"#).unwrap();
        let asking = |method| request("/b/k", &[ORIGIN, SIGNS, ("access-control-request-method", method)]);
        let of = |method, rules: Option<CorsRules>| {
            Ok(FoundCors {
                has_rules: rules.is_some(),
                rule: rules.and_then(|rules| fitting(&asking(method), &rules)),
            })
        };
        let decided = |method, found, allowed: &[&str]| {
            let allowed: Vec<String> = allowed.iter().map(|allowed| (*allowed).to_owned()).collect();
            let answer = decide(&asking(method), true, found, &allowed);
            let methods = answer.headers().get(ACCESS_CONTROL_ALLOW_METHODS).cloned();
            let methods = methods.map(|methods| methods.to_str().unwrap().to_owned());
            (answer.status().as_u16(), methods)
        };
        let all = || Some(METHODS.to_str().unwrap().to_owned());
        assert_eq!(
            decided("PUT", of("PUT", Some(rules())), &["*"]),
            (200, Some("PUT".into()))
        );
        assert_eq!(
            decided("DELETE", of("DELETE", Some(rules())), &["http://a.b"]),
            (200, all())
        );
        assert_eq!(
            decided("DELETE", of("DELETE", Some(rules())), &["http://c"]),
            (403, None)
        );
        assert_eq!(decided("PUT", of("PUT", None), &["http://c"]), (401, None));
        assert_eq!(decided("PUT", Err(CorsIndexUnavailable::for_tests()), &[]), (503, None));
        assert_eq!(
            decided("PUT", Err(CorsIndexUnavailable::for_tests()), &["*"]),
            (200, all())
        );
        let refused = decide(&asking("DELETE"), true, of("DELETE", Some(rules())), &[]);
        let body = String::from_utf8(refused.body().as_whole().unwrap().to_vec()).unwrap();
        let expected = "<Method>DELETE</Method><ResourceType>OBJECT</ResourceType>";
        assert!(
            body.contains("<Code>AccessForbidden</Code>") && body.contains(expected),
            "{body}"
        );
    }

    #[test]
    fn only_origins_that_are_named_may_send_requests() {
        let asked = request("/b/k", &[ORIGIN, SIGNS]);
        for (allowed, status) in [("", 401), ("http://c", 401), ("http://c, http://a.b", 200), ("*", 200)] {
            let allowed: Vec<String> = allowed.split(',').map(str::to_owned).collect();
            assert_eq!(by_origin(&asked, &allowed).status(), status, "{allowed:?}");
        }
        let answer = by_origin(&asked, &["*".into()]);
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
            let origin = HeaderValue::from_static(origin);
            show(&mut response, (&origin, &Method::GET), &bucket, &settings);
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

    #[test]
    fn where_a_bucket_has_rules_its_container_says_nothing() {
        let rules = r#"[{"o":["http://a.b"],"m":["GET"],"x":["etag"]}]"#;
        let bucket = ContainerInfo {
            meta: [("access-control-allow-origin".to_owned(), "*".to_owned())].into(),
            sysmeta: [("s3api-cors-0".to_owned(), rules.to_owned())].into(),
            ..ContainerInfo::default()
        };
        let settings = CorsSettings {
            allow_origin: vec!["*".into()],
            expose_headers: Vec::new(),
            strict: false,
        };
        let seen = |origin: &'static str, method: Method| {
            let mut response = reply::html(200, String::new());
            let origin = HeaderValue::from_static(origin);
            show(&mut response, (&origin, &method), &bucket, &settings);
            assert!(response.headers()[VARY].to_str().unwrap().starts_with("Origin, "));
            let shown = |name| {
                response
                    .headers()
                    .get(name)
                    .map(|value: &HeaderValue| value.to_str().unwrap().to_owned())
            };
            (shown(ACCESS_CONTROL_ALLOW_ORIGIN), shown(ACCESS_CONTROL_EXPOSE_HEADERS))
        };
        let allowed = (Some("http://a.b".to_owned()), Some("etag".to_owned()));
        assert_eq!(seen("http://a.b", Method::GET), allowed);
        assert_eq!(seen("http://a.b", Method::PUT), (None, None));
        assert_eq!(seen("http://c", Method::GET), (None, None));
    }
}
