//! The object verbs but PUT (`put_object.rs`).
//!
//! Always holds: a write is sent to every replica with the listing servers that this replica is to inform.

use crate::authorise::authorise;
use crate::backend::{Question, Reply, context_of, copy_headers, header, target, text};
use crate::constraints::check_metadata;
use crate::expiry::deletion_time;
use crate::fan_out::{self, MakeCall};
use crate::located::{LocatedObject, Updates, forwarded_headers, locate};
use crate::resume::Reading;
use crate::shared::{Shared, VERBS, method_not_allowed};
use crate::{content_type, expiring_delete, multi_range, put_object, resume};
use http::header::{CONNECTION, DATE, HeaderValue, SERVER, TRANSFER_ENCODING};
use http::{HeaderName, Method};
use peer::message::header_names::{X_IF_DELETE_AT, X_OPEN_EXPIRED};
use peer::message::{DeleteObject, Message, PostObject, ReadObject};
use request_pipeline::{ClientRequest, InfoSource, Response, WriteTimeSlot, reply};
use std::sync::Arc;
use vocabulary::EntityPath;
use vocabulary::conditional::bare_etag;
use vocabulary::metadata::Entity;

/// Answers a request about an object.
pub(crate) async fn handle(shared: &Arc<Shared>, mut request: ClientRequest, path: Arc<EntityPath>) -> Response {
    if !matches!(request.method.as_str(), "GET" | "HEAD" | "PUT" | "POST" | "DELETE") {
        return method_not_allowed(VERBS);
    }
    let is_read = matches!(request.method, Method::GET | Method::HEAD);
    let opens = is_read || request.method == Method::POST;
    if opens && shared.options.allow_open_expired && request.is_true("x-open-expired") {
        let yes = HeaderValue::from_static("true");
        request.headers.insert(X_OPEN_EXPIRED, yes);
    }
    let container = shared
        .container(&path.account, path.container.as_deref().unwrap_or(""))
        .await;
    let acl = if is_read {
        container.read_acl.clone()
    } else {
        container.write_acl.clone()
    };
    if let Err(refusal) = authorise(shared, &mut request, acl.as_deref()).await {
        return refusal;
    }
    let object = match locate(shared, &request, path, container) {
        Ok(object) => object,
        Err(refusal) => return refusal,
    };
    match request.method {
        Method::GET | Method::HEAD => get_or_head(shared, &request, object).await,
        Method::PUT => put_object::handle(shared, request, object).await,
        Method::POST => post(shared, request, object).await,
        _ => delete(shared, &request, object).await,
    }
}

async fn get_or_head(shared: &Arc<Shared>, request: &ClientRequest, object: LocatedObject) -> Response {
    let mut headers = forwarded_headers(request);
    let context = context_of(request, &mut headers);
    let read = ReadObject {
        head_only: request.method == Method::HEAD,
        timestamp: request.began.1.into(),
        policy: object.policy.into(),
        ..ReadObject::decode(target(object.path), headers)
    };
    let reading = Reading { context, read };
    if request.method == Method::GET && multi_range::asks_for_several(&reading.read.headers) {
        return shown(Box::pin(multi_range::get(shared, request, object.route, reading)).await);
    }
    let newest = request.is_true("x-newest");
    shown(resume::get(shared, object.route, reading, newest).await)
}

static OF_THE_CONNECTION: [HeaderName; 5] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    TRANSFER_ENCODING,
    DATE,
    SERVER,
];

/// As clients see it: without the connection's own headers.
fn shown(mut response: Response) -> Response {
    let code = response.status().as_u16();
    let headers = response.headers_mut();
    for name in &OF_THE_CONNECTION {
        headers.remove(name);
    }
    content_type::show(headers);
    // Swift's clients know entity tags without quotes.
    if let Some(bare) = header(headers, "etag")
        .filter(|etag| etag.starts_with('"'))
        .map(|etag| text(bare_etag(etag)))
    {
        headers.insert("etag", bare);
    }
    match code {
        412 => {
            headers.insert("content-type", HeaderValue::from_static("text/html; charset=UTF-8"));
            headers.insert("content-length", HeaderValue::from_static("0"));
            response = response.map(|_| peer::Body::empty());
        }
        200..=399 | 416 => {
            headers.insert("accept-ranges", HeaderValue::from_static("bytes"));
        }
        _ => {}
    }
    response
}

async fn post(shared: &Arc<Shared>, mut request: ClientRequest, object: LocatedObject) -> Response {
    if let Err(refusal) = check_metadata(&request, Entity::Object, &shared.options.limits) {
        return refusal;
    }
    let deletion = match deletion_time(&mut request, shared.world.clock.now()) {
        Ok(deletion) => deletion,
        Err(refusal) => return refusal,
    };
    let replies = match write(shared, &request, &object, deletion).await {
        Ok(replies) => replies,
        Err(refusal) => return refusal,
    };
    let statuses: Vec<u16> = replies.iter().map(|r| r.status).collect();
    let somewhere = statuses.iter().any(|status| matches!(status, 200..=299));
    match quorum::best(&statuses, quorum::size(object.route.replicas())) {
        // Some have changed it: that it is not there would be as wrong as that it has been changed.
        Some(index) if somewhere && replies[index].status == 404 => reply::status(503),
        Some(index) => {
            let mut response = reply::status(replies[index].status);
            // Features want to know what it was that has been posted to.
            copy_headers(&replies[index].headers, response.headers_mut(), |name| {
                Entity::Object.is_system_meta(name.as_str())
            });
            response
        }
        None => reply::status(503),
    }
}

async fn delete(shared: &Arc<Shared>, request: &ClientRequest, object: LocatedObject) -> Response {
    let found = match expiring_delete::look(shared, request, &object).await {
        Ok(found) => found,
        Err(refusal) => return refusal,
    };
    let replies = match write(shared, request, &object, None).await {
        Ok(replies) => replies,
        Err(refusal) => return refusal,
    };
    let statuses: Vec<u16> = replies.iter().map(|r| r.status).collect();
    let mut response = match quorum::best_reading_as(&statuses, quorum::size(object.route.replicas()), 404, 204) {
        Some((status, _)) => reply::status(status),
        None => reply::status(503),
    };
    found.describe(&replies, &object, &mut response);
    response
}

/// Sends a write without a body to all replicas, each with the container servers that it is to inform.
async fn write(
    shared: &Arc<Shared>,
    request: &ClientRequest,
    object: &LocatedObject,
    deletion: Option<u64>,
) -> Result<Vec<Reply>, Response> {
    let mut time = shared.write_time_of(request)?;
    // A server without the object takes no note of a deletion on a condition.
    let is_conditional = request.method == Method::DELETE && request.headers.contains_key(X_IF_DELETE_AT);
    let mut headers = forwarded_headers(request);
    let context = context_of(request, &mut headers);
    let (timestamp, policy, target) = (time.timestamp.into(), object.policy.into(), target(object.path.clone()));
    let message: Message = match request.method {
        Method::POST => PostObject {
            timestamp,
            policy,
            ..PostObject::decode(target, headers)
        }
        .into(),
        _ => DeleteObject {
            timestamp,
            policy,
            ..DeleteObject::decode(target, headers)
        }
        .into(),
    };
    let (question, at) = (Question::new(context, message), object.route.clone());
    let updates = Updates::of(shared, object, deletion);
    let mut make_call: MakeCall = Arc::new(move |replica, node| {
        let mut call = question.call(&at, node);
        updates.add_to(&mut call.message, replica, &call.context);
        call
    });
    loop {
        let replies = match request.method {
            Method::POST => fan_out::change(shared, &object.route, make_call.clone()).await,
            _ if is_conditional => fan_out::write(shared, &object.route, make_call.clone()).await,
            _ => fan_out::delete(shared, &object.route, make_call.clone()).await,
        };
        let answered = (replies.len(), object.route.replicas());
        if time.is_final(&shared.write_clock, &object.path, &replies, answered)? {
            if let Some(slot) = request.extensions.get::<WriteTimeSlot>() {
                slot.note(time.timestamp);
            }
            return Ok(match request.method {
                Method::DELETE => time.as_one_deletion(replies),
                _ => replies,
            });
        }
        make_call = fan_out::retimed(make_call, time.timestamp);
    }
}
