//! `DELETE ?version-id=`: one version goes.
//!
//! Always holds: the link goes before the version that it shows; the link of a version that S3's object lock is known
//! to hold stays. Not held yet: of a version that is locked in just this moment the link goes, and its deletion is
//! refused after that, so that the version stays and its name is gone (docs/plan.md).

use super::names::VersionId;
use super::write::{linked_version, look_at};
use super::{Asked, ObjectVersioning, SOURCE, allow_hidden, authorise_write, refused, show_version};
use http::{Method, StatusCode};
use request_pipeline::{
    BypassesGovernance, ClientRequest, ContainerInfo, Next, Response, object_lock_in, reply, set_header,
};

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
        let found = next.clone().run(look_at(&request, (*asked.entity).clone())).await;
        if !found.status().is_success() && found.status() != StatusCode::NOT_FOUND {
            return refused(&found, &request);
        }
        // A version that is held keeps its link, too.
        if info.bucket_lock().is_some() {
            let version = next.clone().run(look_at(&request, asked.at(id))).await;
            let bypasses = request.extensions.get::<BypassesGovernance>().is_some();
            if version.status().is_success() && object_lock_in(version.headers()).is_held(self.clock.now(), bypasses) {
                return reply::plain(403, "the version is held by its retention or legal hold");
            }
        }
        let mut current = linked_version(asked, &found);
        if current == id {
            let own = (*asked.entity).clone();
            let unlink = request.subrequest(Method::DELETE, own, SOURCE).preauthorised();
            let unlinked = next.clone().run(unlink).await;
            if !unlinked.status().is_success() && unlinked.status() != StatusCode::NOT_FOUND {
                return refused(&unlinked, &request);
            }
            current = VersionId::Null;
        }
        request.aim_at(asked.at(id));
        request.query.clear();
        allow_hidden(&mut request);
        let mut response = next.run(request.preauthorised()).await;
        show_version(&mut response, id);
        set_header(
            response.headers_mut(),
            "x-object-current-version-id",
            &current.to_string(),
        );
        response
    }
}
