//! A client's request, as the gateway has recognised it.
//!
//! Always holds: `path` is UTF-8 without NUL; `entity`, when there is one, is that path's account,
//! container and object; header names are lower case (`http` sees to it).

use crate::access_notes::AccessNotes;
use crate::info::InfoSource;
use crate::reply;
use http::{Extensions, HeaderMap, Method};
use peer::{AccountPlace, Body, Response};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{EntityPath, Timestamp};

/// Decides whether a caller may do what the request asks.
#[async_trait::async_trait]
pub trait Authorizer: Send + Sync {
    /// `Err` is the answer to send instead. Sets [`Request::is_owner`].
    /// Called by [`Request::authorise`] once the container's ACL ([`Request::acl`]) is known.
    async fn authorize(&self, request: &mut ClientRequest, info: &dyn InfoSource) -> Result<(), Response>;

    /// How the user of an account for whom an access key is made is written down: `user`, else the one who asks.
    /// Nothing when the account has no such user. The authenticator alone reads it again.
    fn key_holder(&self, _request: &Request, _account: &str, _user: Option<&str>) -> Option<Value> {
        None
    }

    /// Why the one who asks may not make or change access keys, whatever they own: their rights were lent to them, and
    /// end, which a key does not.
    fn refuses_keys(&self) -> Option<String> {
        None
    }
}

/// One request of a client, in a box: it is handed on through every feature.
pub type ClientRequest = Box<Request>;

/// What there is to know of a request. Its texts are shared: a copy that a feature keeps
/// ([`Request::without_body`]) copies none of them.
pub struct Request {
    /// The verb.
    pub method: Method,
    /// The path as sent, still encoded.
    pub raw_path: Arc<str>,
    /// The path, decoded.
    pub path: Arc<str>,
    /// The query string as sent, without `?`; empty when there is none.
    pub query: String,
    /// `v1` or whatever the path begins with, when it names an entity.
    pub api_version: String,
    /// What the path names.
    pub entity: Option<Arc<EntityPath>>,
    /// The client's headers; features add Swift's own.
    pub headers: HeaderMap,
    /// The body, not read yet.
    pub body: Body,
    /// The peer at the other end of the connection.
    pub from: SocketAddr,
    /// `http` or `https`, as the request came in.
    pub scheme: &'static str,
    /// The transaction id: in every log line and in the response.
    pub trans_id: Arc<str>,
    /// When it came, on the world's clock and as a timestamp.
    pub began: (Duration, Timestamp),
    /// Decides once ACLs are known; absent when nothing in the pipeline authorises.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// A feature in front of authentication vouches for this request (a signed URL, a signed form): the
    /// authenticator leaves `authorizer` as it is, if it is configured to allow that.
    pub authorize_override: bool,
    /// A cluster that is synced with this one sends what it has: manifests and links are stored as they come.
    pub is_synced: bool,
    /// A feature has chosen the content type itself: it may have Swift's private parameters (`swift_…`).
    pub own_content_type: bool,
    /// The requesting user, for the access log: the user and groups that authentication found.
    pub remote_user: Option<Arc<str>>,
    /// The container's ACL that applies to this verb, set by the core before authorising.
    pub acl: Option<String>,
    /// Whether the caller owns the account: sees and sets what only owners may.
    pub is_owner: bool,
    /// Whether the caller administers the whole cluster.
    pub is_reseller_admin: bool,
    /// For the access log.
    pub notes: AccessNotes,
    /// What one feature leaves for another further down, found by its type (the secrets of a keymaster).
    pub extensions: Extensions,
    /// What is to be stored with an object besides its headers, known once its body has been read.
    pub footers: Option<Footers>,
}

/// Says, at the end of an object's body, which headers are stored with it over those that came first
/// (`etag`, system metadata, what the container gets). `Err` is the answer to a body that must not be
/// stored.
pub type Footers = Box<dyn FnOnce() -> Result<HeaderMap, Response> + Send + Sync>;

impl Request {
    /// A request for this path, as sent and decoded, and nothing else known of it.
    pub fn new(method: Method, raw_path: Arc<str>, path: Arc<str>) -> ClientRequest {
        let (api_version, entity) = split(&path);
        Box::new(Self {
            method,
            raw_path,
            query: String::new(),
            api_version,
            entity,
            path,
            headers: HeaderMap::new(),
            body: Body::empty(),
            from: SocketAddr::from(([0, 0, 0, 0], 0)),
            scheme: "http",
            trans_id: Arc::from(""),
            began: (Duration::ZERO, Timestamp::default()),
            authorizer: None,
            authorize_override: false,
            is_synced: false,
            own_content_type: false,
            remote_user: None,
            acl: None,
            is_owner: false,
            is_reseller_admin: false,
            notes: AccessNotes::default(),
            extensions: Extensions::new(),
            footers: None,
        })
    }

    /// A header's text; `None` when absent or not UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.headers.get(name)?.as_bytes()).ok()
    }

    /// A query parameter, decoded; the last one wins. `Err` when it is not UTF-8.
    pub fn param(&self, key: &str) -> Option<Result<String, vocabulary::NameError>> {
        vocabulary::names::query_value(&self.query, key)
    }

    /// Asks the authorizer, if there is one. A request that may be made counts for its account from then on; one that a
    /// feature has [preauthorised](Request::preauthorised) counts for none by itself. `Err` is the answer.
    pub async fn authorise(self: &mut Box<Self>, info: &dyn InfoSource) -> Result<(), Response> {
        match self.authorizer.clone() {
            Some(authorizer) => authorizer.authorize(self, info).await?,
            None if self.authorize_override => return Ok(()),
            None => {}
        }
        match (self.extensions.get::<AccountPlace>(), &self.entity) {
            (Some(place), Some(entity)) => place.take(&entity.account),
            _ => Ok(()),
        }
    }

    /// The refusal of a request whose `Host` (without its port) is one of `denied`.
    pub fn denied_host(&self, denied: &[String]) -> Option<Response> {
        if denied.is_empty() {
            return None;
        }
        let host = self.header("host")?;
        let host = host.split(':').next().unwrap_or(host);
        let is_denied = denied.iter().any(|denied| denied == host);
        is_denied.then(|| reply::html(403, "Invalid host header".into()))
    }

    /// Makes this a request about another path (decoded), whatever that names; `raw_path` stays what the
    /// client sent.
    pub fn take_path(&mut self, path: String) {
        (self.api_version, self.entity) = split(&path);
        self.path = path.into();
    }

    /// Whether an object's bytes or metadata are asked for.
    pub fn reads_object(&self) -> bool {
        let is_object = self.entity.as_ref().is_some_and(|entity| entity.object.is_some());
        is_object && (self.method == Method::GET || self.method == Method::HEAD)
    }

    /// Whether a header says yes, as Swift reads it (`true`, `1`, `yes`, `on`, `t`, `y`).
    pub fn is_true(&self, name: &str) -> bool {
        self.header(name).is_some_and(is_true)
    }
}

/// `/v1/a/c/o` → version and entity; no entity when a needed part is missing.
fn split(path: &str) -> (String, Option<Arc<EntityPath>>) {
    let rest = path.strip_prefix('/').unwrap_or(path);
    let (version, rest) = rest.split_once('/').unwrap_or((rest, ""));
    if version.is_empty() {
        return (String::new(), None);
    }
    (version.to_owned(), EntityPath::split(rest).ok().map(Arc::new))
}

/// Whether a configuration or header value means yes.
pub fn is_true(value: &str) -> bool {
    ["true", "1", "yes", "on", "t", "y"]
        .iter()
        .any(|word| word.eq_ignore_ascii_case(value))
}
