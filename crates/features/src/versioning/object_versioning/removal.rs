//! `DELETE ?version-id=`: one version goes.
//!
//! Always holds: the link goes before the version that it shows (`link.rs`); of a version that S3's object lock holds
//! the link stays, also where the lock is set in just this moment: in a bucket with object lock the deletion is decided
//! under the version's write lock, which changes of the lock take, too, and the link goes under it; where object
//! servers refuse the version's deletion after that (they know no write locks, or this one was lost) the link comes
//! back; a link that is put to a version while that goes does not stay. A version that is to go unless it is current is
//! looked at under the key's write lock (`key_lock.rs`).
//! Tests: `removal_tests.rs`.

use super::key_lock::LEASE;
use super::link::LinkRemoval;
use super::names::VersionId;
use super::write::{linked_version, look_at};
use super::{Asked, ObjectVersioning, allow_hidden, authorise_write, refused, show_version};
use http::StatusCode;
use peer::message::header_names::X_UNLESS_CURRENT;
use request_pipeline::{ClientRequest, ContainerInfo, LockRefusal, Next, Response, reply, set_header};
use std::sync::Arc;

impl ObjectVersioning {
    /// `DELETE ?version-id=`: that version goes, with the link if it is the current one.
    pub(super) async fn delete_version(
        &self,
        asked: &Asked,
        mut request: ClientRequest,
        id: VersionId,
        info: &ContainerInfo,
        next: Next,
    ) -> Response {
        if let Err(refusal) = authorise_write(&mut request, info, &next).await {
            return refusal;
        }
        if request.headers.remove(X_UNLESS_CURRENT).is_none() {
            return self.delete_found(asked, request, id, (info, false), next).await;
        }
        let lock = match self.lock_key(asked, &request, info, &next).await {
            Ok(lock) => lock,
            Err(LockRefusal::Unknown) => None,
            Err(LockRefusal::Held | LockRefusal::Unavailable) => return reply::status_for(&request.method, 503),
        };
        let work = self.delete_found(asked, request, id, (info, true), next);
        match lock {
            Some(lock) => lock.keep_while(&self.world, LEASE, work).await,
            None => work.await,
        }
    }

    async fn delete_found(
        &self,
        asked: &Asked,
        mut request: ClientRequest,
        id: VersionId,
        (info, unless_current): (&ContainerInfo, bool),
        next: Next,
    ) -> Response {
        let looked = self.world.clock.now();
        let found = next.clone().run(look_at(&request, (*asked.entity).clone())).await;
        if !found.status().is_success() && found.status() != StatusCode::NOT_FOUND {
            return refused(&found, &request);
        }
        let mut current = linked_version(asked, found.headers());
        let link = (current == id).then(|| LinkRemoval::new(asked, id, found.headers().clone(), looked));
        if unless_current && link.is_some() {
            return reply::plain(409, "the version is the current one");
        }
        let about_link = request.without_body();
        request.aim_at(asked.at(id));
        request.query.clear();
        allow_hidden(&mut request);
        let request = request.preauthorised();
        let mut response = match &link {
            None => next.clone().run(request).await,
            Some(link) => match delete_with_link(link, &about_link, request, info, &next).await {
                Ok(response) => response,
                Err(refusal) => return refusal,
            },
        };
        if let Some(link) = link {
            current = link.current();
        }
        // A restoration waits for the key's lock, not for this deletion (`restore.rs`).
        if !unless_current && response.status().is_success() {
            match self.without_new_link(asked, &about_link, id, &next).await {
                Ok(shown) => current = shown,
                Err(refusal) => return refusal,
            }
        }
        show_version(&mut response, id);
        set_header(
            response.headers_mut(),
            "x-object-current-version-id",
            &current.to_string(),
        );
        response
    }

    /// Takes away the link that has been put to a version while that was deleted. What the key shows then.
    async fn without_new_link(
        &self,
        asked: &Asked,
        about_link: &ClientRequest,
        id: VersionId,
        next: &Next,
    ) -> Result<VersionId, Response> {
        let looked = self.world.clock.now();
        let found = next.clone().run(look_at(about_link, (*asked.entity).clone())).await;
        if !found.status().is_success() && found.status() != StatusCode::NOT_FOUND {
            return Err(refused(&found, about_link));
        }
        let shown = linked_version(asked, found.headers());
        if shown != id {
            return Ok(shown);
        }
        let link = LinkRemoval::new(asked, id, found.into_parts().0.headers, looked);
        link.take_away(about_link, next).await?;
        Ok(link.current())
    }
}

/// Deletes the current version, and the link to it.
async fn delete_with_link(
    link: &Arc<LinkRemoval>,
    about_link: &ClientRequest,
    mut request: ClientRequest,
    info: &ContainerInfo,
    next: &Next,
) -> Result<Response, Response> {
    match info.bucket_lock() {
        // The guard decides first.
        Some(_) => drop(request.extensions.insert(link.clone())),
        None => link.take_away(about_link, next).await?,
    }
    let response = next.clone().run(request).await;
    match response.status().as_u16() {
        403 => link.put_back(about_link, next).await,
        // It was gone before, or the guard knew nothing of the bucket's lock.
        200..=299 | 404 => link.take_away(about_link, next).await?,
        _ => {}
    }
    Ok(response)
}
