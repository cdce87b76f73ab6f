//! PUT, POST, DELETE, GET and HEAD of containers that have versions, or get them.
//!
//! Always holds: the hidden container exists before the metadata that names it; a container goes only when no version
//! is left, and after its hidden one. A gateway that dies between the two leaves a container whose writes fail until it
//! is deleted again, or its versions are switched on.

use super::listing::{self, SWITCH};
use super::names::Hidden;
use super::{CONTAINER_SYSMETA, ENABLED_SYSMETA, ObjectVersioning, SOURCE, Versioned, allow_hidden, refused};
use http::{HeaderValue, Method, StatusCode};
use request_pipeline::{ClientRequest, ContainerInfo, Next, Response, is_true, reply};
use std::sync::Arc;
use vocabulary::EntityPath;

/// The answer where versions are to be kept twice, in OpenStack's words.
pub(in super::super) const BOTH_MODES: &str =
    "Cannot enable object versioning on a container that is already using the legacy versioned writes feature.";

const HAS_VERSIONS: &str = "Delete all versions before deleting container.";

impl ObjectVersioning {
    /// Answers a request about a container.
    pub(super) async fn container(&self, request: ClientRequest, entity: Arc<EntityPath>, next: Next) -> Response {
        let switched = request.headers.contains_key(SWITCH);
        match request.method {
            Method::PUT | Method::POST if switched => self.switch(request, &entity, next).await,
            Method::DELETE => self.delete_container(request, &entity, next).await,
            Method::GET if !request.query.is_empty() && request.param("versions").is_some() => {
                self.list_versions(request, &entity, next).await
            }
            Method::GET | Method::HEAD => self.show(request, &entity, next).await,
            _ => next.run(request).await,
        }
    }

    /// `X-Versions-Enabled: true` makes the hidden container the first time; anything else stops versions from being
    /// made and keeps those there are.
    async fn switch(&self, mut request: ClientRequest, entity: &EntityPath, next: Next) -> Response {
        let container = entity.container.as_deref().unwrap_or_default();
        let info = next.info().container(&entity.account, container).await;
        let wanted = request.headers.remove(SWITCH);
        let enable = wanted.is_some_and(|value| std::str::from_utf8(value.as_bytes()).is_ok_and(is_true));
        if let Err(refusal) = request.authorise(next.info()).await {
            return refusal;
        }
        if !info.exists() && request.method == Method::POST {
            return next.run(request).await;
        }
        if !enable && info.bucket_lock().is_some() {
            return reply::html(
                409,
                "Versions of a container whose objects can be locked cannot be disabled.".into(),
            );
        }
        if info
            .sysmeta
            .get("versions-location")
            .is_some_and(|location| !location.is_empty())
            || info.versions.is_some()
        {
            return reply::html(400, BOTH_MODES.into());
        }
        if enable {
            if info.sync_to.as_ref().is_some_and(|to| !to.is_empty()) {
                return reply::html(
                    400,
                    "Cannot enable object versioning on a container configured as source of container syncing.".into(),
                );
            }
            let hidden = match Versioned::of(&entity.account, container, &info) {
                Some(versioned) => versioned.hidden,
                None => Hidden::new(&entity.account, container),
            };
            if let Err(refusal) = self.make_hidden(&request, &hidden, &info, &next).await {
                return refusal;
            }
            set_sysmeta(&mut request, CONTAINER_SYSMETA, &hidden.quoted());
        }
        set_sysmeta(&mut request, ENABLED_SYSMETA, if enable { "True" } else { "False" });
        next.run(request).await
    }

    /// In the policy that the container has, or is to get.
    async fn make_hidden(
        &self,
        request: &ClientRequest,
        hidden: &Hidden,
        info: &ContainerInfo,
        next: &Next,
    ) -> Result<(), Response> {
        let policy = match info.exists() {
            true => self.policies.get(info.policy).map(|policy| policy.name.clone()),
            false => request.header("x-storage-policy").map(str::to_owned),
        };
        make_in(request, hidden, policy, next).await
    }

    /// The hidden container goes first: a majority of its servers says that no version is left, also where one of them
    /// has missed a row and lists none.
    async fn delete_container(&self, mut request: ClientRequest, entity: &EntityPath, next: Next) -> Response {
        let container = entity.container.as_deref().unwrap_or_default();
        let info = next.info().container(&entity.account, container).await;
        let Some(versioned) = Versioned::of(&entity.account, container, &info) else {
            return next.run(request).await;
        };
        if let Err(refusal) = request.authorise(next.info()).await {
            return refusal;
        }
        match is_empty(&request, entity.clone(), &next).await {
            Ok(true) => {}
            // Its servers say why it stays.
            Ok(false) => return next.run(request).await,
            Err(refusal) => return refusal,
        }
        match is_empty(&request, versioned.hidden.container(), &next).await {
            Ok(true) => {}
            Ok(false) => return reply::html(409, HAS_VERSIONS.into()),
            Err(refusal) => return refusal,
        }
        let policy = self.policies.get(info.policy).map(|policy| policy.name.clone());
        let (method, removal) = (
            request.method.clone(),
            remove_both(request, versioned.hidden, policy, next),
        );
        // A client that leaves in between must not leave the container without that of its versions.
        let removed = self.world.run_detached(removal).await;
        removed.unwrap_or_else(|| reply::status_for(&method, 503))
    }

    /// The container with what its versions take, and its rows without hidden names.
    async fn show(&self, request: ClientRequest, entity: &EntityPath, next: Next) -> Response {
        let container = entity.container.as_deref().unwrap_or_default();
        let info = next.info().container(&entity.account, container).await;
        let Some(versioned) = Versioned::of(&entity.account, container, &info) else {
            let mut response = next.run(request).await;
            // Versions were switched off before there were any.
            if response.status().is_success() && info.sysmeta.contains_key(ENABLED_SYSMETA) {
                response.headers_mut().insert(SWITCH, HeaderValue::from_static("False"));
            }
            return response;
        };
        let mut size = request
            .subrequest(Method::HEAD, versioned.hidden.container(), SOURCE)
            .preauthorised();
        allow_hidden(&mut size);
        let is_get = request.method == Method::GET;
        let mut response = next.clone().run(request).await;
        if !response.status().is_success() {
            return response;
        }
        listing::describe(&mut response, &versioned, &next.run(size).await);
        match is_get {
            true => listing::with_own_names(response, entity, &versioned).await,
            false => response,
        }
    }
}

async fn make_in(
    request: &ClientRequest,
    hidden: &Hidden,
    policy: Option<String>,
    next: &Next,
) -> Result<(), Response> {
    let mut make = request
        .subrequest(Method::PUT, hidden.container(), SOURCE)
        .preauthorised();
    allow_hidden(&mut make);
    if let Some(policy) = policy {
        make.set_header("x-storage-policy", &policy);
    }
    let made = next.clone().run(make).await;
    match made.status().is_success() {
        true => Ok(()),
        false => Err(refused(&made, request)),
    }
}

/// Deletes the hidden container, then the other; makes the hidden one again where the other stays.
async fn remove_both(request: ClientRequest, hidden: Hidden, policy: Option<String>, next: Next) -> Response {
    let mut remove = request
        .subrequest(Method::DELETE, hidden.container(), SOURCE)
        .preauthorised();
    allow_hidden(&mut remove);
    let removed = next.clone().run(remove).await;
    match removed.status() {
        status if status.is_success() => {}
        StatusCode::NOT_FOUND => {}
        StatusCode::CONFLICT => return reply::html(409, HAS_VERSIONS.into()),
        _ => return refused(&removed, &request),
    }
    let about = request.without_body();
    let response = next.clone().run(request).await;
    let stays = !response.status().is_success() && response.status() != StatusCode::NOT_FOUND;
    if stays && let Err(refusal) = make_in(&about, &hidden, policy, &next).await {
        tracing::warn!(
            "{} stays, and the container of its versions could not be made again: {}; delete it again, or switch its \
             versions on",
            about.path,
            refusal.status()
        );
    }
    response
}

/// Whether the server that knows most of a container has no row of it, or there is none.
async fn is_empty(request: &ClientRequest, container: EntityPath, next: &Next) -> Result<bool, Response> {
    let mut look = request.subrequest(Method::HEAD, container, SOURCE).preauthorised();
    look.set_header("x-newest", "true");
    allow_hidden(&mut look);
    let found = next.clone().run(look).await;
    let left = found.headers().get("x-container-object-count");
    match found.status() {
        status if status.is_success() => Ok(left.is_none_or(|count| count == "0")),
        StatusCode::NOT_FOUND => Ok(true),
        _ => Err(refused(&found, request)),
    }
}

fn set_sysmeta(request: &mut ClientRequest, name: &str, value: &str) {
    let name = match name {
        CONTAINER_SYSMETA => "x-container-sysmeta-versions-container",
        _ => "x-container-sysmeta-versions-enabled",
    };
    request.set_header(name, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answer, ask, request};
    use parking_lot::Mutex;
    use vocabulary::Policies;
    use world::World;

    /// Deletes a container whose versions these servers do not list, which is what they answer to its deletion and to
    /// that of the visible one; what they were asked for.
    async fn deleted(hidden: u16, visible: u16) -> (u16, Vec<String>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        let core = Answer::new(move |request| {
            let path = request.entity.as_ref().map(|entity| entity.path()).unwrap_or_default();
            let is_hidden = path.contains('\0');
            log.lock()
                .push(format!("{} {}", request.method, path.replace('\0', "~")));
            let mut response = reply::status(match request.method.as_str() {
                "DELETE" if is_hidden => hidden,
                "DELETE" => visible,
                _ => 204,
            });
            request_pipeline::set_header(response.headers_mut(), "x-container-object-count", "0");
            response
        });
        let mut info = ContainerInfo {
            status: 204,
            ..ContainerInfo::default()
        };
        info.sysmeta
            .insert("versions-container".into(), "%00versions%00c".into());
        *core.container.lock().unwrap() = Arc::new(info);
        let feature = ObjectVersioning::new(true, Policies::default(), &Default::default(), World::real());
        let response = ask(feature, request("DELETE", "/v1/a/c"), core).await;
        let asked = std::mem::take(&mut *asked.lock());
        (response.status().as_u16(), asked)
    }

    /// A server that has missed a row lists no version; most of the servers say that there is one.
    #[tokio::test]
    async fn the_servers_of_the_versions_decide() {
        let looks = ["HEAD /a/c", "HEAD /a/~versions~c", "DELETE /a/~versions~c"];
        assert_eq!(deleted(409, 204).await, (409, looks.map(str::to_owned).to_vec()));
        for gone in [204, 404] {
            let asked = [&looks[..], &["DELETE /a/c"]].concat();
            assert_eq!(
                deleted(gone, 204).await,
                (204, asked.iter().map(|line| (*line).to_owned()).collect())
            );
        }
        assert_eq!(deleted(503, 204).await.0, 503);
        // Objects have come meanwhile.
        let (status, asked) = deleted(204, 409).await;
        assert_eq!(
            (status, asked.last().map(String::as_str)),
            (409, Some("PUT /a/~versions~c"))
        );
    }
}
