//! Where a bucket's access log is to go: stored and shown. Nothing is written there.
//!
//! Always holds: the bucket that is named was there, and the client's own, when the configuration was stored.
//! Deliberately absent: the delivery of logs; the gateway's own access log has every request.
//! Source: AWS, "Logging requests with server access logging".

use super::public_access::text_of;
use super::{Done, Operation, not_implemented};
use crate::call::is_bucket_name;
use crate::error::{ACCESS_DENIED, INVALID_ARGUMENT, INVALID_TARGET_BUCKET, MALFORMED_XML, NOT_IMPLEMENTED, S3Error};
use crate::xml::{Element, XmlWriter};
use http::Method;
use vocabulary::names::{quote, unquote};

/// Target bucket, prefix (both percent-encoded) and format of keys, with `&` between them.
const LOGGING: &str = "x-container-sysmeta-s3api-logging";
/// Bytes of a prefix: as many as of a key.
const LONGEST_PREFIX: usize = 1024;
/// The format of keys that needs no word.
const SIMPLE: &str = "simple";
/// Which of two dates stands in keys that have one.
const DATES: [&str; 2] = ["EventTime", "DeliveryTime"];

/// Where logs are to go.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LogTarget {
    bucket: String,
    prefix: String,
    /// [`SIMPLE`], one of [`DATES`], or nothing where none was named.
    format: &'static str,
}

impl LogTarget {
    /// The target in a document; nothing where logging is to end.
    fn read(document: &Element) -> Result<Option<Self>, S3Error> {
        let enabled = match document.children.as_slice() {
            [] => return Ok(None),
            [enabled] if enabled.name == "LoggingEnabled" => enabled,
            _ => return Err(MALFORMED_XML.into()),
        };
        for element in &enabled.children {
            match element.name.as_str() {
                "TargetBucket" | "TargetPrefix" | "TargetObjectKeyFormat" => {}
                "TargetGrants" if element.children.is_empty() => {}
                "TargetGrants" => {
                    return Err(NOT_IMPLEMENTED.saying(
                        "TargetGrants are not taken: who may read logs is a matter of the target bucket's policy or ACL.",
                    ));
                }
                _ => return Err(MALFORMED_XML.into()),
            }
        }
        let bucket = enabled.text_of("TargetBucket").filter(|bucket| !bucket.is_empty());
        // White space belongs to a key.
        let prefix = enabled.child("TargetPrefix").map(|prefix| prefix.text.as_str());
        let (bucket, prefix) = bucket.zip(prefix).ok_or(MALFORMED_XML)?;
        if prefix.len() > LONGEST_PREFIX {
            return Err(INVALID_ARGUMENT
                .saying(format!("A prefix of logs has at most {LONGEST_PREFIX} bytes"))
                .with("ArgumentName", "TargetPrefix"));
        }
        Ok(Some(Self {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
            format: enabled.child("TargetObjectKeyFormat").map_or(Ok(""), format_of)?,
        }))
    }

    fn stored(&self) -> String {
        format!("{}&{}&{}", quote(&self.bucket), quote(&self.prefix), self.format)
    }

    /// The target that was stored; nothing where none was, or it cannot be read.
    fn of_stored(text: &str) -> Option<Self> {
        let [bucket, prefix, format] = text.split('&').collect::<Vec<_>>().try_into().ok()?;
        let known = ["", SIMPLE].into_iter().chain(DATES);
        Some(Self {
            bucket: unquote(bucket).ok()?,
            prefix: unquote(prefix).ok()?,
            format: known.into_iter().find(|known| *known == format)?,
        })
    }

    fn print(&self, xml: &mut XmlWriter) {
        xml.open("LoggingEnabled");
        xml.text("TargetBucket", &self.bucket);
        xml.text("TargetPrefix", &self.prefix);
        if self.format.is_empty() {
            return;
        }
        xml.open("TargetObjectKeyFormat");
        match self.format {
            SIMPLE => xml.text("SimplePrefix", ""),
            date => {
                xml.open("PartitionedPrefix");
                xml.text("PartitionDateSource", date);
            }
        }
    }
}

fn format_of(format: &Element) -> Result<&'static str, S3Error> {
    let [only] = format.children.as_slice() else {
        return Err(MALFORMED_XML.into());
    };
    match only.name.as_str() {
        "SimplePrefix" => Ok(SIMPLE),
        "PartitionedPrefix" => {
            let date = only.text_of("PartitionDateSource").unwrap_or(DATES[1]);
            let known = DATES.into_iter().find(|known| *known == date);
            known.ok_or_else(|| MALFORMED_XML.into())
        }
        _ => Err(MALFORMED_XML.into()),
    }
}

/// Either of the two.
pub(super) async fn run(operation: Operation<'_>) -> Done {
    match operation.request.method {
        Method::GET => get(operation).await,
        Method::PUT => put(operation).await,
        _ => Err(not_implemented("logging")),
    }
}

/// PutBucketLogging.
async fn put(mut operation: Operation<'_>) -> Done {
    let document = operation.document_named("BucketLoggingStatus").await?;
    let Some(target) = LogTarget::read(&document)? else {
        return operation.store(LOGGING, "", 200).await;
    };
    operation.check_log_target(&target.bucket).await?;
    operation.store(LOGGING, &target.stored(), 200).await
}

/// GetBucketLogging.
async fn get(operation: Operation<'_>) -> Done {
    let bucket = operation.metadata_of_bucket().await?;
    let mut xml = XmlWriter::document("BucketLoggingStatus");
    if let Some(target) = LogTarget::of_stored(text_of(&bucket, LOGGING)) {
        target.print(&mut xml);
    }
    Ok(super::document(xml))
}

impl Operation<'_> {
    /// Refuses a bucket that is not there, or not the client's own.
    async fn check_log_target(&self, bucket: &str) -> Result<(), S3Error> {
        let refused = || INVALID_TARGET_BUCKET.about("TargetBucket", bucket);
        if !is_bucket_name(bucket, self.service.settings.dns_compliant_bucket_names) {
            return Err(refused());
        }
        if !self.shows_bucket(bucket) {
            return Err(ACCESS_DENIED.saying("The access key is not allowed to use the target bucket."));
        }
        if let Some(allowed) = &self.allowed {
            let list = self
                .list_of_bucket(bucket)
                .await
                .map_err(|error| match error.code.status {
                    404 => refused(),
                    _ => error,
                })?;
            return match list.owner == allowed.bucket.owner {
                true => Ok(()),
                false => Err(refused()),
            };
        }
        let container = self.account().with_container(bucket);
        let found = self.send(self.further(Method::HEAD, container)).await;
        match found.status().as_u16() {
            200..=299 => Ok(()),
            401 | 403 | 404 => Err(refused()),
            _ => Err(self.bucket_refusal(&found)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(inside: &str) -> Result<Option<LogTarget>, &'static str> {
        let text = format!("<BucketLoggingStatus>{inside}</BucketLoggingStatus>");
        let element = Element::parse(text.as_bytes()).unwrap();
        LogTarget::read(&element).map_err(|error| error.code.name)
    }

    #[test]
    fn targets_come_back_as_they_were_sent() {
        assert_eq!(read(""), Ok(None));
        for (format, kept) in [
            ("", ""),
            ("<SimplePrefix/>", "simple"),
            ("<PartitionedPrefix/>", "DeliveryTime"),
            (
                "<PartitionedPrefix><PartitionDateSource>EventTime</PartitionDateSource></PartitionedPrefix>",
                "EventTime",
            ),
        ] {
            let format = match format {
                "" => String::new(),
                format => format!("<TargetObjectKeyFormat>{format}</TargetObjectKeyFormat>"),
            };
            let target = read(&format!(
                "<LoggingEnabled><TargetBucket>logs</TargetBucket><TargetGrants/><TargetPrefix> a&amp;b/ü</TargetPrefix>\
                 {format}</LoggingEnabled>"
            ));
            let target = target.unwrap().unwrap();
            assert_eq!((target.prefix.as_str(), target.format), (" a&b/ü", kept));
            assert!(target.stored().is_ascii());
            assert_eq!(LogTarget::of_stored(&target.stored()), Some(target));
        }
        assert_eq!(LogTarget::of_stored(""), None);
        assert_eq!(LogTarget::of_stored("a&b&other"), None);
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let long = "x".repeat(LONGEST_PREFIX + 1);
        for (inside, expected) in [
            ("<TargetBucket>b</TargetBucket>", "MalformedXML"),
            ("<TargetPrefix/>", "MalformedXML"),
            ("<TargetBucket/><TargetPrefix/>", "MalformedXML"),
            ("<TargetBucket>b</TargetBucket><TargetPrefix/><Other/>", "MalformedXML"),
            (
                "<TargetBucket>b</TargetBucket><TargetPrefix/><TargetGrants><Grant/></TargetGrants>",
                "NotImplemented",
            ),
            (
                "<TargetBucket>b</TargetBucket><TargetPrefix/><TargetObjectKeyFormat><X/></TargetObjectKeyFormat>",
                "MalformedXML",
            ),
            (
                &format!("<TargetBucket>b</TargetBucket><TargetPrefix>{long}</TargetPrefix>"),
                "InvalidArgument",
            ),
        ] {
            let refused = read(&format!("<LoggingEnabled>{inside}</LoggingEnabled>"));
            assert_eq!(refused, Err(expected), "{inside}");
        }
        assert_eq!(read("<Other/>"), Err("MalformedXML"));
    }
}
