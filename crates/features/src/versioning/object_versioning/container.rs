//! PUT, POST, DELETE, GET and HEAD of containers that have versions, or get them.
//!
//! Always holds: the hidden container exists before the metadata that names it; a container goes only
//! when no version is left, and its hidden one after it.

use super::listing::{self, SWITCH};
use super::names::Hidden;
use super::{CONTAINER_SYSMETA, ENABLED_SYSMETA, ObjectVersioning, SOURCE, Versioned, allow_hidden, refused};
use http::{HeaderValue, Method};
use request_pipeline::{ClientRequest, ContainerInfo, Next, Response, is_true, reply};
use std::sync::Arc;
use vocabulary::EntityPath;

/// The answer where versions are to be kept twice, in OpenStack's words.
pub(in super::super) const BOTH_MODES: &str =
    "Cannot enable object versioning on a container that is already using the legacy versioned writes feature.";

impl ObjectVersioning {
    /// Answers a request about a container.
    pub(super) async fn container(&self, request: ClientRequest, entity: Arc<EntityPath>, next: Next) -> Response {
        let switched = request.headers.contains_key(SWITCH);
        match request.method {
            Method::PUT | Method::POST if switched => self.switch(request, &entity, next).await,
            Method::DELETE => delete(request, &entity, next).await,
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
        let mut make = request
            .subrequest(Method::PUT, hidden.container(), SOURCE)
            .preauthorised();
        allow_hidden(&mut make);
        let policy = match info.exists() {
            true => self.policies.get(info.policy).map(|policy| policy.name.clone()),
            false => request.header("x-storage-policy").map(str::to_owned),
        };
        if let Some(policy) = policy {
            make.set_header("x-storage-policy", &policy);
        }
        let made = next.clone().run(make).await;
        match made.status().is_success() {
            true => Ok(()),
            false => Err(refused(&made, request)),
        }
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

fn set_sysmeta(request: &mut ClientRequest, name: &str, value: &str) {
    let name = match name {
        CONTAINER_SYSMETA => "x-container-sysmeta-versions-container",
        _ => "x-container-sysmeta-versions-enabled",
    };
    request.set_header(name, value);
}

async fn delete(mut request: ClientRequest, entity: &EntityPath, next: Next) -> Response {
    let container = entity.container.as_deref().unwrap_or_default();
    let info = next.info().container(&entity.account, container).await;
    let Some(versioned) = Versioned::of(&entity.account, container, &info) else {
        return next.run(request).await;
    };
    if let Err(refusal) = request.authorise(next.info()).await {
        return refusal;
    }
    let ask = |method: Method| {
        let mut ask = request
            .subrequest(method, versioned.hidden.container(), SOURCE)
            .preauthorised();
        ask.set_header("x-newest", "true");
        allow_hidden(&mut ask);
        ask
    };
    let (look, remove) = (ask(Method::HEAD), ask(Method::DELETE));
    let found = next.clone().run(look).await;
    let left = found.headers().get("x-container-object-count");
    if found.status().is_success() && left.is_some_and(|count| count != "0") {
        return reply::html(409, "Delete all versions before deleting container.".into());
    }
    if !found.status().is_success() && found.status() != http::StatusCode::NOT_FOUND {
        return refused(&found, &request);
    }
    let response = next.clone().run(request).await;
    if response.status().is_success() {
        let removed = next.run(remove).await;
        if !removed.status().is_success() && removed.status() != http::StatusCode::NOT_FOUND {
            tracing::warn!(
                "the hidden container of versions of {}/{container} is left behind: deleting it was answered {}",
                entity.account,
                removed.status()
            );
        }
    }
    response
}
