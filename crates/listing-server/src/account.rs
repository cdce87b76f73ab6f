//! Accounts: PUT, POST, DELETE, HEAD, GET, and the rows that container servers report.

use crate::accept::{self, ListingFormat};
use crate::listing_query;
use crate::metadata;
use crate::refusal::too_long;
use crate::render::ListingText;
use crate::request::{ListingRequest, any_policy, is_overriding, optional, required};
use crate::state::{DatabaseJob, ListingServerState, until_stored};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, StatusCode};
use listing_engine::{Broker, ContainerRow, Error, Info, Kind, Metadata, Row};
use peer::Response;
use peer::message::header_names::{
    X_ACCOUNT_STATUS, X_BYTES_USED, X_DELETE_TIMESTAMP, X_OBJECT_COUNT, X_PUT_TIMESTAMP, X_TIMESTAMP,
};
use peer::message::{ReadAccount, UpdateAccount};
use std::sync::Arc;
use storage_shell::{Refusal, page, put as put_header, put_named, put_number, whole};
use tokio::sync::oneshot;
use vocabulary::{PolicyIndex, Timestamp};

const X_ACCOUNT_CONTAINER_COUNT: HeaderName = HeaderName::from_static("x-account-container-count");
const X_ACCOUNT_OBJECT_COUNT: HeaderName = HeaderName::from_static("x-account-object-count");
const X_ACCOUNT_BYTES_USED: HeaderName = HeaderName::from_static("x-account-bytes-used");
/// What a deleted account is labelled with.
const EMPTY_TYPE: &str = "text/html; charset=utf-8";

/// Creates or touches an account, and sets metadata.
pub(crate) async fn put(state: &Arc<ListingServerState>, request: Arc<ListingRequest>) -> Result<Response, Refusal> {
    let job = |job: &DatabaseJob<'_>| {
        job.check_room()?;
        let timestamp = job.request.timestamp()?;
        let refuse = |error: Error| job.refuse(&error);
        let (broker, created) = job.find_or_create(timestamp, PolicyIndex::LEGACY)?;
        if !created {
            let info = broker.info().map_err(refuse)?;
            if info.is_marked_deleted() {
                return Err(gone(StatusCode::FORBIDDEN, "Recently deleted", Some(&info)));
            }
            broker.update_put_timestamp(timestamp).map_err(refuse)?;
            if broker.is_deleted().map_err(refuse)? {
                return Err(Refusal::conflict(Some(info.delete_timestamp)));
            }
        }
        let newer = set_metadata(job, &broker, timestamp)?;
        let status = if created {
            StatusCode::CREATED
        } else {
            StatusCode::ACCEPTED
        };
        Ok(metadata::say_newer(newer, page(status)))
    };
    state.run(&request, job).await
}

/// Answers with the time of what was set later and stays.
fn set_metadata(job: &DatabaseJob<'_>, broker: &Broker, timestamp: Timestamp) -> Result<Option<Timestamp>, Refusal> {
    let updates = metadata::from_request(Kind::Account, job.request, timestamp)?;
    let limits = &job.state.options.limits;
    let check = |merged: &Metadata| metadata::check(Kind::Account, merged, limits);
    let refuse = |error: Error| job.refuse(&error);
    broker.update_metadata_checked(&updates, check, refuse)?;
    match updates.is_empty() {
        true => Ok(None),
        false => Ok(metadata::newer_than(&updates, &broker.metadata().map_err(refuse)?)),
    }
}

/// The row of a container, as its server reports it.
pub(crate) async fn put_row(
    state: &Arc<ListingServerState>,
    request: Arc<ListingRequest>,
    message: &UpdateAccount,
) -> Result<Response, Refusal> {
    let row = ContainerRow {
        name: request.container().to_owned(),
        put_timestamp: required(&message.put_timestamp, &X_PUT_TIMESTAMP)?,
        delete_timestamp: required(&message.delete_timestamp, &X_DELETE_TIMESTAMP)?,
        object_count: required(&message.object_count, &X_OBJECT_COUNT)?,
        bytes_used: required(&message.bytes_used, &X_BYTES_USED)?,
        // Any number: a row may be of a policy that this node has not heard of yet.
        policy: any_policy(&message.policy)?.unwrap_or(PolicyIndex::LEGACY),
    };
    let overrides_deleted = is_overriding(&message.overrides_deleted);
    let went = row.delete_timestamp > row.put_timestamp;
    let (done, stored) = oneshot::channel::<Result<(), Error>>();
    let job = move |job: &DatabaseJob<'_>| {
        job.check_room()?;
        let broker = match job.request.may_create_account(&job.state.options) {
            // Updaters send no time of their own.
            true => {
                let sent = optional(&job.request.timestamp, &X_TIMESTAMP)?;
                let time = sent.unwrap_or_else(|| job.state.world.clock.now());
                job.find_or_create(time, PolicyIndex::LEGACY)?.0
            }
            false => job.open()?,
        };
        if !overrides_deleted && broker.is_deleted().map_err(|error| job.refuse(&error))? {
            return Err(Refusal::not_found(None));
        }
        // Updaters send the same again; a new row would travel to every replica.
        if broker.says(&row).map_err(|error| job.refuse(&error))? {
            let _ = done.send(Ok(()));
            return Ok(());
        }
        // The receiver may be gone: the row itself is stored.
        if broker.enqueue(vec![Row::Container(row)], move |result| drop(done.send(result))) {
            broker.flush();
        }
        Ok(())
    };
    state.run(&request, job).await?;
    until_stored(stored, &request.target.device).await?;
    Ok(page(match went {
        true => StatusCode::NO_CONTENT,
        false => StatusCode::CREATED,
    }))
}

/// Sets metadata.
pub(crate) async fn post(state: &Arc<ListingServerState>, request: Arc<ListingRequest>) -> Result<Response, Refusal> {
    let timestamp = request.timestamp()?;
    let job = move |job: &DatabaseJob<'_>| {
        job.check_room()?;
        let (broker, _) = living(job)?;
        let newer = set_metadata(job, &broker, timestamp)?;
        Ok(metadata::say_newer(newer, page(StatusCode::NO_CONTENT)))
    };
    state.run(&request, job).await
}

/// Marks an account as deleted.
pub(crate) async fn delete(state: &Arc<ListingServerState>, request: Arc<ListingRequest>) -> Result<Response, Refusal> {
    let job = |job: &DatabaseJob<'_>| {
        let timestamp = job.request.timestamp()?;
        let (broker, _) = living(job)?;
        broker.delete(timestamp).map_err(|error| job.refuse(&error))?;
        let mut response = whole(StatusCode::NO_CONTENT, EMPTY_TYPE, "");
        put_header(&mut response, X_ACCOUNT_STATUS, "Deleted");
        let after = broker.info().map_err(|error| job.refuse(&error))?;
        // Created later than this DELETE was sent: it stays.
        let newer = Some(after.put_timestamp).filter(|at| *at > timestamp);
        Ok(metadata::say_newer(newer, response))
    };
    state.run(&request, job).await
}

/// HEAD and GET.
pub(crate) async fn read(
    state: &Arc<ListingServerState>,
    request: Arc<ListingRequest>,
    message: ReadAccount,
) -> Result<Response, Refusal> {
    let format = accept::format(&message.query, request.text(ACCEPT))?;
    if message.head_only {
        let job = move |job: &DatabaseJob<'_>| {
            let (broker, info) = living(job)?;
            let mut response = page(StatusCode::NO_CONTENT);
            put_header(&mut response, CONTENT_TYPE, format.content_type());
            describe(job, &broker, &info, &mut response)?;
            Ok(response)
        };
        return state.run(&request, job).await;
    }
    let mut query = listing_query::parse(&request, &message.query, state.options.limits.account_listing_limit)?;
    query.path = None;
    let job = move |job: &DatabaseJob<'_>, most: usize| {
        let (broker, info) = living(job)?;
        if query
            .limit
            .min(usize::try_from(info.container_count).unwrap_or(usize::MAX))
            > most
        {
            return Ok(None);
        }
        let policies = &job.state.options.policies;
        let mut listing = ListingText::of_account(format, job.request.account());
        let done = broker.list_containers(&query, |entry| listing.container(entry, policies));
        done.map_err(|error| job.refuse(&error))?;
        let status = match (format, listing.is_empty()) {
            (ListingFormat::Plain, true) => StatusCode::NO_CONTENT,
            _ => StatusCode::OK,
        };
        let text = listing.finish().ok_or_else(|| too_long(&broker))?;
        let mut response = whole(status, format.content_type(), text);
        describe(job, &broker, &info, &mut response)?;
        Ok(Some(response))
    };
    state.run_listing(&request, job).await
}

/// The account and what it says about itself; 404 that says so when it was deleted.
fn living(job: &DatabaseJob<'_>) -> Result<(Arc<Broker>, Info), Refusal> {
    let missing = |info: Option<&Info>| gone(StatusCode::NOT_FOUND, "", info);
    let Some(broker) = job.find()? else {
        return Err(missing(None));
    };
    match broker.info() {
        Ok(info) if info.is_deleted() => Err(missing(Some(&info))),
        Ok(info) => Ok((broker, info)),
        Err(Error::NotFound { .. }) => Err(missing(None)),
        Err(error) => Err(job.refuse(&error)),
    }
}

fn gone(status: StatusCode, text: &'static str, info: Option<&Info>) -> Refusal {
    let mut response = whole(status, EMPTY_TYPE, text);
    if info.is_some_and(Info::is_marked_deleted) {
        put_header(&mut response, X_ACCOUNT_STATUS, "Deleted");
    }
    Refusal::Whole(Box::new(response))
}

/// What HEAD and GET say about the account.
fn describe(job: &DatabaseJob<'_>, broker: &Broker, info: &Info, response: &mut Response) -> Result<(), Refusal> {
    let refuse = |error: Error| job.refuse(&error);
    put_number(response, X_ACCOUNT_CONTAINER_COUNT, info.container_count);
    put_number(response, X_ACCOUNT_OBJECT_COUNT, info.object_count);
    put_number(response, X_ACCOUNT_BYTES_USED, info.bytes_used);
    put_header(response, X_TIMESTAMP, &info.created_at.normal());
    put_header(response, X_PUT_TIMESTAMP, &info.put_timestamp.normal());
    for stat in broker.policy_stats().map_err(refuse)? {
        let Some(policy) = job.state.options.policies.get(stat.policy) else {
            continue;
        };
        for (what, number) in [
            ("container-count", stat.container_count),
            ("object-count", stat.object_count),
            ("bytes-used", stat.bytes_used),
        ] {
            let name = format!("x-account-storage-policy-{}-{what}", policy.name);
            put_named(response, &name, &number.to_string());
        }
    }
    metadata::to_response(Kind::Account, &broker.metadata().map_err(refuse)?, response);
    Ok(())
}
