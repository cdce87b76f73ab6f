//! The parameters of a listing, from the query string to a [`ListQuery`].

use crate::request::{ListingRequest, is_true};
use http::StatusCode;
use listing_engine::{Deleted, ListQuery};
use peer::message::header_names::{X_ALLOW_RESERVED_NAMES, X_INCLUDE_DELETED};
use storage_shell::Refusal;
use vocabulary::names::query_value;

/// What the request asks, within `most` entries. The policy is for the caller to add.
pub(crate) fn parse(request: &ListingRequest, query: &str, most: usize) -> Result<ListQuery, Refusal> {
    let get = |name: &str| match query_value(query, name) {
        None => Ok(None),
        Some(Ok(value)) => Ok(Some(value)),
        Some(Err(_)) => Err(Refusal::bad_request(format!("\"{name}\" parameter not valid UTF-8"))),
    };
    let text = |name: &str| get(name).map(Option::unwrap_or_default);
    Ok(ListQuery {
        path: get("path")?,
        prefix: text("prefix")?,
        delimiter: text("delimiter")?,
        marker: text("marker")?,
        end_marker: text("end_marker")?,
        limit: limit(&text("limit")?, most)?,
        reverse: is_true(&text("reverse")?),
        policy: None,
        deleted: match request.is_on(X_INCLUDE_DELETED) {
            true => Deleted::Show,
            false => Deleted::Hide,
        },
        reserved: request.is_on(X_ALLOW_RESERVED_NAMES),
    })
}

/// What is no number asks for the most there is, as in Swift.
fn limit(text: &str, most: usize) -> Result<usize, Refusal> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match digits.then(|| text.parse::<usize>().unwrap_or(usize::MAX)) {
        None => Ok(most),
        Some(limit) if limit <= most => Ok(limit),
        Some(_) => Err(Refusal::Html(
            StatusCode::PRECONDITION_FAILED,
            format!("Maximum limit is {most}").into(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        for (text, expected) in [
            ("", Some(10)),
            ("x", Some(10)),
            ("-1", Some(10)),
            ("0", Some(0)),
            ("10", Some(10)),
            ("11", None),
            ("99999999999999999999999", None),
        ] {
            assert_eq!(limit(text, 10).ok(), expected, "{text}");
        }
    }
}
