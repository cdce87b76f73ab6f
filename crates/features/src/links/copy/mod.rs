//! Copies inside the cluster: `COPY`, and `PUT` with `X-Copy-From`.
//!
//! A read of the source and a write of the destination, each sent down the rest of the pipeline and
//! each authorised by itself; the body streams from one into the other. A COPY becomes the PUT it means.
//!
//! | question | file |
//! |---|---|
//! | what do the client's headers ask for | `wish.rs` |
//! | what of the source goes into the destination, what is said of it | `carried.rs` |
//! | a copy that takes long | `heartbeat.rs` |
//!
//! Always holds: conditions and ranges of the request are the source's; a source that breaks off makes no
//! object, because the destination expects its whole length; what is larger than an object may be is refused.
//! Deliberately absent: large objects and links, which show themselves as what they are to a client that asks with
//! `multipart-manifest=get` or `symlink=get`.

mod carried;
mod heartbeat;
mod wish;

use crate::encryption;
use carried::{Carried, Query};
use http::header::{ACCESS_CONTROL_ALLOW_METHODS, ALLOW, CONTENT_LENGTH, HeaderValue};
use http::{HeaderName, Method, StatusCode};
use peer::Body;
use peer::message::header_names::X_POLICY_INDEX;
use request_pipeline::{
    ClientRequest, CopySourceKey, CustomerKey, Feature, KeepsSealed, Next, Response, WriteOrigin, reply, set_header,
};
use settings::CopySettings;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::EntityPath;
use wish::CopyOrder;
use world::Clock;

/// What the access log calls these requests.
const SOURCE: &str = "SSC";

/// Swift's `copy`.
pub struct Copy {
    max_file_size: u64,
    beat: Duration,
    clock: Arc<dyn Clock>,
}

impl Copy {
    /// `max_file_size` is the cluster's.
    pub fn new(settings: &CopySettings, max_file_size: u64, clock: Arc<dyn Clock>) -> Self {
        Self {
            max_file_size,
            beat: settings.yield_frequency,
            clock,
        }
    }
}

#[async_trait::async_trait]
impl Feature for Copy {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        !matches!(request.method.as_str(), "GET" | "HEAD" | "POST" | "DELETE")
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        let is_copy = match request.method {
            Method::GET | Method::HEAD | Method::POST | Method::DELETE => false,
            Method::PUT => request.headers.get("x-copy-from").is_some_and(|from| !from.is_empty()),
            Method::OPTIONS => return with_copy_named(request, next).await,
            ref method => method.as_str() == "COPY",
        };
        match request
            .entity
            .clone()
            .filter(|entity| is_copy && entity.object.is_some())
        {
            None => next.run(request).await,
            Some(entity) => match CopyOrder::read(request, &entity).await {
                Ok(wish) => self.copy(wish, next).await,
                Err(refusal) => *refusal,
            },
        }
    }
}

impl Copy {
    async fn copy(&self, wish: CopyOrder, next: Next) -> Response {
        let CopyOrder { mut request, source } = wish;
        let mut query = Query::read(&request.query);
        let found = next.clone().run(ask_for(&request, &source, &query)).await;
        if found.status().as_u16() >= 300 {
            return found;
        }
        let Some(length) = length(&found).filter(|length| *length <= self.max_file_size) else {
            return reply::status(413);
        };
        let (head, body) = found.into_parts();
        request.extensions.remove::<CopySourceKey>();
        if request.extensions.get::<KeepsSealed>().is_some() {
            encryption::carry(&head.extensions, &mut request);
        }
        let carried = Carried::of(head.status, &head.headers, &mut query);
        let summary = carried.load(&mut request, &source);
        query.write(&mut request);
        request.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        request.headers.remove(http::header::TRANSFER_ENCODING);
        request.body = body;
        request.notes.set_source(SOURCE);
        request.extensions.insert(WriteOrigin::Copy);
        if query.heartbeat {
            let accept = request
                .headers
                .get(http::header::ACCEPT)
                .map(|accept| accept.as_bytes().to_vec());
            let put = async move { next.run(request).await };
            return heartbeat::respond(accept.as_deref(), self.clock.clone(), self.beat, summary, put);
        }
        let mut response = next.run(request).await;
        if response.status().is_success() {
            response.headers_mut().extend(summary.headers);
        }
        response
    }
}

/// The read of the source: of its newest copy, with the client's conditions.
fn ask_for(request: &ClientRequest, source: &Arc<EntityPath>, query: &Query) -> ClientRequest {
    let mut asked = request.subrequest(Method::GET, EntityPath::clone(source), SOURCE);
    asked.headers = request.headers.clone();
    for name in [
        "x-copy-from",
        "x-copy-from-account",
        "content-length",
        "transfer-encoding",
        "expect",
    ] {
        asked.headers.remove(name);
    }
    asked.extensions.remove::<CustomerKey>();
    if let Some(CopySourceKey(key)) = asked.extensions.remove() {
        asked.extensions.insert::<CustomerKey>(key);
    }
    asked.headers.remove(X_POLICY_INDEX);
    asked.set_header("x-newest", "true");
    asked.query = query.for_source();
    asked
}

fn length(response: &Response) -> Option<u64> {
    let declared = response
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|text| text.to_str().ok()?.parse().ok());
    declared.or_else(|| response.body().length())
}

/// What is possible with an object, COPY with it.
async fn with_copy_named(request: ClientRequest, next: Next) -> Response {
    let is_object = request.entity.as_ref().is_some_and(|entity| entity.object.is_some());
    let mut response = next.run(request).await;
    if is_object && response.status() == StatusCode::OK {
        for name in [ALLOW, ACCESS_CONTROL_ALLOW_METHODS] {
            add_copy(&mut response, &name);
        }
    }
    response
}

fn add_copy(response: &mut Response, name: &HeaderName) {
    let Some(methods) = response.headers().get(name).and_then(|methods| methods.to_str().ok()) else {
        return;
    };
    if !methods.contains("COPY") {
        let methods = format!("{methods}, COPY");
        if let Ok(methods) = HeaderValue::try_from(methods) {
            response.headers_mut().insert(name.clone(), methods);
        }
    }
}

/// An empty body in place of one that is not to be read.
fn without_body(request: &mut ClientRequest) {
    request.body = Body::empty();
    set_header(&mut request.headers, "content-length", "0");
}

#[cfg(test)]
mod tests;
