//! The lock of a bucket: that its versions can be locked, and how long new ones are by themselves.
//!
//! It is in the container's system metadata (`vocabulary::object_lock::BucketLock`) beside what says where its versions
//! are, and never taken away.
//! Always holds: a bucket with a lock keeps versions.

use super::super::bucket::empty;
use super::super::{Done, Operation, document};
use super::headers::{VERSIONS, enable};
use crate::error::{
    INVALID_BUCKET_STATE, INVALID_REQUEST, INVALID_RETENTION_PERIOD, MALFORMED_XML, NO_SUCH_LOCK_CONFIGURATION,
    NOT_IMPLEMENTED, S3Error,
};
use crate::xml::{Element, XmlWriter};
use http::{HeaderMap, Method};
use peer::message::header_names::X_BUCKET_LOCK;
use request_pipeline::is_true;
use vocabulary::object_lock::{BucketLock, DefaultRetention, MOST_DAYS, MOST_YEARS, RetentionMode, RetentionPeriod};

/// GetObjectLockConfiguration.
pub(super) async fn get(operation: Operation<'_>) -> Done {
    let bucket = operation.metadata_of_bucket().await?;
    let lock = stored(&bucket).ok_or_else(|| NO_SUCH_LOCK_CONFIGURATION.about("BucketName", operation.bucket()))?;
    let mut xml = XmlWriter::document("ObjectLockConfiguration");
    xml.text("ObjectLockEnabled", "Enabled");
    if let Some(DefaultRetention { mode, period }) = lock.default {
        xml.open("Rule");
        xml.open("DefaultRetention");
        xml.text("Mode", mode.name());
        match period {
            RetentionPeriod::Days(days) => xml.number("Days", days.into()),
            RetentionPeriod::Years(years) => xml.number("Years", years.into()),
        }
    }
    Ok(document(xml))
}

/// PutObjectLockConfiguration. A bucket that keeps versions gets a lock by it.
pub(super) async fn put(mut operation: Operation<'_>) -> Done {
    let document = operation.lock_document("ObjectLockConfiguration").await?;
    let lock = read(&document)?;
    let bucket = operation.metadata_of_bucket().await?;
    let keeps_versions = bucket.get(VERSIONS).and_then(|value| value.to_str().ok());
    if !keeps_versions.is_some_and(is_true) {
        return Err(INVALID_BUCKET_STATE
            .saying("Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration"));
    }
    let mut post = operation.further(Method::POST, operation.container());
    enable(&mut post, &lock);
    let response = operation.send(post).await;
    match response.status().is_success() {
        true => Ok(empty(200)),
        false => Err(operation.bucket_refusal(&response)),
    }
}

fn stored(bucket: &HeaderMap) -> Option<BucketLock> {
    let text = bucket
        .get(X_BUCKET_LOCK)?
        .to_str()
        .ok()
        .filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_default())
}

/// What a document says.
fn read(document: &Element) -> Result<BucketLock, S3Error> {
    if document.children.is_empty() {
        // It asks for nothing. OpenStack's s3api, which has no locks, answers each configuration so, and its tests ask
        // with this one.
        return Err(NOT_IMPLEMENTED.saying("The requested resource is not implemented"));
    }
    let known = ["ObjectLockEnabled", "Rule"];
    let is_known = document
        .children
        .iter()
        .all(|child| known.contains(&child.name.as_str()));
    if document.text_of("ObjectLockEnabled") != Some("Enabled") || !is_known {
        return Err(MALFORMED_XML.into());
    }
    let Some(rule) = document.child("Rule") else {
        return Ok(BucketLock::default());
    };
    let default = rule.child("DefaultRetention").ok_or(MALFORMED_XML)?;
    let mode = default
        .text_of("Mode")
        .and_then(RetentionMode::read)
        .ok_or(MALFORMED_XML)?;
    let number = |text: &str, most: u32| {
        let number: i64 = text.parse().map_err(|_| MALFORMED_XML)?;
        let within = u32::try_from(number).ok().filter(|number| (1..=most).contains(number));
        within.ok_or_else(|| match number {
            ..=0 => INVALID_RETENTION_PERIOD.saying("Default retention period must be a positive integer value."),
            _ => INVALID_RETENTION_PERIOD.saying(format!("Default retention period must be at most {most}.")),
        })
    };
    let period = match (default.text_of("Days"), default.text_of("Years")) {
        (Some(days), None) => RetentionPeriod::Days(number(days, MOST_DAYS)?),
        (None, Some(years)) => RetentionPeriod::Years(number(years, MOST_YEARS)?),
        _ => return Err(MALFORMED_XML.into()),
    };
    Ok(BucketLock {
        default: Some(DefaultRetention { mode, period }),
    })
}

impl Operation<'_> {
    /// The lock of the bucket; refused where it has none.
    pub(crate) async fn locked_bucket(&self) -> Result<BucketLock, S3Error> {
        match self.bucket_lock().await? {
            Some(lock) => Ok(lock),
            None => Err(INVALID_REQUEST.saying("Bucket is missing Object Lock Configuration")),
        }
    }

    /// The lock of the bucket, if it has one.
    pub(crate) async fn bucket_lock(&self) -> Result<Option<BucketLock>, S3Error> {
        let container = self.next.info().container(&self.account().account, self.bucket()).await;
        match container.bucket_lock() {
            Some(lock) => Ok(Some(lock)),
            // What is known of it may be a minute old.
            None => Ok(stored(&self.metadata_of_bucket().await?)),
        }
    }

    /// Whether a bucket that was made with a lock keeps versions; it is no bucket where it does not.
    pub(crate) async fn check_new_lock(&self) -> Result<(), S3Error> {
        let bucket = self.metadata_of_bucket().await?;
        let keeps_versions = bucket.get(VERSIONS).and_then(|value| value.to_str().ok());
        if keeps_versions.is_some_and(is_true) {
            return Ok(());
        }
        drop(self.send(self.further(Method::DELETE, self.container())).await);
        Err(NOT_IMPLEMENTED.saying("Object lock needs versions, which this cluster does not keep."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_are_read_or_refused() {
        let rule = |inner: &str| format!("<Rule><DefaultRetention>{inner}</DefaultRetention></Rule>");
        let enabled = "<ObjectLockEnabled>Enabled</ObjectLockEnabled>";
        let days = |days: &str| {
            format!(
                "{enabled}{}",
                rule(&format!("<Mode>GOVERNANCE</Mode><Days>{days}</Days>"))
            )
        };
        for (inner, expected) in [
            (enabled.to_owned(), Ok("Enabled")),
            (days("30"), Ok("Enabled;GOVERNANCE;30D")),
            (
                format!("{enabled}{}", rule("<Mode>COMPLIANCE</Mode><Years>1</Years>")),
                Ok("Enabled;COMPLIANCE;1Y"),
            ),
            (String::new(), Err("NotImplemented")),
            (
                "<ObjectLockEnabled>Disabled</ObjectLockEnabled>".into(),
                Err("MalformedXML"),
            ),
            (days("0"), Err("InvalidRetentionPeriod")),
            (days("-1"), Err("InvalidRetentionPeriod")),
            (days("36501"), Err("InvalidRetentionPeriod")),
            (days("x"), Err("MalformedXML")),
            (format!("{enabled}<Rule/>"), Err("MalformedXML")),
            (format!("{enabled}<Other/>"), Err("MalformedXML")),
            (
                format!("{enabled}{}", rule("<Mode>GOVERNANCE</Mode>")),
                Err("MalformedXML"),
            ),
            (
                format!("{enabled}{}", rule("<Mode>X</Mode><Days>1</Days>")),
                Err("MalformedXML"),
            ),
            (
                format!(
                    "{enabled}{}",
                    rule("<Mode>GOVERNANCE</Mode><Days>1</Days><Years>1</Years>")
                ),
                Err("MalformedXML"),
            ),
        ] {
            let document = format!("<ObjectLockConfiguration>{inner}</ObjectLockConfiguration>");
            let read = read(&Element::parse(document.as_bytes()).unwrap());
            let read = read.map(|lock| lock.to_string()).map_err(|error| error.code.name);
            assert_eq!(read, expected.map(str::to_owned), "{inner}");
        }
    }
}
