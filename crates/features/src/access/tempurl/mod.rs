//! Signed addresses: a client that has one may do one thing with one object, or with those of one prefix, for a while.
//!
//! Stands in front of authentication. The query says `temp_url_sig`, `temp_url_expires` and perhaps
//! `temp_url_prefix`, `temp_url_ip_range`, `filename` and `inline`.
//! Always holds: a request with a signature that is not right goes no further; one that is right goes on with
//! no other parameters, without the headers it must not have, and allowed only within the account or container
//! whose key made it. A request without signature costs a look at its query.
//! Deliberately absent: asking for a password, counting how often an address is used.
//! Source: `doc/source/api/temporary_url_middleware.rst` and OpenStack Swift's answers.
//!
//! | question | file |
//! |---|---|
//! | what does the query say | `query.rs` |
//! | is the signature right, how far does it reach | `../signatures.rs` |
//! | from where may it be used | `ip_range.rs` |
//! | how does a browser take the answer | `disposition.rs` |

pub mod disposition;
pub mod ip_range;
pub mod query;
#[cfg(test)]
mod tests;

use crate::access::signatures::{KeyScope, Signature, SigningKeys, Within, info_of};
use disposition::Wishes;
use http::header::{CONTENT_DISPOSITION, EXPIRES, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderMap, Method};
use peer::message::header_names::X_CONTENT_GENERATOR;
use query::Signed;
use request_pipeline::{ClientRequest, Feature, Next, Response, reply};
use serde_json::Value;
use settings::gateway_filters::TempUrlSettings;
use settings::kinds::HeaderPatterns;
use std::sync::Arc;
use telemetry::Statsd;
use vocabulary::{EntityPath, calendar};
use world::Clock;

/// Swift's `tempurl`.
pub struct TempUrl {
    settings: TempUrlSettings,
    clock: Arc<dyn Clock>,
    statsd: Statsd,
}

/// The requesting user, for the features behind.
const USER: &str = ".wsgi.tempurl";
/// Headers that would let the holder of an address reach other objects, and how a refusal spells them.
const NOT_WHEN_WRITING: [(&str, &str); 3] = [
    ("x-object-manifest", "X-Object-Manifest"),
    ("x-symlink-target", "X-Symlink-Target"),
    ("x-copy-from", "X-Copy-From"),
];

/// A request that its signature allows.
struct Granted {
    signed: Signed,
    ends: u64,
    scope: KeyScope,
}

impl TempUrl {
    /// As configured.
    pub fn new(settings: TempUrlSettings, clock: Arc<dyn Clock>) -> Self {
        Self {
            settings,
            clock,
            statsd: Statsd::default(),
        }
    }

    /// With the digests of good signatures reported to `statsd`.
    pub fn counting(self, statsd: Statsd) -> Self {
        Self { statsd, ..self }
    }

    /// What the signature allows; `None` when it is not right.
    async fn check(&self, request: &ClientRequest, next: &Next, signed: Signed) -> Option<Granted> {
        let ends = signed.ends().filter(|ends| *ends >= self.clock.now().seconds())?;
        let signature = Signature::parse(&signed.signature)?;
        if !signature.is_allowed(&self.settings.allowed_digests) {
            return None;
        }
        if let Some(range) = &signed.ip_range
            && !ip_range::contains(range, request.from.ip())
        {
            return None;
        }
        let path = self.signed_path(request, &signed)?;
        let entity = request.entity.as_deref()?;
        let keys = SigningKeys::of(next.info(), &entity.account, entity.container.as_deref()?).await;
        let range = signed.ip_range.as_deref().map(|range| format!("ip={range}\n"));
        let range = range.unwrap_or_default();
        let texts: Vec<Vec<u8>> = methods_of(&request.method)
            .iter()
            .map(|method| format!("{range}{method}\n{ends}\n{path}").into_bytes())
            .collect();
        let scope = signature.scope(&keys, &texts)?;
        let digest = signature.digest();
        self.statsd.count(format_args!("tempurl.digests.{digest}"), 1);
        Some(Granted { signed, ends, scope })
    }

    /// The path that must have been signed, for a request about an object, or, with an empty prefix, about all
    /// that a container has.
    fn signed_path(&self, request: &ClientRequest, signed: &Signed) -> Option<String> {
        let method = request.method.as_str();
        if !self.settings.methods.0.iter().any(|allowed| allowed == method) || request.api_version != "v1" {
            return None;
        }
        let entity = request.entity.as_deref()?;
        let container = entity.container.as_deref()?;
        let object = match (&entity.object, &signed.prefix) {
            (Some(object), _) => object.as_str(),
            (None, Some(prefix)) if prefix.is_empty() && is_read(&request.method) => "",
            (None, _) => return None,
        };
        if object.trim_matches('/').is_empty() && entity.object.is_some() {
            return None;
        }
        match &signed.prefix {
            None => Some(request.path.to_string()),
            Some(prefix) if object.starts_with(prefix) => {
                Some(format!("prefix:/v1/{}/{container}/{prefix}", entity.account))
            }
            Some(_) => None,
        }
    }

    /// The request as it goes on.
    fn equip(&self, request: &mut ClientRequest, granted: &Granted, entity: &EntityPath) {
        let removed = (
            &self.settings.incoming_remove_headers,
            &self.settings.incoming_allow_headers,
        );
        strip(&mut request.headers, removed.0, removed.1);
        request.query = granted.signed.query();
        request.authorizer = Some(Arc::new(Within::scope(granted.scope, entity)));
        request.authorize_override = true;
        request.remote_user = Some(USER.into());
    }

    /// The answer as the holder of the address gets it.
    fn dress(&self, mut response: Response, granted: &Granted, entity: &EntityPath, reads: bool) -> Response {
        let headers = response.headers_mut();
        let is_page = headers
            .get(X_CONTENT_GENERATOR)
            .is_some_and(|generator| generator == "staticweb");
        strip(
            headers,
            &self.settings.outgoing_remove_headers,
            &self.settings.outgoing_allow_headers,
        );
        if !reads || !response.status().is_success() {
            return response;
        }
        let headers = response.headers_mut();
        let stored = headers.get(CONTENT_DISPOSITION).map(|value| value.as_bytes().to_vec());
        let wishes = Wishes {
            filename: granted.signed.filename.as_deref().map(str::as_bytes),
            inline: granted.signed.inline,
            is_page,
            stored: stored.as_deref(),
            name: entity.object.as_deref().unwrap_or_default(),
        };
        if let Ok(value) = HeaderValue::from_bytes(&wishes.disposition()) {
            headers.insert(CONTENT_DISPOSITION, value);
        }
        if let Ok(value) = HeaderValue::try_from(calendar::http(granted.ends)) {
            headers.insert(EXPIRES, value);
        }
        response
    }

    async fn serve(&self, mut request: ClientRequest, next: Next, signed: Signed) -> Response {
        let method = request.method.clone();
        let Some(granted) = self.check(&request, &next, signed).await else {
            return invalid(&method);
        };
        let Some(entity) = request.entity.clone() else {
            return invalid(&method);
        };
        if let Some(refusal) = refused_header(&request) {
            return refusal;
        }
        self.equip(&mut request, &granted, &entity);
        let response = next.run(request).await;
        let is_listing = entity.object.is_none() && !response.headers().contains_key(X_CONTENT_GENERATOR);
        if is_listing {
            // Only pages are given for a container, never its plain listing.
            return invalid(&method);
        }
        self.dress(response, &granted, &entity, is_read(&method))
    }
}

#[async_trait::async_trait]
impl Feature for TempUrl {
    fn name(&self) -> &'static str {
        "tempurl"
    }

    fn info(&self) -> Vec<(&'static str, Value)> {
        let settings = &self.settings;
        let mut info = serde_json::Map::new();
        info.insert("methods".into(), settings.methods.0.clone().into());
        for (name, patterns) in [
            ("incoming_remove_headers", &settings.incoming_remove_headers),
            ("incoming_allow_headers", &settings.incoming_allow_headers),
            ("outgoing_remove_headers", &settings.outgoing_remove_headers),
            ("outgoing_allow_headers", &settings.outgoing_allow_headers),
        ] {
            info.insert(name.into(), patterns.0.clone().into());
        }
        info.extend(info_of(&settings.allowed_digests));
        vec![("tempurl", info.into())]
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        !request.query.is_empty()
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        if request.query.is_empty() || request.method == Method::OPTIONS {
            return next.run(request).await;
        }
        match Signed::read(&request.query) {
            Some(signed) => self.serve(request, next, signed).await,
            None => next.run(request).await,
        }
    }
}

/// A signature for any of these allows the method: who may read or write an object may look at it.
fn methods_of(method: &Method) -> Vec<&str> {
    match method.as_str() {
        "HEAD" => vec!["HEAD", "GET", "POST", "PUT"],
        other => vec![other],
    }
}

fn is_read(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

fn refused_header(request: &ClientRequest) -> Option<Response> {
    if request.method != Method::PUT && request.method != Method::POST {
        return None;
    }
    let (_, shown) = NOT_WHEN_WRITING
        .iter()
        .find(|(name, _)| request.headers.contains_key(*name))?;
    let reason = format!("The header '{shown}' is not allowed in this tempurl");
    Some(reply::html(400, reason))
}

fn strip(headers: &mut HeaderMap, removed: &HeaderPatterns, kept: &HeaderPatterns) {
    if removed.0.is_empty() {
        return;
    }
    let goes = |name: &&HeaderName| removed.matches(name.as_str()) && !kept.matches(name.as_str());
    let found: Vec<HeaderName> = headers.keys().filter(goes).cloned().collect();
    for name in found {
        headers.remove(name);
    }
}

/// The answer to a signature that is not right, whatever is wrong with it.
fn invalid(method: &Method) -> Response {
    let text = match *method {
        Method::HEAD => "",
        _ => "401 Unauthorized: Temp URL invalid\n",
    };
    let mut response = reply::html(401, text.into());
    let realm = HeaderValue::from_static("Swift realm=\"unknown\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, realm);
    response
}
