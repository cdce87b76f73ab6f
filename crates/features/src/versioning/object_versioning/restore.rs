//! `PUT ?version-id=`: an older version becomes the current one.
//!
//! A client asks for it, or S3's front, when the version before takes the place of one that was deleted
//! ([`FillsVacancy`]). A client's is as of now. The other is as of just after the deletion: what clients have written
//! since then is newer, also where their link comes first.
//! Always holds: a link to a version that is deleted meanwhile does not stay. The version is looked at again once its
//! link is there, and a deletion looks at the link again once the version is gone (`removal.rs`): whichever looks last
//! takes the link away.
//! Tests: `removal_tests.rs`.

use super::link::long_before;
use super::names::VersionId;
use super::write::{keep_unversioned, look_at, put_link, shown_by};
use super::{Asked, ObjectVersioning, SOURCE, authorise_write, refused, show_version};
use http::header::{CONTENT_LENGTH, ETAG, LAST_MODIFIED, TRANSFER_ENCODING};
use http::{HeaderMap, Method, StatusCode};
use peer::message::header_names::{X_BACKEND_TIMESTAMP, X_WRITE_LOCK};
use request_pipeline::{ClientRequest, ContainerInfo, FillsVacancy, LockRefusal, Next, Response, reply};
use vocabulary::Timestamp;

impl ObjectVersioning {
    /// `PUT ?version-id=` of a version that is to be shown.
    pub(super) async fn restore(
        &self,
        asked: &Asked,
        mut request: ClientRequest,
        id: VersionId,
        info: &ContainerInfo,
        next: Next,
    ) -> Response {
        if id == VersionId::Null {
            return reply::html(400, "Invalid version parameter".into());
        }
        let is_empty = match request.header(CONTENT_LENGTH.as_str()) {
            Some(length) => length.parse() == Ok(0_u64),
            None if request.headers.contains_key(TRANSFER_ENCODING) => request.body.next().await.is_none(),
            None => return reply::status(411),
        };
        if !is_empty {
            return reply::plain(400, "PUT version-id requests require a zero byte body");
        }
        if let Err(refusal) = authorise_write(&mut request, info, &next).await {
            return refusal;
        }
        let lock = match self.lock_key(asked, &request, info, &next).await {
            Ok(lock) => lock,
            Err(LockRefusal::Held) => return reply::status_for(&request.method, 503),
            // Deletions that must not meet this one are not made either, where most of the servers cannot be asked.
            Err(LockRefusal::Unavailable | LockRefusal::Unknown) => None,
        };
        if let Some(lock) = &lock {
            request.headers.insert(X_WRITE_LOCK, lock.header());
        }
        self.restore_locked(asked, request, id, &next).await
    }

    async fn restore_locked(&self, asked: &Asked, request: ClientRequest, id: VersionId, next: &Next) -> Response {
        let found = match version_there(asked, &request, id, next).await {
            Ok(found) => found,
            Err(refusal) => return refusal,
        };
        let at = match request.extensions.get::<FillsVacancy>() {
            Some(_) => self.vacant_since(asked, &request, next).await,
            None => keep_unversioned(asked, &request, next)
                .await
                .map(|_| self.moment(&request, next)),
        };
        let at = match at {
            Ok(at) => at.just_after(),
            Err(refusal) => return refusal,
        };
        let shown = shown_by(id, found.headers());
        if let Err(refusal) = put_link(asked, &request.without_body(), at, &shown, next).await {
            return refusal;
        }
        if let Err(refusal) = version_there(asked, &request, id, next).await {
            if refusal.status() == StatusCode::NOT_FOUND {
                unlink(asked, &request, at, next).await;
            }
            return refusal;
        }
        let mut response = reply::html(201, String::new());
        for name in [ETAG, LAST_MODIFIED] {
            if let Some(value) = found.headers().get(&name) {
                response.headers_mut().insert(name, value.clone());
            }
        }
        show_version(&mut response, id);
        response
    }

    /// When what the key showed was deleted; 409 where it shows something.
    async fn vacant_since(&self, asked: &Asked, request: &ClientRequest, next: &Next) -> Result<Timestamp, Response> {
        let looked = self.world.clock.now();
        let own = next.clone().run(look_at(request, (*asked.entity).clone())).await;
        match own.status() {
            StatusCode::NOT_FOUND => Ok(vacated(own.headers(), looked)),
            status if status.is_success() => Err(reply::plain(409, "another version is the current one")),
            _ => Err(refused(&own, request)),
        }
    }
}

/// HEAD of the version that is to be shown.
async fn version_there(
    asked: &Asked,
    request: &ClientRequest,
    id: VersionId,
    next: &Next,
) -> Result<Response, Response> {
    let found = next.clone().run(look_at(request, asked.at(id))).await;
    match found.status() {
        StatusCode::NOT_FOUND => Err(reply::plain(404, "The specified version does not exist")),
        status if !status.is_success() => Err(refused(&found, request)),
        _ => Ok(found),
    }
}

/// The time of the tombstone in the key's place. Where none is known it is forgotten, which only old ones are.
fn vacated(nothing: &HeaderMap, looked: Timestamp) -> Timestamp {
    let deleted = nothing
        .get(X_BACKEND_TIMESTAMP)
        .and_then(|at| at.to_str().ok()?.parse().ok());
    deleted.unwrap_or_else(|| long_before(looked))
}

/// Takes away the link that was put `at` this time, and nothing newer.
async fn unlink(asked: &Asked, request: &ClientRequest, at: Timestamp, next: &Next) {
    let own = (*asked.entity).clone();
    let mut unlink = request.subrequest(Method::DELETE, own, SOURCE).preauthorised();
    unlink.query.clear();
    unlink.set_header("x-timestamp", &at.just_after().internal());
    let unlinked = next.clone().run(unlink).await;
    if unlinked.status().is_server_error() {
        tracing::warn!("{}: a link to a deleted version may be left", asked.entity.path());
    }
}
