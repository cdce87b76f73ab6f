//! Versions: PutBucketVersioning, GetBucketVersioning, ListObjectVersions, and the version in other requests.
//!
//! They are Swift's own (`X-Versions-Enabled`, `?version-id=`, `?versions`), under S3's names.

use super::bucket::empty;
use super::listing::{listed_etag, max_keys, rows_of, url_encoded};
use super::multipart::UPLOAD_OF_OBJECT;
use super::{Done, Operation, document, listed_time};
use crate::error::{
    INVALID_ARGUMENT, INVALID_BUCKET_STATE, MALFORMED_XML, NO_SUCH_VERSION, NOT_IMPLEMENTED, S3Error,
    SERVICE_UNAVAILABLE,
};
use crate::payload::collect;
use crate::xml::{Element, XmlWriter};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{HeaderName, Method};
use request_pipeline::{ClientRequest, FillsVacancy, Response, WriteOrigin};
use serde::Deserialize;
use std::time::Duration;
use vocabulary::names::quote;

/// Bytes of a `VersioningConfiguration`.
const LARGEST_CONFIGURATION: u64 = 8 * 1024;
/// The content type of a version that is a deletion.
const DELETE_MARKER: &str = "application/x-deleted;swift_versions_deleted=1";
/// How often a version is put in the place of a deleted one, and the pause in between.
const RESTORE_TRIES: u32 = 5;
const RESTORE_PAUSE: Duration = Duration::from_millis(100);
/// The version that an answer is about.
pub(super) const VERSION_ID: HeaderName = HeaderName::from_static("x-object-version-id");
const CURRENT_VERSION: HeaderName = HeaderName::from_static("x-object-current-version-id");
const SHOWN_VERSION: HeaderName = HeaderName::from_static("x-amz-version-id");
const SHOWN_MARKER: HeaderName = HeaderName::from_static("x-amz-delete-marker");

/// GetBucketVersioning.
pub(super) async fn get(operation: Operation<'_>) -> Done {
    let head = operation.further(Method::HEAD, operation.container());
    let response = operation.send(head).await;
    if !response.status().is_success() {
        return Err(operation.bucket_refusal(&response));
    }
    let mut xml = XmlWriter::document("VersioningConfiguration");
    let enabled = response.headers().get("x-versions-enabled");
    if let Some(enabled) = enabled.and_then(|value| value.to_str().ok()) {
        let is_enabled = request_pipeline::is_true(enabled);
        xml.text("Status", if is_enabled { "Enabled" } else { "Suspended" });
    }
    Ok(document(xml))
}

/// PutBucketVersioning.
pub(super) async fn put(mut operation: Operation<'_>) -> Done {
    let signed = operation.signed_body();
    let body = collect(&mut operation.request, signed.as_deref(), LARGEST_CONFIGURATION).await?;
    let configuration = Element::parse(&body).map_err(|_| MALFORMED_XML)?;
    if configuration.name != "VersioningConfiguration" {
        return Err(MALFORMED_XML.into());
    }
    if configuration.text_of("MfaDelete") == Some("Enabled") {
        return Err(NOT_IMPLEMENTED.saying("MFA Delete is not supported."));
    }
    let enabled = match configuration.text_of("Status") {
        Some("Enabled") => "true",
        Some("Suspended") => "false",
        _ => return Err(MALFORMED_XML.into()),
    };
    if enabled == "false" && operation.bucket_lock().await?.is_some() {
        return Err(INVALID_BUCKET_STATE.saying(
            "An Object Lock configuration is present on this bucket, so the versioning state cannot be changed.",
        ));
    }
    let mut post = operation.further(Method::POST, operation.container());
    post.set_header("x-versions-enabled", enabled);
    let response = operation.send(post).await;
    match response.status().is_success() {
        true => Ok(empty(200)),
        false => Err(operation.bucket_refusal(&response)),
    }
}

/// A row of a listing of versions.
#[derive(Deserialize)]
#[serde(untagged)]
enum VersionRow {
    Subdir {
        subdir: String,
    },
    Version {
        name: String,
        #[serde(default)]
        version_id: Option<String>,
        #[serde(default)]
        is_latest: Option<bool>,
        bytes: u64,
        hash: String,
        last_modified: String,
        content_type: String,
        #[serde(default)]
        slo_etag: Option<String>,
    },
}

/// What a client asked for.
struct Wish {
    prefix: String,
    delimiter: String,
    has_delimiter: bool,
    key_marker: String,
    version_marker: String,
    max_keys: usize,
    shown_max_keys: usize,
    is_url_encoded: bool,
}

impl Wish {
    fn read(operation: &Operation<'_>) -> Result<Self, S3Error> {
        let text = |name: &str| operation.call.parameter(name).unwrap_or_default().to_owned();
        let most = operation.service.settings.max_bucket_listing;
        let shown_max_keys = match operation.call.parameter("max-keys") {
            None => most,
            Some(text) => max_keys(text)?,
        };
        let encoding = operation.call.parameter("encoding-type");
        if encoding.is_some_and(|encoding| encoding != "url") {
            return Err(INVALID_ARGUMENT
                .saying("Invalid Encoding Method specified in Request")
                .with("ArgumentName", "encoding-type"));
        }
        let wish = Self {
            prefix: text("prefix"),
            delimiter: text("delimiter"),
            has_delimiter: operation.call.parameter("delimiter").is_some(),
            key_marker: text("key-marker"),
            version_marker: text("version-id-marker"),
            max_keys: shown_max_keys.min(most),
            shown_max_keys,
            is_url_encoded: encoding.is_some(),
        };
        let problem = if wish.version_marker.is_empty() {
            None
        } else if operation.call.parameter("key-marker").is_none() {
            Some("A version-id marker cannot be specified without a key marker.")
        } else if wish.version_marker != "null" && wish.version_marker.parse::<vocabulary::Timestamp>().is_err() {
            Some("Invalid version id specified")
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(INVALID_ARGUMENT
                .saying(problem)
                .with("ArgumentName", "version-id-marker")
                .with("ArgumentValue", wish.version_marker));
        }
        Ok(wish)
    }

    fn query(&self) -> String {
        let mut query = format!("versions=true&format=json&limit={}", self.max_keys + 1);
        for (name, value) in [
            ("prefix", &self.prefix),
            ("delimiter", &self.delimiter),
            ("marker", &self.key_marker),
            // Swift takes none without a marker, and all keys are behind the empty one.
            ("version_marker", self.version_marker_of_key()),
        ] {
            if !value.is_empty() {
                query.push_str(&format!("&{name}={}", quote(value)));
            }
        }
        query
    }

    fn version_marker_of_key(&self) -> &String {
        match self.key_marker.is_empty() {
            true => &self.key_marker,
            false => &self.version_marker,
        }
    }

    fn shown(&self, name: &str) -> String {
        match self.is_url_encoded {
            true => url_encoded(name),
            false => name.to_owned(),
        }
    }
}

/// ListObjectVersions.
pub(super) async fn list(operation: Operation<'_>) -> Done {
    let wish = Wish::read(&operation)?;
    let mut rows = operation.version_rows(&wish.query()).await?;
    let is_truncated = wish.max_keys > 0 && rows.len() > wish.max_keys;
    rows.truncate(wish.max_keys);
    let mut xml = XmlWriter::document("ListVersionsResult");
    xml.text("Name", operation.bucket());
    xml.text("Prefix", &wish.shown(&wish.prefix));
    xml.text("KeyMarker", &wish.shown(&wish.key_marker));
    xml.text("VersionIdMarker", &wish.version_marker);
    match rows.last().filter(|_| is_truncated) {
        Some(VersionRow::Version { name, version_id, .. }) => {
            xml.text("NextKeyMarker", &wish.shown(name));
            xml.text("NextVersionIdMarker", version_id.as_deref().unwrap_or("null"));
        }
        Some(VersionRow::Subdir { subdir }) => xml.text("NextKeyMarker", &wish.shown(subdir)),
        None => {}
    }
    xml.number("MaxKeys", wish.shown_max_keys as u64);
    if wish.has_delimiter {
        xml.text("Delimiter", &wish.shown(&wish.delimiter));
    }
    if wish.is_url_encoded {
        xml.text("EncodingType", "url");
    }
    xml.text("IsTruncated", if is_truncated { "true" } else { "false" });
    let owner = operation.user();
    for row in &rows {
        print(&mut xml, &wish, row, &owner);
    }
    for row in &rows {
        if let VersionRow::Subdir { subdir } = row {
            xml.open("CommonPrefixes");
            xml.text("Prefix", &wish.shown(subdir));
            xml.close();
        }
    }
    Ok(document(xml))
}

fn print(xml: &mut XmlWriter, wish: &Wish, row: &VersionRow, owner: &str) {
    let VersionRow::Version {
        name,
        version_id,
        is_latest,
        bytes,
        hash,
        last_modified,
        content_type,
        slo_etag,
    } = row
    else {
        return;
    };
    let is_marker = content_type == DELETE_MARKER;
    xml.open(if is_marker { "DeleteMarker" } else { "Version" });
    xml.text("Key", &wish.shown(name));
    xml.text("VersionId", version_id.as_deref().unwrap_or("null"));
    xml.text("IsLatest", if is_latest.unwrap_or(true) { "true" } else { "false" });
    xml.text("LastModified", &listed_time(last_modified));
    if !is_marker {
        xml.text("ETag", &listed_etag(hash, slo_etag.as_deref()));
        xml.number("Size", *bytes);
    }
    xml.open("Owner");
    xml.text("ID", owner);
    xml.text("DisplayName", owner);
    xml.close();
    if !is_marker {
        xml.text("StorageClass", "STANDARD");
    }
    xml.close();
}

/// The version that an answer is about, under S3's name.
pub(super) fn show(answer: &mut HeaderMap, swift: &HeaderMap) {
    if let Some(id) = swift.get(VERSION_ID) {
        answer.insert(SHOWN_VERSION, id.clone());
    }
    let content_type = swift.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    if content_type == Some(DELETE_MARKER.as_bytes()) {
        answer.insert(SHOWN_MARKER, HeaderValue::from_static("true"));
    }
}

/// What the answer to a deletion says of versions: the one that was deleted, or the marker that hides the object now.
/// `looked_at` is what was there before.
pub(super) fn show_deletion(deleted: &HeaderMap, looked_at: &HeaderMap, version: Option<&str>) -> HeaderMap {
    let mut shown = HeaderMap::new();
    show(&mut shown, deleted);
    let content_type = looked_at.get("content-type").map(HeaderValue::as_bytes);
    let is_marker = match version {
        Some(_) => content_type == Some(DELETE_MARKER.as_bytes()),
        None => shown.contains_key(SHOWN_VERSION),
    };
    if is_marker {
        shown.insert(SHOWN_MARKER, HeaderValue::from_static("true"));
    }
    shown
}

/// Whether the deletion that has this answer was of the version that clients saw.
pub(super) fn leaves_nothing(deleted: &HeaderMap) -> bool {
    deleted.get(CURRENT_VERSION).is_some_and(|current| current == "null")
}

impl Operation<'_> {
    async fn version_rows(&self, query: &str) -> Result<Vec<VersionRow>, S3Error> {
        self.rows_by(self.further(Method::GET, self.container()), query).await
    }

    async fn rows_by(&self, mut ask: ClientRequest, query: &str) -> Result<Vec<VersionRow>, S3Error> {
        ask.query = query.to_owned();
        let response = self.send(ask).await;
        if !response.status().is_success() {
            return Err(self.bucket_refusal(&response));
        }
        rows_of(response).await
    }

    /// The ids of all versions of the key; none where the bucket keeps no versions.
    pub(super) async fn versions_of_key(&self) -> Result<Vec<String>, S3Error> {
        let versions = self.versions_of(self.key()).await?;
        Ok(versions.into_iter().map(|(id, _)| id).collect())
    }

    /// The ids and sizes of all versions of a key; none where the bucket keeps no versions.
    async fn versions_of(&self, key: &str) -> Result<Vec<(String, u64)>, S3Error> {
        let container = self.next.info().container(&self.account().account, self.bucket()).await;
        if !container.sysmeta.keys().any(|name| name.starts_with("versions-")) {
            return Ok(Vec::new());
        }
        let quoted = quote(key);
        let mut versions: Vec<(String, u64)> = Vec::new();
        loop {
            let mut query = format!("versions=true&format=json&prefix={quoted}&limit=1000");
            if let Some((last, _)) = versions.last() {
                query.push_str(&format!("&marker={quoted}&version_marker={}", quote(last)));
            }
            // A client that may delete a version need not be allowed to list any.
            let list = self.further(Method::GET, self.container()).preauthorised();
            let rows = self.rows_by(list, &query).await?;
            let (read, before) = (rows.len(), versions.len());
            // A key comes before all others that begin with it.
            let of_key = rows.into_iter().map_while(|row| match row {
                VersionRow::Version {
                    name,
                    version_id,
                    bytes,
                    ..
                } if name == key => Some(version_id.map(|id| (id, bytes))),
                _ => None,
            });
            let found: Vec<_> = of_key.collect();
            let is_all = found.len() < read || read == 0;
            versions.extend(found.into_iter().flatten());
            if is_all || versions.len() == before {
                return Ok(versions);
            }
        }
    }

    /// Aims a request of an object at the version that `versionId` names, if it does.
    pub(super) fn aim_at_version(&self, request: &mut ClientRequest, version: Option<&str>) {
        if let Some(version) = version {
            if !request.query.is_empty() {
                request.query.push('&');
            }
            request.query.push_str(&format!("version-id={}", quote(version)));
        }
    }

    /// What Swift's refusal of a request for a version is in S3.
    pub(super) async fn version_refusal(&self, response: &Response, version: &str) -> S3Error {
        match response.status().as_u16() {
            400 => INVALID_ARGUMENT
                .saying("Invalid version id specified")
                .with("ArgumentName", "versionId")
                .with("ArgumentValue", version),
            404 => match self.nothing_there().await {
                error if error.code == crate::error::NO_SUCH_KEY => {
                    NO_SUCH_VERSION.about("Key", self.key()).with("VersionId", version)
                }
                error => error,
            },
            _ => self.refusal(response).await,
        }
    }

    /// Whether another version of a key is made of the parts of this one, whose headers these are: a manifest may have
    /// been stored again.
    pub(super) async fn has_twin(&self, key: &str, version: &str, found: &HeaderMap) -> Result<bool, S3Error> {
        let Some(upload) = found.get(UPLOAD_OF_OBJECT) else {
            return Ok(false);
        };
        let entity = self.container().with_object(key);
        let size = found
            .get(CONTENT_LENGTH)
            .and_then(|size| size.to_str().ok()?.parse().ok());
        for (other, bytes) in self.versions_of(key).await? {
            if other == version || Some(bytes) != size {
                continue;
            }
            let mut look = self.newest(entity.clone()).preauthorised();
            self.aim_at_version(&mut look, Some(&other));
            let response = self.send(look).await;
            if !matches!(response.status().as_u16(), 200..=299 | 404 | 405) {
                return Err(SERVICE_UNAVAILABLE.into());
            }
            if response.headers().get(UPLOAD_OF_OBJECT) == Some(upload) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a version is the one that clients see.
    pub(super) async fn is_current(&self, key: &str, version: &str) -> Result<bool, S3Error> {
        let current = self.newest(self.container().with_object(key)).preauthorised();
        let response = self.send(current).await;
        match response.status().as_u16() {
            200..=299 => Ok(response.headers().get(VERSION_ID).is_some_and(|id| id == version)),
            404 => Ok(false),
            _ => Err(self.refusal(&response).await),
        }
    }

    /// The version that clients saw was deleted: the newest that is left takes its place, whatever else its client may
    /// do. Of those that are listed some may be going in this moment.
    pub(super) async fn uncover(&self, key: &str) -> Result<(), S3Error> {
        let query = format!("versions=true&format=json&prefix={}&limit=1000", quote(key));
        let list = self.further(Method::GET, self.container()).preauthorised();
        for row in self.rows_by(list, &query).await? {
            let VersionRow::Version {
                name,
                version_id: Some(id),
                is_latest,
                content_type,
                ..
            } = row
            else {
                continue;
            };
            if name != key || is_latest == Some(true) || content_type == DELETE_MARKER || id == "null" {
                return Ok(());
            }
            let restored = self.restore(key, &id).await;
            match restored.status().as_u16() {
                404 => {}
                // Another is shown already.
                200..=299 | 409 => return Ok(()),
                _ => return Err(self.refusal(&restored).await),
            }
        }
        Ok(())
    }

    /// Makes the version current; waits a while for others who do that to the key.
    async fn restore(&self, key: &str, id: &str) -> Response {
        let mut tries = 0;
        loop {
            let restore = self.further(Method::PUT, self.container().with_object(key));
            let mut restore = restore.preauthorised();
            restore.extensions.insert(WriteOrigin::Inner);
            restore.extensions.insert(FillsVacancy);
            restore.query = format!("version-id={}", quote(id));
            restore.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            let restored = self.send(restore).await;
            tries += 1;
            if restored.status() != 503 || tries == RESTORE_TRIES {
                return restored;
            }
            self.service.world.clock.sleep(RESTORE_PAUSE).await;
        }
    }
}
