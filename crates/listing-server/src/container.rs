//! Containers: PUT, POST, DELETE, HEAD and GET.
//!
//! PUT and DELETE update the account once the container itself is durable; an account that does not
//! know itself (404 from all its servers) makes the whole a 404, as in Swift.

use crate::accept::{self, ListingFormat};
use crate::account_update::{AccountUpdate, ContainerFigures};
use crate::metadata::{self, SYNC_KEY, SYNC_TO};
use crate::refusal::too_long;
use crate::render::ListingText;
use crate::request::{ListingRequest, is_about_shards, is_overriding, known_policy, text, wants_shards};
use crate::state::{DatabaseJob, ListingServerState};
use crate::{listing_query, sync_to};
use http::header::{ACCEPT, CONTENT_TYPE, LAST_MODIFIED};
use http::{HeaderName, StatusCode};
use listing_engine::{Broker, Error, Info, Kind, Metadata, is_sharded};
use peer::Response;
use peer::message::header_names::{
    X_BACKEND_DELETE_TIMESTAMP, X_BACKEND_PUT_TIMESTAMP, X_BACKEND_TIMESTAMP, X_DEFAULT_POLICY, X_POLICY_INDEX,
    X_PUT_TIMESTAMP, X_RECORD_POLICY_INDEX, X_RECORD_SHARD_FORMAT, X_RECORD_TYPE, X_SHARDING_STATE,
    X_STATUS_CHANGED_AT, X_TIMESTAMP,
};
use peer::message::{DeleteContainer, HeaderField, PutContainer, ReadContainer};
use std::sync::Arc;
use storage_shell::{Refusal, page, put as put_header, put_number, put_time, run_detached, whole};
use vocabulary::{PolicyIndex, Timestamp};

const X_CONTAINER_OBJECT_COUNT: HeaderName = HeaderName::from_static("x-container-object-count");
const X_CONTAINER_BYTES_USED: HeaderName = HeaderName::from_static("x-container-bytes-used");

/// Creates, recreates or touches a container, and sets metadata.
pub(crate) async fn put(
    state: &Arc<ListingServerState>,
    request: Arc<ListingRequest>,
    message: PutContainer,
) -> Result<Response, Refusal> {
    let timestamp = request.timestamp()?;
    check_sync_to(state, &request)?;
    if is_about_shards(&message.record_type) {
        return Err(Refusal::Page(StatusCode::NOT_IMPLEMENTED));
    }
    let work = {
        let state = state.clone();
        async move {
            let PutContainer {
                policy,
                default_policy,
                accounts,
                overrides_deleted,
                ..
            } = message;
            let job = move |job: &DatabaseJob<'_>| put_on_disk(job, timestamp, &policy, &default_policy);
            let (status, newer, figures) = state.run(&request, job).await?;
            let update = AccountUpdate::new(accounts, is_overriding(&overrides_deleted))?;
            update.send(&state, &request, &figures).await?;
            let mut response = metadata::say_newer(newer, page(status));
            put_number(&mut response, X_POLICY_INDEX, u64::from(figures.policy.0));
            Ok(response)
        }
    };
    run_detached(&state.world, work).await
}

fn put_on_disk(
    job: &DatabaseJob<'_>,
    timestamp: Timestamp,
    policy: &HeaderField<PolicyIndex>,
    default_policy: &HeaderField<PolicyIndex>,
) -> Result<(StatusCode, Option<Timestamp>, ContainerFigures), Refusal> {
    let options = &job.state.options;
    job.check_room()?;
    let asked = known_policy(policy, options)?;
    // What the gateway says is the default, so that all replicas of a new container agree.
    let invalid = |_: &_| Refusal::bad_request(format!("Invalid {X_DEFAULT_POLICY} header"));
    let default_policy = default_policy.optional(invalid)?.copied();
    let default_policy = default_policy.unwrap_or_else(|| options.policies.default_policy().index);
    let new_policy = asked.unwrap_or(default_policy);
    let (broker, created) = job.find_or_create(timestamp, new_policy)?;
    let refuse = |error: Error| job.refuse(&error);
    let fresh = created || touch(job, &broker, timestamp, asked, new_policy)?;
    let newer = set_metadata(job, &broker, timestamp)?;
    let status = if fresh {
        StatusCode::CREATED
    } else {
        StatusCode::ACCEPTED
    };
    Ok((
        status,
        newer,
        ContainerFigures::of(&broker.whole_info().map_err(refuse)?.0),
    ))
}

/// A PUT of what exists already; `true` when it was deleted and lives again.
fn touch(
    job: &DatabaseJob<'_>,
    broker: &Broker,
    timestamp: Timestamp,
    asked: Option<PolicyIndex>,
    new_policy: PolicyIndex,
) -> Result<bool, Refusal> {
    let refuse = |error: Error| job.refuse(&error);
    let (before, _) = broker.whole_info().map_err(refuse)?;
    let recreated = before.is_deleted();
    if recreated {
        broker.set_policy(new_policy, timestamp).map_err(refuse)?;
    } else if asked.is_some_and(|policy| policy != before.policy) {
        return Err(policy_conflict(before.policy));
    }
    broker.update_put_timestamp(timestamp).map_err(refuse)?;
    if broker.is_deleted().map_err(refuse)? {
        // Deleted later than this PUT was sent.
        return Err(Refusal::conflict(Some(before.delete_timestamp)));
    }
    if recreated {
        broker.update_status_changed_at(timestamp).map_err(refuse)?;
    }
    Ok(recreated)
}

fn policy_conflict(policy: PolicyIndex) -> Refusal {
    let mut response = page(StatusCode::CONFLICT);
    put_number(&mut response, X_POLICY_INDEX, u64::from(policy.0));
    Refusal::Whole(Box::new(response))
}

/// Answers with the time of what was set later and stays.
fn set_metadata(job: &DatabaseJob<'_>, broker: &Broker, timestamp: Timestamp) -> Result<Option<Timestamp>, Refusal> {
    let updates = metadata::from_request(Kind::Container, job.request, timestamp)?;
    if updates.is_empty() {
        return Ok(None);
    }
    let refuse = |error: Error| job.refuse(&error);
    if let Some(target) = updates.get(SYNC_TO) {
        let stored = broker.metadata().map_err(refuse)?;
        if stored.get(SYNC_TO).is_none_or(|old| old.value != target.value) {
            broker.set_sync_points(-1, -1).map_err(refuse)?;
        }
    }
    let limits = &job.state.options.limits;
    let check = |merged: &Metadata| metadata::check(Kind::Container, merged, limits);
    broker.update_metadata_checked(&updates, check, refuse)?;
    if updates.get(SYNC_TO).is_some() || updates.get(SYNC_KEY).is_some() {
        job.keep_sync_link(broker);
    }
    Ok(metadata::newer_than(&updates, &broker.metadata().map_err(refuse)?))
}

fn check_sync_to(state: &ListingServerState, request: &ListingRequest) -> Result<(), Refusal> {
    let (hosts, realms) = (&state.options.allowed_sync_hosts, &state.options.sync_realms);
    sync_to::check(request.text(SYNC_TO), hosts, || realms.now())
}

/// Sets metadata.
pub(crate) async fn post(
    state: &Arc<ListingServerState>,
    request: Arc<ListingRequest>,
    keeps_timestamp: bool,
) -> Result<Response, Refusal> {
    let timestamp = request.timestamp()?;
    check_sync_to(state, &request)?;
    let job = move |job: &DatabaseJob<'_>| {
        job.check_room()?;
        let broker = job.open()?;
        let refuse = |error: Error| job.refuse(&error);
        if broker.is_deleted().map_err(refuse)? {
            return Err(Refusal::not_found(None));
        }
        // What Swift notes for itself in a container is no change that its users made.
        if !keeps_timestamp {
            broker.update_put_timestamp(timestamp).map_err(refuse)?;
        }
        set_metadata(job, &broker, timestamp)
    };
    let newer = state.run(&request, job).await?;
    Ok(metadata::say_newer(newer, page(StatusCode::NO_CONTENT)))
}

/// Deletes an empty container.
pub(crate) async fn delete(
    state: &Arc<ListingServerState>,
    request: Arc<ListingRequest>,
    message: DeleteContainer,
) -> Result<Response, Refusal> {
    let timestamp = request.timestamp()?;
    let work = {
        let state = state.clone();
        async move {
            let (existed, figures) = state.run(&request, move |job| delete_on_disk(job, timestamp)).await?;
            let update = AccountUpdate::new(message.accounts, is_overriding(&message.overrides_deleted))?;
            update.send(&state, &request, &figures).await?;
            Ok(page(match existed {
                true => StatusCode::NO_CONTENT,
                false => StatusCode::NOT_FOUND,
            }))
        }
    };
    run_detached(&state.world, work).await
}

fn delete_on_disk(job: &DatabaseJob<'_>, timestamp: Timestamp) -> Result<(bool, ContainerFigures), Refusal> {
    let broker = job.open()?;
    let refuse = |error: Error| job.refuse(&error);
    let (before, state) = broker.whole_info().map_err(refuse)?;
    // What its shards list is not looked at here.
    let is_full = !before.is_deleted() && is_sharded(state);
    if is_full || !broker.is_empty().map_err(refuse)? {
        return Err(Refusal::conflict(None));
    }
    let existed = before.put_timestamp > Timestamp::ZERO && !before.is_deleted();
    broker.delete(timestamp).map_err(refuse)?;
    let (after, _) = broker.whole_info().map_err(refuse)?;
    job.keep_sync_link(&broker);
    match after.is_deleted() {
        true => Ok((existed, ContainerFigures::of(&after))),
        // Created later than this DELETE was sent.
        false => Err(Refusal::conflict(Some(after.put_timestamp))),
    }
}

/// HEAD and GET.
pub(crate) async fn read(
    state: &Arc<ListingServerState>,
    request: Arc<ListingRequest>,
    message: ReadContainer,
) -> Result<Response, Refusal> {
    let options = &state.options;
    let format = accept::format(&message.query, request.text(ACCEPT))?;
    if message.head_only {
        return state.run(&request, move |job| head(job, format)).await;
    }
    let mut query = listing_query::parse(&request, &message.query, options.limits.container_listing_limit)?;
    query.policy = known_policy(&message.policy, options)?;
    let job = move |job: &DatabaseJob<'_>, most: usize| {
        let (broker, info, state) = living(job)?;
        let rows = query
            .limit
            .min(usize::try_from(info.object_count).unwrap_or(usize::MAX));
        if rows > most && !is_about_shards(&message.record_type) {
            return Ok(None);
        }
        if wants_shards(&message.record_type) {
            refuse_shards(state)?;
        }
        let policy = query.policy.unwrap_or(info.policy);
        let mut query = query.clone();
        query.policy = Some(policy);
        let (listing, empty) = match is_about_shards(&message.record_type) {
            true => ("[]".into(), false),
            false => list(job, &broker, &query, format)?,
        };
        let status = match (format, empty) {
            (ListingFormat::Plain, true) => StatusCode::NO_CONTENT,
            _ => StatusCode::OK,
        };
        let mut response = whole(status, format.content_type(), listing);
        describe(job, &broker, (&info, state), &mut response)?;
        describe_records(&message, policy, &mut response);
        Ok(Some(response))
    };
    state.run_listing(&request, job).await
}

fn head(job: &DatabaseJob<'_>, format: ListingFormat) -> Result<Response, Refusal> {
    let (broker, info, state) = living(job)?;
    let mut response = page(StatusCode::NO_CONTENT);
    put_header(&mut response, CONTENT_TYPE, format.content_type());
    describe(job, &broker, (&info, state), &mut response)?;
    Ok(response)
}

/// The container, what it says about itself, and its listing state; 404 that says when, if it is deleted or was never
/// there.
fn living(job: &DatabaseJob<'_>) -> Result<(Arc<Broker>, Info, &'static str), Refusal> {
    let Some(broker) = job.find()? else {
        return Err(gone(None));
    };
    match broker.whole_info() {
        Ok((info, _)) if info.is_deleted() => Err(gone(Some(&info))),
        Ok((info, state)) => Ok((broker, info, state)),
        Err(Error::NotFound { .. }) => Err(gone(None)),
        Err(error) => Err(job.refuse(&error)),
    }
}

fn gone(info: Option<&Info>) -> Refusal {
    let mut response = page(StatusCode::NOT_FOUND);
    put_backend_headers(info, &mut response);
    Refusal::Whole(Box::new(response))
}

fn put_backend_headers(info: Option<&Info>, response: &mut Response) {
    let time = |pick: fn(&Info) -> Timestamp| info.map_or(Timestamp::ZERO, pick);
    put_time(response, X_BACKEND_TIMESTAMP, time(|info| info.created_at));
    put_time(response, X_BACKEND_PUT_TIMESTAMP, time(|info| info.put_timestamp));
    put_time(response, X_BACKEND_DELETE_TIMESTAMP, time(|info| info.delete_timestamp));
    put_time(response, X_STATUS_CHANGED_AT, time(|info| info.status_changed_at));
    put_number(
        response,
        X_POLICY_INDEX,
        info.map_or(0, |info| u64::from(info.policy.0)),
    );
}

/// What HEAD and GET say about the container.
fn describe(
    job: &DatabaseJob<'_>,
    broker: &Broker,
    (info, sharding): (&Info, &'static str),
    response: &mut Response,
) -> Result<(), Refusal> {
    let refuse = |error: Error| job.refuse(&error);
    put_backend_headers(Some(info), response);
    put_number(response, X_CONTAINER_OBJECT_COUNT, info.object_count);
    put_number(response, X_CONTAINER_BYTES_USED, info.bytes_used);
    put_header(response, X_TIMESTAMP, &info.created_at.normal());
    put_header(response, X_PUT_TIMESTAMP, &info.put_timestamp.normal());
    put_header(response, LAST_MODIFIED, &info.put_timestamp.last_modified());
    put_header(response, X_SHARDING_STATE, sharding);
    metadata::to_response(Kind::Container, &broker.metadata().map_err(refuse)?, response);
    Ok(())
}

/// What GET says about the lines of its listing.
fn describe_records(message: &ReadContainer, policy: PolicyIndex, response: &mut Response) {
    if is_about_shards(&message.record_type) {
        let format = message.record_shard_format.as_ref().and_then(text);
        let namespace = format.is_some_and(|format| format.eq_ignore_ascii_case("namespace"));
        let format = if namespace { "namespace" } else { "full" };
        put_header(response, X_RECORD_TYPE, "shard");
        put_header(response, X_RECORD_SHARD_FORMAT, format);
    } else {
        put_header(response, X_RECORD_TYPE, "object");
        put_number(response, X_RECORD_POLICY_INDEX, u64::from(policy.0));
    }
}

fn list(
    job: &DatabaseJob<'_>,
    broker: &Broker,
    query: &listing_engine::ListQuery,
    format: ListingFormat,
) -> Result<(String, bool), Refusal> {
    let mut listing = ListingText::of_container(format, job.request.container());
    let done = broker.list_objects(query, |entry| listing.object(entry));
    done.map_err(|error| job.refuse(&error))?;
    let empty = listing.is_empty();
    let text = listing.finish().ok_or_else(|| too_long(broker))?;
    Ok((text, empty))
}

/// A container without shards lists its objects, and no shards. What a sharded one has is not read here yet: 409, as a
/// gateway would take any answer of 5xx for a fault of this node.
fn refuse_shards(state: &str) -> Result<(), Refusal> {
    match is_sharded(state) {
        true => Err(Refusal::Text(
            StatusCode::CONFLICT,
            format!("The container is {state}: only container servers of OpenStack list it."),
        )),
        false => Ok(()),
    }
}
