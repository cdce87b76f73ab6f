//! DeleteObjects: many objects in one request.
//!
//! Always holds: the document is read and found right before anything is deleted; each key has its own result.

use super::object::delete_key;
use super::{Done, Operation, document};
use crate::error::{INVALID_REQUEST, MALFORMED_XML, S3Error, USER_KEY_MUST_BE_SPECIFIED};
use crate::payload::collect;
use crate::xml::{Element, XmlWriter};
use futures_util::StreamExt;
use http::HeaderMap;

/// Bytes of the document: a thousand keys of 1,024 characters, each of them escaped.
const LARGEST_DOCUMENT: u64 = 8 << 20;

/// A key, perhaps one version of it, perhaps only with this entity tag.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    key: String,
    version: Option<String>,
    etag: Option<String>,
}

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
    let results: Vec<(Wanted, Result<HeaderMap, S3Error>)> = futures_util::stream::iter(keys)
        .map(|wanted| async move {
            let result = delete_one(operation, &wanted).await;
            (wanted, result)
        })
        .buffered(concurrency)
        .collect()
        .await;
    let mut xml = XmlWriter::document("DeleteResult");
    for (Wanted { key, version, .. }, result) in &results {
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

async fn delete_one(operation: &Operation<'_>, wanted: &Wanted) -> Result<HeaderMap, S3Error> {
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
