//! The service: the buckets of an account.

use super::listing::rows_of;
use super::{Done, Operation, document, listed_time, refusal_of_status};
use crate::call::is_bucket_name;
use crate::xml::XmlWriter;
use futures_util::StreamExt;
use http::Method;
use serde::Deserialize;

/// Buckets that are asked for their owner at the same time.
const LOOKS_AT_A_TIME: usize = 8;

/// A row of an account's listing.
#[derive(Deserialize)]
struct Bucket {
    name: String,
    last_modified: String,
}

/// ListBuckets. An account that does not exist yet has none.
pub(super) async fn list_buckets(operation: Operation<'_>) -> Done {
    let mut buckets: Vec<Bucket> = Vec::new();
    loop {
        let mut ask = operation.further(Method::GET, operation.account());
        ask.query = "format=json".into();
        if let Some(last) = buckets.last() {
            ask.query
                .push_str(&format!("&marker={}", vocabulary::names::quote(&last.name)));
        }
        let response = operation.send(ask).await;
        match response.status().as_u16() {
            200..=299 => {}
            404 => break,
            status => return Err(refusal_of_status(status, false)),
        }
        let page: Vec<Bucket> = rows_of(response).await?;
        if page.is_empty() {
            break;
        }
        buckets.extend(page);
    }
    let user = operation.user();
    let mut xml = XmlWriter::document("ListAllMyBucketsResult");
    xml.open("Owner");
    xml.text("ID", &user);
    xml.text("DisplayName", &user);
    xml.close();
    xml.open("Buckets");
    let mut shown = operation.shown(buckets).await;
    shown.retain(|bucket| operation.shows_bucket(&bucket.name));
    for bucket in shown {
        xml.open("Bucket");
        xml.text("Name", &bucket.name);
        xml.text("CreationDate", &listed_time(&bucket.last_modified));
        xml.close();
    }
    Ok(document(xml))
}

impl Operation<'_> {
    /// The buckets that S3 can name, with `check_bucket_owner` those that the user owns.
    async fn shown(&self, mut buckets: Vec<Bucket>) -> Vec<Bucket> {
        let settings = &self.service.settings;
        buckets.retain(|bucket| is_bucket_name(&bucket.name, settings.dns_compliant_bucket_names));
        if !(settings.s3_acl && settings.check_bucket_owner) {
            return buckets;
        }
        let looks = buckets.into_iter().map(|bucket| async move {
            let list = self.list_of_bucket(&bucket.name).await;
            list.is_ok_and(|list| self.owns(&list)).then_some(bucket)
        });
        let owned = futures_util::stream::iter(looks).buffered(LOOKS_AT_A_TIME);
        owned.filter_map(std::future::ready).collect().await
    }
}
