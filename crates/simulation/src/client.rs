//! Clients: they send requests to a gateway, in the node it runs on, and report the replies to the run.

use crate::cluster::SimCluster;
use crate::history::{ClientWrite, WriteVerb};
use crate::plan::PlannedRequest;
use crate::sent_times::NUMBER;
use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use parking_lot::Mutex;
use peer::message::header_names::{X_NEWEST, X_TIMESTAMP};
use peer::{Body, BodyError, HttpService};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Bodies are shorter.
pub(crate) const LONGEST: u64 = 1 << 20;
/// What a client sends at a time.
const PIECE: usize = 20_000;

/// What a client was answered.
#[derive(Debug)]
pub(crate) struct ClientReply {
    pub(crate) path: usize,
    /// Of its write; for reads it means nothing.
    pub(crate) number: usize,
    pub(crate) ask: PlannedRequest,
    /// 0 when its gateway died.
    pub(crate) status: u16,
    /// The body, if it came whole.
    pub(crate) body: Option<Bytes>,
}

/// Reports to the run in any case, also when its task is dropped.
struct Reporter {
    reply: Option<ClientReply>,
    to: Arc<Mutex<Vec<ClientReply>>>,
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.to.lock().extend(self.reply.take());
    }
}

/// Begins a request; false when its gateway is dead.
pub(crate) fn ask(
    cluster: &SimCluster,
    node: usize,
    (account, container, object): &(String, String, String),
    (path, number): (usize, usize),
    ask: PlannedRequest,
    write: Option<ClientWrite>,
    replies: &Arc<Mutex<Vec<ClientReply>>>,
) -> bool {
    let Some(process) = &cluster.nodes[node].process else {
        return false;
    };
    let Some(request) = request(
        cluster,
        ask,
        write,
        &format!("/v1/{account}/{container}/{object}"),
        number,
    ) else {
        return false;
    };
    let mut reporter = Reporter {
        reply: Some(ClientReply {
            path,
            number,
            ask,
            status: 0,
            body: None,
        }),
        to: replies.clone(),
    };
    let gateway = process.gateway.clone();
    let from = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    cluster.executor.spawn(
        process.home,
        Box::pin(async move {
            let response = gateway.serve(request, from).await;
            let status = response.status().as_u16();
            let body = response.into_body().collect(LONGEST).await.ok();
            if let Some(reply) = &mut reporter.reply {
                (reply.status, reply.body) = (status, body);
            }
        }),
    );
    true
}

fn request(
    cluster: &SimCluster,
    ask: PlannedRequest,
    write: Option<ClientWrite>,
    path: &str,
    number: usize,
) -> Option<http::Request<Body>> {
    let (method, body) = match (ask, write.as_ref().map(|write| &write.verb)) {
        (PlannedRequest::Put { cut_short, .. }, Some(WriteVerb::Put(bytes))) => {
            (Method::PUT, sent(cluster, bytes, cut_short))
        }
        (PlannedRequest::Post, _) => (Method::POST, Body::empty()),
        (PlannedRequest::Delete, _) => (Method::DELETE, Body::empty()),
        (_, _) => (Method::GET, Body::empty()),
    };
    let mut request = http::Request::new(body);
    let length = match write.as_ref().map(|write| &write.verb) {
        Some(WriteVerb::Put(bytes)) => bytes.len(),
        _ => 0,
    };
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().ok()?;
    let headers = request.headers_mut();
    headers.insert("content-length", HeaderValue::from(length));
    headers.insert(NUMBER, HeaderValue::from(number));
    if ask == (PlannedRequest::Get { newest: true }) {
        headers.insert(X_NEWEST, HeaderValue::from_static("true"));
    }
    if let Some(at) = write.as_ref().and_then(|write| write.times.first()) {
        set(headers, X_TIMESTAMP, &at.internal());
    }
    Some(request)
}

pub(crate) fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// The body in pieces that take their time; cut short before the last.
fn sent(cluster: &SimCluster, bytes: &Bytes, cut_short: bool) -> Body {
    let most = if cut_short { bytes.len() / 2 } else { bytes.len() };
    let mut pieces: Vec<Result<Bytes, BodyError>> = vec![];
    let mut at = 0;
    while at < most {
        let next = most.min(at + PIECE);
        pieces.push(Ok(bytes.slice(at..next)));
        at = next;
    }
    if cut_short {
        pieces.push(Err(BodyError::Broken("the client is gone".into())));
    }
    let (executor, dice) = (cluster.executor.clone(), cluster.dice.clone());
    let stream = futures_util::stream::unfold(pieces.into_iter(), move |mut pieces| {
        let (executor, dice) = (executor.clone(), dice.clone());
        async move {
            let piece = pieces.next()?;
            executor.sleep(Duration::from_micros(dice.between(10, 30_000))).await;
            Some((piece, pieces))
        }
    });
    Body::stream(stream, Some(bytes.len() as u64))
}
