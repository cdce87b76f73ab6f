//! PUT, DELETE and POST of versioned objects.
//!
//! A PUT is three writes: what is there and has no version yet is kept, the data goes to its hidden place, the link
//! to it takes the object's own. A DELETE leaves a marker, then takes the link away.
//! Always holds: a link is one rewrite later than its data; a version is complete before the link shows it; a
//! write that is refused leaves what was there.

use super::data::{read_whole, store_as, written_at};
use super::locks::{check_lockable, lock_new};
use super::names::{Hidden, VersionId};
use super::{
    Asked, DELETE_MARKER, LINK_MARK, ObjectVersioning, SOURCE, allow_hidden, authorise_write, not_kept, refused,
    show_version,
};
use http::header::{CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH, LOCATION};
use http::{Method, StatusCode};
use peer::message::header_names::{X_LEAVE_MARKER, X_WRITE_LOCK};
use request_pipeline::constraints::{PRIVATE_PARAMETER, has_private_parameter};
use request_pipeline::{
    ClientRequest, ContainerInfo, Next, Response, reply, set_header,
    watched::{End, Watcher, watch},
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vocabulary::conditional::bare_etag;
use vocabulary::names::unquote;
use vocabulary::{EntityPath, Timestamp};

const OVERRIDE_ETAG: &str = "x-object-sysmeta-container-update-override-etag";
const OVERRIDE_SIZE: &str = "x-object-sysmeta-container-update-override-size";
const SLO_SIZE: &str = "x-object-sysmeta-slo-size";
const EMPTY_MD5: &str = "d41d8cd98f00b204e9800998ecf8427e";
/// When an object expires: says so of the link, never of the data.
pub(super) const EXPIRY: [&str; 2] = ["x-delete-at", "x-delete-after"];
/// What a link says of the version it shows.
pub(super) struct Shown {
    id: VersionId,
    etag: String,
    bytes: u64,
    content_type: String,
    /// What the container gets instead of the data's checksum.
    listed_etag: Option<String>,
}

impl ObjectVersioning {
    /// The moment of a write, later than all before in this process, and than the link that has been looked at: of a
    /// link that is newer, the new one would be thrown away.
    pub(super) fn moment(&self, request: &ClientRequest, next: &Next) -> Timestamp {
        let wanted = request.header("x-timestamp").and_then(|text| text.parse().ok());
        let now = || next.info().write_time().unwrap_or_else(|| self.world.clock.now());
        wanted.unwrap_or_else(|| self.unique.after(now()))
    }

    /// A new version.
    pub(super) async fn put(
        &self,
        asked: &Asked,
        mut request: ClientRequest,
        info: &ContainerInfo,
        next: Next,
    ) -> Response {
        if let Err(refusal) = authorise_write(&mut request, info, &next).await {
            return refusal;
        }
        let there = match keep_unversioned(asked, &request, &next).await {
            Ok(there) => there,
            Err(refusal) => return refusal,
        };
        if there && request.headers.contains_key(IF_NONE_MATCH) {
            return reply::status_for(&request.method, 412);
        }
        let moment = self.moment(&request, &next);
        let id = VersionId::At(moment);
        if let Err(refusal) = lock_new(&mut request, info, moment) {
            return refusal;
        }
        let link = request.without_body();
        let (data, counted) = data_request(asked, request, id);
        let mut response = next.clone().run(data).await;
        if !response.status().is_success() {
            return response;
        }
        let shown = match describe(asked, &link, &response, id, &counted, &next).await {
            Ok(shown) => shown,
            Err(refusal) => return refusal,
        };
        if let Err(refusal) = put_link(asked, &link, moment.with_offset(1), &shown, &next).await {
            return refusal;
        }
        show_version(&mut response, id);
        response
    }

    /// The object goes, its versions stay, and a marker tells when.
    pub(super) async fn delete(
        &self,
        asked: &Asked,
        mut request: ClientRequest,
        info: &ContainerInfo,
        next: Next,
    ) -> Response {
        if let Err(refusal) = authorise_write(&mut request, info, &next).await {
            return refusal;
        }
        let kept = match request.headers.remove(X_LEAVE_MARKER) {
            Some(_) if !asked.versioned.enabled => must_be_version(asked, &request, &next).await,
            _ => keep_unversioned(asked, &request, &next).await.map(drop),
        };
        if let Err(refusal) = kept {
            return refusal;
        }
        let moment = self.moment(&request, &next);
        let id = VersionId::At(moment);
        let mut marker = request.subrequest(Method::PUT, asked.at(id), SOURCE).preauthorised();
        allow_hidden(&mut marker);
        marker.set_header("content-type", DELETE_MARKER);
        marker.own_content_type = true;
        marker.set_header("content-length", "0");
        marker.set_header("x-timestamp", &moment.internal());
        let marked = next.clone().run(marker).await;
        if !marked.status().is_success() {
            return not_kept(&marked, &request);
        }
        request.set_header("x-timestamp", &moment.internal());
        let mut response = next.run(request).await;
        show_version(&mut response, id);
        response
    }
}

/// Timestamps that differ, whatever the clock says.
#[derive(Default)]
pub(super) struct Unique(AtomicU64);

impl Unique {
    fn after(&self, now: Timestamp) -> Timestamp {
        let next = |last: u64| Some(now.ticks().max(last + 1));
        let last = match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(last) | Err(last) => last,
        };
        Timestamp::from_ticks(now.ticks().max(last + 1)).unwrap_or(now)
    }
}

/// Counts a body of undeclared length.
struct Counted(Arc<AtomicU64>);

impl Watcher for Counted {
    fn passed(&mut self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
    fn ended(&mut self, _how: End) {}
}

/// The client's PUT, with its body, to the version's hidden place.
fn data_request(asked: &Asked, mut request: ClientRequest, id: VersionId) -> (ClientRequest, Arc<AtomicU64>) {
    for name in EXPIRY {
        request.headers.remove(name);
    }
    request.headers.remove(IF_NONE_MATCH);
    request.query.clear();
    request.aim_at(asked.at(id));
    allow_hidden(&mut request);
    request.set_header("x-timestamp", &id.to_string());
    let counted = Arc::new(AtomicU64::new(0));
    request.body = watch(request.body, None, Counted(counted.clone()));
    (request.preauthorised(), counted)
}

/// HEAD of a link or version itself, wherever it leads.
pub(super) fn look_at(request: &ClientRequest, entity: EntityPath) -> ClientRequest {
    let mut look = request.subrequest(Method::HEAD, entity, SOURCE).preauthorised();
    look.query = "symlink=get".into();
    look.set_header("x-newest", "true");
    allow_hidden(&mut look);
    look
}

/// What the link is to say of data that has just been written.
async fn describe(
    asked: &Asked,
    link: &ClientRequest,
    written: &Response,
    id: VersionId,
    counted: &AtomicU64,
    next: &Next,
) -> Result<Shown, Response> {
    let text = |headers: &HeaderMap, name: &str| {
        let value = headers.get(name)?;
        std::str::from_utf8(value.as_bytes()).ok().map(str::to_owned)
    };
    let is_link = link.headers.contains_key("x-symlink-target");
    let declared = text(&link.headers, CONTENT_TYPE.as_str()).filter(|kind| !kind.is_empty() && !is_link);
    let Some(declared) = declared else {
        let found = next.clone().run(look_at(link, asked.at(id))).await;
        return match found.status().is_success() {
            true => Ok(shown_by(id, found.headers())),
            false => Err(refused(&found, link)),
        };
    };
    let (content_type, listed_bytes) = without_swift_bytes(&declared);
    let override_size = [OVERRIDE_SIZE, SLO_SIZE]
        .iter()
        .find_map(|name| text(&link.headers, name)?.parse().ok());
    Ok(Shown {
        id,
        etag: text(written.headers(), ETAG.as_str()).map_or_else(String::new, |etag| bare_etag(&etag).to_owned()),
        bytes: override_size
            .or(listed_bytes)
            .unwrap_or_else(|| counted.load(Ordering::Relaxed)),
        content_type,
        listed_etag: text(&link.headers, OVERRIDE_ETAG),
    })
}

/// The same from the headers of a version that is there. A static link stands for what it leads to.
pub(super) fn shown_by(id: VersionId, headers: &HeaderMap) -> Shown {
    let text = |name: &str| {
        let value = headers.get(name)?;
        std::str::from_utf8(value.as_bytes()).ok()
    };
    let (content_type, listed_bytes) = without_swift_bytes(text("content-type").unwrap_or_default());
    let number = |name: &str| text(name).and_then(|number| number.parse().ok());
    Shown {
        id,
        etag: text("x-symlink-target-etag")
            .or(text("etag"))
            .map_or_else(String::new, |etag| bare_etag(etag).to_owned()),
        bytes: number("x-symlink-target-bytes")
            .or(number(SLO_SIZE))
            .or(listed_bytes)
            .or(number("content-length"))
            .unwrap_or(0),
        content_type,
        listed_etag: text(OVERRIDE_ETAG)
            .map(|etag| etag.split("; symlink_target=").next().unwrap_or(etag))
            .filter(|etag| etag.contains(';'))
            .map(str::to_owned),
    }
}

/// A content type without the size of a large object that Swift hides in it, and that size.
fn without_swift_bytes(content_type: &str) -> (String, Option<u64>) {
    let mut bytes = None;
    let mut kept: Vec<&str> = Vec::new();
    for part in content_type.split(';') {
        match part.trim().strip_prefix("swift_bytes=") {
            Some(number) => bytes = number.parse().ok(),
            None => kept.push(part),
        }
    }
    (kept.join(";"), bytes)
}

/// Puts the link to a version in the object's own place, as of `at`.
pub(super) async fn put_link(
    asked: &Asked,
    request: &ClientRequest,
    at: Timestamp,
    shown: &Shown,
    next: &Next,
) -> Result<(), Response> {
    let mut link = request
        .subrequest(Method::PUT, (*asked.entity).clone(), SOURCE)
        .preauthorised();
    for name in EXPIRY {
        if let Some(value) = request.headers.get(name) {
            link.headers.insert(name, value.clone());
        }
    }
    for name in [IF_NONE_MATCH, X_WRITE_LOCK] {
        if let Some(value) = request.headers.get(&name) {
            link.headers.insert(name, value.clone());
        }
    }
    let target = asked.versioned.hidden.link_target(asked.object(), shown.id);
    let Shown { etag, bytes, .. } = shown;
    let listed = shown.listed_etag.as_deref().unwrap_or(EMPTY_MD5);
    let headers = &mut link.headers;
    let mut set = |name, value: &str| set_header(headers, name, value);
    set("content-length", "0");
    set("content-type", &shown.content_type);
    set("x-timestamp", &at.internal());
    set(LINK_MARK, "true");
    set("x-object-sysmeta-allow-reserved-names", "true");
    set("x-object-sysmeta-symloop-extend", "true");
    set("x-object-sysmeta-symlink-target", &target);
    set("x-object-sysmeta-symlink-target-etag", etag);
    set("x-object-sysmeta-symlink-target-bytes", &bytes.to_string());
    set(
        OVERRIDE_ETAG,
        &format!("{listed}; symlink_target={target}; symlink_target_etag={etag}; symlink_target_bytes={bytes}"),
    );
    let linked = next.clone().run(link).await;
    match linked.status().is_success() {
        true => Ok(()),
        false => Err(refused(&linked, request)),
    }
}

/// Refuses what is no version: where versions are suspended nothing becomes one.
async fn must_be_version(asked: &Asked, request: &ClientRequest, next: &Next) -> Result<(), Response> {
    let found = next.clone().run(look_at(request, (*asked.entity).clone())).await;
    match found.status() {
        status if !status.is_success() => Err(refused(&found, request)),
        _ if found.headers().contains_key(LINK_MARK) => Ok(()),
        _ => Err(reply::status_for(&request.method, 409)),
    }
}

/// What is there and has no version yet becomes one. Says whether anything is there.
pub(super) async fn keep_unversioned(asked: &Asked, request: &ClientRequest, next: &Next) -> Result<bool, Response> {
    let found = read_whole(request, (*asked.entity).clone(), next).await;
    match found.status() {
        StatusCode::NOT_FOUND => return Ok(false),
        // It cannot be decrypted. No server is to blame, and no second try helps.
        StatusCode::INTERNAL_SERVER_ERROR => return Err(reply::status_for(&request.method, 500)),
        status if !status.is_success() => return Err(refused(&found, request)),
        _ if found.headers().contains_key(LINK_MARK) => return Ok(true),
        _ => {}
    }
    let id = VersionId::At(written_at(found.headers()).unwrap_or(request.began.1));
    store_as(asked, request, found, (id, None), next).await.map(|()| true)
}

/// The version that a link shows.
pub(super) fn linked_version(asked: &Asked, link: &HeaderMap) -> VersionId {
    let hidden: &Hidden = &asked.versioned.hidden;
    let target = ["x-object-sysmeta-symlink-target", "x-symlink-target"]
        .iter()
        .find_map(|name| unquote(link.get(*name)?.to_str().ok()?).ok());
    let read = target.and_then(|target| hidden.read_target(&target, &asked.entity.account));
    read.map_or(VersionId::Null, |(_, id)| id)
}

/// New metadata of the link, and of the version it shows; not a new version.
pub(super) async fn post(asked: &Asked, mut request: ClientRequest, info: &ContainerInfo, next: Next) -> Response {
    // It would make a delete marker of the version.
    if request.header("content-type").is_some_and(has_private_parameter) {
        return reply::html(400, PRIVATE_PARAMETER.into());
    }
    if let Err(refusal) = check_lockable(&mut request, info, &next).await {
        return refusal;
    }
    let mut again = request.without_body();
    let response = next.clone().run(request).await;
    if response.status() != StatusCode::TEMPORARY_REDIRECT {
        return response;
    }
    let Some((object, id)) = redirected(asked, &response) else {
        return response;
    };
    for name in EXPIRY {
        again.headers.remove(name);
    }
    again.headers.remove("x-timestamp");
    again.aim_at(asked.versioned.hidden.version(&object, id));
    allow_hidden(&mut again);
    next.run(again.preauthorised()).await
}

fn redirected(asked: &Asked, response: &Response) -> Option<(String, VersionId)> {
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let path = match location.split_once("://") {
        Some((_, rest)) => &rest[rest.find('/')?..],
        None => location,
    };
    let path = path.split('?').next().unwrap_or(path);
    asked.versioned.hidden.read_path(&unquote(path).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_large_objects_come_out_of_the_content_type() {
        assert_eq!(without_swift_bytes("a/b;swift_bytes=10"), ("a/b".into(), Some(10)));
        assert_eq!(without_swift_bytes("a/b; c=d"), ("a/b; c=d".into(), None));
    }

    #[test]
    fn moments_differ() {
        let unique = Unique::default();
        let now = Timestamp::from_seconds(5);
        let (first, second) = (unique.after(now), unique.after(now));
        assert!(first < second);
        assert_eq!(first, now);
    }
}
