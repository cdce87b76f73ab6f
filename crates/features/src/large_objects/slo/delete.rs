//! `DELETE …?multipart-manifest=delete`: the manifest, its segments, and theirs.
//!
//! Answers 200 at once and the outcome in the body, like a bulk deletion, with spaces while it lasts.
//! Always holds: what is already gone is counted, not an error; at most `delete_concurrency` deletions are
//! under way; the list of what is still to be deleted is bounded; each deletion is authorised as the client's.

use super::manifest::{Content, names};
use super::read::manifest_query;
use super::{HeldManifest, SOURCE, Shared, Unread, is_large};
use crate::bulk::delete::{BulkTally, refusal};
use crate::bulk::heartbeat;
use crate::bulk::report::{Report, form_of};
use crate::large_objects::segments::agent;
use crate::listings::listing_accept::choose;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::header::{CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{Method, StatusCode};
use request_pipeline::{ClientRequest, Next, Response, reply};
use std::collections::VecDeque;
use std::sync::Arc;
use vocabulary::EntityPath;

/// Failures after which it is given up, as bulk deletions are.
const MAX_FAILURES: usize = 1000;
/// Times `max_manifest_segments` that may wait: operators may have lowered that since manifests were stored.
const WAITING: usize = 10;

/// Answers the deletion of a large object with its segments.
pub(super) async fn handle(shared: &Arc<Shared>, request: ClientRequest, next: Next) -> Response {
    let accept = request.headers.get("accept").map(HeaderValue::as_bytes);
    let acceptable = accept.is_none_or(|accept| matches!(choose(accept), Ok(Some(_))));
    let form = form_of(accept);
    let clock = shared.world.clock.clone();
    let deletion = Deletion {
        shared: shared.clone(),
        request,
        next,
        waiting: VecDeque::new(),
    };
    let work = async move {
        let report = match acceptable {
            true => deletion.run().await,
            false => refusal(406, ""),
        };
        report.print(form, "delete")
    };
    let mut response = heartbeat::respond(form, shared.beat(), clock, work).await;
    if !acceptable {
        let html = HeaderValue::from_static("text/html; charset=UTF-8");
        response.headers_mut().insert(CONTENT_TYPE, html);
    }
    response
}

/// Why a manifest's segments are not known.
pub(super) enum DeleteRefusal {
    /// There is no such object.
    NotFound,
    /// The client may not read it.
    Unauthorised,
    /// It is an object as any other.
    NotLarge,
    /// It is a manifest that cannot be read.
    Unreadable,
    /// It could not be read, or may not.
    Unavailable,
}

impl DeleteRefusal {
    pub(super) fn text(&self) -> &'static str {
        match self {
            DeleteRefusal::NotFound => "SLO manifest not found",
            DeleteRefusal::Unauthorised => "401 Unauthorized",
            DeleteRefusal::NotLarge => "Not an SLO manifest",
            DeleteRefusal::Unreadable => "Unable to load SLO manifest",
            DeleteRefusal::Unavailable => "Unable to load SLO manifest or segment.",
        }
    }

    /// What a deletion of many counts it as: gone already, or a failure.
    fn counts_as(&self) -> u16 {
        match self {
            DeleteRefusal::NotFound => 404,
            _ => 400,
        }
    }

    /// As an answer by itself.
    pub(super) fn response(&self) -> Response {
        let code = match self {
            DeleteRefusal::NotFound => 404,
            DeleteRefusal::Unauthorised => return reply::status(401),
            DeleteRefusal::NotLarge => 400,
            DeleteRefusal::Unreadable | DeleteRefusal::Unavailable => 500,
        };
        reply::html(code, self.text().into())
    }
}

/// The segments of a large object.
pub(super) async fn segments(
    shared: &Shared,
    client: &ClientRequest,
    next: &Next,
    path: EntityPath,
    query: String,
) -> Result<Arc<HeldManifest>, DeleteRefusal> {
    let mut request = client.subrequest(Method::GET, path, SOURCE);
    request.query = query;
    request.headers.insert(USER_AGENT, agent(client, "MultipartDELETE"));
    let response = next.clone().run(request).await;
    match response.status() {
        StatusCode::NOT_FOUND => return Err(DeleteRefusal::NotFound),
        StatusCode::UNAUTHORIZED => return Err(DeleteRefusal::Unauthorised),
        status if !status.is_success() => return Err(DeleteRefusal::Unavailable),
        _ if !is_large(response.headers()) => return Err(DeleteRefusal::NotLarge),
        _ => {}
    }
    shared
        .read(client.from.ip(), response.into_body())
        .await
        .map_err(|problem| match problem {
            Unread::NotAManifest => DeleteRefusal::Unreadable,
            Unread::Broken(_) | Unread::NoRoom(_) => DeleteRefusal::Unavailable,
        })
}

/// Something to delete.
struct Target {
    /// `/container/object`.
    name: String,
    /// Its segments come first.
    is_large: bool,
    /// With which parameters it is asked for and deleted: those of the version the client named.
    version: Option<String>,
}

/// A deletion under way.
struct Deletion {
    shared: Arc<Shared>,
    request: ClientRequest,
    next: Next,
    waiting: VecDeque<Target>,
}

impl Deletion {
    async fn run(mut self) -> Report {
        let entity = self.request.entity.clone();
        let Some((container, object)) = entity
            .as_ref()
            .and_then(|e| Some((e.container.as_ref()?, e.object.as_ref()?)))
        else {
            return refusal(412, "");
        };
        let version = match self.request.param("version-id") {
            Some(Ok(version)) => Some(version),
            _ => None,
        };
        self.waiting.push_back(Target {
            name: format!("/{container}/{object}"),
            is_large: true,
            version,
        });
        let most_waiting = self.shared.settings.max_manifest_segments.saturating_mul(WAITING);
        let at_a_time = self.shared.concurrency_of_deletions();
        let Deletion {
            shared,
            request,
            next,
            mut waiting,
        } = self;
        let mut tally = BulkTally::default();
        let mut under_way = FuturesUnordered::new();
        while let Some(target) = waiting.pop_front() {
            if waiting.len() >= most_waiting.max(1) {
                return given_up(tally, "Too many buffered slo segments to delete.");
            }
            if target.is_large {
                expand(&shared, &request, &next, target, &mut waiting, &mut tally).await;
            } else {
                if under_way.len() >= at_a_time
                    && let Some(done) = under_way.next().await
                {
                    count_in(&mut tally, done);
                }
                under_way.push(delete(&request, &next, target));
            }
            if tally.failures.len() >= MAX_FAILURES {
                return given_up(tally, "Max delete failures exceeded");
            }
        }
        while let Some(done) = under_way.next().await {
            count_in(&mut tally, done);
        }
        tally.report()
    }
}

fn count_in(tally: &mut BulkTally, (name, code): (String, u16)) {
    tally.count(name.as_bytes(), code, reply::status_line(code));
}

fn given_up(tally: BulkTally, text: &str) -> Report {
    tally
        .report()
        .with("Response Status", reply::status_line(400))
        .with("Response Body", text)
}

/// Puts a large object's segments in the queue, and behind them the object itself.
async fn expand(
    shared: &Shared,
    client: &ClientRequest,
    next: &Next,
    target: Target,
    waiting: &mut VecDeque<Target>,
    tally: &mut BulkTally,
) {
    let Some(path) = path(client, &target.name) else {
        return tally.count(target.name.as_bytes(), 412, reply::status_line(412));
    };
    let query = match &target.version {
        Some(_) => manifest_query(&client.query),
        None => "multipart-manifest=get".into(),
    };
    match segments(shared, client, next, path, query).await {
        Ok(found) => {
            for segment in found.manifest.iter() {
                if let Content::Object(object) = segment.content {
                    waiting.push_back(Target {
                        name: object.name,
                        is_large: object.is_large,
                        version: None,
                    });
                }
            }
            waiting.push_back(Target {
                is_large: false,
                ..target
            });
        }
        Err(refusal) => tally.count(target.name.as_bytes(), refusal.counts_as(), refusal.text().into()),
    }
}

fn path(request: &ClientRequest, name: &str) -> Option<EntityPath> {
    let (container, object) = names(name).filter(|_| !name.contains('\0'))?;
    let account = request.entity.as_ref().map_or("", |entity| &entity.account);
    Some(
        EntityPath::account(account)
            .with_container(container)
            .with_object(object),
    )
}

async fn delete(client: &ClientRequest, next: &Next, target: Target) -> (String, u16) {
    let Some(path) = path(client, &target.name) else {
        return (target.name, 412);
    };
    let mut request = client.subrequest(Method::DELETE, path, SOURCE);
    if let Some(version) = target.version {
        request.query = format!("version-id={version}");
    }
    request.headers.insert(USER_AGENT, agent(client, "MultipartDELETE"));
    let response = next.clone().run(request).await;
    (target.name, response.status().as_u16())
}

impl Shared {
    fn concurrency_of_deletions(&self) -> usize {
        let settings = &self.settings;
        settings.delete_concurrency.unwrap_or(settings.concurrency).0
    }
}
