//! GetSessionToken of AWS's security token service: a temporary key for a stored one.
//!
//! Comes in: a POST to `/` that is signed for the service `sts`. Goes out: the request without its body, with a
//! [`SessionWish`] for the store of keys, which answers with an [`identity::access_key::SessionKey`] beside its reply.
//! Always holds: a request that is signed for `sts` reaches no verb of Swift's or S3's.
//! Source: AWS, "Security Token Service API reference" (2011-06-15).

use crate::error::{INVALID_ACTION, INVALID_REQUEST, MALFORMED_QUERY, S3Error, VALIDATION_ERROR};
use crate::signature;
use crate::xml::XmlWriter;
use http::{HeaderValue, Method};
use identity::access_key::SessionKey;
use request_pipeline::{ClientRequest, Next, Request, Response, reply};
use settings::S3ApiSettings;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use vocabulary::calendar;
use vocabulary::names::query_value;

/// Bytes of a call.
const LARGEST_CALL: u64 = 8 * 1024;
/// Seconds that a temporary key may be good for: AWS's bounds and default.
const SHORTEST: u64 = 900;
const LONGEST: u64 = 129_600;
const USUAL: u64 = 43_200;

/// A temporary key is wanted, for so many seconds.
#[derive(Debug, Clone, Copy)]
pub struct SessionWish(pub u64);

/// Whether a request is for the token service.
pub(crate) fn is_call(request: &Request) -> bool {
    let header = request.header("authorization").unwrap_or_default();
    request.method == Method::POST && &*request.path == "/" && header.contains("/sts/aws4_request")
}

/// Answers a call.
pub(crate) async fn answer(mut request: ClientRequest, next: Next, settings: &S3ApiSettings, now: u64) -> Response {
    let trans_id = request.trans_id.clone();
    match prepare(&mut request, settings, now).await {
        Ok(()) => {
            let response = next.run(request).await;
            match response.extensions().get::<Arc<SessionKey>>() {
                Some(key) => document(key, &trans_id),
                None => refusal(&signature::refusal(&response), &trans_id),
            }
        }
        Err(error) => refusal(&error, &trans_id),
    }
}

async fn prepare(request: &mut ClientRequest, settings: &S3ApiSettings, now: u64) -> Result<(), S3Error> {
    let body = crate::payload::collect(request, None, LARGEST_CALL).await?;
    let hash = vocabulary::hex::encode(Sha256::digest(&body));
    let signature = signature::of_sts(request, hash, settings, now)?;
    let wish = read(&body)?;
    request.method = Method::GET;
    request.query.clear();
    request.headers.remove("authorization");
    request.headers.remove("content-length");
    request.extensions.insert(Arc::new(signature.signed));
    request.extensions.insert(wish);
    Ok(())
}

/// The call in a body: `Action=GetSessionToken&DurationSeconds=3600`.
fn read(body: &[u8]) -> Result<SessionWish, S3Error> {
    let body = std::str::from_utf8(body).map_err(|_| MALFORMED_QUERY)?;
    let value = |name: &str| {
        query_value(body, name)
            .transpose()
            .map_err(|_| S3Error::from(MALFORMED_QUERY))
    };
    match value("Action")?.as_deref() {
        Some("GetSessionToken") => {}
        Some(other) => return Err(INVALID_ACTION.saying(format!("{other} is not served; GetSessionToken is."))),
        None => return Err(MALFORMED_QUERY.into()),
    }
    if value("SerialNumber")?.is_some() || value("TokenCode")?.is_some() {
        return Err(INVALID_REQUEST.saying("Multi-factor authentication is not served."));
    }
    let wanted = value("DurationSeconds")?.map_or(Ok(USUAL), |text| text.parse::<u64>());
    let wanted = wanted.ok().filter(|seconds| (SHORTEST..=LONGEST).contains(seconds));
    let refuse = || VALIDATION_ERROR.saying(format!("DurationSeconds must be between {SHORTEST} and {LONGEST}."));
    wanted.map(SessionWish).ok_or_else(refuse)
}

fn document(key: &SessionKey, trans_id: &str) -> Response {
    let mut xml = XmlWriter::sts("GetSessionTokenResponse");
    xml.open("GetSessionTokenResult");
    xml.open("Credentials");
    xml.text("AccessKeyId", &key.id);
    xml.text("SecretAccessKey", &key.secret);
    xml.text("SessionToken", &key.token);
    xml.text("Expiration", &format!("{}Z", calendar::iso(key.expires, 'T')));
    xml.close();
    xml.close();
    finish(xml, 200, trans_id)
}

fn refusal(error: &S3Error, trans_id: &str) -> Response {
    let mut xml = XmlWriter::sts("ErrorResponse");
    xml.open("Error");
    xml.text("Type", if error.code.status < 500 { "Sender" } else { "Receiver" });
    xml.text("Code", error.code.name);
    xml.text("Message", error.words());
    xml.close();
    finish(xml, error.code.status, trans_id)
}

fn finish(mut xml: XmlWriter, status: u16, trans_id: &str) -> Response {
    xml.open("ResponseMetadata");
    xml.text("RequestId", trans_id);
    xml.close();
    reply::with_body(status, HeaderValue::from_static("text/xml"), xml.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read() {
        let seconds = |text: &str| {
            read(text.as_bytes())
                .map(|wish| wish.0)
                .map_err(|error| error.code.name)
        };
        let call = "Action=GetSessionToken&Version=2011-06-15";
        assert_eq!(seconds(call), Ok(USUAL));
        assert_eq!(seconds(&format!("{call}&DurationSeconds=900")), Ok(900));
        for wrong in ["899", "129601", "-1", "x", ""] {
            assert_eq!(
                seconds(&format!("{call}&DurationSeconds={wrong}")),
                Err("ValidationError"),
                "{wrong}"
            );
        }
        assert_eq!(seconds("Action=AssumeRole"), Err("InvalidAction"));
        assert_eq!(seconds(""), Err("MalformedQueryString"));
        assert_eq!(seconds(&format!("{call}&TokenCode=123456")), Err("InvalidRequest"));
    }
}
