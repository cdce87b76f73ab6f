//! What of a source goes into its copy, and what the answer says of it.
//!
//! Always holds: the copy's ETag is checked against the source's where the bytes are the source's own (not
//! those of a part, nor of a large object's segments); only then what a listing is to say of it is carried over. A part
//! of a body gets no checksum of the whole.

use http::StatusCode;
use http::header::{CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue};
use peer::message::header_names::{BACKEND_PREFIX, X_OBJECT_LEGAL_HOLD, X_OBJECT_RETENTION};
use request_pipeline::{ClientRequest, is_true, set_header};
use vocabulary::EntityPath;
use vocabulary::conditional::bare_etag;
use vocabulary::metadata::{Entity, is_transient_system_meta};
use vocabulary::names::quote;

/// What storage tells listings instead of what it stores.
const LISTING_OVERRIDE: &str = "x-object-sysmeta-container-update-override-";

/// Never part of an object.
const NOT_CARRIED: [&str; 17] = [
    "x-static-large-object",
    "x-object-manifest",
    "etag",
    "content-type",
    "x-timestamp",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "date",
    "server",
    "x-trans-id",
    "x-openstack-request-id",
    "accept-ranges",
    "content-range",
    "content-location",
    "last-modified",
];

/// What S3 keeps of a whole body: its checksum, and the entity tag of one made of parts.
const OF_WHOLE_BODY: [&str; 2] = ["x-object-sysmeta-s3api-checksum", "x-object-sysmeta-s3api-etag"];

/// Without what the source's listing says of it; what a feature has set for the copy comes behind.
fn without_overrides(headers: HeaderMap) -> HeaderMap {
    let pairs = headers
        .iter()
        .filter(|(name, _)| !name.as_str().starts_with(LISTING_OVERRIDE));
    pairs.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The query of a copy: some of it is for the source, some for the destination.
pub(super) struct Query {
    pairs: Vec<String>,
    manifest_get: bool,
    version: Option<String>,
    /// The client wants to see signs of life.
    pub(super) heartbeat: bool,
}

impl Query {
    pub(super) fn read(query: &str) -> Self {
        let value = |key: &str| vocabulary::names::query_value(query, key).and_then(Result::ok);
        Self {
            pairs: query
                .split('&')
                .filter(|pair| !pair.is_empty())
                .map(str::to_owned)
                .collect(),
            manifest_get: value("multipart-manifest").is_some_and(|value| value == "get"),
            version: value("version-id"),
            heartbeat: value("heartbeat").is_some_and(|value| is_true(&value)),
        }
    }

    /// As the source is asked: for a manifest as its PUT takes it.
    pub(super) fn for_source(&self) -> String {
        let mut pairs = self.pairs.clone();
        if self.manifest_get {
            pairs.retain(|pair| name(pair) != "format");
            pairs.push("format=raw".into());
        }
        pairs.join("&")
    }

    fn drop(&mut self, unwanted: &str) {
        self.pairs.retain(|pair| name(pair) != unwanted);
    }

    /// Makes it the destination's.
    pub(super) fn write(&self, request: &mut ClientRequest) {
        request.query = self.pairs.join("&");
    }
}

fn name(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(name, _)| name)
}

/// What has been found of a source.
pub(super) struct Carried<'a> {
    status: StatusCode,
    source: &'a HeaderMap,
    manifest_get: bool,
    version: Option<String>,
}

/// What the answer says of a copy, besides what any PUT says.
pub(super) struct CopySummary {
    pub(super) headers: HeaderMap,
    /// The source, as it is named to clients.
    pub(super) source: String,
}

impl<'a> Carried<'a> {
    /// Of the answer to the source's GET. Turns the query into that of the destination's PUT.
    pub(super) fn of(status: StatusCode, source: &'a HeaderMap, query: &mut Query) -> Self {
        if query.manifest_get {
            if source.contains_key("x-static-large-object") {
                query.drop("multipart-manifest");
                query.pairs.push("multipart-manifest=put".into());
            } else if source.contains_key("x-object-manifest") {
                query.drop("multipart-manifest");
            }
        }
        query.drop("version-id");
        Self {
            status,
            source,
            manifest_get: query.manifest_get,
            version: query.version.take(),
        }
    }

    /// Puts it into the PUT of the destination.
    pub(super) fn load(self, request: &mut ClientRequest, path: &EntityPath) -> CopySummary {
        let asked = std::mem::take(&mut request.headers);
        let fresh = asked
            .get("x-fresh-metadata")
            .and_then(|fresh| fresh.to_str().ok())
            .is_some_and(is_true);
        let wanted = |name: &HeaderName| match fresh {
            true => Entity::Object.is_system_meta(name.as_str()),
            // What keeps the source does not keep its copy.
            false => {
                !NOT_CARRIED.contains(&name.as_str())
                    && !name.as_str().starts_with(BACKEND_PREFIX)
                    && ![X_OBJECT_RETENTION, X_OBJECT_LEGAL_HOLD].contains(name)
            }
        };
        let mut headers = HeaderMap::with_capacity(self.source.len() + asked.len());
        copy(self.source, &mut headers, wanted);
        let is_vouched_for = self.is_vouched_for();
        if !is_vouched_for {
            headers = without_overrides(headers);
        }
        if self.status == StatusCode::PARTIAL_CONTENT {
            OF_WHOLE_BODY.iter().for_each(|name| drop(headers.remove(*name)));
        }
        copy(&asked, &mut headers, |_| true);
        if self.manifest_get
            && let Some(manifest) = self.source.get("x-object-manifest")
        {
            headers.insert("x-object-manifest", manifest.clone());
        }
        if is_vouched_for && let Some(etag) = self.source.get(ETAG).and_then(|etag| etag.to_str().ok()) {
            set_header(&mut headers, "etag", bare_etag(etag));
        }
        if asked.get(CONTENT_TYPE).is_none_or(HeaderValue::is_empty)
            && let Some(content_type) = self.source.get(CONTENT_TYPE)
        {
            headers.insert(CONTENT_TYPE, content_type.clone());
        }
        request.headers = headers;
        self.summary(&request.headers, path)
    }

    /// Whether the copy must have the source's ETag.
    fn is_vouched_for(&self) -> bool {
        let is_manifest = self.source.contains_key("x-object-manifest") && !self.manifest_get;
        let is_itself = !self.source.contains_key("x-static-large-object") && !is_manifest;
        self.status == StatusCode::OK && is_itself
    }

    fn summary(&self, stored: &HeaderMap, path: &EntityPath) -> CopySummary {
        let mut headers = HeaderMap::new();
        let container = path.container.as_deref().unwrap_or_default();
        let source = quote(&format!("{container}/{}", path.object.as_deref().unwrap_or_default()));
        set_header(&mut headers, "x-copied-from-account", &quote(&path.account));
        set_header(&mut headers, "x-copied-from", &source);
        if let Some(modified) = self.source.get("last-modified") {
            headers.insert("x-copied-from-last-modified", modified.clone());
        }
        let version = self.version.as_deref();
        let version = self
            .source
            .get("x-object-version-id")
            .and_then(|id| id.to_str().ok())
            .or(version);
        if let Some(version) = version {
            set_header(&mut headers, "x-copied-from-version-id", version);
        }
        copy(stored, &mut headers, |name| {
            let name = name.as_str();
            Entity::Object.is_user_or_system_meta(name) || is_transient_system_meta(name) || name == "x-delete-at"
        });
        CopySummary { headers, source }
    }
}

/// Copies what is wanted; what is there already goes.
fn copy(from: &HeaderMap, to: &mut HeaderMap, wanted: impl Fn(&HeaderName) -> bool) {
    for name in from.keys().filter(|name| wanted(name)) {
        to.remove(name);
        for value in from.get_all(name) {
            to.append(name.clone(), value.clone());
        }
    }
}
