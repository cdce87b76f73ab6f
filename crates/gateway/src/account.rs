//! The account verbs.
//!
//! Always holds: with `account_autocreate` an account that does not exist reads as an empty one and
//! comes into being with its first write.

use crate::authorise::{authorise, drop_owners_headers, hide_from_others};
use crate::backend::{Question, context_of, copy_headers, features_headers, own_context, target, text};
use crate::candidates::Candidates;
use crate::constraints::check_metadata;
use crate::fan_out::{self, MakeCall};
use crate::listing;
use crate::read;
use crate::shared::{Shared, VERBS, method_not_allowed};
use crate::write_clock::WriteTime;
use http::header::{HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use peer::message::header_names::X_PUT_TIMESTAMP;
use peer::message::{DeleteAccount, Message, PostAccount, PutAccount, ReadAccount, RequestContext};
use peer::{Body, Target};
use request_pipeline::{ClientRequest, InfoSource, Response, reply};
use std::sync::Arc;
use vocabulary::EntityPath;
use vocabulary::metadata::Entity;

/// Answers a request about an account.
pub(crate) async fn handle(shared: &Arc<Shared>, mut request: ClientRequest, account: &str) -> Response {
    let managed = shared.options.allow_account_management;
    match request.method.as_str() {
        "GET" | "HEAD" | "POST" => {}
        "PUT" | "DELETE" if managed => {}
        "PUT" | "DELETE" => {
            return match authorise(shared, &mut request, None).await {
                Err(refusal) => refusal,
                Ok(()) => method_not_allowed("GET, HEAD, OPTIONS, POST"),
            };
        }
        _ => return method_not_allowed(VERBS),
    }
    if let Err(refusal) = authorise(shared, &mut request, None).await {
        return refusal;
    }
    if let Err(error) = shared.options.limits.check_names(&EntityPath::account(account)) {
        return reply::html(400, error.to_string());
    }
    match request.method {
        Method::GET | Method::HEAD => get_or_head(shared, &request, account).await,
        Method::PUT => put(shared, request, account).await,
        Method::POST => post(shared, request, account).await,
        _ => delete(shared, &request, account).await,
    }
}

async fn get_or_head(shared: &Arc<Shared>, request: &ClientRequest, account: &str) -> Response {
    let mut headers = features_headers(request);
    let context = context_of(request, &mut headers);
    let message = ReadAccount {
        head_only: request.method == Method::HEAD,
        query: request.query.clone(),
        timestamp: request.began.1.into(),
        ..ReadAccount::decode(account_target(account), headers)
    };
    let question = Question::new(context, Message::ReadAccount(message));
    let since = shared.cache.moment();
    let mut candidates = Candidates::new(shared, shared.rings.account_route(account));
    let found = read::find(shared, &mut candidates, &question, request.is_true("x-newest")).await;
    let (status, headers) = read::head_of(&found);
    shared.note_account(account, status, &headers, since).await;
    let mut response = match found {
        Ok(source) => listing::whole(shared, request.from.ip(), source).await,
        Err(refusal) if refusal.status() == StatusCode::NOT_FOUND => {
            if refusal
                .headers()
                .get("x-account-status")
                .is_some_and(|s| s.as_bytes().eq_ignore_ascii_case(b"deleted"))
            {
                deleted()
            } else if shared.options.account_autocreate {
                return empty_account(request);
            } else {
                refusal
            }
        }
        Err(refusal) => refusal,
    };
    if response.status().is_success() {
        response
            .headers_mut()
            .insert("accept-ranges", HeaderValue::from_static("bytes"));
        response.headers_mut().remove(X_PUT_TIMESTAMP);
        reveal_access_control(request, response.headers_mut());
        hide_from_others(shared, request, response.headers_mut());
    }
    response
}

/// Owners see the account's access control under its public name, if there is any.
fn reveal_access_control(request: &ClientRequest, headers: &mut HeaderMap) {
    if request.is_owner
        && let Some(acl) = headers.get("x-account-sysmeta-core-access-control").cloned()
        && acl != "{}"
    {
        headers.insert("x-account-access-control", acl);
    }
}

/// The answer about an account whose content is being deleted.
pub(crate) fn deleted() -> Response {
    let mut response = reply::html(410, String::new());
    response
        .headers_mut()
        .insert("x-account-status", HeaderValue::from_static("Deleted"));
    response
}

fn empty_account(request: &ClientRequest) -> Response {
    let listing = if request.method == Method::HEAD { "" } else { "[]" };
    let json = HeaderValue::from_static("application/json; charset=utf-8");
    let mut response = reply::with_body(200, json, listing.into());
    let headers = response.headers_mut();
    for name in [
        "x-account-container-count",
        "x-account-object-count",
        "x-account-bytes-used",
    ] {
        headers.insert(name, HeaderValue::from_static("0"));
    }
    let now = text(&request.began.1.normal());
    headers.insert("x-timestamp", now.clone());
    headers.insert(X_PUT_TIMESTAMP, now);
    response
}

fn account_target(account: &str) -> Target {
    target(Arc::new(EntityPath::account(account)))
}

/// The headers of a client's write that the account servers keep, and those of features.
fn kept_headers(request: &ClientRequest) -> HeaderMap {
    let mut headers = features_headers(request);
    copy_headers(&request.headers, &mut headers, |name| {
        let name = name.as_str();
        Entity::Account.is_user_or_system_meta(name) || name.starts_with(Entity::Account.remove_prefix())
    });
    translate_removals(&request.headers, &mut headers, Entity::Account);
    headers
}

/// `X-Remove-Account-Meta-Colour: x` asks for what `X-Account-Meta-Colour:` with nothing says.
pub(crate) fn translate_removals(from: &HeaderMap, to: &mut HeaderMap, entity: Entity) {
    for name in from.keys() {
        if let Some(key) = name
            .as_str()
            .strip_prefix(entity.remove_prefix())
            .filter(|key| !key.is_empty())
            && let Ok(name) = http::HeaderName::try_from(format!("{}{key}", entity.user_prefix()))
            && !from.contains_key(&name)
        {
            to.insert(name, HeaderValue::from_static(""));
        }
    }
}

async fn send(shared: &Arc<Shared>, question: Question, mut time: WriteTime, account: &str) -> Response {
    let route = shared.rings.account_route(account);
    let (method, at) = (question.message.method(), route.clone());
    let mut make_call: MakeCall = Arc::new(move |_, node| question.call(&at, node));
    loop {
        let work = {
            let (shared, route, account) = (shared.clone(), route.clone(), account.to_owned());
            let make_call = make_call.clone();
            async move {
                let replies = fan_out::write(&shared, &route, make_call).await;
                shared.cache.forget(&account, None).await;
                replies
            }
        };
        // A client that hangs up must not leave what was true before in the caches.
        let replies = fan_out::to_its_end(shared, work).await.unwrap_or_default();
        let answered = (replies.len(), route.replicas());
        match time.is_final(&shared.write_clock, &EntityPath::account(account), &replies, answered) {
            Ok(true) => {
                let replies = match method {
                    Method::DELETE => time.as_one_deletion(replies),
                    _ => replies,
                };
                return read::agreed(&method, replies, quorum::size(route.replicas()));
            }
            Ok(false) => make_call = fan_out::retimed(make_call, time.timestamp),
            Err(refusal) => return refusal,
        }
    }
}

/// Brings an account into being that does not exist yet, with the system metadata that the request for whose sake
/// it is made has for accounts. Answers whether it worked.
pub(crate) async fn autocreate(shared: &Arc<Shared>, request: &ClientRequest, account: &str) -> bool {
    let trans_id = &*request.trans_id;
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        if name.as_str().starts_with(Entity::Account.system_prefix()) {
            headers.insert(name.clone(), value.clone());
        }
    }
    let time = shared.new_write_time();
    let message = PutAccount {
        timestamp: time.timestamp.into(),
        headers: Arc::new(headers),
        ..PutAccount::new(account_target(account))
    };
    let response = send(shared, Question::new(own_context(trans_id), message), time, account).await;
    if !response.status().is_success() {
        tracing::warn!(trans_id, account, status = %response.status(), "could not create the account");
    }
    response.status().is_success()
}

/// Whether the account exists, after creating it if that is allowed.
pub(crate) async fn exists_or_created(
    shared: &Arc<Shared>,
    request: &ClientRequest,
    account: &str,
) -> Result<(), Response> {
    match shared.account(account).await.status {
        200..=299 => Ok(()),
        404 if shared.options.account_autocreate => match autocreate(shared, request, account).await {
            true => Ok(()),
            false => Err(reply::status(503)),
        },
        410 if shared.options.account_autocreate => Err(reply::status(503)),
        404 | 410 => Err(reply::status(404)),
        _ => Err(reply::status(503)),
    }
}

/// When a PUT or POST is, what storage is to know of its client, and the headers that go there; refuses metadata and
/// times that cannot be.
fn begin_change(
    shared: &Shared,
    request: &mut ClientRequest,
) -> Result<(WriteTime, RequestContext, HeaderMap), Response> {
    check_metadata(request, Entity::Account, &shared.options.limits)?;
    drop_owners_headers(shared, request);
    let time = shared.write_time_of(request)?;
    let mut headers = kept_headers(request);
    let context = context_of(request, &mut headers);
    Ok((time, context, headers))
}

async fn put(shared: &Arc<Shared>, mut request: ClientRequest, account: &str) -> Response {
    let (time, context, headers) = match begin_change(shared, &mut request) {
        Ok(begun) => begun,
        Err(refusal) => return refusal,
    };
    let message = PutAccount {
        timestamp: time.timestamp.into(),
        ..PutAccount::decode(account_target(account), headers)
    };
    tidy(send(shared, Question::new(context, message), time, account).await)
}

async fn post(shared: &Arc<Shared>, mut request: ClientRequest, account: &str) -> Response {
    let (time, context, headers) = match begin_change(shared, &mut request) {
        Ok(begun) => begun,
        Err(refusal) => return refusal,
    };
    let message = PostAccount {
        timestamp: time.timestamp.into(),
        ..PostAccount::decode(account_target(account), headers)
    };
    let question = Question::new(context, message);
    let response = send(shared, question.clone(), time, account).await;
    if response.status() != StatusCode::NOT_FOUND || !shared.options.account_autocreate {
        return tidy(response);
    }
    match autocreate(shared, &request, account).await {
        true => tidy(send(shared, question, time, account).await),
        false => reply::status(503),
    }
}

async fn delete(shared: &Arc<Shared>, request: &ClientRequest, account: &str) -> Response {
    if !request.query.is_empty() {
        return reply::status(400);
    }
    let mut headers = features_headers(request);
    let context = context_of(request, &mut headers);
    let time = shared.new_write_time();
    let message = DeleteAccount {
        timestamp: time.timestamp.into(),
        ..DeleteAccount::decode(account_target(account), headers)
    };
    let response = tidy(send(shared, Question::new(context, message), time, account).await);
    match response.status() {
        StatusCode::NOT_FOUND if !response.headers().contains_key("x-account-status") => {
            reply::html(404, String::new())
        }
        _ => response,
    }
}

/// A backend's answer to a write as clients get it: its status, Swift's page for it, and what the
/// client has a use for.
pub(crate) fn tidy(response: Response) -> Response {
    let code = response.status().as_u16();
    let special = response.headers().get("x-account-status").cloned();
    let mut tidy = match code {
        201 | 204 => reply::html(code, String::new()),
        // This gateway's own words.
        503 => return response,
        // What the servers refuse they refuse in words of their own: metadata limits, for instance.
        400..=499 if special.is_some() || matches!(code, 400) => {
            let mut kept = Response::new(Body::empty());
            *kept.status_mut() = response.status();
            let content_type = HeaderValue::from_static("text/html; charset=UTF-8");
            *kept.body_mut() = response.into_body();
            kept.headers_mut().insert("content-type", content_type);
            if let Some(bytes) = kept.body().as_whole() {
                kept.headers_mut()
                    .insert("content-length", HeaderValue::from(bytes.len()));
            }
            kept
        }
        _ => reply::status(code),
    };
    if let Some(special) = special {
        tidy.headers_mut().insert("x-account-status", special);
    }
    tidy
}
