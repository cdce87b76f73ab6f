//! Containers: PUT, POST, DELETE, HEAD and GET.
//!
//! PUT and DELETE tell the account once the container itself is durable; an account that does not
//! know itself (404 from all its servers) makes the whole a 404, as in Swift.

use crate::accept::{self, Format};
use crate::account_update::{AccountUpdate, State};
use crate::metadata::{self, SYNC_KEY, SYNC_TO};
use crate::render::Listing;
use crate::reply::{Refusal, answer, page, put as put_header, put_content_type, put_number, put_time};
use crate::request::Request;
use crate::service::{Desk, Shared};
use crate::{listing_query, sync_to};
use http::{Method, StatusCode};
use listing_engine::{Broker, Error, Info, Kind, Metadata};
use peer::Response;
use std::sync::Arc;
use vocabulary::{PolicyIndex, Timestamp};

const POLICY_INDEX: &str = "x-backend-storage-policy-index";

/// Creates, recreates or touches a container, and sets metadata.
pub(crate) async fn put(shared: &Arc<Shared>, request: Arc<Request>) -> Result<Response, Refusal> {
    let timestamp = request.timestamp()?;
    check_sync_to(shared, &request)?;
    if request.is_about_shards() {
        return Err(Refusal::Page(StatusCode::NOT_IMPLEMENTED));
    }
    let work = {
        let shared = shared.clone();
        async move {
            let (status, state) = shared.run(&request, move |desk| put_on_disk(desk, timestamp)).await?;
            let update = AccountUpdate::from_request(&request)?;
            update.send(&shared, &request, &state).await?;
            let mut response = page(status);
            put_number(&mut response, POLICY_INDEX, u64::from(state.policy.0));
            Ok(response)
        }
    };
    shared.to_its_end(work).await?
}

fn put_on_disk(desk: &Desk<'_>, timestamp: Timestamp) -> Result<(StatusCode, State), Refusal> {
    let options = &desk.shared.options;
    desk.shared.devices.check_room(desk.device)?;
    let asked = desk.request.policy(options)?;
    let new_policy = asked.unwrap_or(default_policy(desk)?);
    let (broker, created) = desk.find_or_create(timestamp, new_policy)?;
    let refuse = |error: Error| desk.refuse(&error);
    let fresh = created || touch(desk, &broker, timestamp, asked, new_policy)?;
    set_metadata(desk, &broker, timestamp)?;
    let status = if fresh {
        StatusCode::CREATED
    } else {
        StatusCode::ACCEPTED
    };
    Ok((status, State::of(&broker.info().map_err(refuse)?)))
}

/// A PUT of what exists already; `true` when it was deleted and lives again.
fn touch(
    desk: &Desk<'_>,
    broker: &Broker,
    timestamp: Timestamp,
    asked: Option<PolicyIndex>,
    new_policy: PolicyIndex,
) -> Result<bool, Refusal> {
    let refuse = |error: Error| desk.refuse(&error);
    let before = broker.info().map_err(refuse)?;
    let recreated = before.is_deleted();
    if recreated {
        broker.set_policy(new_policy, timestamp).map_err(refuse)?;
    } else if asked.is_some_and(|policy| policy != before.policy) {
        return Err(policy_conflict(before.policy));
    }
    broker.update_put_timestamp(timestamp).map_err(refuse)?;
    if broker.is_deleted().map_err(refuse)? {
        // Deleted later than this PUT was sent.
        return Err(Refusal::conflict());
    }
    if recreated {
        broker.update_status_changed_at(timestamp).map_err(refuse)?;
    }
    Ok(recreated)
}

fn policy_conflict(policy: PolicyIndex) -> Refusal {
    let mut response = page(StatusCode::CONFLICT);
    put_number(&mut response, POLICY_INDEX, u64::from(policy.0));
    Refusal::Whole(Box::new(response))
}

/// What the gateway says is the default, so that all replicas of a new container agree.
fn default_policy(desk: &Desk<'_>) -> Result<PolicyIndex, Refusal> {
    match desk.request.text("x-backend-storage-policy-default") {
        None => Ok(desk.shared.options.policies.default_policy().index),
        Some(text) => match text.trim().parse() {
            Ok(index) => Ok(PolicyIndex(index)),
            Err(_) => Err(Refusal::bad_request("Invalid x-backend-storage-policy-default header")),
        },
    }
}

fn set_metadata(desk: &Desk<'_>, broker: &Broker, timestamp: Timestamp) -> Result<(), Refusal> {
    let updates = metadata::from_request(Kind::Container, desk.request, timestamp)?;
    if updates.is_empty() {
        return Ok(());
    }
    let refuse = |error: Error| desk.refuse(&error);
    if let Some(target) = updates.get(SYNC_TO) {
        let stored = broker.metadata().map_err(refuse)?;
        if stored.get(SYNC_TO).is_none_or(|old| old.value != target.value) {
            broker.set_sync_points(-1, -1).map_err(refuse)?;
        }
    }
    let limits = &desk.shared.options.limits;
    let check = |merged: &Metadata| metadata::check(Kind::Container, merged, limits);
    broker.update_metadata_checked(&updates, check).map_err(refuse)??;
    if updates.get(SYNC_TO).is_some() || updates.get(SYNC_KEY).is_some() {
        desk.keep_sync_link(broker);
    }
    Ok(())
}

fn check_sync_to(shared: &Shared, request: &Request) -> Result<(), Refusal> {
    let (hosts, realms) = (&shared.options.allowed_sync_hosts, &shared.options.sync_realms);
    sync_to::check(request.text("x-container-sync-to"), hosts, || realms.now())
}

/// Sets metadata.
pub(crate) async fn post(shared: &Arc<Shared>, request: Arc<Request>) -> Result<Response, Refusal> {
    let timestamp = request.timestamp()?;
    check_sync_to(shared, &request)?;
    let job = move |desk: &Desk<'_>| {
        desk.shared.devices.check_room(desk.device)?;
        let broker = desk.open()?;
        let refuse = |error: Error| desk.refuse(&error);
        if broker.is_deleted().map_err(refuse)? {
            return Err(Refusal::not_found());
        }
        // What Swift notes for itself in a container is no change that its users made.
        if !desk.request.is_on("x-backend-no-timestamp-update") {
            broker.update_put_timestamp(timestamp).map_err(refuse)?;
        }
        set_metadata(desk, &broker, timestamp)
    };
    shared.run(&request, job).await?;
    Ok(page(StatusCode::NO_CONTENT))
}

/// Deletes an empty container.
pub(crate) async fn delete(shared: &Arc<Shared>, request: Arc<Request>) -> Result<Response, Refusal> {
    let timestamp = request.timestamp()?;
    let work = {
        let shared = shared.clone();
        async move {
            let (existed, state) = shared
                .run(&request, move |desk| delete_on_disk(desk, timestamp))
                .await?;
            let update = AccountUpdate::from_request(&request)?;
            update.send(&shared, &request, &state).await?;
            Ok(page(match existed {
                true => StatusCode::NO_CONTENT,
                false => StatusCode::NOT_FOUND,
            }))
        }
    };
    shared.to_its_end(work).await?
}

fn delete_on_disk(desk: &Desk<'_>, timestamp: Timestamp) -> Result<(bool, State), Refusal> {
    let broker = desk.open()?;
    let refuse = |error: Error| desk.refuse(&error);
    if !broker.is_empty().map_err(refuse)? {
        return Err(Refusal::conflict());
    }
    let before = broker.info().map_err(refuse)?;
    let existed = before.put_timestamp > Timestamp::ZERO && !before.is_deleted();
    broker.delete(timestamp).map_err(refuse)?;
    let after = broker.info().map_err(refuse)?;
    desk.keep_sync_link(&broker);
    match after.is_deleted() {
        true => Ok((existed, State::of(&after))),
        // Created later than this DELETE was sent.
        false => Err(Refusal::conflict()),
    }
}

/// HEAD and GET.
pub(crate) async fn read(shared: &Arc<Shared>, request: Arc<Request>) -> Result<Response, Refusal> {
    let options = &shared.options;
    let format = accept::format(&request.query, request.text("accept"))?;
    if request.method == Method::HEAD {
        return shared.run(&request, move |desk| head(desk, format)).await;
    }
    let mut query = listing_query::parse(&request, options.limits.container_listing_limit)?;
    query.policy = request.policy(options)?;
    let job = move |desk: &Desk<'_>| {
        let (broker, info) = living(desk)?;
        let policy = query.policy.unwrap_or(info.policy);
        let mut query = query;
        query.policy = Some(policy);
        let (text, empty) = match desk.request.is_about_shards() {
            true => (no_shards(desk, &broker)?, false),
            false => list(desk, &broker, &query, format)?,
        };
        let status = match (format, empty) {
            (Format::Plain, true) => StatusCode::NO_CONTENT,
            _ => StatusCode::OK,
        };
        let mut response = answer(status, format.content_type(), text);
        describe(desk, &broker, &info, &mut response)?;
        describe_records(desk.request, policy, &mut response);
        Ok(response)
    };
    shared.run(&request, job).await
}

fn head(desk: &Desk<'_>, format: Format) -> Result<Response, Refusal> {
    let (broker, info) = living(desk)?;
    let mut response = page(StatusCode::NO_CONTENT);
    put_content_type(&mut response, format.content_type());
    describe(desk, &broker, &info, &mut response)?;
    Ok(response)
}

/// The container and what it says about itself; 404 that says when, if it is deleted or was never there.
fn living(desk: &Desk<'_>) -> Result<(Arc<Broker>, Info), Refusal> {
    let Some(broker) = desk.find()? else {
        return Err(gone(None));
    };
    match broker.info() {
        Ok(info) if info.is_deleted() => Err(gone(Some(&info))),
        Ok(info) => Ok((broker, info)),
        Err(Error::NotFound { .. }) => Err(gone(None)),
        Err(error) => Err(desk.refuse(&error)),
    }
}

fn gone(info: Option<&Info>) -> Refusal {
    let mut response = page(StatusCode::NOT_FOUND);
    put_backend_headers(info, &mut response);
    Refusal::Whole(Box::new(response))
}

fn put_backend_headers(info: Option<&Info>, response: &mut Response) {
    let time = |pick: fn(&Info) -> Timestamp| info.map_or(Timestamp::ZERO, pick);
    put_time(response, "x-backend-timestamp", time(|info| info.created_at));
    put_time(response, "x-backend-put-timestamp", time(|info| info.put_timestamp));
    put_time(
        response,
        "x-backend-delete-timestamp",
        time(|info| info.delete_timestamp),
    );
    put_time(
        response,
        "x-backend-status-changed-at",
        time(|info| info.status_changed_at),
    );
    put_number(response, POLICY_INDEX, info.map_or(0, |info| u64::from(info.policy.0)));
}

/// What HEAD and GET say about the container.
fn describe(desk: &Desk<'_>, broker: &Broker, info: &Info, response: &mut Response) -> Result<(), Refusal> {
    let refuse = |error: Error| desk.refuse(&error);
    put_backend_headers(Some(info), response);
    put_number(response, "x-container-object-count", info.object_count);
    put_number(response, "x-container-bytes-used", info.bytes_used);
    put_header(response, "x-timestamp", &info.created_at.normal());
    put_header(response, "x-put-timestamp", &info.put_timestamp.normal());
    put_header(response, "last-modified", &info.put_timestamp.last_modified());
    let sharding = broker.sharding_state().map_err(refuse)?;
    put_header(response, "x-backend-sharding-state", sharding);
    metadata::to_response(Kind::Container, &broker.metadata().map_err(refuse)?, response);
    Ok(())
}

/// What GET says about the lines of its listing.
fn describe_records(request: &Request, policy: PolicyIndex, response: &mut Response) {
    if request.is_about_shards() {
        let namespace = request
            .text("x-backend-record-shard-format")
            .is_some_and(|format| format.eq_ignore_ascii_case("namespace"));
        let format = if namespace { "namespace" } else { "full" };
        put_header(response, "x-backend-record-type", "shard");
        put_header(response, "x-backend-record-shard-format", format);
    } else {
        put_header(response, "x-backend-record-type", "object");
        put_number(response, "x-backend-record-storage-policy-index", u64::from(policy.0));
    }
}

fn list(
    desk: &Desk<'_>,
    broker: &Broker,
    query: &listing_engine::ListQuery,
    format: Format,
) -> Result<(String, bool), Refusal> {
    let mut listing = Listing::of_container(format, desk.request.container());
    let done = broker.list_objects(query, |entry| listing.object(entry));
    done.map_err(|error| desk.refuse(&error))?;
    let empty = listing.is_empty();
    Ok((listing.finish(), empty))
}

/// An unsharded container has no shards. What a sharded one has, nobody reads here yet.
fn no_shards(desk: &Desk<'_>, broker: &Broker) -> Result<String, Refusal> {
    match broker.sharding_state().map_err(|error| desk.refuse(&error))? {
        "unsharded" => Ok("[]".into()),
        _ => Err(Refusal::Page(StatusCode::NOT_IMPLEMENTED)),
    }
}
