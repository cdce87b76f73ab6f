//! The object verbs but PUT (`put_object.rs`).
//!
//! Always holds: an object verb on a container that does not exist is 404; the policy of an object is
//! its container's, unless a feature has said otherwise.

use crate::authorise::authorise;
use crate::backend::{Question, Reply, base_headers, copy_headers, header, joined, response_of, text};
use crate::candidates::Candidates;
use crate::constraints::check_metadata;
use crate::container::add_update_targets;
use crate::expiry::{Queue, deletion_time};
use crate::fan_out::{self, MakeCall};
use crate::gateway::{Shared, VERBS, method_not_allowed};
use crate::multi_range;
use crate::nodes::{Node, Route};
use crate::{content_type, put_object, read, resume};
use http::Method;
use http::header::{HeaderMap, HeaderValue};
use request_pipeline::{ClientRequest, ContainerInfo, InfoSource, Response, reply};
use settings::kinds::HandoffDeleteCount;
use std::sync::Arc;
use vocabulary::conditional::bare_etag;
use vocabulary::metadata::Entity;
use vocabulary::{EntityPath, PolicyIndex};

/// Client headers that never travel to storage: credentials, what belongs to the connection, and
/// what this gateway says itself.
const NOT_FORWARDED: [&str; 17] = [
    "authorization",
    "x-auth-token",
    "x-storage-token",
    "x-service-token",
    "cookie",
    "host",
    "content-length",
    "transfer-encoding",
    "expect",
    "trailer",
    "user-agent",
    "x-timestamp",
    "x-trans-id",
    "x-delete-at-container",
    "x-delete-at-partition",
    "x-delete-at-host",
    "x-delete-at-device",
];

/// An object, its container as it is known, and where the object lives.
pub(crate) struct Place {
    pub(crate) path: Arc<EntityPath>,
    pub(crate) policy: PolicyIndex,
    pub(crate) route: Route,
    pub(crate) container: Arc<ContainerInfo>,
}

/// Answers a request about an object.
pub(crate) async fn handle(shared: &Arc<Shared>, mut request: ClientRequest, path: Arc<EntityPath>) -> Response {
    if !matches!(request.method.as_str(), "GET" | "HEAD" | "PUT" | "POST" | "DELETE") {
        return method_not_allowed(VERBS);
    }
    let is_read = matches!(request.method, Method::GET | Method::HEAD);
    let opens = is_read || request.method == Method::POST;
    if opens && shared.options.allow_open_expired && request.is_true("x-open-expired") {
        let yes = HeaderValue::from_static("true");
        request.headers.insert("x-backend-open-expired", yes);
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
    let place = match place(shared, &request, path, container) {
        Ok(place) => place,
        Err(refusal) => return refusal,
    };
    match request.method {
        Method::GET | Method::HEAD => get_or_head(shared, &request, place).await,
        Method::PUT => put_object::handle(shared, request, place).await,
        Method::POST => post(shared, request, place).await,
        _ => delete(shared, &request, place).await,
    }
}

fn place(
    shared: &Shared,
    request: &ClientRequest,
    path: Arc<EntityPath>,
    container: Arc<ContainerInfo>,
) -> Result<Place, Response> {
    match container.status {
        200..=299 => {}
        404 | 410 => return Err(reply::status_for(&request.method, 404)),
        _ => return Err(reply::status_for(&request.method, 503)),
    }
    let chosen = request
        .header("x-backend-storage-policy-index")
        .and_then(|index| index.parse().ok());
    let policy = chosen.map_or(container.policy, PolicyIndex);
    request.notes.set_policy(policy);
    let (name, object) = (
        path.container.as_deref().unwrap_or(""),
        path.object.as_deref().unwrap_or(""),
    );
    let Some(route) = shared.rings.object_route(policy, &path.account, name, object) else {
        tracing::error!(
            "container {}/{name} uses {policy:?}, which has no ring here: install it",
            path.account
        );
        return Err(reply::status_for(&request.method, 503));
    };
    Ok(Place {
        path,
        policy,
        route: near(shared, route, &request.method),
        container,
    })
}

/// A write of data goes to nearby nodes first, if so configured; replication takes it to where it belongs. Until then a
/// deletion must reach it there, or a quorum of the primaries would say that there is nothing.
fn near(shared: &Shared, route: Route, method: &Method) -> Route {
    let routing = route.routing(&shared.options.routing);
    let is_local = |node: &Node| routing.write_affinity.is_local(node.region, node.zone);
    let replicas = route.replicas();
    match *method {
        _ if routing.write_affinity.0.is_empty() => route,
        Method::PUT => route.local_first(is_local, routing.write_affinity_node_count.for_replicas(replicas)),
        Method::DELETE => {
            route.with_local_handoffs(is_local, |local| match routing.write_affinity_handoff_delete_count {
                HandoffDeleteCount::Auto => replicas.saturating_sub(local),
                HandoffDeleteCount::Count(count) => count,
            })
        }
        _ => route,
    }
}

/// The client's headers that storage should see, and those every call carries.
pub(crate) fn storage_headers(request: &ClientRequest, place: &Place, timestamp: vocabulary::Timestamp) -> HeaderMap {
    let mut headers = base_headers(&request.trans_id, timestamp);
    for name in request.headers.keys() {
        let word = name.as_str();
        let is_update_target = word.starts_with("x-container-") && !Entity::Container.is_user_or_system_meta(word);
        if !NOT_FORWARDED.contains(&word)
            && !is_update_target
            && let Some(value) = joined(&request.headers, name)
        {
            headers.insert(name.clone(), value);
        }
    }
    headers.insert("x-backend-storage-policy-index", text(&place.policy.to_string()));
    headers
}

async fn get_or_head(shared: &Arc<Shared>, request: &ClientRequest, place: Place) -> Response {
    let headers = storage_headers(request, &place, request.began.1);
    let path = place.path.clone();
    let question = Question {
        method: request.method.clone(),
        path,
        headers,
        query: String::new(),
    };
    if request.method == Method::GET && multi_range::asks_for_several(&question.headers) {
        return shown(Box::pin(multi_range::get(shared, request, place.route, question)).await);
    }
    let newest = request.is_true("x-newest");
    shown(get(shared, place.route, question, newest).await)
}

/// A GET or HEAD of one range or the whole, failing over even in the middle of the body.
pub(crate) async fn get(shared: &Arc<Shared>, route: Route, question: Question, newest: bool) -> Response {
    let mut candidates = Candidates::new(shared, route);
    match read::find(shared, &mut candidates, &question, newest).await {
        Err(refusal) => refusal,
        Ok(source) if question.method == Method::HEAD || !source.response.status().is_success() => source.response,
        Ok(source) => resume::download(shared, candidates, question, source),
    }
}

/// As clients see it: without the connection's own headers.
fn shown(mut response: Response) -> Response {
    let code = response.status().as_u16();
    let headers = response.headers_mut();
    for name in ["connection", "keep-alive", "transfer-encoding", "date", "server"] {
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

async fn post(shared: &Arc<Shared>, mut request: ClientRequest, place: Place) -> Response {
    if let Err(refusal) = check_metadata(&request, Entity::Object, &shared.options.limits) {
        return refusal;
    }
    let deletion = match deletion_time(&mut request, shared.world.clock.now()) {
        Ok(deletion) => deletion,
        Err(refusal) => return refusal,
    };
    let replies = match write(shared, &request, &place, deletion).await {
        Ok(replies) => replies,
        Err(refusal) => return refusal,
    };
    let statuses: Vec<u16> = replies.iter().map(|r| r.status).collect();
    let somewhere = statuses.iter().any(|status| matches!(status, 200..=299));
    match quorum::best(&statuses, quorum::size(place.route.replicas())) {
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

async fn delete(shared: &Arc<Shared>, request: &ClientRequest, place: Place) -> Response {
    let replies = match write(shared, request, &place, None).await {
        Ok(replies) => replies,
        Err(refusal) => return refusal,
    };
    let statuses: Vec<u16> = replies.iter().map(|r| r.status).collect();
    match quorum::best_reading_as(&statuses, quorum::size(place.route.replicas()), 404, 204) {
        Some((status, _)) => reply::status(status),
        None => reply::status(503),
    }
}

/// Sends a write without a body to all replicas, each told which container servers to inform.
async fn write(
    shared: &Arc<Shared>,
    request: &ClientRequest,
    place: &Place,
    deletion: Option<u64>,
) -> Result<Vec<Reply>, Response> {
    let headers = storage_headers(request, place, shared.timestamp_of(request)?);
    let question = Question {
        method: request.method.clone(),
        path: place.path.clone(),
        headers,
        query: String::new(),
    };
    let at = place.route.clone();
    let updates = Updates::of(shared, place, deletion);
    let make_call: MakeCall = Arc::new(move |replica, node| {
        let mut call = question.call(&at, node);
        call.headers.insert("content-length", HeaderValue::from_static("0"));
        updates.add_to(&mut call.headers, replica);
        call
    });
    Ok(match request.method {
        Method::POST => fan_out::change(shared, &place.route, make_call).await,
        _ => fan_out::write(shared, &place.route, make_call).await,
    })
}

/// Which servers the object servers should inform of a write.
pub(crate) struct Updates {
    containers: Route,
    queue: Option<Queue>,
    root_state: Option<String>,
    replicas: usize,
}

impl Updates {
    pub(crate) fn of(shared: &Shared, place: &Place, deletion: Option<u64>) -> Self {
        let container = place.path.container.as_deref().unwrap_or("");
        Self {
            containers: shared.rings.container_route(&place.path.account, container),
            queue: deletion.map(|at| Queue::of(shared, &place.path, at)),
            root_state: place.container.sharding_state.clone(),
            replicas: place.route.replicas(),
        }
    }

    /// For replica number `replica`.
    pub(crate) fn add_to(&self, headers: &mut HeaderMap, replica: usize) {
        add_update_targets(headers, "container", &self.containers, replica, self.replicas);
        if let Some(state) = &self.root_state {
            headers.insert("x-container-root-db-state", text(state));
        }
        if let Some(queue) = &self.queue {
            queue.add_to(headers, replica, self.replicas);
        }
    }
}

/// Refuses names that are too long, as Swift words it.
pub(crate) fn check_name(shared: &Shared, path: &EntityPath) -> Result<(), Response> {
    let checked = shared.options.limits.check_names(path);
    checked.map_err(|error| reply::plain(400, error.to_string()))
}

/// A refusal of storage that speaks for itself, as the client gets it.
pub(crate) fn refusal_of(reply: Reply) -> Response {
    match reply.status {
        // Words of the object server about what the client sent.
        400 if header(&reply.headers, "content-type").is_some_and(|t| t.starts_with("text/plain")) => {
            response_of(reply)
        }
        status => reply::status(status),
    }
}
