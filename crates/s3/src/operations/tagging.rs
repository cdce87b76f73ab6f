//! Tags of objects and buckets: small pairs of key and value beside the metadata.
//!
//! An object's stand in its transient system metadata, which a POST can change; the object server keeps them through a
//! POST that does not name them (`crates/object-server/src/post.rs`), so that Swift's clients lose none. A bucket's
//! stand in the container's system metadata. Both are written as in `x-amz-tagging`: `key=value&key2=value2`, encoded.
//! Always holds: what is stored is a set within S3's limits; an empty text is no set.
//! Deliberately absent: tags of older versions, which Swift has no POST for.

use super::bucket::empty;
use super::headers::own_metadata;
use super::tag_set::{MOST_OF_OBJECT, TagSet, of_stored};
use super::{Done, Operation, document};
use crate::error::{NOT_IMPLEMENTED, S3Error};
use crate::payload::collect;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method};
use peer::message::header_names::X_OBJECT_TAGS;

/// Bytes of a `Tagging` document: fifty tags of the longest texts, each byte a reference.
const LARGEST_DOCUMENT: u64 = 128 * 1024;
/// Tags of a bucket (AWS, "Cost allocation tags").
const MOST_OF_BUCKET: usize = 50;
/// A bucket's tags.
const BUCKET_TAGS: &str = "x-container-sysmeta-s3api-tags";

/// GetObjectTagging, GetBucketTagging.
pub(super) async fn get(operation: Operation<'_>) -> Done {
    let (headers, name) = match operation.call.key {
        Some(_) => (operation.tagged_object().await?, X_OBJECT_TAGS.as_str().to_owned()),
        None => (operation.tagged_bucket().await?, BUCKET_TAGS.to_owned()),
    };
    let mut answer = document(of_stored(&headers, &name).print());
    super::versions::show(answer.headers_mut(), &headers);
    Ok(answer)
}

/// PutObjectTagging, PutBucketTagging.
pub(super) async fn put(mut operation: Operation<'_>) -> Done {
    let signed = operation.signed_body();
    let body = collect(&mut operation.request, signed.as_deref(), LARGEST_DOCUMENT).await?;
    let set = TagSet::of_document(&body)?;
    match operation.call.key {
        Some(_) => set.check(MOST_OF_OBJECT, "Object tags cannot be greater than 10")?,
        None => set.check(MOST_OF_BUCKET, "Bucket tag count cannot be greater than 50")?,
    }
    operation.tag(set).await
}

/// DeleteObjectTagging, DeleteBucketTagging.
pub(super) async fn delete(operation: Operation<'_>) -> Done {
    let mut answer = operation.tag(TagSet::default()).await?;
    *answer.status_mut() = http::StatusCode::NO_CONTENT;
    answer.headers_mut().remove(CONTENT_LENGTH);
    Ok(answer)
}

impl Operation<'_> {
    /// Gives the object or the bucket these tags in place of those it has.
    async fn tag(&self, set: TagSet) -> Done {
        let stored = set.stored()?;
        let Some(key) = self.call.key.as_deref() else {
            let mut post = self.further(Method::POST, self.container());
            // An empty value takes away what is stored.
            post.headers.insert(BUCKET_TAGS, stored);
            let response = self.send(post).await;
            return match response.status().is_success() {
                true => Ok(empty(204)),
                false => Err(self.bucket_refusal(&response)),
            };
        };
        let object = self.tagged_object().await?;
        let mut post = self.further(Method::POST, self.container().with_object(key));
        post.headers.extend(own_metadata(&object));
        post.headers.insert(X_OBJECT_TAGS, stored);
        let response = self.send(post).await;
        if !response.status().is_success() {
            return Err(self.refusal(&response).await);
        }
        let mut answer = empty(200);
        super::versions::show(answer.headers_mut(), &object);
        Ok(answer)
    }

    /// The headers of the object whose tags are meant. Those of an older version can be read only.
    async fn tagged_object(&self) -> Result<HeaderMap, S3Error> {
        let version = self.call.parameter("versionId");
        let entity = self.container().with_object(self.key());
        let mut head = self.further(Method::HEAD, entity.clone());
        self.aim_at_version(&mut head, version);
        let response = self.send(head).await;
        if !response.status().is_success() {
            return match version {
                Some(version) => Err(self.version_refusal(&response, version).await),
                None => Err(self.refusal(&response).await),
            };
        }
        if self.request.method != Method::GET
            && let Some(version) = version
        {
            let current = self.send(self.further(Method::HEAD, entity)).await;
            let current = current.headers().get("x-object-version-id");
            if current.is_none_or(|current| current != version) {
                return Err(NOT_IMPLEMENTED.saying("Only the tags of the current version can be changed."));
            }
        }
        Ok(response.headers().clone())
    }

    async fn tagged_bucket(&self) -> Result<HeaderMap, S3Error> {
        let response = self.send(self.further(Method::HEAD, self.container())).await;
        match response.status().is_success() {
            true => Ok(response.headers().clone()),
            false => Err(self.bucket_refusal(&response)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_come_back_as_they_were_stored() {
        let set = TagSet::read("a=1&b+c=x%26y%3D%25&%C3%BC=&lone").unwrap();
        let pairs = [("a", "1"), ("b c", "x&y=%"), ("ü", ""), ("lone", "")];
        assert_eq!(set.0, pairs.map(|(key, value)| (key.to_owned(), value.to_owned())));
        let stored = set.stored().unwrap();
        assert_eq!(TagSet::read(std::str::from_utf8(stored.as_bytes()).unwrap()), Some(set));
        assert_eq!(TagSet::default().stored().unwrap(), "");
        assert_eq!(TagSet::read("%FF=1"), None);
    }

    #[test]
    fn sets_are_within_limits() {
        let check = |text: &str| {
            let set = TagSet::read(text).unwrap();
            set.check(MOST_OF_OBJECT, "x").map_err(|error| error.code.name).err()
        };
        let many = |count| (0..count).map(|number| format!("k{number}=v&")).collect::<String>();
        for (text, refusal) in [
            (many(10), None),
            (many(11), Some("BadRequest")),
            ("a=1&a=2".into(), Some("InvalidTag")),
            ("=1".into(), Some("InvalidTag")),
            ("aws:a=1".into(), Some("InvalidTag")),
            ("a=%3C".into(), Some("InvalidTag")),
            (format!("{}={}", "k".repeat(128), "v".repeat(256)), None),
            (format!("{}=v", "k".repeat(129)), Some("InvalidTag")),
            (format!("k={}", "v".repeat(257)), Some("InvalidTag")),
            ("a+%2B-%3D._:/@ü=ü".into(), None),
        ] {
            assert_eq!(check(&text), refusal, "{text}");
        }
    }

    #[test]
    fn documents_are_read() {
        let document = b"<Tagging><TagSet><Tag><Key>a</Key><Value> b </Value></Tag></TagSet></Tagging>";
        assert_eq!(
            TagSet::of_document(document).unwrap().0,
            [("a".to_owned(), " b ".to_owned())]
        );
        assert!(
            TagSet::of_document(b"<Tagging><TagSet/></Tagging>")
                .unwrap()
                .0
                .is_empty()
        );
        for bad in [
            "<Tagging/>",
            "<Other><TagSet/></Other>",
            "<Tagging><TagSet><Tag><Key>a</Key></Tag></TagSet></Tagging>",
        ] {
            assert!(TagSet::of_document(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
