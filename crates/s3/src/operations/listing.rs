//! Listings of a bucket: ListObjects and ListObjectsV2.
//!
//! Always holds: a page has at most as many keys and common prefixes as asked for; the next page begins behind the last
//! of them.

use super::{Done, Operation, document, listed_time};
use crate::error::{INTERNAL_ERROR, INVALID_ARGUMENT, S3Error};
use crate::xml::XmlWriter;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use request_pipeline::Response;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use vocabulary::names::quote;

/// Bytes of one page of Swift's: 10,000 names of 1,024 bytes and what stands beside them.
const LARGEST_PAGE: u64 = 64 << 20;

/// What `encoding-type=url` leaves as it is.
const URL_ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'*')
    .remove(b'~')
    .remove(b'/');

/// A row of a container's listing.
#[derive(Deserialize)]
#[serde(untagged)]
enum Row {
    Subdir {
        subdir: String,
    },
    Object {
        name: String,
        bytes: u64,
        hash: String,
        last_modified: String,
        #[serde(default)]
        slo_etag: Option<String>,
    },
}

impl Row {
    fn name(&self) -> &str {
        match self {
            Self::Subdir { subdir } => subdir,
            Self::Object { name, .. } => name,
        }
    }
}

/// What a client asked for.
struct Wish {
    is_v2: bool,
    prefix: String,
    delimiter: Option<String>,
    max_keys: usize,
    shown_max_keys: usize,
    url_encoded: bool,
    /// Where the page begins: behind this name.
    marker: String,
    fetch_owner: bool,
}

impl Wish {
    fn read(operation: &Operation<'_>) -> Result<Self, S3Error> {
        let call = &operation.call;
        let parameter = |name: &str| call.parameter(name).unwrap_or_default().to_owned();
        let is_v2 = match call.parameter("list-type") {
            None => false,
            Some("2") => true,
            Some(other) => return Err(argument("list-type", other, "list-type must be 2")),
        };
        let url_encoded = match call.parameter("encoding-type") {
            None => false,
            Some("url") => true,
            Some(other) => {
                return Err(argument(
                    "encoding-type",
                    other,
                    "Invalid Encoding Method specified in Request",
                ));
            }
        };
        let most = operation.service.settings.max_bucket_listing;
        let shown_max_keys = match call.parameter("max-keys") {
            None => most,
            Some(text) => max_keys(text)?,
        };
        let marker = match (is_v2, call.parameter("continuation-token")) {
            (false, _) => parameter("marker"),
            (true, None) => parameter("start-after"),
            (true, Some(token)) => name_of_token(token)?,
        };
        Ok(Self {
            is_v2,
            prefix: parameter("prefix"),
            delimiter: call
                .parameter("delimiter")
                .filter(|text| !text.is_empty())
                .map(str::to_owned),
            max_keys: shown_max_keys.min(most),
            shown_max_keys,
            url_encoded,
            marker,
            fetch_owner: parameter("fetch-owner").eq_ignore_ascii_case("true"),
        })
    }

    /// A name as the listing shows it.
    fn shown(&self, name: &str) -> String {
        match self.url_encoded {
            true => url_encoded(name),
            false => name.to_owned(),
        }
    }

    fn query(&self) -> String {
        let mut query = format!("format=json&limit={}", self.max_keys + 1);
        for (name, value) in [("prefix", &self.prefix), ("marker", &self.marker)] {
            if !value.is_empty() {
                query.push_str(&format!("&{name}={}", quote(value)));
            }
        }
        if let Some(delimiter) = &self.delimiter {
            query.push_str(&format!("&delimiter={}", quote(delimiter)));
        }
        query
    }
}

/// A name as `encoding-type=url` has it.
pub(super) fn url_encoded(name: &str) -> String {
    utf8_percent_encode(name, URL_ENCODED).to_string()
}

fn argument(name: &str, value: &str, message: &str) -> S3Error {
    INVALID_ARGUMENT
        .saying(message)
        .with("ArgumentName", name)
        .with("ArgumentValue", value)
}

/// `max-keys`: at least none, at most what 31 bits hold.
pub(super) fn max_keys(text: &str) -> Result<usize, S3Error> {
    let number: i64 = text.parse().map_err(|_| {
        argument(
            "max-keys",
            text,
            "Provided max-keys not an integer or within integer range",
        )
    })?;
    if number > i64::from(i32::MAX) {
        return Err(argument(
            "max-keys",
            text,
            "Provided max-keys not an integer or within integer range",
        ));
    }
    usize::try_from(number).map_err(|_| {
        argument(
            "maxKeys",
            text,
            "Argument maxKeys must be an integer between 0 and 2147483647",
        )
    })
}

/// A continuation token is the last name of the page before, so that pages stay right while the bucket changes.
pub(crate) fn token_of_name(name: &str) -> String {
    URL_SAFE_NO_PAD.encode(name)
}

pub(crate) fn name_of_token(token: &str) -> Result<String, S3Error> {
    let decoded = URL_SAFE_NO_PAD.decode(token).ok();
    let name = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    name.filter(|name| !name.contains('\0')).ok_or_else(|| {
        argument(
            "continuation-token",
            token,
            "The continuation token provided is incorrect",
        )
    })
}

/// The rows of a page of one of Swift's listings.
pub(super) async fn rows_of<Row: DeserializeOwned>(response: Response) -> Result<Vec<Row>, S3Error> {
    let body = response
        .into_body()
        .collect(LARGEST_PAGE)
        .await
        .map_err(|_| INTERNAL_ERROR)?;
    if body.is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_slice(&body).map_err(|_| INTERNAL_ERROR.into())
}

/// ListObjects and ListObjectsV2.
pub(super) async fn list(operation: Operation<'_>) -> Done {
    let wish = Wish::read(&operation)?;
    let mut ask = operation.further(Method::GET, operation.container());
    ask.query = wish.query();
    let response = operation.send(ask).await;
    if !response.status().is_success() {
        return Err(operation.bucket_refusal(&response));
    }
    let mut rows: Vec<Row> = rows_of(response).await?;
    let is_truncated = wish.max_keys > 0 && rows.len() > wish.max_keys;
    rows.truncate(wish.max_keys);
    Ok(document(print(&operation, &wish, &rows, is_truncated)))
}

fn print(operation: &Operation<'_>, wish: &Wish, rows: &[Row], is_truncated: bool) -> XmlWriter {
    let mut xml = XmlWriter::document("ListBucketResult");
    xml.text("Name", operation.bucket());
    xml.text("Prefix", &wish.shown(&wish.prefix));
    print_position(&mut xml, operation, wish, rows, is_truncated);
    xml.number("MaxKeys", wish.shown_max_keys as u64);
    if let Some(delimiter) = &wish.delimiter {
        xml.text("Delimiter", &wish.shown(delimiter));
    }
    if wish.url_encoded {
        xml.text("EncodingType", "url");
    }
    xml.text("IsTruncated", if is_truncated { "true" } else { "false" });
    let owner = operation.user();
    for row in rows {
        if let Row::Object {
            name,
            bytes,
            hash,
            last_modified,
            slo_etag,
        } = row
        {
            xml.open("Contents");
            xml.text("Key", &wish.shown(name));
            xml.text("LastModified", &listed_time(last_modified));
            xml.text("ETag", &listed_etag(hash, slo_etag.as_deref()));
            xml.number("Size", *bytes);
            if wish.fetch_owner || !wish.is_v2 {
                xml.open("Owner");
                xml.text("ID", &owner);
                xml.text("DisplayName", &owner);
                xml.close();
            }
            xml.text("StorageClass", "STANDARD");
            xml.close();
        }
    }
    for row in rows {
        if let Row::Subdir { subdir } = row {
            xml.open("CommonPrefixes");
            xml.text("Prefix", &wish.shown(subdir));
            xml.close();
        }
    }
    xml
}

/// Where the page begins, and where the next one does.
fn print_position(xml: &mut XmlWriter, operation: &Operation<'_>, wish: &Wish, rows: &[Row], is_truncated: bool) {
    let last = rows.last().map(Row::name).filter(|_| is_truncated);
    if !wish.is_v2 {
        xml.text("Marker", &wish.shown(&wish.marker));
        if wish.delimiter.is_some()
            && let Some(last) = last
        {
            xml.text("NextMarker", &wish.shown(last));
        }
        return;
    }
    if let Some(last) = last {
        xml.text("NextContinuationToken", &token_of_name(last));
    }
    if let Some(token) = operation.call.parameter("continuation-token") {
        xml.text("ContinuationToken", token);
    }
    if let Some(after) = operation.call.parameter("start-after") {
        xml.text("StartAfter", &wish.shown(after));
    }
    xml.number("KeyCount", rows.len() as u64);
}

/// The entity tag of a row: what S3 calls the object's, in quotes. `hash` may have parameters (`…; s3_etag=…`).
pub(super) fn listed_etag(hash: &str, slo_etag: Option<&str>) -> String {
    let mut parts = hash.split(';').map(str::trim);
    let plain = parts.next().unwrap_or_default();
    let of_s3 = parts.find_map(|part| part.strip_prefix("s3_etag="));
    match (of_s3, slo_etag) {
        (Some(etag), _) => format!("\"{}\"", etag.trim_matches('"')),
        // A large object of Swift's has a tag that is no MD5, which clients tell by its hyphen.
        (None, Some(etag)) => format!("\"{}-N\"", etag.trim_matches('"')),
        (None, None) => format!("\"{plain}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back() {
        for name in ["a", "ü/ x+%", ""] {
            assert_eq!(name_of_token(&token_of_name(name)), Ok(name.to_owned()));
        }
        assert!(name_of_token("!").is_err());
        assert!(name_of_token("AA").is_err());
    }

    #[test]
    fn tags_of_rows() {
        assert_eq!(listed_etag("d41d", None), "\"d41d\"");
        assert_eq!(listed_etag("d41d; s3_etag=abc-2", Some("\"x\"")), "\"abc-2\"");
        assert_eq!(listed_etag("d41d", Some("\"x\"")), "\"x-N\"");
    }

    #[test]
    fn numbers_of_keys() {
        assert_eq!(max_keys("0"), Ok(0));
        assert_eq!(max_keys("2147483647"), Ok(2_147_483_647));
        for bad in ["-1", "2147483648", "x", ""] {
            assert!(max_keys(bad).is_err(), "{bad}");
        }
    }
}
