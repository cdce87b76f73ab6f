//! Upkeep's own way into the cluster: requests through a gateway that no client reaches.
//!
//! The gateway is handed in as the HTTP service it is; a test hands in another. These requests
//! need no authorisation; backend headers and reserved names are theirs to use.
//! Always holds: an answer that says "server error" is asked for again, ever more patiently, before it
//! counts; a body that cannot be sent twice is sent once.
//! Deliberately absent: how the gateway is made and configured (the binary's), what the answers mean.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use peer::message::header_names::{
    BACKEND_PREFIX, X_ALLOW_RESERVED_NAMES, X_TIMESTAMP, X_TRANS_ID, X_USE_REPLICATION_NETWORK,
};
use peer::{Body, HttpService, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::names::quote;
use vocabulary::{EntityPath, Timestamp};
use world::World;

/// The version of the API that upkeep speaks.
const VERSION: &str = "/v1";
/// The most bytes of a listing: ten thousand of the longest names, every letter escaped.
const MAX_LISTING: u64 = 128 << 20;
/// Bytes read of answers whose bodies are ignored.
const MAX_IGNORED: u64 = 64 << 10;
/// The pause before the second try; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// Headers of an answer that are not part of the object in it.
const OF_THE_ANSWER: [&str; 12] = [
    "accept-ranges",
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "last-modified",
    "server",
    "transfer-encoding",
    "vary",
    "x-openstack-request-id",
    "x-timestamp",
    "x-trans-id",
];

/// Whether a header of an answer goes with the object when it is stored elsewhere.
pub(crate) fn is_of_object(name: &str) -> bool {
    !OF_THE_ANSWER.contains(&name) && !name.starts_with(BACKEND_PREFIX)
}

/// A gateway, for upkeep of one kind.
#[derive(Clone)]
pub struct InternalClient {
    world: World,
    gateway: Arc<dyn HttpService>,
    agent: HeaderValue,
    tries: u32,
}

/// What is asked.
#[derive(Debug, Clone)]
pub struct InternalRequest {
    /// The verb.
    pub method: Method,
    /// About what.
    pub path: EntityPath,
    /// With these parameters, encoded; empty for none.
    pub query: String,
    /// With these headers besides the client's own.
    pub headers: HeaderMap,
    /// With this body.
    pub body: Bytes,
}

/// Not the answer that was hoped for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{method} {path}: answered {status} (txn: {trans_id})")]
pub struct UnexpectedStatus {
    method: Method,
    path: String,
    /// What came instead.
    pub status: u16,
    /// The transaction that the gateway made of the request; `-` without one.
    pub trans_id: String,
}

impl UnexpectedStatus {
    /// Whether servers failed, or did not answer.
    pub(crate) fn is_of_servers(&self) -> bool {
        self.status >= 500
    }

    /// What came, without what was asked for: alike for all things of which it came.
    pub(crate) fn answer(&self) -> String {
        format!("{} answered {}", self.method, self.status)
    }
}

/// A line of a listing, as far as upkeep looks at it. What is missing in it, or is no text, is empty: servers list what
/// their databases hold, sizes below zero and nulls too, and one such line is no reason to read no other.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ListedItem {
    /// The name.
    #[serde(deserialize_with = "text")]
    pub name: String,
    /// The entity tag.
    #[serde(deserialize_with = "text")]
    pub hash: String,
    /// The type, as stored.
    #[serde(deserialize_with = "text")]
    pub content_type: String,
    /// The time of the last change, as ISO 8601.
    #[serde(deserialize_with = "text")]
    pub last_modified: String,
}

fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => text,
        _ => String::new(),
    })
}

impl InternalRequest {
    /// Without parameters, headers or body.
    pub fn new(method: Method, path: EntityPath) -> Self {
        Self {
            method,
            path,
            query: String::new(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    /// With a header. A value that cannot be one is left out.
    pub fn with(mut self, name: HeaderName, value: impl AsRef<str>) -> Self {
        if let Ok(value) = HeaderValue::from_str(value.as_ref()) {
            self.headers.insert(name, value);
        }
        self
    }

    /// With the time of the change.
    pub fn at(self, timestamp: Timestamp) -> Self {
        self.with(X_TIMESTAMP, timestamp.internal())
    }
}

/// Whether a status is among those hoped for: a number below ten stands for its hundred.
pub fn is_among(status: u16, hoped: &[u16]) -> bool {
    hoped.iter().any(|hope| *hope == status || *hope == status / 100)
}

impl InternalClient {
    /// Through `gateway`, known there as `agent`; what fails is tried `tries` times.
    pub fn new(world: World, gateway: Arc<dyn HttpService>, agent: &str, tries: u32) -> Self {
        Self {
            world,
            gateway,
            agent: HeaderValue::from_str(agent).unwrap_or(HeaderValue::from_static("martlet")),
            tries: tries.max(1),
        }
    }

    /// The same, which tries nothing again: for what the next pass asks for anyway, so that others need not wait.
    pub(crate) fn once(&self) -> Self {
        Self {
            tries: 1,
            ..self.clone()
        }
    }

    /// Asks until the answer is one of `hoped`, or none of a server's errors. The body of the answer is
    /// the caller's to read.
    pub async fn ask(&self, ask: &InternalRequest, hoped: &[u16]) -> Result<Response, UnexpectedStatus> {
        let mut pause = FIRST_PAUSE;
        let mut tries = 1;
        loop {
            let body = Body::whole(ask.body.clone());
            let response = self.send(ask, body, ask.body.len()).await;
            let status = response.status().as_u16();
            if is_among(status, hoped) {
                return Ok(response);
            }
            if status < 500 || tries >= self.tries {
                return Err(ask.unexpected(status, trans_id(&response)));
            }
            self.world.clock.sleep(pause).await;
            pause = pause.saturating_mul(2);
            tries += 1;
        }
    }

    /// As [`Self::ask`]; the body of the answer is ignored.
    pub async fn tell(&self, ask: &InternalRequest, hoped: &[u16]) -> Result<u16, UnexpectedStatus> {
        Ok(self.head_of(ask, hoped).await?.0.as_u16())
    }

    /// The head of any answer that is no server's error.
    pub(crate) async fn answer(&self, ask: &InternalRequest) -> Result<(StatusCode, HeaderMap), UnexpectedStatus> {
        self.head_of(ask, &[2, 3, 4]).await
    }

    async fn head_of(&self, ask: &InternalRequest, hoped: &[u16]) -> Result<(StatusCode, HeaderMap), UnexpectedStatus> {
        let (head, body) = self.ask(ask, hoped).await?.into_parts();
        // It was an answer, whatever becomes of the page with it.
        drop(body.collect(MAX_IGNORED).await);
        Ok((head.status, head.headers))
    }

    /// Sends a body that streams, once.
    pub async fn upload(&self, ask: &InternalRequest, body: Body, hoped: &[u16]) -> Result<u16, UnexpectedStatus> {
        let length = body.length().and_then(|length| usize::try_from(length).ok());
        let mut request = self.request(ask, body);
        match length {
            Some(length) => request
                .headers_mut()
                .insert("content-length", HeaderValue::from(length)),
            None => (request.headers_mut()).insert("transfer-encoding", HeaderValue::from_static("chunked")),
        };
        let response = self.gateway.serve(request, nowhere()).await;
        let (status, trans_id) = (response.status().as_u16(), trans_id(&response));
        drop(response.into_body().collect(MAX_IGNORED).await);
        match is_among(status, hoped) {
            true => Ok(status),
            false => Err(ask.unexpected(status, trans_id)),
        }
    }

    /// All names of the containers of a queue's account. Where a page cannot be had, the log says so in the name of
    /// `who`, and the names so far are returned.
    pub async fn queue(&self, account: &str, who: &str) -> Vec<String> {
        let account = EntityPath::account(account);
        let (mut containers, mut marker) = (Vec::new(), String::new());
        loop {
            let page = match self.page(&account, &marker, None).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::error!("{who}: {error}; the rest of the queue waits for the next pass");
                    return containers;
                }
            };
            let Some(last) = page.last() else { return containers };
            marker.clone_from(&last.name);
            containers.extend(page.into_iter().map(|listed| listed.name));
        }
    }

    /// The page of a listing behind `marker`, of `limit` rows or as many as servers give; empty when there is no more,
    /// or nothing to list.
    pub async fn page(
        &self,
        path: &EntityPath,
        marker: &str,
        limit: Option<usize>,
    ) -> Result<Vec<ListedItem>, UnexpectedStatus> {
        let limit = limit.map(|limit| format!("&limit={limit}")).unwrap_or_default();
        let query = format!("format=json{limit}&marker={}", quote(marker).replace('/', "%2F"));
        let is_behind = |listed: &[ListedItem]| listed.last().is_none_or(|last| last.name.as_str() > marker);
        self.listing(path, query, is_behind).await
    }

    /// A page of a listing in JSON, with these parameters; empty when there is nothing to list. `is_behind` says
    /// whether the page goes on behind its marker: a server that ignored the marker would be asked for ever.
    pub(crate) async fn listing<T: DeserializeOwned>(
        &self,
        path: &EntityPath,
        query: String,
        is_behind: impl Fn(&[T]) -> bool,
    ) -> Result<Vec<T>, UnexpectedStatus> {
        let ask = InternalRequest {
            query,
            ..InternalRequest::new(Method::GET, path.clone())
        };
        let response = self.ask(&ask, &[2, 404]).await?;
        if !response.status().is_success() {
            return Ok(vec![]);
        }
        let trans_id = trans_id(&response);
        let broken = |why: &str| ask.broken(why, trans_id.clone());
        let body = response.into_body().collect(MAX_LISTING).await;
        let body = body.map_err(|error| broken(&error.to_string()))?;
        if body.is_empty() {
            return Ok(vec![]);
        }
        let listed: Vec<T> = serde_json::from_slice(&body).map_err(|error| broken(&error.to_string()))?;
        match is_behind(&listed) {
            true => Ok(listed),
            false => Err(broken("the listing does not go on behind its marker")),
        }
    }

    async fn send(&self, ask: &InternalRequest, body: Body, length: usize) -> Response {
        let mut request = self.request(ask, body);
        if length > 0 || ask.method == Method::PUT || ask.method == Method::POST {
            request
                .headers_mut()
                .insert("content-length", HeaderValue::from(length));
        }
        self.gateway.serve(request, nowhere()).await
    }

    fn request(&self, ask: &InternalRequest, body: Body) -> Request<Body> {
        let mut uri = format!("{VERSION}{}", ask.path.quoted());
        if !ask.query.is_empty() {
            uri.push('?');
            uri.push_str(&ask.query);
        }
        let mut request = Request::new(body);
        *request.method_mut() = ask.method.clone();
        // A quoted path is one. Were it not, the gateway refuses "/".
        *request.uri_mut() = uri.parse().unwrap_or_default();
        let headers = request.headers_mut();
        *headers = ask.headers.clone();
        headers.insert("user-agent", self.agent.clone());
        // The cluster's own names may be used, and its requests stay on the network between storage servers.
        headers.insert(X_ALLOW_RESERVED_NAMES, HeaderValue::from_static("true"));
        headers.insert(X_USE_REPLICATION_NETWORK, HeaderValue::from_static("true"));
        request
    }
}

impl InternalRequest {
    pub(crate) fn unexpected(&self, status: u16, trans_id: String) -> UnexpectedStatus {
        UnexpectedStatus {
            method: self.method.clone(),
            path: self.path.path(),
            status,
            trans_id,
        }
    }

    /// A good answer whose body is none.
    fn broken(&self, why: &str, trans_id: String) -> UnexpectedStatus {
        tracing::warn!("{} {}: {why} (txn: {trans_id})", self.method, self.path.path());
        self.unexpected(502, trans_id)
    }
}

/// The transaction that a gateway made of a request; `-` without one.
fn trans_id(response: &Response) -> String {
    let id = response.headers().get(X_TRANS_ID).and_then(|id| id.to_str().ok());
    id.unwrap_or("-").to_owned()
}

/// Upkeep's requests come over no connection.
fn nowhere() -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    /// OpenStack's servers list what their databases hold.
    const LISTING: &str = r#"[{"name": "b", "bytes": 3, "hash": "e"},
        {"name": "b1", "bytes": -7, "hash": null, "content_type": null},
            {"subdir": "b/"}, {"name": "b2", "count": -1.5}]"#;

    /// Answers with these statuses, one after the other, and keeps what it was asked.
    struct Scripted(Mutex<Vec<u16>>, Mutex<Vec<String>>);

    #[async_trait::async_trait]
    impl HttpService for Scripted {
        async fn serve(&self, request: Request<Body>, _: SocketAddr) -> Response {
            let line = format!("{} {}", request.method(), request.uri());
            assert_eq!(request.headers()[X_ALLOW_RESERVED_NAMES], "true");
            assert_eq!(request.headers()[X_USE_REPLICATION_NETWORK], "true");
            self.1.lock().push(line);
            let mut response = Response::new(Body::whole(LISTING));
            *response.status_mut() = StatusCode::from_u16(self.0.lock().remove(0)).unwrap();
            response
        }
    }

    fn client(statuses: &[u16]) -> (InternalClient, Arc<Scripted>) {
        let scripted = Arc::new(Scripted(Mutex::new(statuses.to_vec()), Mutex::default()));
        (
            InternalClient::new(World::real(), scripted.clone(), "test", 3),
            scripted,
        )
    }

    #[tokio::test(start_paused = true)]
    async fn server_errors_are_tried_again_and_refusals_are_not() {
        let ask = InternalRequest::new(Method::DELETE, EntityPath::account("a").with_container("c\0"));
        for (statuses, expected) in [
            (&[503, 500, 204][..], Ok(204)),
            (&[503, 500, 500], Err(500)),
            (&[403], Err(403)),
            (&[409], Ok(409)),
        ] {
            let (client, scripted) = client(statuses);
            let response = client.tell(&ask, &[2, 409]).await.map_err(|error| error.status);
            assert_eq!(response, expected);
            assert_eq!(*scripted.1.lock(), vec!["DELETE /v1/a/c%00"; statuses.len()]);
        }
    }

    #[tokio::test]
    async fn a_page_goes_on_behind_its_marker() {
        let path = EntityPath::account("a");
        let (client, scripted) = client(&[200, 404, 200]);
        let page = client.page(&path, "a/ ä", None).await.unwrap();
        assert_eq!(
            (page[0].name.as_str(), page[0].hash.as_str(), page.len()),
            ("b", "e", 4)
        );
        let rest: Vec<_> = page[1..].iter().map(|row| (&*row.name, &*row.content_type)).collect();
        assert_eq!(rest, [("b1", ""), ("", ""), ("b2", "")]);
        assert_eq!(scripted.1.lock()[0], "GET /v1/a?format=json&marker=a%2F%20%C3%A4");
        assert!(client.page(&path, "a", Some(7)).await.unwrap().is_empty());
        assert_eq!(client.page(&path, "z", None).await.unwrap_err().status, 502);
    }
}
