//! Operations that take several requests: uploads in parts, reads on a condition, removal of parts and versions.
//!
//! | operation | Swift | S3 |
//! |---|---|---|
//! | write with `part_size` | a static large object, its segments below [`SEGMENTS`] beside it | a multipart upload |
//! | delete with `part_size` | `?multipart-manifest=delete` | a deletion |
//! | cleanup of parts | the object, then all of its segments | the object, then uploads that never ended |
//! | cleanup of versions | each version by its id | the same |
//! | disposal of all that is there | each object that is listed, then the container | the same, each version |
//!
//! Always holds: the time of an operation is that of all its requests; segments lie in the object's container, which is
//! one of this program's, under a name of its own; the names of segments tell how long the object is, so that two
//! uploads at the same time write the same bytes.

use super::http::{BodySource, Outgoing, SentBody, StoreAnswer};
use super::http_store::{Dialect, HttpStore};
use super::step::StepRequest;
use super::{Answered, StoreRequest, StoreSession, s3};
use crate::figures::Failure;
use crate::workload::OperationKind;
use crate::workload::detail::EntityCondition;
use quick_xml::escape::unescape;
use serde_json::{Value, json};
use std::fmt::Write;

/// What names of segments begin with.
pub const SEGMENTS: &str = ".segments/";
/// Entity tags that a worker remembers.
const MOST_SEEN: usize = 10_000;
/// Pages of a listing that are gone through to remove what is on them.
const MOST_PAGES: usize = 10_000;

/// Whether an operation takes several requests.
pub(super) fn takes_several(request: &StoreRequest<'_>) -> bool {
    let detail = &request.detail;
    match request.kind {
        OperationKind::Write => detail.part_size.is_some(),
        OperationKind::Read | OperationKind::Head => detail.condition.is_some(),
        OperationKind::MakeContainer => detail.has_versions,
        OperationKind::Delete | OperationKind::DeleteContainer => {
            detail.has_versions || detail.removes_parts || detail.part_size.is_some() || detail.is_emptied
        }
        _ => false,
    }
}

/// Parts of an object: where each begins and how long it is. An empty object has one part.
fn parts(size: u64, part_size: u64) -> impl Iterator<Item = (u64, u64)> {
    let count = size.div_ceil(part_size.max(1)).max(1);
    (0..count).map(move |at| (at * part_size, part_size.min(size - at * part_size)))
}

/// Requests that an upload takes, for a store that only counts them.
pub(super) fn requests_of_upload(size: u64, part_size: u64) -> u64 {
    parts(size, part_size).count() as u64 + 1
}

impl StoreSession {
    /// Does an operation that takes several requests.
    pub(super) async fn in_steps(
        &mut self,
        store: &HttpStore,
        request: &StoreRequest<'_>,
    ) -> Result<Answered, Failure> {
        let is_s3 = matches!(store.dialect, Dialect::S3(_));
        match (request.kind, request.detail.part_size, is_s3) {
            (OperationKind::Write, Some(part_size), false) => self.large_object(store, request, part_size).await,
            (OperationKind::Write, Some(part_size), true) => self.multipart_upload(store, request, part_size).await,
            (OperationKind::Read | OperationKind::Head, ..) => self.on_condition(store, request).await,
            (OperationKind::MakeContainer, ..) => self.make_with_versions(store, request).await,
            (OperationKind::DeleteContainer, ..) => self.delete_container(store, request).await,
            (OperationKind::Delete, Some(_), false) => self.delete_with_parts(store, request).await,
            (OperationKind::Delete, Some(_), true) => self.exchange(store, request).await,
            _ => self.remove_all(store, request).await,
        }
    }

    /// Sends a request with a body, or without; answers with headers and body of what came.
    async fn step(
        &mut self,
        store: &HttpStore,
        request: &StepRequest<'_>,
        body: Option<SentBody<'_>>,
    ) -> Result<(StoreAnswer, Vec<u8>), Failure> {
        let mut head = std::mem::take(&mut self.head);
        request.head(store, self.world.clock.now(), &mut head);
        self.kept = Some(vec![]);
        let outgoing = Outgoing {
            is_head: false,
            head: &head,
            body,
            expects: None,
        };
        let answered = self.send(store, &outgoing).await;
        self.head = head;
        let kept = self.kept.take().unwrap_or_default();
        Ok((answered?, kept))
    }

    /// [`Self::step`] with a text as its body, which has to succeed.
    async fn send_text(
        &mut self,
        store: &HttpStore,
        request: &StepRequest<'_>,
        text: &str,
    ) -> Result<(StoreAnswer, Vec<u8>), Failure> {
        let length = text.len() as u64;
        let body = (length > 0).then_some(SentBody {
            length,
            offset: 0,
            chunked: false,
            source: BodySource::Given(text.as_bytes()),
        });
        let (answer, kept) = self.step(store, request, body).await?;
        good(answer.status)?;
        Ok((answer, kept))
    }

    /// Sends a part of an object's body; answers with its entity tag.
    async fn part(
        &mut self,
        store: &HttpStore,
        request: &StoreRequest<'_>,
        step: &StepRequest<'_>,
        (offset, length): (u64, u64),
    ) -> Result<String, Failure> {
        let contents = self.contents.clone();
        let body = SentBody {
            length,
            offset,
            chunked: false,
            source: BodySource::Made(request.body, &contents),
        };
        let (answer, kept) = self.step(store, step, Some(body)).await?;
        good(answer.status)?;
        Ok(header(&kept, "etag").unwrap_or_default())
    }

    async fn large_object(
        &mut self,
        store: &HttpStore,
        request: &StoreRequest<'_>,
        part_size: u64,
    ) -> Result<Answered, Failure> {
        let mut manifest = vec![];
        for (at, (offset, length)) in parts(request.size, part_size).enumerate() {
            let name = format!("{SEGMENTS}{}/{}/{part_size}/{at:08}", request.object, request.size);
            let step = StepRequest {
                verb: "PUT",
                container: request.container,
                object: &name,
                query: &[],
                headers: &[],
                length: Some(length),
            };
            self.part(store, request, &step, (offset, length)).await?;
            manifest.push(json!({ "path": format!("/{}/{name}", request.container), "size_bytes": length }));
        }
        let manifest = Value::Array(manifest).to_string();
        let step = StepRequest {
            verb: "PUT",
            container: request.container,
            object: request.object,
            query: &[("multipart-manifest", "put")],
            headers: &[],
            length: Some(manifest.len() as u64),
        };
        let (answer, _) = self.send_text(store, &step, &manifest).await?;
        Ok((request.size, Some(answer.first_byte)))
    }

    async fn multipart_upload(
        &mut self,
        store: &HttpStore,
        request: &StoreRequest<'_>,
        part_size: u64,
    ) -> Result<Answered, Failure> {
        let step = |verb, query, length| StepRequest {
            verb,
            container: request.container,
            object: request.object,
            query,
            headers: &[],
            length,
        };
        let (_, begun) = self
            .send_text(store, &step("POST", &[("uploads", "")], Some(0)), "")
            .await?;
        let begun = body_text(&begun);
        let id = elements(&begun, "UploadId").next().ok_or(Failure::Broken)?;
        let ended = self.parts_of_upload(store, request, part_size, &id).await;
        if ended.is_err() {
            // The failure that is reported is the first one.
            let _ = self
                .send_text(store, &step("DELETE", &[("uploadId", &id)], None), "")
                .await;
        }
        ended
    }

    async fn parts_of_upload(
        &mut self,
        store: &HttpStore,
        request: &StoreRequest<'_>,
        part_size: u64,
        id: &str,
    ) -> Result<Answered, Failure> {
        let mut list = String::from("<CompleteMultipartUpload>");
        for (at, (offset, length)) in parts(request.size, part_size).enumerate() {
            let number = (at + 1).to_string();
            let step = StepRequest {
                verb: "PUT",
                container: request.container,
                object: request.object,
                query: &[("partNumber", &number), ("uploadId", id)],
                headers: &[],
                length: Some(length),
            };
            let tag = self.part(store, request, &step, (offset, length)).await?;
            // Writing to memory does not fail.
            let _ = write!(
                list,
                "<Part><PartNumber>{number}</PartNumber><ETag>\"{tag}\"</ETag></Part>"
            );
        }
        list += "</CompleteMultipartUpload>";
        let step = StepRequest {
            verb: "POST",
            container: request.container,
            object: request.object,
            query: &[("uploadId", id)],
            headers: &[],
            length: Some(list.len() as u64),
        };
        let (answer, kept) = self.send_text(store, &step, &list).await?;
        // What goes wrong while parts are put together is said under status 200.
        match body_text(&kept).contains("<Error>") {
            true => Err(Failure::Status(500)),
            false => Ok((request.size, Some(answer.first_byte))),
        }
    }

    /// Asks on the condition that the object is, or is not, what this worker saw last; of one that it never saw,
    /// without a condition.
    async fn on_condition(&mut self, store: &HttpStore, request: &StoreRequest<'_>) -> Result<Answered, Failure> {
        let name = format!("{}/{}", request.container, request.object);
        let seen = self.seen.get(&name).cloned();
        let mut asked = *request;
        asked.detail.etag = seen.as_deref();
        self.kept = Some(vec![]);
        let answered = self.exchange(store, &asked).await;
        let kept = self.kept.take().unwrap_or_default();
        if let Some(tag) = header(&kept, "etag") {
            if self.seen.len() >= MOST_SEEN {
                self.seen.clear();
            }
            self.seen.insert(name, tag);
        } else if request.detail.condition == Some(EntityCondition::Unchanged) {
            self.seen.remove(&name);
        }
        answered
    }

    async fn make_with_versions(&mut self, store: &HttpStore, request: &StoreRequest<'_>) -> Result<Answered, Failure> {
        if let Dialect::Swift(_) = store.dialect {
            return self.exchange(store, request).await;
        }
        self.bucket_with_marker(store, request).await?;
        let body = "<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Status>Enabled</Status>\
                    </VersioningConfiguration>";
        let step = StepRequest {
            verb: "PUT",
            container: request.container,
            object: "",
            query: &[("versioning", "")],
            headers: &[],
            length: Some(body.len() as u64),
        };
        let (answer, _) = self.send_text(store, &step, body).await?;
        Ok((0, Some(answer.first_byte)))
    }

    async fn delete_container(&mut self, store: &HttpStore, request: &StoreRequest<'_>) -> Result<Answered, Failure> {
        if request.detail.is_emptied {
            match self.remove_listed(store, request, "", false).await {
                // A container that is gone is what is wanted.
                Ok(()) | Err(Failure::Status(404)) => {}
                Err(other) => return Err(other),
            }
        }
        if let Dialect::S3(_) = store.dialect {
            let marker = StoreRequest {
                object: s3::MARKER,
                ..*request
            };
            self.remove_all(store, &marker).await?;
        }
        self.exchange(store, request).await
    }

    /// Deletes a large object and its segments, in one request.
    async fn delete_with_parts(&mut self, store: &HttpStore, request: &StoreRequest<'_>) -> Result<Answered, Failure> {
        let step = StepRequest {
            verb: "DELETE",
            container: request.container,
            object: request.object,
            query: &[("multipart-manifest", "delete")],
            headers: &[("accept", "application/json")],
            length: None,
        };
        let (answer, kept) = self.step(store, &step, None).await?;
        if answer.status == 404 {
            return Ok((0, Some(answer.first_byte)));
        }
        good(answer.status)?;
        // How it went is said under status 200.
        let report: Value = serde_json::from_str(&body_text(&kept)).map_err(|_| Failure::Broken)?;
        let status = report["Response Status"]
            .as_str()
            .and_then(|status| status.get(..3)?.parse().ok());
        match status {
            Some(200 | 404) => Ok((0, Some(answer.first_byte))),
            status => Err(Failure::Status(status.unwrap_or(500))),
        }
    }

    /// Removes an object with all of its versions, and all of its parts.
    async fn remove_all(&mut self, store: &HttpStore, request: &StoreRequest<'_>) -> Result<Answered, Failure> {
        let is_s3 = matches!(store.dialect, Dialect::S3(_));
        let mut done = (0, None);
        if request.detail.has_versions {
            self.remove_listed(store, request, request.object, true).await?;
        } else {
            let alone = StoreRequest {
                kind: OperationKind::Delete,
                ..*request
            };
            done = self.exchange(store, &alone).await?;
        }
        if request.detail.removes_parts {
            match is_s3 {
                true => self.abort_uploads(store, request).await?,
                false => {
                    let prefix = format!("{SEGMENTS}{}/", request.object);
                    self.remove_listed(store, request, &prefix, false).await?;
                }
            }
        }
        Ok(done)
    }

    /// Deletes what a container lists with a prefix; `exactly` that name, or all names that begin so.
    async fn remove_listed(
        &mut self,
        store: &HttpStore,
        request: &StoreRequest<'_>,
        prefix: &str,
        exactly: bool,
    ) -> Result<(), Failure> {
        let is_s3 = matches!(store.dialect, Dialect::S3(_));
        let with_versions = request.detail.has_versions;
        for _ in 0..MOST_PAGES {
            let query: &[(&str, &str)] = match (is_s3, with_versions) {
                (true, _) => &[("prefix", prefix), ("versions", "")],
                (false, true) => &[("format", "json"), ("prefix", prefix), ("versions", "")],
                (false, false) => &[("format", "json"), ("prefix", prefix)],
            };
            let step = StepRequest {
                verb: "GET",
                container: request.container,
                object: "",
                query,
                headers: &[],
                length: None,
            };
            let (_, kept) = self.send_text(store, &step, "").await?;
            let mut listed = match is_s3 {
                true => versions_of_bucket(&body_text(&kept)),
                false => rows(&body_text(&kept))?,
            };
            listed.retain(|(name, _)| !exactly || name == prefix);
            if listed.is_empty() {
                return Ok(());
            }
            for (name, version) in listed {
                let id = if is_s3 { "versionId" } else { "version-id" };
                let by_id = [(id, version.as_str())];
                let step = StepRequest {
                    verb: "DELETE",
                    container: request.container,
                    object: &name,
                    query: if version.is_empty() { &[] } else { &by_id },
                    headers: &[],
                    length: None,
                };
                let (answer, _) = self.step(store, &step, None).await?;
                if answer.status != 404 {
                    good(answer.status)?;
                }
            }
        }
        Ok(())
    }

    /// Gives up uploads of an object that were begun and never ended.
    async fn abort_uploads(&mut self, store: &HttpStore, request: &StoreRequest<'_>) -> Result<(), Failure> {
        let step = StepRequest {
            verb: "GET",
            container: request.container,
            object: "",
            query: &[("prefix", request.object), ("uploads", "")],
            headers: &[],
            length: None,
        };
        let (_, kept) = self.send_text(store, &step, "").await?;
        let listed = body_text(&kept);
        for upload in blocks(&listed, "Upload") {
            let (Some(key), Some(id)) = (elements(upload, "Key").next(), elements(upload, "UploadId").next()) else {
                continue;
            };
            if key == request.object {
                let step = StepRequest {
                    verb: "DELETE",
                    container: request.container,
                    object: request.object,
                    query: &[("uploadId", &id)],
                    headers: &[],
                    length: None,
                };
                self.send_text(store, &step, "").await?;
            }
        }
        Ok(())
    }
}

fn good(status: u16) -> Result<(), Failure> {
    match (200..300).contains(&status) {
        true => Ok(()),
        false => Err(Failure::Status(status)),
    }
}

/// A header of an answer as it came, without quotes.
fn header(kept: &[u8], name: &str) -> Option<String> {
    let head = kept.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&kept[..head]).into_owned();
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some(value.trim().trim_matches('"').to_owned())
}

/// The body of an answer as it came.
fn body_text(kept: &[u8]) -> String {
    let start = kept
        .windows(4)
        .position(|bytes| bytes == b"\r\n\r\n")
        .map_or(0, |at| at + 4);
    String::from_utf8_lossy(&kept[start..]).into_owned()
}

/// Names and versions of Swift's listing; a version is empty where there are none.
fn rows(listing: &str) -> Result<Vec<(String, String)>, Failure> {
    if listing.trim().is_empty() {
        return Ok(vec![]);
    }
    let rows: Vec<Value> = serde_json::from_str(listing).map_err(|_| Failure::Broken)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(rows
        .iter()
        .map(|row| (text(&row["name"]), text(&row["version_id"])))
        .collect())
}

/// Names and versions of S3's listing, markers of deletions among them.
fn versions_of_bucket(listing: &str) -> Vec<(String, String)> {
    let all = blocks(listing, "Version").chain(blocks(listing, "DeleteMarker"));
    all.filter_map(|one| Some((elements(one, "Key").next()?, elements(one, "VersionId").next()?)))
        .collect()
}

/// What lies between the tags of elements with a name, as it is written.
fn blocks<'a>(xml: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = xml;
    std::iter::from_fn(move || {
        let start = rest.find(&open)? + open.len();
        let end = start + rest[start..].find(&close)?;
        let block = &rest[start..end];
        rest = &rest[end + close.len()..];
        Some(block)
    })
}

/// Texts of elements with a name.
fn elements(xml: &str, name: &str) -> impl Iterator<Item = String> {
    blocks(xml, name).map(|text| unescape(text).map_or_else(|_| text.to_owned(), |text| text.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::{body_text, elements, header, parts, rows, versions_of_bucket};

    #[test]
    fn parts_make_up_the_whole() {
        for (size, expected) in [
            (0, vec![(0, 0)]),
            (5, vec![(0, 5)]),
            (10, vec![(0, 5), (5, 5)]),
            (12, vec![(0, 5), (5, 5), (10, 2)]),
        ] {
            assert_eq!(parts(size, 5).collect::<Vec<_>>(), expected, "{size}");
        }
    }

    #[test]
    fn answers_are_read() {
        let kept = b"HTTP/1.1 200 OK\r\nETag: \"a1\"\r\n\r\n<A><Key>a&amp;b</Key></A><Key>c</Key>";
        assert_eq!((header(kept, "etag"), header(kept, "date")), (Some("a1".into()), None));
        assert_eq!(elements(&body_text(kept), "Key").collect::<Vec<_>>(), ["a&b", "c"]);
        let listing = "<Version><Key>k</Key><VersionId>1</VersionId></Version>\
                       <DeleteMarker><Key>k</Key><VersionId>2</VersionId></DeleteMarker>";
        assert_eq!(
            versions_of_bucket(listing),
            [("k".into(), "1".into()), ("k".into(), "2".into())]
        );
        let listing = "[{\"name\": \"a\", \"version_id\": \"null\"}, {\"name\": \"b\"}]";
        assert_eq!(
            rows(listing),
            Ok(vec![("a".into(), "null".into()), ("b".into(), String::new())])
        );
        assert!(rows("nonsense").is_err());
    }
}
