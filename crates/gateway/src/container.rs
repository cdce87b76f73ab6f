//! The container verbs.
//!
//! Always holds: every write forgets what the caches know of the container (and of its account); a
//! container is created in one storage policy, said to all its servers alike.

use crate::account::{self, tidy, translate_removals};
use crate::authorise::{authorise, drop_owners_headers, hide_from_others};
use crate::backend::{Question, Reply, context_of, copy_headers, features_headers, header, own_context, target, text};
use crate::candidates::Candidates;
use crate::constraints::check_metadata;
use crate::fan_out::{self, MakeCall};
use crate::listing;
use crate::read;
use crate::route::Route;
use crate::shared::{Shared, VERBS, method_not_allowed};
use crate::write_clock::{WriteTime, header_timestamp};
use http::Method;
use http::header::{HeaderMap, HeaderValue};
use peer::message::header_names::{
    X_ALLOW_PRIVATE_METHODS, X_BACKEND_DELETE_TIMESTAMP, X_BACKEND_PUT_TIMESTAMP, X_BACKEND_TIMESTAMP, X_POLICY_INDEX,
    X_PUT_TIMESTAMP, X_SHARDING_STATE,
};
use peer::message::{
    DeleteContainer, Message, PostContainer, PutContainer, ReadContainer, RequestContext, RowChange, UpdateContainer,
};
use peer::{Body, Target};
use request_pipeline::{ClientRequest, InfoSource, Response, reply};
use std::sync::Arc;
use vocabulary::metadata::Entity;
use vocabulary::{EntityPath, PolicyIndex, Timestamp};

/// Headers besides metadata that containers keep.
const KEPT: [&str; 4] = [
    "x-container-read",
    "x-container-write",
    "x-container-sync-key",
    "x-container-sync-to",
];

/// Answers a request about a container.
pub(crate) async fn handle(
    shared: &Arc<Shared>,
    mut request: ClientRequest,
    account: &str,
    container: &str,
) -> Response {
    if !matches!(request.method.as_str(), "GET" | "HEAD" | "PUT" | "POST" | "DELETE") && !is_update(&request) {
        return method_not_allowed(VERBS);
    }
    let is_read = matches!(request.method, Method::GET | Method::HEAD);
    let acl = match is_read {
        true => shared.container(account, container).await.read_acl.clone(),
        false => None,
    };
    if let Err(refusal) = authorise(shared, &mut request, acl.as_deref()).await {
        return refusal;
    }
    match request.method {
        Method::GET | Method::HEAD => get_or_head(shared, &request, account, container).await,
        Method::PUT => put(shared, request, account, container).await,
        Method::POST => post(shared, request, account, container).await,
        _ if is_update(&request) => update(shared, request, account, container).await,
        _ => delete(shared, &request, account, container).await,
    }
}

/// `UPDATE`, by which features put rows into a container of the cluster's own. Clients cannot send the header.
fn is_update(request: &ClientRequest) -> bool {
    request.method.as_str() == "UPDATE" && request.headers.contains_key(X_ALLOW_PRIVATE_METHODS)
}

/// Rows of a queue, in one go.
const MAX_UPDATE: u64 = 64 * 1024 * 1024;

async fn update(shared: &Arc<Shared>, mut request: ClientRequest, account: &str, container: &str) -> Response {
    let body = std::mem::replace(&mut request.body, Body::empty());
    let Ok(rows) = body.collect(MAX_UPDATE).await else {
        return reply::status(400);
    };
    let mut headers = features_headers(&request);
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    let context = context_of(&request, &mut headers);
    let message = UpdateContainer {
        change: RowChange::Batch,
        timestamp: shared.write_clock.next().into(),
        ..UpdateContainer::decode(container_target(account, container), headers)
    };
    let route = shared.rings.container_route(account, container);
    let (question, at) = (Question::new(context, message), route.clone());
    let make_call: MakeCall = Arc::new(move |_, node| question.call(&at, node).with_body(Body::whole(rows.clone())));
    let replies = fan_out::write(shared, &route, make_call).await;
    tidy(read::agreed(&request.method, replies, quorum::size(route.replicas())))
}

/// Why there is nothing to be had of an account's containers, if so: where no server knows of the account, they may all
/// be there.
async fn refusal_of_account(shared: &Shared, method: &Method, account: &str) -> Option<Response> {
    // Asked once: what no server could say is not remembered.
    let info = shared.account(account).await;
    match info.is_unknown() {
        true => Some(reply::status_for(method, 503)),
        false if info.is_gone() && !shared.is_swifts_own(account) => Some(reply::status_for(method, 404)),
        false => None,
    }
}

async fn get_or_head(shared: &Arc<Shared>, request: &ClientRequest, account: &str, container: &str) -> Response {
    if let Some(refusal) = refusal_of_account(shared, &request.method, account).await {
        return refusal;
    }
    let mut headers = features_headers(request);
    let context = context_of(request, &mut headers);
    let message = ReadContainer {
        head_only: request.method == Method::HEAD,
        query: request.query.clone(),
        timestamp: request.began.1.into(),
        ..ReadContainer::decode(container_target(account, container), headers)
    };
    let question = Question::new(context, Message::ReadContainer(message));
    let since = shared.cache.moment();
    let mut candidates = Candidates::new(shared, shared.rings.container_route(account, container));
    let found = read::find(shared, &mut candidates, &question, request.is_true("x-newest")).await;
    let (status, headers) = read::head_of(&found);
    shared
        .note_container((account, container), status, &headers, since)
        .await;
    if request.method == Method::GET
        && matches!(
            header(&headers, X_SHARDING_STATE.as_str()),
            Some("sharding" | "sharded")
        )
    {
        tracing::warn!("{account}/{container} is sharded: what its shards list is not read here");
        return reply::html(501, "The container is sharded, which this server cannot list.".into());
    }
    let mut response = match found {
        Ok(source) => listing::whole(shared, request.from.ip(), source).await,
        Err(refusal) => return refusal,
    };
    if response.status().is_success() {
        show(shared, request, response.headers_mut());
    }
    response
}

/// Turns a container server's headers into those clients see.
fn show(shared: &Shared, request: &ClientRequest, headers: &mut HeaderMap) {
    headers.insert("accept-ranges", HeaderValue::from_static("bytes"));
    headers.remove(X_PUT_TIMESTAMP);
    let policy = header(headers, X_POLICY_INDEX.as_str()).and_then(|index| index.parse().ok());
    if let Some(policy) = policy.and_then(|index| shared.rings.policies.get(PolicyIndex(index))) {
        headers.insert("x-storage-policy", text(&policy.name));
    }
    if request.is_reseller_admin {
        let sharding = header(headers, "x-container-sysmeta-sharding").is_some_and(request_pipeline::is_true);
        headers.insert(
            "x-container-sharding",
            HeaderValue::from_static(if sharding { "True" } else { "False" }),
        );
    }
    hide_from_others(shared, request, headers);
}

fn container_target(account: &str, container: &str) -> Target {
    target(Arc::new(EntityPath::account(account).with_container(container)))
}

/// The headers of a client's write that the container servers keep, and those of features.
fn kept_headers(request: &ClientRequest) -> HeaderMap {
    let mut headers = features_headers(request);
    copy_headers(&request.headers, &mut headers, |name| {
        Entity::Container.is_user_or_system_meta(name.as_str()) || KEPT.contains(&name.as_str())
    });
    translate_removals(&request.headers, &mut headers, Entity::Container);
    for name in KEPT {
        let removal = name.replacen("x-container-", "x-remove-container-", 1);
        if request.headers.contains_key(&removal) && !request.headers.contains_key(name) {
            headers.insert(name, HeaderValue::from_static(""));
        }
    }
    headers
}

/// Sends a write to all servers of the container, each with the account servers that it is to inform; answers with what
/// they agree on.
async fn send(
    shared: &Arc<Shared>,
    question: Question,
    mut time: WriteTime,
    account: &str,
    container: &str,
) -> Response {
    let route = shared.rings.container_route(account, container);
    let accounts = shared.rings.account_route(account);
    let (method, at, replicas) = (question.message.method(), route.clone(), route.replicas());
    let path = EntityPath::account(account).with_container(container);
    // Accounts are sent rows over the clients' network in any case, as by OpenStack's servers.
    let clients_network = RequestContext::default();
    let mut make_call: MakeCall = Arc::new(move |replica, node| {
        let mut call = question.call(&at, node);
        let targets = || accounts.update_targets(replica, replicas, &clients_network);
        match &mut call.message {
            Message::PutContainer(put) => put.accounts = targets(),
            Message::DeleteContainer(delete) => delete.accounts = targets(),
            _ => {}
        }
        call
    });
    loop {
        let work = {
            let (shared, route, make_call) = (shared.clone(), route.clone(), make_call.clone());
            let (account, container) = (account.to_owned(), container.to_owned());
            async move {
                let replies = fan_out::write(&shared, &route, make_call).await;
                shared.cache.forget(&account, Some(&container)).await;
                replies
            }
        };
        // A client that hangs up must not leave an old ACL in the caches.
        let replies = fan_out::to_its_end(shared, work).await.unwrap_or_default();
        let answered = (replies.len(), replicas);
        let done = match time.is_first() && is_unexplained(&replies) {
            true => match written_at(shared, &path, &route).await {
                Some(newer) if newer >= time.timestamp => time.pass(&shared.write_clock, &path, newer, answered),
                _ => Ok(true),
            },
            false => time.is_final(&shared.write_clock, &path, &replies, answered),
        };
        match done {
            Ok(true) => {
                let replies = match method {
                    Method::DELETE => time.as_one_deletion(replies),
                    _ => replies,
                };
                return read::agreed(&method, replies, quorum::size(replicas));
            }
            Ok(false) => make_call = fan_out::retimed(make_call, time.timestamp),
            Err(refusal) => return refusal,
        }
    }
}

/// Whether the servers conflict with a write and do not say why: OpenStack's name no time where something newer is in
/// the way, and none can where objects are. (A policy that is in the way is named.)
fn is_unexplained(replies: &[Reply]) -> bool {
    let is_conflict = |reply: &&Reply| reply.status == 409;
    let is_explained = |reply: &Reply| {
        [X_POLICY_INDEX, X_BACKEND_TIMESTAMP]
            .iter()
            .any(|name| reply.headers.contains_key(name))
    };
    let mut conflicts = replies.iter().filter(is_conflict).peekable();
    conflicts.peek().is_some() && !conflicts.any(is_explained)
}

/// When the container came or went last, as all its servers know; `None` where that does not matter, because it has
/// objects.
async fn written_at(shared: &Arc<Shared>, path: &EntityPath, route: &Route) -> Option<Timestamp> {
    let message = ReadContainer {
        head_only: true,
        timestamp: shared.world.clock.now().into(),
        ..ReadContainer::new(target(Arc::new(path.clone())))
    };
    let (question, at) = (Question::new(own_context("clock"), message), route.clone());
    let make_call: MakeCall = Arc::new(move |_, node| question.call(&at, node));
    let replies = fan_out::write(shared, route, make_call).await;
    let count = |reply: &Reply| header(&reply.headers, "x-container-object-count").is_some_and(|count| count != "0");
    if replies.iter().any(count) {
        return None;
    }
    let times = |reply: &Reply| {
        let time = |name| header_timestamp(&reply.headers, name).unwrap_or_default();
        time(&X_BACKEND_PUT_TIMESTAMP).max(time(&X_BACKEND_DELETE_TIMESTAMP))
    };
    replies.iter().map(times).max()
}

async fn put(shared: &Arc<Shared>, mut request: ClientRequest, account: &str, container: &str) -> Response {
    if let Err(refusal) = check_metadata(&request, Entity::Container, &shared.options.limits) {
        return refusal;
    }
    let policy = match wanted_policy(shared, &request) {
        Ok(policy) => policy,
        Err(refusal) => return refusal,
    };
    if let Err(error) = shared
        .options
        .limits
        .check_names(&EntityPath::account(account).with_container(container))
    {
        return reply::html(400, error.to_string());
    }
    drop_owners_headers(shared, &mut request);
    if let Err(refusal) = account::exists_or_created(shared, &request, account).await {
        return refusal;
    }
    let most = shared.options.max_containers_per_account;
    if most > 0
        && !shared
            .options
            .max_containers_whitelist
            .iter()
            .any(|name| name == account)
        && shared.account(account).await.container_count >= most
        && !shared.container(account, container).await.exists()
    {
        return reply::html(403, format!("Reached container limit of {most}"));
    }
    let time = match shared.write_time_of(&request) {
        Ok(time) => time,
        Err(refusal) => return refusal,
    };
    let mut headers = kept_headers(&request);
    let context = context_of(&request, &mut headers);
    let mut message = PutContainer::decode(container_target(account, container), headers);
    message.timestamp = time.timestamp.into();
    match policy {
        Some(index) => message.policy = index.into(),
        None => message.default_policy = shared.rings.policies.default_policy().index.into(),
    }
    tidy(send(shared, Question::new(context, message), time, account, container).await)
}

/// The policy a client asks for by name; `None` when it leaves the choice to us.
fn wanted_policy(shared: &Shared, request: &ClientRequest) -> Result<Option<PolicyIndex>, Response> {
    let Some(name) = request.header("x-storage-policy").filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    match shared.rings.policies.by_name(name) {
        None => Err(reply::plain(400, format!("Invalid X-Storage-Policy '{name}'"))),
        Some(policy) if policy.deprecated => Err(reply::plain(400, format!("Storage Policy '{name}' is deprecated"))),
        Some(policy) => Ok(Some(policy.index)),
    }
}

async fn post(shared: &Arc<Shared>, mut request: ClientRequest, account: &str, container: &str) -> Response {
    if let Err(refusal) = check_metadata(&request, Entity::Container, &shared.options.limits) {
        return refusal;
    }
    drop_owners_headers(shared, &mut request);
    if let Some(refusal) = refusal_of_account(shared, &request.method, account).await {
        return refusal;
    }
    let time = match shared.write_time_of(&request) {
        Ok(time) => time,
        Err(refusal) => return refusal,
    };
    let mut headers = kept_headers(&request);
    let context = context_of(&request, &mut headers);
    let message = PostContainer {
        timestamp: time.timestamp.into(),
        ..PostContainer::decode(container_target(account, container), headers)
    };
    tidy(send(shared, Question::new(context, message), time, account, container).await)
}

async fn delete(shared: &Arc<Shared>, request: &ClientRequest, account: &str, container: &str) -> Response {
    if let Some(refusal) = refusal_of_account(shared, &request.method, account).await {
        return refusal;
    }
    let mut headers = features_headers(request);
    let context = context_of(request, &mut headers);
    let time = shared.new_write_time();
    let message = DeleteContainer {
        timestamp: time.timestamp.into(),
        ..DeleteContainer::decode(container_target(account, container), headers)
    };
    let response = send(shared, Question::new(context, message), time, account, container).await;
    // The servers agree that it was deleted before.
    if response.status() == http::StatusCode::ACCEPTED {
        reply::status(404)
    } else {
        tidy(response)
    }
}
