//! Cross-origin requests of browsers: what a page from elsewhere may ask of a container.
//!
//! Not a filter in Swift but part of its proxy; the gateway calls [`preflight`] for OPTIONS and
//! [`decorate`] on answers about containers and objects (never accounts, never 405), each with the
//! container as it was before the request.
//! Always holds: an origin that neither the container nor the cluster allows gets no CORS headers in
//! strict mode; `Vary` names `Origin` wherever the answer depended on it.
//! Source: `doc/source/cors.rst` and OpenStack Swift's answers.

use crate::info::ContainerInfo;
use crate::reply::{self, vary_on};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ALLOW, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, ORIGIN,
};
use peer::Response;

/// What the operator says about cross-origin requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorsSettings {
    /// Origins that every container answers to (`cors_allow_origin`).
    pub allow_origin: Vec<String>,
    /// Headers that every answer exposes (`cors_expose_headers`).
    pub expose_headers: Vec<String>,
    /// Only allowed origins get headers (`strict_cors_mode`).
    pub strict: bool,
}

impl From<&settings::ProxySettings> for CorsSettings {
    fn from(proxy: &settings::ProxySettings) -> Self {
        Self {
            allow_origin: proxy.cors_allow_origin.clone(),
            expose_headers: proxy.cors_expose_headers.clone(),
            strict: proxy.strict_cors_mode,
        }
    }
}

/// What any page may see anyway, and what Swift always shows.
const ALWAYS_EXPOSED: [&str; 10] = [
    "cache-control",
    "content-language",
    "content-type",
    "expires",
    "last-modified",
    "pragma",
    "etag",
    "x-openstack-request-id",
    "x-timestamp",
    "x-trans-id",
];

/// The page's origin, if the request comes from a page that says so.
pub fn origin(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(ORIGIN).filter(|origin| !origin.is_empty())
}

/// The answer to OPTIONS on a container or object. `methods` is what the resource has, joined by
/// commas; `container` is empty for one that does not exist.
pub fn preflight(
    request: &HeaderMap,
    container: &ContainerInfo,
    methods: &'static str,
    settings: &CorsSettings,
) -> Response {
    let Some(origin) = origin(request) else {
        return with_allow(reply::html(200, String::new()), methods);
    };
    let asked = request.get(ACCESS_CONTROL_REQUEST_METHOD).map(HeaderValue::as_bytes);
    let has_method = asked.is_some_and(|asked| methods.split(", ").any(|method| method.as_bytes() == asked));
    if !has_method || !is_allowed(origin, container, settings) {
        return with_allow(reply::status(401), methods);
    }
    let mut response = with_allow(reply::html(200, String::new()), methods);
    let headers = response.headers_mut();
    headers.remove(CONTENT_TYPE);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
    set_origin(headers, origin, container);
    if let Some(age) = container.meta.get("access-control-max-age")
        && let Ok(age) = HeaderValue::from_str(age)
    {
        headers.insert(ACCESS_CONTROL_MAX_AGE, age);
    }
    if let Some(asked) = request.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        let names = asked.as_bytes().split(|b| *b == b',').map(<[u8]>::trim_ascii);
        let names: Vec<&[u8]> = names.filter(|name| !name.is_empty()).collect();
        if let Ok(names) = HeaderValue::from_bytes(&names.join(&b", "[..])) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names);
            vary_on(headers, &ACCESS_CONTROL_REQUEST_HEADERS);
        }
    }
    response
}

/// Adds to an answer what a page from `origin` may see of it.
pub fn decorate(response: &mut Response, origin: &HeaderValue, container: &ContainerInfo, settings: &CorsSettings) {
    if settings.strict && !is_allowed(origin, container, settings) {
        return;
    }
    let headers = response.headers_mut();
    if let Ok(exposed) = HeaderValue::try_from(exposed(headers, container, settings).join(", ")) {
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    set_origin(headers, origin, container);
}

fn with_allow(mut response: Response, methods: &'static str) -> Response {
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    response
}

fn containers_origins(container: &ContainerInfo) -> &str {
    container
        .meta
        .get("access-control-allow-origin")
        .map_or("", |origins| origins.trim())
}

fn is_allowed(origin: &HeaderValue, container: &ContainerInfo, settings: &CorsSettings) -> bool {
    let of_cluster = settings.allow_origin.iter().map(|allowed| allowed.trim());
    containers_origins(container)
        .split_whitespace()
        .chain(of_cluster)
        .any(|allowed| allowed == "*" || allowed.as_bytes() == origin.as_bytes())
}

/// A container for everybody says `*`; all else is said to this origin only.
fn set_origin(headers: &mut HeaderMap, origin: &HeaderValue, container: &ContainerInfo) {
    if containers_origins(container) == "*" {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    } else {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        vary_on(headers, &ORIGIN);
    }
}

fn exposed(headers: &HeaderMap, container: &ContainerInfo, settings: &CorsSettings) -> Vec<String> {
    let is_meta = |name: &&str| name.starts_with("x-container-meta-") || name.starts_with("x-object-meta-");
    let of_container = container
        .meta
        .get("access-control-expose-headers")
        .map_or("", String::as_str);
    let mut names: Vec<String> = ALWAYS_EXPOSED.iter().map(|name| (*name).to_owned()).collect();
    let more = headers
        .keys()
        .map(HeaderName::as_str)
        .filter(is_meta)
        .map(str::to_owned);
    let more = more.chain(settings.expose_headers.iter().map(|name| name.trim().to_owned()));
    let more = more.chain(of_container.split_whitespace().map(str::to_lowercase));
    for name in more {
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const METHODS: &str = "DELETE, GET, HEAD, OPTIONS, POST, PUT";

    fn container(meta: &[(&str, &str)]) -> ContainerInfo {
        let meta = meta
            .iter()
            .map(|(name, value)| (format!("access-control-{name}"), (*value).to_owned()));
        ContainerInfo {
            status: 204,
            meta: meta.collect(),
            ..ContainerInfo::default()
        }
    }

    /// `name: value; …`, in order of names.
    fn shown_headers(response: &Response) -> String {
        let show = |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
        let mut shown: Vec<String> = response.headers().iter().map(show).collect();
        shown.sort();
        shown.join("; ")
    }

    fn strict() -> CorsSettings {
        CorsSettings::from(&settings::ProxySettings::default())
    }

    fn asked(headers: &[(&'static str, &str)], container: &ContainerInfo, settings: &CorsSettings) -> (u16, String) {
        let header = |(name, value): &(&'static str, &str)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            )
        };
        let asked: HeaderMap = headers.iter().map(header).collect();
        let response = preflight(&asked, container, METHODS, settings);
        let shown = shown_headers(&response)
            .replace(METHODS, "ALL")
            .replace("access-control-", "ac-");
        (response.status().as_u16(), shown)
    }

    const ORIGIN_AB: (&str, &str) = ("origin", "http://a.b");
    const GET: (&str, &str) = ("access-control-request-method", "GET");
    const REFUSED: &str = "allow: ALL; content-length: 131; content-type: text/html; charset=UTF-8";
    const PLAIN: &str = "allow: ALL; content-length: 0; content-type: text/html; charset=UTF-8";

    #[test]
    fn preflights_as_openstack_answers_them() {
        let open = container(&[("allow-origin", "http://x http://a.b"), ("max-age", "7")]);
        assert_eq!(asked(&[], &open, &strict()), (200, PLAIN.into()));
        assert_eq!(asked(&[("origin", ""), GET], &open, &strict()), (200, PLAIN.into()));
        let granted = "ac-allow-methods: ALL; ac-allow-origin: http://a.b; ac-max-age: 7; allow: ALL; content-length: 0; vary: Origin";
        assert_eq!(asked(&[ORIGIN_AB, GET], &open, &strict()), (200, granted.into()));
        for refused in [
            &[ORIGIN_AB][..],
            &[ORIGIN_AB, ("access-control-request-method", "get")],
            &[ORIGIN_AB, ("access-control-request-method", "COPY")],
            &[("origin", "http://A.b"), GET],
        ] {
            assert_eq!(asked(refused, &open, &strict()), (401, REFUSED.into()));
        }
        let lax = CorsSettings {
            strict: false,
            ..strict()
        };
        assert_eq!(asked(&[ORIGIN_AB, GET], &container(&[]), &lax), (401, REFUSED.into()));
        let headers = ("access-control-request-headers", "a,, B ;c");
        let all = container(&[("allow-origin", " * ")]);
        assert_eq!(
            asked(&[ORIGIN_AB, GET, headers], &all, &strict()).1,
            "ac-allow-headers: a, B ;c; ac-allow-methods: ALL; ac-allow-origin: *; allow: ALL; content-length: 0; \
             vary: Access-Control-Request-Headers"
        );
    }

    #[test]
    fn the_clusters_origins_count_for_containers_that_do_not_exist() {
        let cluster = CorsSettings {
            allow_origin: vec!["*".into()],
            ..strict()
        };
        let granted = "ac-allow-methods: ALL; ac-allow-origin: http://a.b; allow: ALL; content-length: 0; vary: Origin";
        assert_eq!(
            asked(&[ORIGIN_AB, GET], &ContainerInfo::default(), &cluster),
            (200, granted.into())
        );
    }

    fn decorated(container: &ContainerInfo, settings: &CorsSettings) -> String {
        let mut response = Response::new(peer::Body::empty());
        response
            .headers_mut()
            .insert("x-object-meta-foo", HeaderValue::from_static("1"));
        decorate(
            &mut response,
            &HeaderValue::from_static("http://a.b"),
            container,
            settings,
        );
        let shown = shown_headers(&response);
        shown
            .replace(&ALWAYS_EXPOSED.join(", "), "USUAL")
            .replace("access-control-", "ac-")
    }

    #[test]
    fn answers_show_what_openstacks_show() {
        let exposing = container(&[("allow-origin", "http://a.b"), ("expose-headers", "X-One x-two X-Two")]);
        let cluster = CorsSettings {
            expose_headers: vec!["X-Cl".into()],
            ..strict()
        };
        assert_eq!(
            decorated(&exposing, &cluster),
            "ac-allow-origin: http://a.b; ac-expose-headers: USUAL, x-object-meta-foo, X-Cl, x-one, x-two; \
             vary: Origin; x-object-meta-foo: 1"
        );
        assert_eq!(decorated(&container(&[]), &strict()), "x-object-meta-foo: 1");
        let lax = CorsSettings {
            strict: false,
            ..strict()
        };
        assert!(decorated(&container(&[]), &lax).starts_with("ac-allow-origin: http://a.b; "));
        assert!(decorated(&container(&[("allow-origin", "*")]), &strict()).starts_with("ac-allow-origin: *; "));
    }

    proptest! {
        #[test]
        fn any_metadata_and_header_is_survived(origins in "\\PC{0,20}", asked in prop::collection::vec(any::<u8>(), 0..20)) {
            let container = container(&[("allow-origin", &origins), ("expose-headers", &origins), ("max-age", &origins)]);
            let Ok(value) = HeaderValue::from_bytes(&asked) else { return Ok(()) };
            let mut request = HeaderMap::new();
            request.insert(ORIGIN, value.clone());
            request.insert(ACCESS_CONTROL_REQUEST_METHOD, HeaderValue::from_static("GET"));
            request.insert(ACCESS_CONTROL_REQUEST_HEADERS, value.clone());
            let lax = CorsSettings { strict: false, allow_origin: vec!["*".into()], expose_headers: vec![origins.clone()] };
            let mut response = preflight(&request, &container, METHODS, &lax);
            decorate(&mut response, &value, &container, &lax);
        }
    }
}
