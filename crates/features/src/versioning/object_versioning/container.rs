//! PUT, POST, DELETE, GET and HEAD of containers that have versions, or get them.
//!
//! Always holds: the hidden container exists before the metadata that names it; a container goes only when no version
//! is left, and after its hidden one, whatever its own rows say. A gateway that dies between the two leaves a container
//! whose writes fail until it is deleted again, or its versions are switched on.

use super::listing::{self, SWITCH};
use super::names::Hidden;
use super::{ENABLED_SYSMETA, ObjectVersioning, SOURCE, Versioned, allow_hidden, refused};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use peer::message::header_names::{X_MOST_ROWS, X_MOST_ROWS_CERTAIN, X_NAMED_VERSIONS, X_VERSIONS_CONTAINER};
use request_pipeline::{ClientRequest, ContainerInfo, Next, Response, is_true, reply};
use std::sync::Arc;
use vocabulary::EntityPath;

/// The answer where versions are to be kept twice, in OpenStack's words.
pub(in super::super) const BOTH_MODES: &str =
    "Cannot enable object versioning on a container that is already using the legacy versioned writes feature.";

/// [`ENABLED_SYSMETA`] as servers keep it.
const VERSIONS_ENABLED: HeaderName = HeaderName::from_static("x-container-sysmeta-versions-enabled");

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
            set_sysmeta(&mut request, X_VERSIONS_CONTAINER, &hidden.quoted());
        }
        set_sysmeta(&mut request, VERSIONS_ENABLED, if enable { "True" } else { "False" });
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
    /// has missed a row and lists none. Where the container has versions is asked of its servers, as another gateway
    /// may have switched them on a moment ago: one that names them is enough, as others may have missed that.
    async fn delete_container(&self, mut request: ClientRequest, entity: &EntityPath, next: Next) -> Response {
        let container = entity.container.as_deref().unwrap_or_default();
        let info = next.info().container(&entity.account, container).await;
        if let Err(refusal) = request.authorise(next.info()).await {
            return refusal;
        }
        let known = Versioned::of(&entity.account, container, &info).map(|versioned| versioned.hidden);
        let there = match look_at(&request, entity.clone(), &next).await {
            Ok(there) => there,
            Err(refusal) => return refusal,
        };
        let place = there.as_ref().and_then(|there| there.headers().get(X_NAMED_VERSIONS));
        let stored = place.and_then(|place| Hidden::stored(&entity.account, container, place.to_str().ok()?));
        let Some(hidden) = stored.or(known) else {
            return next.run(request).await;
        };
        match look_at(&request, hidden.container(), &next).await {
            Ok(versions) if has_rows(versions.as_ref()) => return reply::html(409, HAS_VERSIONS.into()),
            // Those who have its rows may be away, and what answers made since.
            Ok(Some(versions)) if !versions.headers().contains_key(X_MOST_ROWS_CERTAIN) => {
                return reply::status_for(&request.method, 503);
            }
            Ok(_) => {}
            Err(refusal) => return refusal,
        }
        let method = request.method.clone();
        if has_rows(there.as_ref()) {
            return reply::status_for(&method, 409);
        }
        let policy = self.policies.get(info.policy).map(|policy| policy.name.clone());
        let removal = remove_both(request, hidden, policy, next);
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

/// Deletes the hidden container, then the other; makes the hidden one again where either stays, as some of its servers
/// may have deleted it.
async fn remove_both(request: ClientRequest, hidden: Hidden, policy: Option<String>, next: Next) -> Response {
    let mut remove = request
        .subrequest(Method::DELETE, hidden.container(), SOURCE)
        .preauthorised();
    allow_hidden(&mut remove);
    let about = request.without_body();
    let removed = next.clone().run(remove).await;
    let response = match removed.status() {
        status if status.is_success() || status == StatusCode::NOT_FOUND => next.clone().run(request).await,
        StatusCode::CONFLICT => reply::html(409, HAS_VERSIONS.into()),
        _ => refused(&removed, &request),
    };
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

/// What the newest replica of a container says of it, how many rows the fullest has, and which versions any names,
/// where most of its replicas answer; `None` where there is none.
async fn look_at(request: &ClientRequest, container: EntityPath, next: &Next) -> Result<Option<Response>, Response> {
    let mut look = request.subrequest(Method::HEAD, container, SOURCE).preauthorised();
    look.set_header("x-newest", "true");
    allow_hidden(&mut look);
    let found = next.clone().run(look).await;
    match found.status() {
        status if status.is_success() && found.headers().contains_key(X_MOST_ROWS) => Ok(Some(found)),
        status if status.is_success() => Err(reply::status_for(&request.method, 503)),
        StatusCode::NOT_FOUND => Ok(None),
        _ => Err(refused(&found, request)),
    }
}

/// Whether a container has rows, by what any of its servers says of it.
fn has_rows(container: Option<&Response>) -> bool {
    let count = container.and_then(|found| found.headers().get(X_MOST_ROWS));
    count.is_some_and(|count| count != "0")
}

fn set_sysmeta(request: &mut ClientRequest, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        request.headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answer, ask, request};
    use parking_lot::Mutex;
    use vocabulary::Policies;
    use world::World;

    /// What the servers of the versions' container, and those of the visible one, answer to a deletion, and how many
    /// rows a look finds.
    #[derive(Clone, Copy)]
    struct Servers {
        hidden: (u16, &'static str),
        visible: (u16, &'static str),
        /// Whether this gateway has learnt of the versions already.
        is_known: bool,
        /// Whether one of the visible one's servers has.
        is_named: bool,
        /// Whether most of the servers that decide are away: those of the versions, where they are named.
        is_away: bool,
        /// Whether those that answer have had the container as long as any.
        is_certain: bool,
    }

    const LOOKS: [&str; 2] = ["HEAD /a/c", "HEAD /a/~versions~c"];

    /// Deletes a container; the answer, and what was asked for behind the two looks.
    async fn deleted(servers: Servers) -> (u16, Vec<String>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        let core = Answer::new(move |request| {
            let path = request.entity.as_ref().map(|entity| entity.path()).unwrap_or_default();
            let is_hidden = path.contains('\0');
            log.lock()
                .push(format!("{} {}", request.method, path.replace('\0', "~")));
            let (status, rows) = if is_hidden { servers.hidden } else { servers.visible };
            let is_deletion = request.method == Method::DELETE;
            let mut response = reply::status(if is_deletion { status } else { 204 });
            response
                .headers_mut()
                .insert(X_MOST_ROWS, HeaderValue::from_static(rows));
            if servers.is_certain {
                let certain = HeaderValue::from_static("true");
                response.headers_mut().insert(X_MOST_ROWS_CERTAIN, certain);
            }
            if is_hidden && servers.hidden.0 == 404 {
                *response.status_mut() = StatusCode::NOT_FOUND;
            }
            if !is_hidden && servers.is_named {
                let named = HeaderValue::from_static("%00versions%00c");
                response.headers_mut().insert(X_NAMED_VERSIONS, named);
            }
            if servers.is_away && is_hidden == servers.is_named {
                response.headers_mut().remove(X_MOST_ROWS);
            }
            response
        });
        let mut info = ContainerInfo {
            status: 204,
            ..ContainerInfo::default()
        };
        if servers.is_known {
            info.sysmeta
                .insert("versions-container".into(), "%00versions%00c".into());
        }
        *core.container.lock().unwrap() = Arc::new(info);
        let feature = ObjectVersioning::new(true, Policies::default(), &Default::default(), World::real());
        let response = ask(feature, request("DELETE", "/v1/a/c"), core).await;
        let mut asked = std::mem::take(&mut *asked.lock());
        // The second is of versions that are named or known.
        let looks = 1 + usize::from(servers.is_named || servers.is_known && !servers.is_away);
        let behind = asked.split_off(looks);
        assert_eq!(asked, LOOKS[..looks]);
        (response.status().as_u16(), behind)
    }

    const NO_ROWS: Servers = Servers {
        hidden: (204, "0"),
        visible: (204, "0"),
        is_known: true,
        is_named: true,
        is_away: false,
        is_certain: true,
    };
    const DELETE_HIDDEN: &str = "DELETE /a/~versions~c";
    const DELETE_VISIBLE: &str = "DELETE /a/c";
    const MAKE_HIDDEN: &str = "PUT /a/~versions~c";

    /// A server that has missed a row lists no version; most of the servers say that there is one.
    #[tokio::test]
    async fn the_servers_of_the_versions_decide() {
        let hidden = |status| Servers {
            hidden: (status, "0"),
            ..NO_ROWS
        };
        for gone in [204, 404] {
            let (status, asked) = deleted(hidden(gone)).await;
            assert_eq!(
                (status, asked),
                (204, vec![DELETE_HIDDEN.into(), DELETE_VISIBLE.into()])
            );
        }
        // Some of them may have deleted it.
        for (answer, status) in [(409, 409), (503, 503)] {
            let asked = vec![DELETE_HIDDEN.into(), MAKE_HIDDEN.into()];
            assert_eq!(deleted(hidden(answer)).await, (status, asked));
        }
        // Objects have come meanwhile.
        let visible = (409, "0");
        let (status, asked) = deleted(Servers { visible, ..NO_ROWS }).await;
        let all = vec![DELETE_HIDDEN.into(), DELETE_VISIBLE.into(), MAKE_HIDDEN.into()];
        assert_eq!((status, asked), (409, all));
    }

    /// The servers of the visible one would delete it: a row that is looked at goes before they are asked, or one of
    /// them has missed that it went.
    #[tokio::test]
    async fn rows_keep_a_container_whatever_the_other_servers_say() {
        for is_known in [true, false] {
            for (hidden, visible) in [("3", "1"), ("3", "0"), ("0", "1")] {
                let (hidden, visible) = ((204, hidden), (204, visible));
                let servers = Servers {
                    hidden,
                    visible,
                    is_known,
                    ..NO_ROWS
                };
                assert_eq!(deleted(servers).await, (409, vec![]), "{hidden:?} {visible:?}");
            }
        }
        let unknown = Servers {
            is_known: false,
            ..NO_ROWS
        };
        assert_eq!(deleted(unknown).await.1, [DELETE_HIDDEN, DELETE_VISIBLE]);
    }

    /// What a minority says of rows is not all that there is; what names no versions is looked at once.
    #[tokio::test]
    async fn most_replicas_have_to_answer() {
        let named = Servers {
            is_away: true,
            ..NO_ROWS
        };
        assert_eq!(deleted(named).await, (503, vec![]));
        let plain = Servers {
            is_known: false,
            is_named: false,
            ..NO_ROWS
        };
        assert_eq!(deleted(plain).await, (204, vec![DELETE_VISIBLE.into()]));
        let away = Servers { is_away: true, ..plain };
        assert_eq!(deleted(away).await, (503, vec![]));
        // Made on handoffs while most of its servers are away: of a container without versions that is enough.
        let made_since = |servers| Servers {
            is_certain: false,
            ..servers
        };
        assert_eq!(deleted(made_since(NO_ROWS)).await, (503, vec![]));
        assert_eq!(deleted(made_since(plain)).await.0, 204);
    }
}
