//! The container verbs.
//!
//! Always holds: every write forgets what the caches know of the container (and of its account); a
//! container is created in one storage policy, said to all its servers alike.

use crate::account::{self, MAX_LISTING, tidy, translate_removals};
use crate::authorise::{authorise, drop_owners_headers, hide_from_others};
use crate::backend::{Question, copy_headers, header, headers_for, text};
use crate::candidates::Candidates;
use crate::constraints::check_metadata;
use crate::fan_out::{self, MakeCall};
use crate::gateway::{Shared, VERBS, method_not_allowed};
use crate::nodes::Route;
use crate::read;
use http::Method;
use http::header::{HeaderMap, HeaderValue};
use peer::Body;
use request_pipeline::{ClientRequest, InfoSource, Response, reply};
use std::sync::Arc;
use vocabulary::metadata::Entity;
use vocabulary::{EntityPath, PolicyIndex};

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
    request.method.as_str() == "UPDATE" && request.headers.contains_key("x-backend-allow-private-methods")
}

/// Rows of a queue, in one go.
const MAX_UPDATE: u64 = 64 * 1024 * 1024;

async fn update(shared: &Arc<Shared>, mut request: ClientRequest, account: &str, container: &str) -> Response {
    let body = std::mem::replace(&mut request.body, Body::empty());
    let Ok(rows) = body.collect(MAX_UPDATE).await else {
        return reply::status(400);
    };
    let mut headers = headers_for(&request, shared.new_timestamp());
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    let route = shared.rings.container_route(account, container);
    let path = Arc::new(EntityPath::account(account).with_container(container));
    let method = request.method;
    let question = Question {
        method: method.clone(),
        path,
        headers,
        query: String::new(),
    };
    let at = route.clone();
    let make_call: MakeCall = Arc::new(move |_, node| {
        let mut call = question.call(&at, node);
        call.headers.insert("content-length", HeaderValue::from(rows.len()));
        call.with_body(Body::whole(rows.clone()))
    });
    let replies = fan_out::write(shared, &route, make_call).await;
    tidy(read::agreed(&method, replies, quorum::size(route.replicas())))
}

async fn get_or_head(shared: &Arc<Shared>, request: &ClientRequest, account: &str, container: &str) -> Response {
    if !shared.account(account).await.exists() {
        return reply::status_for(&request.method, 404);
    }
    let headers = headers_for(request, request.began.1);
    let path = Arc::new(EntityPath::account(account).with_container(container));
    let question = Question {
        method: request.method.clone(),
        path,
        headers,
        query: request.query.clone(),
    };
    let since = shared.cache.moment();
    let mut candidates = Candidates::new(shared, shared.rings.container_route(account, container));
    let found = read::find(shared, &mut candidates, &question, request.is_true("x-newest")).await;
    let (status, said) = read::said(&found);
    shared.note_container((account, container), status, &said, since).await;
    let mut response = match found {
        Ok(source) => read::whole(shared, source, MAX_LISTING).await,
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
    headers.remove("x-put-timestamp");
    let policy = header(headers, "x-backend-storage-policy-index").and_then(|index| index.parse().ok());
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

fn kept_headers(shared: &Shared, request: &ClientRequest) -> Result<HeaderMap, Response> {
    let mut headers = headers_for(request, shared.timestamp_of(request)?);
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
    Ok(headers)
}

/// Sends a write to all servers of the container, each told of the account servers it should inform.
async fn send(
    shared: &Arc<Shared>,
    method: Method,
    headers: HeaderMap,
    account: &str,
    container: &str,
) -> (Route, Vec<crate::backend::Reply>) {
    let route = shared.rings.container_route(account, container);
    let accounts = shared.rings.account_route(account);
    let path = Arc::new(EntityPath::account(account).with_container(container));
    let question = Question {
        method: method.clone(),
        path,
        headers,
        query: String::new(),
    };
    let informs = matches!(method, Method::PUT | Method::DELETE);
    let (at, replicas) = (route.clone(), route.replicas());
    let make_call: MakeCall = Arc::new(move |replica, node| {
        let mut call = question.call(&at, node);
        if informs {
            add_update_targets(&mut call.headers, "account", &accounts, replica, replicas);
        }
        call
    });
    let work = {
        let (shared, route) = (shared.clone(), route.clone());
        let (account, container) = (account.to_owned(), container.to_owned());
        async move {
            let replies = fan_out::write(&shared, &route, make_call).await;
            shared.cache.forget(&account, Some(&container)).await;
            replies
        }
    };
    // A client that hangs up must not leave an old ACL in the caches.
    let replies = fan_out::to_its_end(shared, work).await.unwrap_or_default();
    (route, replies)
}

/// Tells replica number `replica` of `replicas` which servers of the parent it should inform.
pub(crate) fn add_update_targets(
    headers: &mut HeaderMap,
    parent: &str,
    route: &Route,
    replica: usize,
    replicas: usize,
) {
    let mine = || route.primaries.iter().skip(replica).step_by(replicas.max(1));
    // Accounts are told over the clients' network in any case, as by OpenStack's servers.
    let own = HeaderMap::new();
    let network = if parent == "account" { &own } else { &*headers };
    let hosts: Vec<String> = mine().map(|node| node.host(network)).collect();
    if hosts.is_empty() {
        return;
    }
    let devices: Vec<&str> = mine().map(|n| n.device.as_str()).collect();
    let names = match parent {
        "account" => ["x-account-host", "x-account-device", "x-account-partition"],
        _ => ["x-container-host", "x-container-device", "x-container-partition"],
    };
    headers.insert(names[0], text(&hosts.join(",")));
    headers.insert(names[1], text(&devices.join(",")));
    headers.insert(names[2], text(&route.partition.to_string()));
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
    let mut headers = match kept_headers(shared, &request) {
        Ok(headers) => headers,
        Err(refusal) => return refusal,
    };
    match policy {
        Some(index) => headers.insert("x-backend-storage-policy-index", text(&index.to_string())),
        None => {
            let default = shared.rings.policies.default_policy().index;
            headers.insert("x-backend-storage-policy-default", text(&default.to_string()))
        }
    };
    let (route, replies) = send(shared, Method::PUT, headers, account, container).await;
    tidy(read::agreed(&Method::PUT, replies, quorum::size(route.replicas())))
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
    if !shared.account(account).await.exists() {
        return reply::status(404);
    }
    let headers = match kept_headers(shared, &request) {
        Ok(headers) => headers,
        Err(refusal) => return refusal,
    };
    let (route, replies) = send(shared, Method::POST, headers, account, container).await;
    tidy(read::agreed(&Method::POST, replies, quorum::size(route.replicas())))
}

async fn delete(shared: &Arc<Shared>, request: &ClientRequest, account: &str, container: &str) -> Response {
    if !shared.account(account).await.exists() {
        return reply::status(404);
    }
    let headers = headers_for(request, shared.new_timestamp());
    let (route, replies) = send(shared, Method::DELETE, headers, account, container).await;
    let response = read::agreed(&Method::DELETE, replies, quorum::size(route.replicas()));
    // The servers agree that it was deleted before.
    if response.status() == http::StatusCode::ACCEPTED {
        reply::status(404)
    } else {
        tidy(response)
    }
}
