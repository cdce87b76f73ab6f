//! The service: the buckets of an account.

use super::listing::{name_of_token, rows_of, token_of_name};
use super::{Done, Operation, document, listed_time, refusal_of_status};
use crate::call::is_bucket_name;
use crate::error::S3Error;
use crate::xml::XmlWriter;
use futures_util::StreamExt;
use http::Method;
use serde::Deserialize;
use vocabulary::names::quote;

/// Buckets that are asked for their owner at the same time.
const LOOKS_AT_A_TIME: usize = 8;
/// Buckets that a page may have.
const MOST_BUCKETS: u32 = 10_000;
/// Rows of an account that are asked for at least, as some of them may not be shown.
const FEWEST_ROWS: usize = 1000;

/// A row of an account's listing.
#[derive(Deserialize)]
struct Bucket {
    name: String,
    last_modified: String,
}

/// What the client wants to see.
struct BucketsWish {
    prefix: String,
    /// The last name that was seen; empty at the beginning.
    after: String,
    /// Buckets of a page; all of them where nothing is said.
    most: Option<usize>,
    region: Option<String>,
}

impl BucketsWish {
    fn read(operation: &Operation<'_>) -> Result<Self, S3Error> {
        let text = |name| operation.call.parameter(name).filter(|text| !text.is_empty());
        Ok(Self {
            prefix: text("prefix").unwrap_or_default().to_owned(),
            after: text("continuation-token").map_or(Ok(String::new()), name_of_token)?,
            most: operation
                .number("max-buckets", 1, MOST_BUCKETS)?
                .map(|most| most as usize),
            region: text("bucket-region").map(str::to_owned),
        })
    }

    /// Whether anything was said, so that answers name the region of each bucket.
    fn is_any(&self) -> bool {
        self.most.is_some() || self.region.is_some() || !self.prefix.is_empty() || !self.after.is_empty()
    }

    /// Of Swift's listing behind this name.
    fn query(&self, after: &str, largest_page: usize) -> String {
        let mut query = "format=json".to_owned();
        if let Some(most) = self.most {
            let rows = most.saturating_add(1).max(FEWEST_ROWS).min(largest_page);
            query.push_str(&format!("&limit={rows}"));
        }
        for (name, value) in [("prefix", self.prefix.as_str()), ("marker", after)] {
            if !value.is_empty() {
                query.push_str(&format!("&{name}={}", quote(value)));
            }
        }
        query
    }
}

/// ListBuckets. An account that does not exist yet has none.
pub(super) async fn list_buckets(operation: Operation<'_>) -> Done {
    let wish = BucketsWish::read(&operation)?;
    let location = operation.service.settings.location.as_str();
    let mut shown = match wish.region.as_deref().is_none_or(|region| region == location) {
        true => operation.buckets(&wish).await?,
        false => Vec::new(),
    };
    let is_truncated = wish.most.is_some_and(|most| shown.len() > most);
    shown.truncate(wish.most.unwrap_or(usize::MAX));
    let user = operation.user();
    let mut xml = XmlWriter::document("ListAllMyBucketsResult");
    xml.open("Owner");
    xml.text("ID", &user);
    xml.text("DisplayName", &user);
    xml.close();
    xml.open("Buckets");
    for bucket in &shown {
        xml.open("Bucket");
        xml.text("Name", &bucket.name);
        xml.text("CreationDate", &listed_time(&bucket.last_modified));
        if wish.is_any() {
            xml.text("BucketRegion", location);
        }
        xml.close();
    }
    xml.close();
    if let Some(last) = shown.last().filter(|_| is_truncated) {
        xml.text("ContinuationToken", &token_of_name(&last.name));
    }
    if !wish.prefix.is_empty() {
        xml.text("Prefix", &wish.prefix);
    }
    Ok(document(xml))
}

impl Operation<'_> {
    /// The buckets that the client wants to see, and one more where there are more.
    async fn buckets(&self, wish: &BucketsWish) -> Result<Vec<Bucket>, S3Error> {
        let largest_page = self.service.limits.account_listing_limit;
        let (mut shown, mut after) = (Vec::new(), wish.after.clone());
        while wish.most.is_none_or(|most| shown.len() <= most) {
            let mut ask = self.further(Method::GET, self.account());
            ask.query = wish.query(&after, largest_page);
            let response = self.send(ask).await;
            match response.status().as_u16() {
                200..=299 => {}
                404 => break,
                status => return Err(refusal_of_status(status, false)),
            }
            let page: Vec<Bucket> = rows_of(response).await?;
            let Some(last) = page.last() else {
                break;
            };
            after.clone_from(&last.name);
            shown.extend(self.shown(page).await);
        }
        Ok(shown)
    }

    /// The buckets that S3 can name and the key may see, with `check_bucket_owner` those that the user owns.
    async fn shown(&self, mut buckets: Vec<Bucket>) -> Vec<Bucket> {
        let settings = &self.service.settings;
        buckets.retain(|bucket| {
            is_bucket_name(&bucket.name, settings.dns_compliant_bucket_names) && self.shows_bucket(&bucket.name)
        });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_are_asked_for_no_more_than_servers_give() {
        let wish = |most, prefix: &str| BucketsWish {
            prefix: prefix.into(),
            after: String::new(),
            most,
            region: None,
        };
        for (most, prefix, after, expected) in [
            (None, "", "", "format=json"),
            (None, "", "a b", "format=json&marker=a%20b"),
            (Some(1), "a&", "b", "format=json&limit=1000&prefix=a%26&marker=b"),
            (Some(1000), "", "", "format=json&limit=1001"),
            (Some(10_000), "", "", "format=json&limit=2000"),
        ] {
            assert_eq!(wish(most, prefix).query(after, 2000), expected);
        }
        assert!(!wish(None, "").is_any() && wish(Some(1), "").is_any() && wish(None, "a").is_any());
    }
}
