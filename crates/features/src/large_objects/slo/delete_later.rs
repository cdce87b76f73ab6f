//! `DELETE …?multipart-manifest=delete&async=on`: the manifest goes now, its segments when the expirer comes by.
//!
//! Every segment becomes a task in the expirer's queue, as objects that expire do, with a content type of its
//! own. Always holds: the client may delete in the container of the segments, and in that of the manifest, and
//! neither is of a bucket with object lock; the tasks are stored before the manifest is deleted; all of them are in one
//! container, and none is a large object itself.

use super::delete::segments;
use super::manifest::Content;
use super::read::manifest_query;
use super::{SOURCE, Shared};
use http::Method;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use peer::Body;
use peer::message::header_names::{X_ALLOW_PRIVATE_METHODS, X_POLICY_INDEX};
use request_pipeline::{ClientRequest, Next, Response, reply};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use vocabulary::object_lock::bucket_of;
use vocabulary::{EntityPath, Timestamp};

const LOCKED: &str = "The objects of a bucket with object lock are not deleted later: leave out \"async\".";
/// Objects of one hour are spread over so many containers.
const SPREAD: u128 = 100;

/// Answers such a deletion.
pub(super) async fn handle(shared: &Arc<Shared>, request: ClientRequest, next: Next) -> Response {
    let Some(entity) = request.entity.clone() else {
        return next.run(request).await;
    };
    let query = manifest_query(&request.query);
    let found = match segments(shared, &request, &next, (*entity).clone(), query).await {
        Ok(found) => found,
        Err(refusal) => return refusal.response(),
    };
    let (mut names, mut containers) = (Vec::new(), BTreeSet::new());
    for segment in found.manifest.iter() {
        let Content::Object(object) = segment.content else {
            continue;
        };
        if object.is_large {
            return reply::html(400, "No segments may be large objects.".into());
        }
        if let Some((container, name)) = object.names() {
            containers.insert(container.to_owned());
            names.push(format!("{container}/{name}"));
        }
    }
    if containers.len() > 1 {
        let listed: Vec<String> = containers.iter().map(|name| format!("\"{name}\"")).collect();
        let text = format!(
            "All segments must be in one container. Found segments in {}",
            listed.join(", ")
        );
        return reply::html(400, text);
    }
    containers.extend(entity.container.clone());
    for container in &containers {
        if let Err(refusal) = may_delete(&request, &next, &entity.account, container).await {
            return refusal;
        }
        if has_lock(&next, &entity.account, container).await {
            return reply::html(409, LOCKED.into());
        }
    }
    if !names.is_empty() {
        let tasks = tasks(shared, &request, &entity, &names);
        let response = next.clone().run(tasks).await;
        if !response.status().is_success() {
            tracing::error!("{}: the expirer's queue answered {}", request.path, response.status());
            return reply::status(503);
        }
    }
    next.run(request).await
}

/// Whether what is in a container can be held by an object lock, which is decided when it is deleted, and not before.
async fn has_lock(next: &Next, account: &str, container: &str) -> bool {
    let bucket = next.info().container(account, bucket_of(container)).await;
    bucket.bucket_lock().is_some()
}

/// Whether the client may delete what is in a container.
async fn may_delete(client: &ClientRequest, next: &Next, account: &str, container: &str) -> Result<(), Response> {
    if client.authorizer.is_none() {
        return Ok(());
    }
    let path = EntityPath::account(account).with_container(container);
    let acl = next.info().container(account, container).await.write_acl.clone();
    let mut request = client.subrequest(Method::DELETE, path.with_object("any"), SOURCE);
    request.acl = acl;
    request.authorise(next.info()).await
}

/// The request that stores a task per name.
fn tasks(shared: &Shared, client: &ClientRequest, manifest: &EntityPath, names: &[String]) -> ClientRequest {
    let now = shared.world.clock.now();
    let rows: Vec<Value> = names.iter().map(|name| row(now, &manifest.account, name)).collect();
    let text = pythonic::json(&Value::Array(rows));
    let settings = &shared.settings;
    let account = format!("{}{}", shared.hidden_prefix, settings.expiring_objects_account_name);
    let queue = EntityPath::account(account).with_container(queue(shared, manifest, now.seconds()));
    let update = Method::from_bytes(b"UPDATE").unwrap_or(Method::POST);
    let mut request = client.subrequest(update, queue, SOURCE).preauthorised();
    let headers = &mut request.headers;
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
    headers.insert(X_POLICY_INDEX, HeaderValue::from_static("0"));
    headers.insert(X_ALLOW_PRIVATE_METHODS, HeaderValue::from_static("True"));
    request.body = Body::whole(text);
    request
}

fn row(now: Timestamp, account: &str, name: &str) -> Value {
    json!({
        "content_type": "application/async-deleted",
        "created_at": now.internal(),
        "deleted": 0,
        "etag": "d41d8cd98f00b204e9800998ecf8427e",
        "name": format!("{}-{account}/{name}", now.normal()),
        "size": 0,
        "storage_policy_index": 0,
    })
}

/// The container of tasks that are due at `at`, as the gateway's own for objects that expire.
fn queue(shared: &Shared, manifest: &EntityPath, at: u64) -> String {
    let (container, object) = (manifest.container.as_deref(), manifest.object.as_deref());
    let hash = shared.hash.object(
        &manifest.account,
        container.unwrap_or_default(),
        object.unwrap_or_default(),
    );
    let divisor = shared.settings.expiring_objects_container_divisor.max(1);
    let spread = u64::try_from(u128::from_be_bytes(hash.0) % SPREAD).unwrap_or(0);
    format!("{:010}", (at / divisor * divisor).saturating_sub(spread))
}
