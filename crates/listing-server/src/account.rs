//! Accounts: PUT, POST, DELETE, HEAD, GET, and the rows that container servers report.

use crate::accept::{self, Format};
use crate::listing_query;
use crate::metadata;
use crate::render::Listing;
use crate::reply::{Refusal, answer, page, put, put_named, put_number};
use crate::request::Request;
use crate::service::{Desk, Shared};
use http::{Method, StatusCode};
use listing_engine::{Broker, ContainerRow, Error, Info, Kind, Metadata, Row};
use peer::Response;
use std::sync::Arc;
use tokio::sync::oneshot;
use vocabulary::{PolicyIndex, Timestamp};

/// What a deleted account is labelled with.
const EMPTY_TYPE: &str = "text/html; charset=utf-8";

/// Every verb on an account.
pub(crate) async fn answer_call(shared: &Arc<Shared>, request: Arc<Request>) -> Result<Response, Refusal> {
    let (row, too_long) = (request.path.container.is_some(), request.object().is_some());
    let method = request.method.clone();
    if too_long || (row && method != Method::PUT) {
        return Err(request.invalid_path());
    }
    request.check_reserved(&shared.options)?;
    match method.as_str() {
        "PUT" if row => put_row(shared, request).await,
        "PUT" => put_account(shared, request).await,
        "POST" => post(shared, request).await,
        "DELETE" => delete(shared, request).await,
        _ => read(shared, request).await,
    }
}

async fn put_account(shared: &Arc<Shared>, request: Arc<Request>) -> Result<Response, Refusal> {
    let job = |desk: &Desk<'_>| {
        desk.shared.devices.check_room(desk.device)?;
        let timestamp = desk.request.timestamp()?;
        let refuse = |error: Error| desk.refuse(&error);
        let (broker, created) = desk.find_or_create(timestamp, PolicyIndex::LEGACY)?;
        if !created {
            let info = broker.info().map_err(refuse)?;
            if is_marked_deleted(&info) {
                return Err(gone(StatusCode::FORBIDDEN, "Recently deleted", Some(&info)));
            }
            broker.update_put_timestamp(timestamp).map_err(refuse)?;
            if broker.is_deleted().map_err(refuse)? {
                return Err(Refusal::conflict());
            }
        }
        set_metadata(desk, &broker, timestamp)?;
        Ok(page(if created {
            StatusCode::CREATED
        } else {
            StatusCode::ACCEPTED
        }))
    };
    shared.run(&request, job).await
}

fn is_marked_deleted(info: &Info) -> bool {
    info.status == "DELETED"
}

fn set_metadata(desk: &Desk<'_>, broker: &Broker, timestamp: Timestamp) -> Result<(), Refusal> {
    let updates = metadata::from_request(Kind::Account, desk.request, timestamp)?;
    let limits = &desk.shared.options.limits;
    let check = |merged: &Metadata| metadata::check(Kind::Account, merged, limits);
    broker
        .update_metadata_checked(&updates, check)
        .map_err(|error| desk.refuse(&error))?
}

/// The row of a container, as its server reports it.
async fn put_row(shared: &Arc<Shared>, request: Arc<Request>) -> Result<Response, Refusal> {
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
    let job = move |desk: &Desk<'_>| {
        desk.shared.devices.check_room(desk.device)?;
        let broker = match desk.request.may_create_account(&desk.shared.options) {
            // Updaters say no time of their own.
            true => {
                let said = desk.request.optional_time("x-timestamp")?;
                let time = said.unwrap_or_else(|| desk.shared.world.clock.now());
                desk.find_or_create(time, PolicyIndex::LEGACY)?.0
            }
            false => desk.open()?,
        };
        let overrides = desk.request.text("x-account-override-deleted");
        let overridden = overrides.is_some_and(|value| value.eq_ignore_ascii_case("yes"));
        if !overridden && broker.is_deleted().map_err(|error| desk.refuse(&error))? {
            return Err(Refusal::not_found());
        }
        // Updaters say the same again; a new row would travel to every replica.
        if broker.says(&row).map_err(|error| desk.refuse(&error))? {
            let _ = done.send(Ok(()));
            return Ok(());
        }
        // Nobody listening any more is fine: the row itself is stored.
        if broker.enqueue(vec![Row::Container(row)], move |result| drop(done.send(result))) {
            broker.flush();
        }
        Ok(())
    };
    shared.run(&request, job).await?;
    match stored.await {
        Ok(Ok(())) if went => Ok(page(StatusCode::NO_CONTENT)),
        Ok(Ok(())) => Ok(page(StatusCode::CREATED)),
        Ok(Err(error)) => Err(Refusal::from_engine(&error, &request.device)),
        Err(_) => Err(Refusal::Page(StatusCode::INTERNAL_SERVER_ERROR)),
    }
}

/// Any number: a row may be of a policy that this node has not heard of yet.
fn policy_of_row(request: &Request) -> Result<PolicyIndex, Refusal> {
    match request.text("x-backend-storage-policy-index") {
        None => Ok(PolicyIndex::LEGACY),
        Some(text) => text
            .trim()
            .parse()
            .map(PolicyIndex)
            .map_err(|_| Refusal::bad_request(format!("Invalid X-Backend-Storage-Policy-Index '{text}'"))),
    }
}

async fn post(shared: &Arc<Shared>, request: Arc<Request>) -> Result<Response, Refusal> {
    let timestamp = request.timestamp()?;
    let job = move |desk: &Desk<'_>| {
        desk.shared.devices.check_room(desk.device)?;
        let (broker, _) = living(desk)?;
        set_metadata(desk, &broker, timestamp)?;
        Ok(page(StatusCode::NO_CONTENT))
    };
    shared.run(&request, job).await
}

async fn delete(shared: &Arc<Shared>, request: Arc<Request>) -> Result<Response, Refusal> {
    let job = |desk: &Desk<'_>| {
        let timestamp = desk.request.timestamp()?;
        let (broker, _) = living(desk)?;
        broker.delete(timestamp).map_err(|error| desk.refuse(&error))?;
        let mut response = answer(StatusCode::NO_CONTENT, EMPTY_TYPE, "");
        put(&mut response, "x-account-status", "Deleted");
        Ok(response)
    };
    shared.run(&request, job).await
}

async fn read(shared: &Arc<Shared>, request: Arc<Request>) -> Result<Response, Refusal> {
    let format = accept::format(&request.query, request.text("accept"))?;
    if request.method == Method::HEAD {
        let job = move |desk: &Desk<'_>| {
            let (broker, info) = living(desk)?;
            let mut response = page(StatusCode::NO_CONTENT);
            put(&mut response, "content-type", format.content_type());
            describe(desk, &broker, &info, &mut response)?;
            Ok(response)
        };
        return shared.run(&request, job).await;
    }
    let mut query = listing_query::parse(&request, shared.options.limits.account_listing_limit)?;
    query.path = None;
    let job = move |desk: &Desk<'_>| {
        let (broker, info) = living(desk)?;
        let policies = &desk.shared.options.policies;
        let mut listing = Listing::of_account(format, desk.request.account());
        let done = broker.list_containers(&query, |entry| listing.container(entry, policies));
        done.map_err(|error| desk.refuse(&error))?;
        let status = match (format, listing.is_empty()) {
            (Format::Plain, true) => StatusCode::NO_CONTENT,
            _ => StatusCode::OK,
        };
        let mut response = answer(status, format.content_type(), listing.finish());
        describe(desk, &broker, &info, &mut response)?;
        Ok(response)
    };
    shared.run(&request, job).await
}

/// The account and what it says about itself; 404 that says so when it was deleted.
fn living(desk: &Desk<'_>) -> Result<(Arc<Broker>, Info), Refusal> {
    let missing = |info: Option<&Info>| gone(StatusCode::NOT_FOUND, "", info);
    let Some(broker) = desk.find()? else {
        return Err(missing(None));
    };
    match broker.info() {
        Ok(info) if info.is_deleted() => Err(missing(Some(&info))),
        Ok(info) => Ok((broker, info)),
        Err(Error::NotFound { .. }) => Err(missing(None)),
        Err(error) => Err(desk.refuse(&error)),
    }
}

fn gone(status: StatusCode, text: &'static str, info: Option<&Info>) -> Refusal {
    let mut response = answer(status, EMPTY_TYPE, text);
    if info.is_some_and(is_marked_deleted) {
        put(&mut response, "x-account-status", "Deleted");
    }
    Refusal::Whole(Box::new(response))
}

/// What HEAD and GET say about the account.
fn describe(desk: &Desk<'_>, broker: &Broker, info: &Info, response: &mut Response) -> Result<(), Refusal> {
    let refuse = |error: Error| desk.refuse(&error);
    put_number(response, "x-account-container-count", info.container_count);
    put_number(response, "x-account-object-count", info.object_count);
    put_number(response, "x-account-bytes-used", info.bytes_used);
    put(response, "x-timestamp", &info.created_at.normal());
    put(response, "x-put-timestamp", &info.put_timestamp.normal());
    for stat in broker.policy_stats().map_err(refuse)? {
        let Some(policy) = desk.shared.options.policies.get(stat.policy) else {
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
