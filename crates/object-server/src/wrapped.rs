//! PUTs whose body is wrapped in MIME: footers, and the commit in a second phase.
//!
//! The server announces in its first `100 Continue` what it understands, and asks for the commit with a
//! second one. Footers win over headers: a checksum, listing overrides and metadata known only at the end.

use crate::incoming::MimeBody;
use crate::kept;
use crate::mime::PartHead;
use crate::request::{PutHead, text};
use crate::upload::Upload;
use futures_util::future::join;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use md5::{Digest as _, Md5};
use peer::message::header_names::{UPDATE_OVERRIDE_PREFIX, X_OBJ_METADATA_FOOTER, X_OBJ_MULTIPHASE_COMMIT};
use peer::{Body, Footer, Interim, Response};
use storage_shell::Refusal;
use vocabulary::conditional::bare_etag;
use vocabulary::hex;

const YES: HeaderValue = HeaderValue::from_static("yes");
/// Bytes that a footer may have: all metadata twice over, and room for encoding.
const MAX_DOCUMENT: usize = 256 * 1024;

/// How a body is wrapped.
pub(crate) struct MimeWrapping {
    boundary: String,
    has_footer: bool,
    has_commit: bool,
    /// Bytes of the object itself, when known.
    size: Option<u64>,
}

impl MimeWrapping {
    /// `None` for a body that is not wrapped.
    pub(crate) fn of(head: &PutHead) -> Result<Option<Self>, Refusal> {
        let (has_footer, has_commit) = (head.has_footer, head.has_commit);
        if !has_footer && !has_commit {
            return Ok(None);
        }
        let boundary = head.mime_boundary.as_ref().and_then(text);
        let boundary = boundary.filter(|boundary| !boundary.is_empty());
        let boundary = boundary.ok_or_else(|| missing("no MIME boundary"))?;
        let size = head.object_length.as_ref().and_then(text);
        let read = |text: &str| {
            let wrong = || Refusal::bad_request(format!("invalid literal for int() with base 10: '{text}'"));
            text.trim().parse().map_err(|_| wrong())
        };
        Ok(Some(Self {
            boundary: boundary.to_owned(),
            has_footer,
            has_commit,
            size: size.map(read).transpose()?,
        }))
    }

    fn announcement(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if self.has_commit {
            headers.insert(X_OBJ_MULTIPHASE_COMMIT, YES);
        }
        if self.has_footer {
            headers.insert(X_OBJ_METADATA_FOOTER, YES);
        }
        headers
    }
}

impl Upload {
    /// Look, receive the object's part and write it, then its footer, then the commit.
    pub(crate) async fn wrapped(
        self,
        body: Body,
        length: Option<u64>,
        wrapping: MimeWrapping,
        interim: Option<Interim>,
    ) -> Result<Response, Refusal> {
        let (mut upload, prior, sink) = self.begin(wrapping.size, None).await?;
        if let Some(interim) = &interim {
            interim.send_continue(&wrapping.announcement(), true);
        }
        let mut wrapped = MimeBody::new(upload.incoming(body, length), &wrapping.boundary);
        let part = wrapped.part().await?;
        part.ok_or_else(|| missing("couldn't find object MIME doc"))?;
        let mut size = 0;
        let mut batch = wrapped.batch().await?;
        while !batch.is_empty() {
            size += batch.len();
            let (written, next) = join(sink.write(batch), wrapped.batch()).await;
            written?;
            batch = next?;
        }
        if wrapping.size.is_some_and(|promised| promised != size) {
            return Err(Refusal::client_disconnect());
        }
        if wrapping.has_footer {
            let footers = read_footers(&mut wrapped).await?;
            upload.take_footers(footers);
        }
        if wrapping.has_commit {
            if let Some(interim) = &interim {
                interim.send_continue(&HeaderMap::new(), false);
            }
            read_commit(&mut wrapped).await?;
        }
        wrapped.drain().await;
        upload.finish(prior, sink).await
    }

    /// What a sender in this process has to say at the end of its body.
    pub(crate) fn take_footer(&mut self, footer: Option<Footer>) -> Result<(), Refusal> {
        if let Some(footer) = footer {
            let headers = footer.get().ok_or_else(Refusal::client_disconnect)?;
            self.take_footers(headers.clone());
        }
        Ok(())
    }

    fn take_footers(&mut self, footers: HeaderMap) {
        let plan = &mut self.plan;
        if let Some(etag) = footers.get(http::header::ETAG).and_then(|etag| etag.to_str().ok()) {
            plan.etag = Some(bare_etag(etag).to_owned());
        }
        kept::keep_for_put(&mut plan.kept, &footers, None, &[]);
        for (name, value) in footers {
            if let Some(name) = name.filter(|name| name.as_str().starts_with(UPDATE_OVERRIDE_PREFIX)) {
                self.request.overrides.insert(name, value);
            }
        }
    }
}

fn missing(what: &'static str) -> Refusal {
    Refusal::labelled_bad_request(what)
}

async fn next_document(wrapped: &mut MimeBody, what: &str, otherwise: &'static str) -> Result<PartHead, Refusal> {
    let head = wrapped.part().await?;
    let is_it = |head: &PartHead| head.get("x-document").is_none_or(|document| document == what);
    head.filter(is_it).ok_or_else(|| missing(otherwise))
}

async fn read_footers(wrapped: &mut MimeBody) -> Result<HeaderMap, Refusal> {
    let head = next_document(wrapped, "object metadata", "couldn't find footer MIME doc").await?;
    let document = wrapped.document(MAX_DOCUMENT).await?;
    let checksum = head.get("content-md5");
    let checksum = checksum.ok_or_else(|| missing("no Content-MD5 in footer"))?;
    if !checksum.eq_ignore_ascii_case(&hex::encode(Md5::digest(&document))) {
        return Err(Refusal::Html(
            StatusCode::UNPROCESSABLE_ENTITY,
            "footer MD5 mismatch".into(),
        ));
    }
    parse_footers(&document).ok_or_else(|| missing("invalid JSON for footer doc"))
}

/// Code points are bytes, as Python's proxies have headers.
fn parse_footers(document: &[u8]) -> Option<HeaderMap> {
    let parsed: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(document).ok()?;
    let header = |(name, value): (String, serde_json::Value)| {
        let text = match value {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        let bytes: Result<Vec<u8>, _> = text.chars().map(|c| u8::try_from(u32::from(c))).collect();
        let bytes = bytes.unwrap_or_else(|_| text.into_bytes());
        Some((HeaderName::try_from(name).ok()?, HeaderValue::from_bytes(&bytes).ok()?))
    };
    parsed.into_iter().map(header).collect()
}

async fn read_commit(wrapped: &mut MimeBody) -> Result<(), Refusal> {
    next_document(wrapped, "put commit", "couldn't find PUT commit MIME doc").await?;
    wrapped.document(MAX_DOCUMENT).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn footers_are_an_object_of_headers() {
        let footers = parse_footers(br#"{"Etag": "x", "X-Object-Sysmeta-A": "b", "N": 5}"#).unwrap();
        let latin = parse_footers("{\"a\": \"Ã©\"}".as_bytes()).unwrap();
        assert_eq!(latin["a"].as_bytes(), "é".as_bytes());
        assert_eq!(
            (footers["etag"].to_str().unwrap(), footers["n"].to_str().unwrap()),
            ("x", "5")
        );
        for bad in [&b"[1]"[..], b"not json", b"", br#"{"a b": "c"}"#, br#"{"a": "x\n"}"#] {
            assert!(parse_footers(bad).is_none());
        }
    }

    proptest! {
        #[test]
        fn any_footer_is_read_or_refused(text in "\\PC*") {
            let _ = parse_footers(text.as_bytes());
        }
    }
}
