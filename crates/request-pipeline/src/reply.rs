//! Answers without a body of their own: Swift's status pages.
//!
//! Swift explains most errors in a line of HTML and some in plain text; clients show both.
//! Always holds: the answer to HEAD has the same headers and no body (the server side of HTTP sees
//! to it); a reason is never made of what a client sent without being escaped or plain text.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, VARY};
use http::{Method, StatusCode};
use peer::{Body, Response};

/// In a reply's extensions: a large object cannot be given, because a segment is gone, closed to the client, or not
/// what the manifest says.
#[derive(Debug, Clone, Copy)]
pub struct BrokenSegments;

/// Swift's own: the client went away before its request was complete.
pub const CLIENT_DISCONNECT: u16 = 499;

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=UTF-8");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain");

/// The page that Swift has for a status; no body where it has none.
pub fn status(code: u16) -> Response {
    let Some((title, text)) = standard_page(code) else {
        return html(code, String::new());
    };
    page(code, format!("<html><h1>{title}</h1><p>{text}</p></html>"))
}

/// A status with this text, declared as HTML as Swift does for most texts; what would be markup in it is escaped.
pub fn html(code: u16, text: String) -> Response {
    page(code, without_markup(text))
}

/// The text in which no `<` begins a tag, a comment or an instruction (HTML, "Data state"); the rest stays as it is.
fn without_markup(text: String) -> String {
    let begins = |rest: &str| {
        matches!(
            rest.bytes().next(),
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'/' | b'!' | b'?')
        )
    };
    if !text.match_indices('<').any(|(at, _)| begins(&text[at + 1..])) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (number, part) in text.split('<').enumerate() {
        if number > 0 {
            out.push_str(if begins(part) { "&lt;" } else { "<" });
        }
        out.push_str(part);
    }
    out
}

/// A status with this page, in which all that a client sent is escaped already.
pub fn page(code: u16, page: String) -> Response {
    with_body(code, HTML, page)
}

/// A status with this plain text.
pub fn plain(code: u16, body: impl Into<String>) -> Response {
    with_body(code, PLAIN, body.into())
}

/// The body as it is, without content for HEAD (whose answers have no page).
pub fn status_for(method: &Method, code: u16) -> Response {
    if method == Method::HEAD {
        html(code, String::new())
    } else {
        status(code)
    }
}

/// A status with a typed body.
pub fn with_body(code: u16, content_type: HeaderValue, body: String) -> Response {
    let length = HeaderValue::from(body.len());
    let mut response = Response::new(Body::whole(body));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response.headers_mut().insert(CONTENT_LENGTH, length);
    response
}

/// Code and words of a status, as Swift says them: `409 Conflict`.
pub fn status_line(code: u16) -> String {
    let words = standard_page(code).map(|(title, _)| title).or_else(|| {
        let status = StatusCode::from_u16(code).ok()?;
        status.canonical_reason()
    });
    format!("{code} {}", words.unwrap_or_default())
}

/// Adds a name to `Vary` unless it is there.
pub fn vary_on(headers: &mut HeaderMap, name: &HeaderName) {
    let spelled = match name.as_str() {
        "accept" => "Accept",
        "origin" => "Origin",
        "access-control-request-headers" => "Access-Control-Request-Headers",
        other => other,
    };
    let before = headers
        .get(VARY)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if before.split(',').any(|word| word.trim().eq_ignore_ascii_case(spelled)) {
        return;
    }
    let after = if before.is_empty() {
        spelled.to_owned()
    } else {
        format!("{before}, {spelled}")
    };
    if let Ok(value) = HeaderValue::try_from(after) {
        headers.insert(VARY, value);
    }
}

fn standard_page(code: u16) -> Option<(&'static str, &'static str)> {
    Some(match code {
        202 => ("Accepted", "The request is accepted for processing."),
        301 => ("Moved Permanently", "The resource has moved permanently."),
        400 => (
            "Bad Request",
            "The server could not comply with the request since it is either malformed or otherwise incorrect.",
        ),
        401 => (
            "Unauthorized",
            "This server could not verify that you are authorized to access the document you requested.",
        ),
        402 => ("Payment Required", "Access was denied for financial reasons."),
        403 => ("Forbidden", "Access was denied to this resource."),
        404 => ("Not Found", "The resource could not be found."),
        405 => ("Method Not Allowed", "The method is not allowed for this resource."),
        406 => (
            "Not Acceptable",
            "The resource is not available in a format acceptable to your browser.",
        ),
        408 => (
            "Request Timeout",
            "The server has waited too long for the request to be sent by the client.",
        ),
        409 => ("Conflict", "There was a conflict when trying to complete your request."),
        410 => ("Gone", "This resource is no longer available."),
        411 => ("Length Required", "Content-Length header required."),
        412 => ("Precondition Failed", "A precondition for this request was not met."),
        413 => (
            "Request Entity Too Large",
            "The body of your request was too large for this server.",
        ),
        416 => (
            "Requested Range Not Satisfiable",
            "The Range requested is not available.",
        ),
        417 => ("Expectation Failed", "Expectation failed."),
        422 => ("Unprocessable Entity", "Unable to process the contained instructions"),
        499 => ("Client Disconnect", "The client was disconnected during request."),
        500 => (
            "Internal Error",
            "The server has encountered an error. Please try again later.",
        ),
        501 => (
            "Not Implemented",
            "The requested method is not implemented by this server.",
        ),
        502 => ("Bad Gateway", "Bad gateway."),
        503 => (
            "Service Unavailable",
            "The server is currently unavailable. Please try again at a later time.",
        ),
        504 => (
            "Gateway Timeout",
            "A timeout has occurred speaking to a backend server.",
        ),
        507 => (
            "Insufficient Storage",
            "There was not enough space to save the resource. Drive: unknown",
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lengths are those of OpenStack's answers.
    #[test]
    fn pages_are_as_long_as_openstacks() {
        for (code, length) in [
            (401, 131),
            (403, 73),
            (404, 70),
            (405, 91),
            (409, 95),
            (412, 92),
            (416, 97),
            (422, 93),
            (503, 118),
        ] {
            assert_eq!(
                status(code).headers()[CONTENT_LENGTH],
                length.to_string().as_str(),
                "{code}"
            );
        }
        assert_eq!(status(204).body().length(), Some(0));
    }

    #[test]
    fn vary_keeps_what_it_has() {
        let mut headers = HeaderMap::new();
        headers.insert(VARY, HeaderValue::from_static("Foo, accept"));
        vary_on(&mut headers, &http::header::ACCEPT);
        vary_on(&mut headers, &http::header::ORIGIN);
        assert_eq!(headers[VARY], "Foo, accept, Origin");
    }
}
