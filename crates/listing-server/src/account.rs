//! Accounts: PUT, POST, DELETE, HEAD, GET, and the rows that container servers report.

use crate::accept::{self, ListingFormat};
use crate::listing_query;
use crate::metadata;
use crate::refusal::refusal_of;
use crate::render::Listing;
use crate::request::ListingRequest;
use crate::state::{DatabaseJob, ListingServerState};
use http::{Method, StatusCode};
use listing_engine::{Broker, ContainerRow, Error, Info, Kind, Metadata, Row};
use peer::Response;
use std::sync::Arc;
use storage_shell::{Refusal, page, put, put_named, put_number, whole};
use tokio::sync::oneshot;
use vocabulary::{PolicyIndex, Timestamp};

/// What a deleted account is labelled with.
const EMPTY_TYPE: &str = "text/html; charset=utf-8";

/// Every verb on an account.
pub(crate) async fn answer_call(
    state: &Arc<ListingServerState>,
    request: Arc<ListingRequest>,
) -> Result<Response, Refusal> {
    let (row, too_long) = (request.path.container.is_some(), request.object().is_some());
    let method = request.method.clone();
    if too_long || (row && method != Method::PUT) {
        return Err(request.invalid_path());
    }
    request.check_reserved(&state.options)?;
    match method.as_str() {
        "PUT" if row => put_row(state, request).await,
        "PUT" => put_account(state, request).await,
        "POST" => post(state, request).await,
        "DELETE" => delete(state, request).await,
        _ => read(state, request).await,
    }
}

async fn put_account(state: &Arc<ListingServerState>, request: Arc<ListingRequest>) -> Result<Response, Refusal> {
    let job = |job: &DatabaseJob<'_>| {
        job.check_room()?;
        let timestamp = job.request.timestamp()?;
        let refuse = |error: Error| job.refuse(&error);
        let (broker, created) = job.find_or_create(timestamp, PolicyIndex::LEGACY)?;
        if !created {
            let info = broker.info().map_err(refuse)?;
            if is_marked_deleted(&info) {
                return Err(gone(StatusCode::FORBIDDEN, "Recently deleted", Some(&info)));
            }
            broker.update_put_timestamp(timestamp).map_err(refuse)?;
            if broker.is_deleted().map_err(refuse)? {
                return Err(Refusal::conflict(None));
            }
        }
        set_metadata(job, &broker, timestamp)?;
        Ok(page(if created {
            StatusCode::CREATED
        } else {
            StatusCode::ACCEPTED
        }))
    };
    state.run(&request, job).await
}

fn is_marked_deleted(info: &Info) -> bool {
    info.status == "DELETED"
}

fn set_metadata(job: &DatabaseJob<'_>, broker: &Broker, timestamp: Timestamp) -> Result<(), Refusal> {
    let updates = metadata::from_request(Kind::Account, job.request, timestamp)?;
    let limits = &job.state.options.limits;
    let check = |merged: &Metadata| metadata::check(Kind::Account, merged, limits);
    broker
        .update_metadata_checked(&updates, check)
        .map_err(|error| job.refuse(&error))?
}

/// The row of a container, as its server reports it.
async fn put_row(state: &Arc<ListingServerState>, request: Arc<ListingRequest>) -> Result<Response, Refusal> {
    let row = ContainerRow {
        name: request.container().to_owned(),
        put_timestamp: request.time("x-put-timestamp")?,
        delete_timestamp: request.time("x-delete-timestamp")?,
        object_count: request.number("x-object-count")?,
        bytes_used: request.number("x-bytes-used")?,
        policy: policy_of_row(&request)?,
    };
    let went = row.delete_timestamp > row.put_timestamp;
    let (done, stored) = oneshot::channel::<Result<(), Error>>();
    let job = move |job: &DatabaseJob<'_>| {
        job.check_room()?;
        let broker = match job.request.may_create_account(&job.state.options) {
            // Updaters send no time of their own.
            true => {
                let sent = job.request.optional_time("x-timestamp")?;
                let time = sent.unwrap_or_else(|| job.state.world.clock.now());
                job.find_or_create(time, PolicyIndex::LEGACY)?.0
            }
            false => job.open()?,
        };
        let overrides = job.request.text("x-account-override-deleted");
        let overridden = overrides.is_some_and(|value| value.eq_ignore_ascii_case("yes"));
        if !overridden && broker.is_deleted().map_err(|error| job.refuse(&error))? {
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
    match stored.await {
        Ok(Ok(())) if went => Ok(page(StatusCode::NO_CONTENT)),
        Ok(Ok(())) => Ok(page(StatusCode::CREATED)),
        Ok(Err(error)) => Err(refusal_of(&error, &request.device)),
        Err(_) => Err(Refusal::internal()),
    }
}

/// Any number: a row may be of a policy that this node has not heard of yet.
fn policy_of_row(request: &ListingRequest) -> Result<PolicyIndex, Refusal> {
    match request.text("x-backend-storage-policy-index") {
        None => Ok(PolicyIndex::LEGACY),
        Some(text) => text
            .trim()
            .parse()
            .map(PolicyIndex)
            .map_err(|_| Refusal::bad_request(format!("Invalid X-Backend-Storage-Policy-Index '{text}'"))),
    }
}

async fn post(state: &Arc<ListingServerState>, request: Arc<ListingRequest>) -> Result<Response, Refusal> {
    let timestamp = request.timestamp()?;
    let job = move |job: &DatabaseJob<'_>| {
        job.check_room()?;
        let (broker, _) = living(job)?;
        set_metadata(job, &broker, timestamp)?;
        Ok(page(StatusCode::NO_CONTENT))
    };
    state.run(&request, job).await
}

async fn delete(state: &Arc<ListingServerState>, request: Arc<ListingRequest>) -> Result<Response, Refusal> {
    let job = |job: &DatabaseJob<'_>| {
        let timestamp = job.request.timestamp()?;
        let (broker, _) = living(job)?;
        broker.delete(timestamp).map_err(|error| job.refuse(&error))?;
        let mut response = whole(StatusCode::NO_CONTENT, EMPTY_TYPE, "");
        put(&mut response, "x-account-status", "Deleted");
        Ok(response)
    };
    state.run(&request, job).await
}

async fn read(state: &Arc<ListingServerState>, request: Arc<ListingRequest>) -> Result<Response, Refusal> {
    let format = accept::format(&request.query, request.text("accept"))?;
    if request.method == Method::HEAD {
        let job = move |job: &DatabaseJob<'_>| {
            let (broker, info) = living(job)?;
            let mut response = page(StatusCode::NO_CONTENT);
            put(&mut response, "content-type", format.content_type());
            describe(job, &broker, &info, &mut response)?;
            Ok(response)
        };
        return state.run(&request, job).await;
    }
    let mut query = listing_query::parse(&request, state.options.limits.account_listing_limit)?;
    query.path = None;
    let job = move |job: &DatabaseJob<'_>| {
        let (broker, info) = living(job)?;
        let policies = &job.state.options.policies;
        let mut listing = Listing::of_account(format, job.request.account());
        let done = broker.list_containers(&query, |entry| listing.container(entry, policies));
        done.map_err(|error| job.refuse(&error))?;
        let status = match (format, listing.is_empty()) {
            (ListingFormat::Plain, true) => StatusCode::NO_CONTENT,
            _ => StatusCode::OK,
        };
        let mut response = whole(status, format.content_type(), listing.finish());
        describe(job, &broker, &info, &mut response)?;
        Ok(response)
    };
    state.run(&request, job).await
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
    if info.is_some_and(is_marked_deleted) {
        put(&mut response, "x-account-status", "Deleted");
    }
    Refusal::Whole(Box::new(response))
}

/// What HEAD and GET say about the account.
fn describe(job: &DatabaseJob<'_>, broker: &Broker, info: &Info, response: &mut Response) -> Result<(), Refusal> {
    let refuse = |error: Error| job.refuse(&error);
    put_number(response, "x-account-container-count", info.container_count);
    put_number(response, "x-account-object-count", info.object_count);
    put_number(response, "x-account-bytes-used", info.bytes_used);
    put(response, "x-timestamp", &info.created_at.normal());
    put(response, "x-put-timestamp", &info.put_timestamp.normal());
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
