//! DeleteObjects: many objects in one request.
//!
//! Always holds: the document is read and found right before anything is deleted; each entry has its own result, in the
//! order of the request; entries of one key are worked at one after the other, and the version before what went is
//! uncovered once they are done, so that none is uncovered that a later entry deletes.

use super::object::{DeletedKey, delete_key};
use super::{Done, Operation, document};
use crate::error::{INVALID_REQUEST, MALFORMED_XML, S3Error, USER_KEY_MUST_BE_SPECIFIED};
use crate::payload::collect;
use crate::xml::{Element, XmlWriter};
use futures_util::StreamExt;
use http::HeaderMap;
use std::collections::{BTreeMap, HashMap};

/// Bytes of the document: a thousand keys of 1,024 characters, each of them escaped.
const LARGEST_DOCUMENT: u64 = 8 << 20;

/// A key, perhaps one version of it, perhaps only with this entity tag.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    key: String,
    version: Option<String>,
    etag: Option<String>,
}

/// What became of an entry: what the answer says of versions.
type Outcome = Result<HeaderMap, S3Error>;

/// DeleteObjects.
pub(super) async fn delete(mut operation: Operation<'_>) -> Done {
    let headers = &operation.request.headers;
    let has_digest = headers.contains_key("content-md5")
        || headers.keys().any(|name| name.as_str().starts_with("x-amz-checksum-"))
        || headers.contains_key("x-amz-trailer");
    if !has_digest {
        return Err(INVALID_REQUEST.saying("Missing required header for this request: Content-MD5 OR x-amz-checksum-*"));
    }
    let signed = operation.signed_body();
    let body = collect(&mut operation.request, signed.as_deref(), LARGEST_DOCUMENT).await?;
    let (keys, is_quiet) = read(&body, operation.service.settings.max_multi_delete_objects)?;
    let container = operation
        .next
        .info()
        .container(&operation.account().account, operation.bucket())
        .await;
    if container.status == 404 {
        return Err(crate::error::NO_SUCH_BUCKET.about("BucketName", operation.bucket()));
    }
    let operation = &operation;
    let concurrency = operation.service.settings.multi_delete_concurrency.0;
    let results: Vec<Vec<(usize, Outcome)>> = futures_util::stream::iter(by_key(&keys))
        .map(|entries| delete_entries(operation, &keys, entries))
        .buffer_unordered(concurrency)
        .collect()
        .await;
    let results: BTreeMap<usize, Outcome> = results.into_iter().flatten().collect();
    let mut xml = XmlWriter::document("DeleteResult");
    for (Wanted { key, version, .. }, result) in keys.iter().zip(results.values()) {
        match result {
            Ok(_) if is_quiet => {}
            Ok(shown) => {
                let header = |name: &str| shown.get(name).and_then(|value| value.to_str().ok());
                xml.open("Deleted");
                xml.text("Key", key);
                if let Some(version) = version {
                    xml.text("VersionId", version);
                }
                if header("x-amz-delete-marker").is_some() {
                    xml.text("DeleteMarker", "true");
                    xml.text("DeleteMarkerVersionId", header("x-amz-version-id").unwrap_or_default());
                }
                xml.close();
            }
            Err(error) => {
                xml.open("Error");
                xml.text("Key", key);
                if let Some(version) = version {
                    xml.text("VersionId", version);
                }
                xml.text("Code", error.code.name);
                xml.text("Message", error.words());
                xml.close();
            }
        }
    }
    Ok(document(xml))
}

/// Which entries are of the same key, in the order of the request.
fn by_key(wanted: &[Wanted]) -> Vec<Vec<usize>> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, entry) in wanted.iter().enumerate() {
        let place = *places.entry(&entry.key).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups
}

/// Deletes what these entries, all of one key, name.
async fn delete_entries(operation: &Operation<'_>, wanted: &[Wanted], entries: Vec<usize>) -> Vec<(usize, Outcome)> {
    let mut results = Vec::with_capacity(entries.len());
    // The last entry that left the key without a current version.
    let mut vacated: Option<usize> = None;
    for index in entries {
        let entry = &wanted[index];
        // It is about the current version.
        if entry.version.is_none() {
            uncover(operation, &entry.key, vacated.take(), &mut results).await;
        }
        let deleted = delete_one(operation, entry).await;
        if deleted.as_ref().is_ok_and(|deleted| deleted.is_vacant) {
            vacated = Some(results.len());
        }
        results.push((index, deleted.map(|deleted| deleted.shown)));
    }
    if let Some((index, _)) = results.first() {
        uncover(operation, &wanted[*index].key, vacated, &mut results).await;
    }
    results
}

/// Puts the version before in the place of what went with the entry that has this result.
async fn uncover(operation: &Operation<'_>, key: &str, vacated: Option<usize>, results: &mut [(usize, Outcome)]) {
    if let Some(place) = vacated
        && let Err(error) = operation.uncover(key).await
    {
        results[place].1 = Err(error);
    }
}

async fn delete_one(operation: &Operation<'_>, wanted: &Wanted) -> Result<DeletedKey, S3Error> {
    let (key, version) = (wanted.key.as_str(), wanted.version.as_deref());
    // Refusals wait for nothing: a thousand of them in one step would keep other requests waiting.
    tokio::task::yield_now().await;
    operation.admit_deletion(key, version).await?;
    operation.may_delete(key)?;
    let gate = operation.pass_to_delete(key, version, wanted.etag.as_deref()).await?;
    let deleted = delete_key(operation, key, version).await;
    drop(gate);
    deleted
}

/// The keys, and whether only failures are to be reported.
fn read(body: &[u8], most: usize) -> Result<(Vec<Wanted>, bool), S3Error> {
    let document = Element::parse(body).map_err(|_| MALFORMED_XML)?;
    if document.name != "Delete" {
        return Err(MALFORMED_XML.into());
    }
    let mut keys = Vec::new();
    for object in document.all("Object") {
        let version = object.text_of("VersionId").filter(|version| !version.is_empty());
        let key = object.child("Key").map(|key| key.text.clone()).ok_or(MALFORMED_XML)?;
        if key.is_empty() {
            return Err(USER_KEY_MUST_BE_SPECIFIED.into());
        }
        if key.contains('\0') {
            return Err(MALFORMED_XML.into());
        }
        let etag = object.text_of("ETag").filter(|etag| !etag.is_empty());
        keys.push(Wanted {
            key,
            version: version.map(str::to_owned),
            etag: etag.map(str::to_owned),
        });
    }
    if keys.is_empty() || keys.len() > most {
        return Err(MALFORMED_XML.into());
    }
    let is_quiet = document
        .text_of("Quiet")
        .is_some_and(|text| text.eq_ignore_ascii_case("true"));
    Ok((keys, is_quiet))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_one_key_stay_together() {
        let wanted = ["b", "a", "b", "c", "a"].map(|key| Wanted {
            key: key.into(),
            version: None,
            etag: None,
        });
        assert_eq!(by_key(&wanted), [vec![0, 2], vec![1, 4], vec![3]]);
    }

    #[test]
    fn documents_are_right_or_refused() {
        let keys = |text: &str| read(text.as_bytes(), 2);
        let good = "<Delete xmlns='x'><Quiet>true</Quiet><Object><Key>a b</Key></Object></Delete>";
        let wanted = |key: &str, etag: Option<&str>| Wanted {
            key: key.into(),
            version: None,
            etag: etag.map(str::to_owned),
        };
        assert_eq!(keys(good), Ok((vec![wanted("a b", None)], true)));
        let conditional = "<Delete><Object><Key>a</Key><ETag>\"x\"</ETag></Object></Delete>";
        assert_eq!(keys(conditional), Ok((vec![wanted("a", Some("\"x\""))], false)));
        for bad in [
            "<Delete/>",
            "<Other><Object><Key>a</Key></Object></Other>",
            "<Delete><Object/></Delete>",
            "<Delete><Object><Key/></Object></Delete>",
            "<Delete><Object><Key>a</Key></Object><Object><Key>a</Key></Object><Object><Key>a</Key></Object></Delete>",
            "no XML",
        ] {
            assert!(keys(bad).is_err(), "{bad}");
        }
    }
}
