//! The MIME in which a body and its footer travel to other nodes.
//!
//! [`wrap`] makes a multipart body of both, as Swift's object servers take it after having said
//! `X-Obj-Metadata-Footer: yes` in their `100 Continue`:
//!
//! ```text
//! --boundary CRLF
//! X-Document: object body CRLF CRLF
//! <bytes> CRLF
//! --boundary CRLF
//! X-Document: object metadata CRLF
//! Content-MD5: <hex> CRLF CRLF
//! <JSON object of headers> CRLF
//! --boundary--
//! ```
//!
//! Always holds: a body whose sender did not fill the footer has no proper end.

use crate::message::header_names::{X_MIME_BOUNDARY, X_OBJECT_LENGTH, X_WANTS_METADATA_FOOTER};
use crate::{Body, BodyError, Footer};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue};
use md5::{Digest as _, Md5};
use vocabulary::hex;

/// Where a wrapped body stands.
enum Part {
    Head,
    Body,
    Over,
}

struct Wrapping {
    body: Body,
    footer: Footer,
    boundary: String,
    part: Part,
}

/// Makes a multipart body of `body` and its footer, and says so in `headers`; a body without a footer stays as
/// it is. `boundary` must not occur in any body: make it of random bits.
pub(crate) fn wrap(headers: &mut HeaderMap, body: Body, boundary: impl FnOnce() -> String) -> Body {
    let Some(footer) = body.footer() else { return body };
    let boundary = boundary();
    let Ok(value) = HeaderValue::from_str(&boundary) else {
        return body;
    };
    headers.insert(X_MIME_BOUNDARY, value);
    headers.insert(X_WANTS_METADATA_FOOTER, HeaderValue::from_static("yes"));
    headers.insert(EXPECT, HeaderValue::from_static("100-continue"));
    headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    if let Some(length) = headers.remove(CONTENT_LENGTH) {
        headers.insert(X_OBJECT_LENGTH, length);
    }
    let wrapping = Wrapping {
        body,
        footer,
        boundary,
        part: Part::Head,
    };
    let pieces = futures_util::stream::unfold(wrapping, |mut wrapping| async move {
        let piece = wrapping.next().await?;
        Some((piece, wrapping))
    });
    Body::stream(pieces, None)
}

impl Wrapping {
    async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        match self.part {
            Part::Head => {
                self.part = Part::Body;
                let head = format!("--{}\r\nX-Document: object body\r\n\r\n", self.boundary);
                Some(Ok(head.into()))
            }
            Part::Body => match self.body.next().await {
                Some(Ok(bytes)) => Some(Ok(bytes)),
                Some(Err(error)) => {
                    self.part = Part::Over;
                    Some(Err(error))
                }
                None => {
                    self.part = Part::Over;
                    Some(self.end())
                }
            },
            Part::Over => None,
        }
    }

    fn end(&self) -> Result<Bytes, BodyError> {
        let headers = self.footer.get().ok_or(BodyError::Abandoned)?;
        let document = document(headers);
        let md5 = hex::encode(Md5::digest(document.as_bytes()));
        let boundary = &self.boundary;
        let end = format!(
            "\r\n--{boundary}\r\nX-Document: object metadata\r\nContent-MD5: {md5}\r\n\r\n{document}\r\n--{boundary}--"
        );
        Ok(end.into())
    }
}

/// The headers as a JSON object; bytes beyond ASCII are the code points of the same number, as Python's
/// servers have headers.
fn document(headers: &HeaderMap) -> String {
    let text = |value: &HeaderValue| {
        value
            .as_bytes()
            .iter()
            .map(|byte| char::from(*byte))
            .collect::<String>()
    };
    let fields: serde_json::Map<String, serde_json::Value> = headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), text(value).into()))
        .collect();
    serde_json::Value::Object(fields).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_and_its_footer_become_mime() {
        let footer = Footer::default();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("3"));
        let body = Body::whole("abc").with_footer(footer.clone());
        let body = wrap(&mut headers, body, || "EDGE".into());
        let mut found = HeaderMap::new();
        found.insert("etag", HeaderValue::from_static("x"));
        found.insert("x-object-sysmeta-a", HeaderValue::from_bytes("é".as_bytes()).unwrap());
        footer.set(found);
        let text = body.collect(1000).await.unwrap();
        let document = r#"{"etag":"x","x-object-sysmeta-a":"Ã©"}"#;
        let md5 = hex::encode(Md5::digest(document.as_bytes()));
        assert_eq!(
            String::from_utf8(text.to_vec()).unwrap(),
            format!(
                "--EDGE\r\nX-Document: object body\r\n\r\nabc\r\n--EDGE\r\nX-Document: object metadata\r\n\
                 Content-MD5: {md5}\r\n\r\n{document}\r\n--EDGE--"
            )
        );
        assert_eq!(headers["x-backend-obj-content-length"], "3");
        assert_eq!(headers["transfer-encoding"], "chunked");
        assert!(!headers.contains_key(CONTENT_LENGTH));
    }

    #[tokio::test]
    async fn without_its_footer_a_body_does_not_end() {
        let body = Body::whole("abc").with_footer(Footer::default());
        let body = wrap(&mut HeaderMap::new(), body, || "EDGE".into());
        assert_eq!(body.collect(1000).await, Err(BodyError::Abandoned));
    }
}
