//! ListParts and ListMultipartUploads.

use super::super::listing::rows_of;
use super::super::{Done, Operation, customer_key, document, listed_time};
use crate::checksum_of_parts::WantedChecksum;
use crate::error::{INVALID_ARGUMENT, S3Error};
use crate::xml::XmlWriter;
use http::Method;
use serde::Deserialize;
use std::collections::BTreeSet;
use vocabulary::Timestamp;
use vocabulary::names::quote;

/// A row of the container of parts.
#[derive(Deserialize, Debug, Clone)]
pub(super) struct SegmentRow {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) hash: String,
    pub(super) last_modified: String,
}

impl SegmentRow {
    /// Whether it was written before this.
    pub(super) fn is_before(&self, time: Timestamp) -> bool {
        Timestamp::from_iso(&self.last_modified).is_some_and(|written| written < time)
    }
}

/// Uploads in one page.
const MOST_UPLOADS: u32 = 1000;

impl Operation<'_> {
    /// A page of the container of parts; an empty one where there is no such container.
    pub(super) async fn segment_rows(&self, prefix: &str, marker: &str) -> Result<Vec<SegmentRow>, S3Error> {
        let mut ask = self.further(Method::GET, self.segments());
        ask.query = format!("format=json&prefix={}&marker={}", quote(prefix), quote(marker));
        let response = self.send(ask).await;
        match response.status().as_u16() {
            200..=299 => {}
            404 => return Ok(Vec::new()),
            _ => return Err(self.bucket_refusal(&response)),
        }
        rows_of(response).await
    }

    /// All parts of an upload, in the order of their numbers.
    pub(super) async fn parts(&self, upload: &str) -> Result<Vec<(u32, SegmentRow)>, S3Error> {
        let prefix = format!("{}/{upload}/", self.key());
        let mut found = Vec::new();
        let mut marker = String::new();
        loop {
            let rows = self.segment_rows(&prefix, &marker).await?;
            let Some(last) = rows.last() else {
                break;
            };
            marker = last.name.clone();
            for row in rows {
                let number = row
                    .name
                    .get(prefix.len()..)
                    .and_then(|number| number.parse::<u32>().ok());
                if let Some(number) = number {
                    found.push((number, row));
                }
            }
        }
        // Listings are in order of names: 10 stands before 2.
        found.sort_by_key(|(number, _)| *number);
        Ok(found)
    }
}

/// ListParts.
pub(in super::super) async fn parts(operation: Operation<'_>) -> Done {
    let most = operation.service.settings.max_parts_listing;
    let max_parts = operation.number("max-parts", 0, i32::MAX as u32)?.unwrap_or(most);
    let marker = operation
        .number("part-number-marker", 0, i32::MAX as u32)?
        .unwrap_or_default();
    let open = operation.open_upload().await?;
    if let Some(key) = operation.customer_key()? {
        customer_key::check_part(&open.headers, Some(&key))?;
    }
    let mut parts = operation.parts(&open.id).await?;
    parts.retain(|(number, _)| *number > marker);
    let page = max_parts.min(most) as usize;
    let is_truncated = page > 0 && parts.len() > page;
    parts.truncate(page);
    let wanted = open.wanted_checksum();
    let numbers = parts.iter().map(|(number, _)| *number);
    let numbers = numbers.filter(|_| wanted.is_some()).collect();
    let mut checksums = operation.part_checksums(&open.id, numbers).await?.into_iter();
    let user = operation.user();
    let mut xml = XmlWriter::document("ListPartsResult");
    xml.text("Bucket", operation.bucket());
    xml.text("Key", operation.key());
    xml.text("UploadId", &open.id);
    print_user(&mut xml, "Initiator", &user);
    print_user(&mut xml, "Owner", &user);
    xml.text("StorageClass", "STANDARD");
    xml.number("PartNumberMarker", marker.into());
    xml.number(
        "NextPartNumberMarker",
        parts.last().map_or(0, |(number, _)| *number).into(),
    );
    xml.number("MaxParts", max_parts.min(most).into());
    xml.text("IsTruncated", if is_truncated { "true" } else { "false" });
    if let Some(WantedChecksum { algorithm, kind }) = wanted {
        xml.text("ChecksumAlgorithm", algorithm.shown());
        xml.text("ChecksumType", kind.name());
    }
    for (number, row) in parts {
        xml.open("Part");
        xml.number("PartNumber", number.into());
        xml.text("LastModified", &listed_time(&row.last_modified));
        xml.text("ETag", &format!("\"{}\"", row.hash));
        xml.number("Size", row.bytes);
        if let Some((Some(checksum), _)) = checksums.next() {
            xml.text(checksum.algorithm.element(), &checksum.value);
        }
        xml.close();
    }
    Ok(document(xml))
}

fn print_user(xml: &mut XmlWriter, element: &'static str, user: &str) {
    xml.open(element);
    xml.text("ID", user);
    xml.text("DisplayName", user);
    xml.close();
}

/// An upload that is open: key, id, when it was begun.
struct Upload {
    key: String,
    id: String,
    began: String,
}

impl Upload {
    /// Of a marker's row: `KEY/UPLOAD`; rows of parts are none.
    fn of_row(row: &SegmentRow) -> Option<Self> {
        let (key, id) = row.name.rsplit_once('/')?;
        let is_part = id.bytes().all(|byte| byte.is_ascii_digit());
        (!is_part && !key.is_empty() && !id.is_empty()).then(|| Self {
            key: key.to_owned(),
            id: id.to_owned(),
            began: row.last_modified.clone(),
        })
    }
}

/// ListMultipartUploads.
pub(in super::super) async fn uploads(operation: Operation<'_>) -> Done {
    let text = |name: &str| operation.call.parameter(name).unwrap_or_default().to_owned();
    let (prefix, delimiter) = (text("prefix"), text("delimiter"));
    let (key_marker, id_marker) = (text("key-marker"), text("upload-id-marker"));
    let encoding = operation.call.parameter("encoding-type").map(str::to_owned);
    if encoding.as_deref().is_some_and(|encoding| encoding != "url") {
        return Err(INVALID_ARGUMENT
            .saying("Invalid Encoding Method specified in Request")
            .with("ArgumentName", "encoding-type"));
    }
    let max_uploads = operation
        .number("max-uploads", 0, i32::MAX as u32)?
        .unwrap_or(MOST_UPLOADS)
        .min(MOST_UPLOADS);
    let bucket = operation
        .send(operation.further(Method::HEAD, operation.container()))
        .await;
    if !bucket.status().is_success() {
        return Err(operation.bucket_refusal(&bucket));
    }
    let page = Page::collect(
        &operation,
        &prefix,
        &delimiter,
        (&key_marker, &id_marker),
        max_uploads as usize,
    )
    .await?;
    let shown = |name: &str| match encoding {
        Some(_) => super::super::listing::url_encoded(name),
        None => name.to_owned(),
    };
    let user = operation.user();
    let mut xml = XmlWriter::document("ListMultipartUploadsResult");
    xml.text("Bucket", operation.bucket());
    xml.text("KeyMarker", &shown(&key_marker));
    xml.text("UploadIdMarker", &id_marker);
    let last = page.next_marker();
    xml.text("NextKeyMarker", &shown(last.map_or("", |upload| &upload.key)));
    xml.text("NextUploadIdMarker", last.map_or("", |upload| &upload.id));
    if !delimiter.is_empty() {
        xml.text("Delimiter", &shown(&delimiter));
    }
    if !prefix.is_empty() {
        xml.text("Prefix", &shown(&prefix));
    }
    xml.number("MaxUploads", max_uploads.into());
    if encoding.is_some() {
        xml.text("EncodingType", "url");
    }
    xml.text("IsTruncated", if page.is_truncated { "true" } else { "false" });
    for upload in &page.uploads {
        xml.open("Upload");
        xml.text("Key", &shown(&upload.key));
        xml.text("UploadId", &upload.id);
        print_user(&mut xml, "Initiator", &user);
        print_user(&mut xml, "Owner", &user);
        xml.text("StorageClass", "STANDARD");
        xml.text("Initiated", &listed_time(&upload.began));
        xml.close();
    }
    for common in &page.prefixes {
        xml.open("CommonPrefixes");
        xml.text("Prefix", &shown(common));
        xml.close();
    }
    Ok(document(xml))
}

/// A page of uploads.
#[derive(Default)]
struct Page {
    uploads: Vec<Upload>,
    prefixes: BTreeSet<String>,
    is_truncated: bool,
}

impl Page {
    /// Of a page with one upload OpenStack says no next marker, of a longer one it does, even if it is the last.
    fn next_marker(&self) -> Option<&Upload> {
        let is_shown = self.is_truncated || self.uploads.len() > 1;
        self.uploads.last().filter(|_| is_shown)
    }

    async fn collect(
        operation: &Operation<'_>,
        prefix: &str,
        delimiter: &str,
        (key_marker, id_marker): (&str, &str),
        most: usize,
    ) -> Result<Self, S3Error> {
        let mut page = Self::default();
        // Uploads of the key that is the marker begin behind its name and a slash.
        let mut marker = match key_marker.is_empty() {
            true => String::new(),
            false => format!("{key_marker}/{id_marker}"),
        };
        loop {
            let rows = operation.segment_rows(prefix, &marker).await?;
            let Some(last) = rows.last() else {
                return Ok(page);
            };
            marker = last.name.clone();
            for upload in rows.iter().filter_map(Upload::of_row) {
                let is_before = !key_marker.is_empty()
                    && (upload.key.as_str() < key_marker
                        || (upload.key == key_marker && (id_marker.is_empty() || upload.id.as_str() <= id_marker)));
                if is_before {
                    continue;
                }
                let behind = upload.key.get(prefix.len()..).unwrap_or_default();
                let common = (!delimiter.is_empty()).then(|| behind.find(delimiter)).flatten();
                let common = common.map(|at| format!("{prefix}{}", &behind[..at + delimiter.len()]));
                if common.as_ref().is_some_and(|common| page.prefixes.contains(common)) {
                    continue;
                }
                if page.uploads.len() + page.prefixes.len() >= most {
                    page.is_truncated = most > 0;
                    return Ok(page);
                }
                match common {
                    Some(common) => {
                        page.prefixes.insert(common);
                    }
                    None => page.uploads.push(upload),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_tell_when_they_were_written() {
        let row = |written: &str| SegmentRow {
            name: "k/upload/1".into(),
            bytes: 1,
            hash: String::new(),
            last_modified: written.into(),
        };
        let time = Timestamp::from_iso("2026-11-27T22:00:00.5").unwrap();
        for (written, expected) in [
            ("2026-11-27T22:00:00.499990", true),
            ("2026-11-27T22:00:00.500000", false),
            ("2026-11-27T22:00:01.000000", false),
            ("who knows when", false),
        ] {
            assert_eq!(row(written).is_before(time), expected, "{written}");
        }
    }
}
