//! A version that is stored again, with the time that it has: the gateway that made it may have died when one server
//! had its data, or its link.
//!
//! Always holds: its data are most servers' before the link is; what is newer than it stays what is shown, and becomes
//! no version because of it.

use super::data::{read_whole, store_as, written_at};
use super::names::VersionId;
use super::write::{look_at, put_link, shown_by};
use super::{Asked, LINK_MARK, ObjectVersioning, authorise_write, refused, show_version};
use request_pipeline::{ClientRequest, ContainerInfo, Next, Response, StoredAgain, reply};

impl ObjectVersioning {
    /// `PUT ?version-id=` of what is there already.
    pub(super) async fn again(
        &self,
        asked: &Asked,
        mut request: ClientRequest,
        (id, again): (VersionId, StoredAgain),
        info: &ContainerInfo,
        next: Next,
    ) -> Response {
        let VersionId::At(made) = id else {
            return reply::html(400, "Invalid version parameter".into());
        };
        if let Err(refusal) = authorise_write(&mut request, info, &next).await {
            return refusal;
        }
        let found = read_whole(&request, asked.at(id), &next).await;
        if !found.status().is_success() {
            return refused(&found, &request);
        }
        let shown = shown_by(id, found.headers());
        // What became a version when it was overwritten was written later than its name says.
        let written = written_at(found.headers()).unwrap_or(made);
        if let Err(refusal) = store_as(asked, &request, found, (id, Some(written)), &next).await {
            return refusal;
        }
        if again == StoredAgain::Shown {
            let there = next.clone().run(look_at(&request, (*asked.entity).clone())).await;
            let is_unversioned = there.status().is_success() && !there.headers().contains_key(LINK_MARK);
            // A link stands behind what is newer by its time.
            let is_newer = is_unversioned && written_at(there.headers()).is_none_or(|time| time > made);
            if !is_newer
                && let Err(refusal) = put_link(asked, &request.without_body(), made.with_offset(1), &shown, &next).await
            {
                return refusal;
            }
        }
        let mut response = reply::html(201, String::new());
        show_version(&mut response, id);
        response
    }
}
