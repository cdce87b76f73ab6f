//! PutBucketLifecycleConfiguration, GetBucketLifecycleConfiguration, DeleteBucketLifecycle, and `x-amz-expiration`.
//!
//! The rules are in the container's system metadata, where upkeep finds them (`container-lifecycle`); what they mean is
//! the crate `lifecycle`'s, their XML in `document.rs`; those that were read before are in `known_rules.rs`.
//! Always holds: rules that are stored are whole and served; requests of Swift's API do not see them.

pub(crate) mod document;
mod known_rules;

pub(super) use known_rules::KnownRules;

use super::bucket::empty;
use super::headers::{delete_at, expiry_by};
use super::tag_set::of_stored;
use super::{Done, Operation, not_implemented};
use crate::error::{INTERNAL_ERROR, INVALID_REQUEST, NO_SUCH_LIFECYCLE, S3Error};
use crate::payload::collect;
use ::lifecycle::{DayLength, KnownTags, LifecycleRules, LifecycleSubject, pieces, text_of_pieces};
use http::header::LAST_MODIFIED;
use http::{HeaderMap, Method};
use peer::message::header_names::X_OBJECT_TAGS;
use vocabulary::Timestamp;
use vocabulary::calendar::parse_http;

/// Bytes of a document: a thousand rules with room for names and tags.
const LARGEST_DOCUMENT: u64 = 2 << 20;
/// What stands in front of a container's system metadata in headers.
const SYSMETA: &str = "x-container-sysmeta-";

/// Any of the three.
pub(super) async fn run(operation: Operation<'_>) -> Done {
    match operation.request.method {
        Method::GET => get(operation).await,
        Method::PUT => put(operation).await,
        Method::DELETE => delete(operation).await,
        _ => Err(not_implemented("lifecycle")),
    }
}

/// PutBucketLifecycleConfiguration.
async fn put(mut operation: Operation<'_>) -> Done {
    let signed = operation.signed_body();
    let body = collect(&mut operation.request, signed.as_deref(), LARGEST_DOCUMENT).await?;
    let mut rules = document::read(&body)?;
    for rule in rules.rules.iter_mut().filter(|rule| rule.id.is_empty()) {
        let mut random = [0; 16];
        operation.service.world.random.fill(&mut random);
        rule.id = vocabulary::hex::encode(random);
    }
    let text = rules
        .to_text()
        .map_err(|error| INVALID_REQUEST.saying(format!("Too long: {error}.")))?;
    operation.store_rules(&text, 200).await
}

/// DeleteBucketLifecycle.
async fn delete(operation: Operation<'_>) -> Done {
    operation.store_rules("", 204).await
}

/// GetBucketLifecycleConfiguration.
async fn get(operation: Operation<'_>) -> Done {
    let bucket = operation.metadata_of_bucket().await?;
    let text = text_of_pieces(|header| bucket.get(header)?.to_str().ok());
    let text = text.ok_or_else(|| NO_SUCH_LIFECYCLE.about("BucketName", operation.bucket()))?;
    let rules = LifecycleRules::of_text(&text).map_err(|error| {
        tracing::warn!("bucket {}: {error}", operation.bucket());
        S3Error::from(INTERNAL_ERROR)
    })?;
    Ok(super::document(document::print(&rules)))
}

impl Operation<'_> {
    async fn store_rules(&self, text: &str, status: u16) -> Done {
        let mut post = self.further(Method::POST, self.container());
        for (header, piece) in pieces(text) {
            post.set_header(header, piece);
        }
        let response = self.send(post).await;
        match response.status().is_success() {
            true => Ok(empty(status)),
            false => Err(self.bucket_refusal(&response)),
        }
    }

    /// Whether an object of the bucket may be one that a rule will delete.
    pub(super) async fn may_expire(&self) -> bool {
        !self.bucket_info().await.sysmeta.is_empty()
    }

    /// Says in the answer when an object expires that was sent with these headers, and stored with this answer.
    pub(super) async fn show_expiry_of_new(
        &self,
        answer: &mut HeaderMap,
        mut sent: HeaderMap,
        stored: &HeaderMap,
        size: Option<u64>,
    ) {
        if let Some(written) = stored.get(LAST_MODIFIED) {
            sent.insert(LAST_MODIFIED, written.clone());
        }
        self.show_expiry(answer, &sent, size).await;
    }

    /// Says in the answer about an object, whose headers `swift` are, by which rule of the bucket it expires, unless
    /// Swift deletes it before.
    pub(super) async fn show_expiry(&self, answer: &mut HeaderMap, swift: &HeaderMap, size: Option<u64>) {
        let container = self.bucket_info().await;
        if container.sysmeta.is_empty() {
            return;
        }
        let piece = |header: &str| {
            let name = header.strip_prefix(SYSMETA)?;
            container.sysmeta.get(name).map(String::as_str)
        };
        // GetBucketLifecycleConfiguration reports what cannot be read.
        let read = |text| self.service.rules.read(self.container().path(), text);
        let Some(rules) = text_of_pieces(piece).and_then(read) else {
            return;
        };
        let changed = swift
            .get(LAST_MODIFIED)
            .and_then(|value| parse_http(value.to_str().ok()?));
        let Some(changed) = changed.map(Timestamp::from_seconds) else {
            return;
        };
        let tags = of_stored(swift, X_OBJECT_TAGS.as_str());
        let subject = LifecycleSubject {
            key: self.key(),
            size,
            tags: KnownTags::These(&tags.0),
        };
        let Some(due) = rules.expiry(&subject, changed, DayLength::Calendar) else {
            return;
        };
        if delete_at(swift).is_none_or(|at| due.at < at)
            && let Some(expiry) = expiry_by(due.at, due.rule)
        {
            answer.insert("x-amz-expiration", expiry);
        }
    }
}
