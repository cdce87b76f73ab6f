//! An object and where it lives, and what every message about it carries.
//!
//! Always holds: an object verb on a container that does not exist is 404; the policy of an object is
//! its container's, unless a feature has said otherwise.

use crate::backend::{Reply, header, joined, response_of, text};
use crate::expiry::ExpiryQueue;
use crate::nodes::Node;
use crate::route::Route;
use crate::shared::Shared;
use http::header::{
    AUTHORIZATION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, HeaderMap, HeaderName, TRAILER, TRANSFER_ENCODING, USER_AGENT,
};
use http::{HeaderValue, Method};
use peer::message::header_names::{
    X_DELETE_AT_CONTAINER, X_DELETE_AT_DEVICE, X_DELETE_AT_HOST, X_DELETE_AT_PARTITION, X_IF_DELETE_AT, X_POLICY_INDEX,
    X_TIMESTAMP, X_TRANS_ID, X_WRITE_LOCK,
};
use peer::message::{HeaderField, Message, RequestContext};
use request_pipeline::{ClientRequest, ContainerInfo, Response, reply};
use settings::kinds::HandoffDeleteCount;
use std::sync::Arc;
use vocabulary::metadata::Entity;
use vocabulary::{EntityPath, PolicyIndex};

/// Client headers that never travel to storage: credentials, what belongs to the connection, and
/// what this gateway says itself.
const NOT_FORWARDED: [HeaderName; 17] = [
    AUTHORIZATION,
    HeaderName::from_static("x-auth-token"),
    HeaderName::from_static("x-storage-token"),
    HeaderName::from_static("x-service-token"),
    COOKIE,
    HOST,
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    EXPECT,
    TRAILER,
    USER_AGENT,
    X_TIMESTAMP,
    X_TRANS_ID,
    X_DELETE_AT_CONTAINER,
    X_DELETE_AT_PARTITION,
    X_DELETE_AT_HOST,
    X_DELETE_AT_DEVICE,
];

/// An object, its container as it is known, and where the object lives.
pub(crate) struct LocatedObject {
    pub(crate) path: Arc<EntityPath>,
    pub(crate) policy: PolicyIndex,
    pub(crate) route: Route,
    pub(crate) container: Arc<ContainerInfo>,
}

/// Finds the object, unless there is no such container.
pub(crate) fn locate(
    shared: &Shared,
    request: &ClientRequest,
    path: Arc<EntityPath>,
    container: Arc<ContainerInfo>,
) -> Result<LocatedObject, Response> {
    // What expires in a deleted account waits for no reaper.
    let is_expiry = request.method == Method::DELETE && request.headers.contains_key(X_IF_DELETE_AT);
    let serves_gone = is_expiry || matches!(request.method, Method::GET | Method::HEAD);
    match container.status {
        200..=299 => {}
        404 if serves_gone && container.is_of_gone_account => {}
        404 | 410 => return Err(reply::status_for(&request.method, 404)),
        _ => return Err(reply::status_for(&request.method, 503)),
    }
    let chosen = request
        .header(X_POLICY_INDEX.as_str())
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
    Ok(LocatedObject {
        path,
        policy,
        route: match request.headers.contains_key(X_WRITE_LOCK) {
            // The lock is that of the ring's own primaries.
            true => route,
            false => near(shared, route, &request.method),
        },
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

/// The client's headers that storage should see.
pub(crate) fn forwarded_headers(request: &ClientRequest) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(request.headers.len());
    for name in request.headers.keys() {
        let word = name.as_str();
        let is_update_target = word.starts_with("x-container-") && !Entity::Container.is_user_or_system_meta(word);
        if !NOT_FORWARDED.contains(name)
            && !is_update_target
            && let Some(value) = joined(&request.headers, name)
        {
            headers.insert(name.clone(), value);
        }
    }
    headers
}

/// The servers that object servers are to send the rows of a write to, and where else they are to put it.
pub(crate) struct Updates {
    containers: Route,
    queue: Option<ExpiryQueue>,
    root_state: Option<HeaderValue>,
    replicas: usize,
    next_part_power: Option<u32>,
}

impl Updates {
    pub(crate) fn of(shared: &Shared, object: &LocatedObject, deletion: Option<u64>) -> Self {
        let container = object.path.container.as_deref().unwrap_or("");
        Self {
            containers: shared.rings.container_route(&object.path.account, container),
            queue: deletion.map(|at| ExpiryQueue::of(shared, &object.path, at)),
            root_state: object.container.sharding_state.as_deref().map(text),
            replicas: object.route.replicas(),
            next_part_power: object.route.next_part_power(),
        }
    }

    /// Says in the message for replica number `replica` which of them are its own.
    pub(crate) fn add_to(&self, message: &mut Message, replica: usize, network: &RequestContext) {
        let (rows, next_part_power) = match message {
            Message::PutObject(put) => (&mut put.rows, &mut put.next_part_power),
            Message::PostObject(post) => (&mut post.rows, &mut post.next_part_power),
            Message::DeleteObject(delete) => (&mut delete.rows, &mut delete.next_part_power),
            _ => return,
        };
        *next_part_power = HeaderField::from_option(self.next_part_power.map(u64::from));
        rows.containers = self.containers.update_targets(replica, self.replicas, network);
        rows.root_db_state.clone_from(&self.root_state);
        if let Some(queue) = &self.queue {
            rows.queue = queue.route.update_targets(replica, self.replicas, network);
            rows.queue_container = Some(text(&queue.container));
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
