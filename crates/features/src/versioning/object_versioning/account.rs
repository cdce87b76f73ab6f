//! Listings of accounts: what a container's versions take is shown where the container is.
//!
//! A second listing of the account names the hidden containers of the same part; its bytes are added to the rows of
//! their containers. A hidden container whose own container is gone has a row of its own, without objects, as no client
//! would find what takes the bytes otherwise.
//! Always holds: the client's own listing is answered first, so that nothing is listed for who may not; no more rows
//! than were asked for; an account without hidden containers, listed whole, costs no second listing.

use super::listing::{VersionRow, is_json, name_of, take_rows, with_rows};
use super::names::{hidden_container, visible_container};
use super::{ObjectVersioning, SOURCE, allow_hidden, refused};
use http::{Method, StatusCode};
use request_pipeline::{ClientRequest, Next, Response, is_true};
use serde_json::Value;
use std::cmp::Ordering;
use vocabulary::EntityPath;
use vocabulary::names::quote;

/// Which part of the account is listed.
struct Part {
    query: String,
    limit: usize,
    reverse: bool,
    is_whole: bool,
}

impl ObjectVersioning {
    /// Answers `GET` of an account.
    pub(super) async fn list_account(&self, request: ClientRequest, entity: &EntityPath, next: Next) -> Response {
        let part = Part::read(&request, self.account_limit);
        let mut list = request
            .subrequest(Method::GET, EntityPath::account(&entity.account), SOURCE)
            .preauthorised();
        let asked = request.without_body();
        let mut response = next.clone().run(request).await;
        if response.status() != StatusCode::OK || !is_json(&response) {
            return response;
        }
        let containers = count(&response);
        let own = match take_rows(&mut response).await {
            Ok(rows) => rows,
            Err(refusal) => return refusal,
        };
        if part.is_whole && containers == Some(own.len()) {
            return with_rows(response, own.into_iter().map(Value::Object).collect());
        }
        allow_hidden(&mut list);
        list.query = part.query.clone();
        let mut found = next.run(list).await;
        if !found.status().is_success() && found.status() != StatusCode::NOT_FOUND {
            return refused(&found, &asked);
        }
        let hidden = match found.status() {
            StatusCode::OK => match take_rows(&mut found).await {
                Ok(rows) => rows,
                Err(refusal) => return refusal,
            },
            _ => Vec::new(),
        };
        with_rows(response, merge(own, hidden, &part))
    }
}

fn count(response: &Response) -> Option<usize> {
    let value = response.headers().get("x-account-container-count")?;
    value.to_str().ok()?.parse().ok()
}

impl Part {
    /// What is wrong with a parameter, the account server says.
    fn read(request: &ClientRequest, most: usize) -> Self {
        let text = |name: &str| request.param(name).and_then(Result::ok).unwrap_or_default();
        let (marker, end_marker, prefix) = (text("marker"), text("end_marker"), text("prefix"));
        let (delimiter, reverse) = (text("delimiter"), text("reverse"));
        let limit = text("limit").parse().unwrap_or(most);
        let mut query = format!("format=json&limit={limit}&prefix={}", quote(&hidden_container(&prefix)));
        for (name, value) in [("marker", &marker), ("end_marker", &end_marker)] {
            if !value.is_empty() {
                query.push_str(&format!("&{name}={}", quote(&hidden_container(value))));
            }
        }
        for (name, value) in [("delimiter", &delimiter), ("reverse", &reverse)] {
            if !value.is_empty() {
                query.push_str(&format!("&{name}={}", quote(value)));
            }
        }
        let is_whole = [&marker, &end_marker, &prefix, &delimiter]
            .iter()
            .all(|text| text.is_empty());
        Self {
            query,
            limit,
            reverse: is_true(&reverse),
            is_whole,
        }
    }
}

/// Both listings, which have the same order, as one.
fn merge(own: Vec<VersionRow>, hidden: Vec<VersionRow>, part: &Part) -> Vec<Value> {
    let (mut own, mut hidden) = (
        own.into_iter().peekable(),
        hidden.into_iter().filter_map(shown).peekable(),
    );
    let mut rows = Vec::new();
    while rows.len() < part.limit {
        let order = match (own.peek(), hidden.peek()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) if part.reverse => name_of(b).cmp(&name_of(a)),
            (Some(a), Some(b)) => name_of(a).cmp(&name_of(b)),
        };
        let row = match order {
            Ordering::Less => own.next(),
            Ordering::Greater => hidden.next(),
            Ordering::Equal => own
                .next()
                .zip(hidden.next())
                .map(|(row, versions)| with_bytes(row, &versions)),
        };
        rows.extend(row.map(Value::Object));
    }
    rows
}

/// A hidden container under the name that clients know, as far as it is theirs: without its objects.
fn shown(mut row: VersionRow) -> Option<VersionRow> {
    let name = visible_container(&name_of(&row))?.to_owned();
    if row.contains_key("subdir") {
        row.insert("subdir".into(), name.into());
    } else {
        row.insert("name".into(), name.into());
        row.insert("count".into(), 0.into());
    }
    Some(row)
}

fn with_bytes(mut row: VersionRow, versions: &VersionRow) -> VersionRow {
    let bytes = |row: &VersionRow| row.get("bytes").and_then(Value::as_u64);
    if let Some((own, more)) = bytes(&row).zip(bytes(versions)) {
        row.insert("bytes".into(), own.saturating_add(more).into());
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;
    use serde_json::json;

    fn rows(value: Value) -> Vec<VersionRow> {
        let rows = value.as_array().unwrap().clone();
        rows.into_iter().map(|row| row.as_object().unwrap().clone()).collect()
    }

    fn container(name: &str, count: u64, bytes: u64) -> Value {
        json!({"name": name, "count": count, "bytes": bytes})
    }

    #[test]
    fn bytes_of_versions_are_shown_where_their_container_is() {
        let own = || rows(json!([container("a", 1, 5), container("b", 2, 0), {"subdir": "d/"}]));
        let hidden = || {
            rows(json!([
                container("\0versions\0b", 9, 16),
                container("\0versions\0c", 3, 8),
                {"subdir": "\0versions\0d/"},
                container("foreign", 1, 1),
            ]))
        };
        let part = Part::read(&request("GET", "/v1/a"), 10);
        let both = json!([container("a", 1, 5), container("b", 2, 16), container("c", 0, 8), {"subdir": "d/"}]);
        assert_eq!(Value::Array(merge(own(), hidden(), &part)), both);

        let backwards = |mut rows: Vec<VersionRow>| {
            rows.reverse();
            rows
        };
        let part = Part::read(&request("GET", "/v1/a?reverse=true&limit=3"), 10);
        let first = json!([{"subdir": "d/"}, container("c", 0, 8), container("b", 2, 16)]);
        assert_eq!(Value::Array(merge(backwards(own()), backwards(hidden()), &part)), first);
    }

    /// What a client gets of the account, and what was asked for.
    async fn listed(target: &str, containers: &str) -> (Value, Vec<String>) {
        let asked = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
        let (note, containers) = (asked.clone(), containers.to_owned());
        let core = crate::testing::Answer::new(move |request| {
            note.lock().push(format!("{}?{}", request.path, request.query));
            let rows = match request.authorize_override {
                true => json!([container("\0versions\0b", 9, 16)]),
                false => json!([container("a", 1, 5), container("b", 2, 0)]),
            };
            let mut response = request_pipeline::reply::with_body(
                200,
                http::HeaderValue::from_static("application/json"),
                rows.to_string(),
            );
            request_pipeline::set_header(response.headers_mut(), "x-account-container-count", &containers);
            response
        });
        let world = world::World::real();
        let feature = ObjectVersioning::new(true, Default::default(), &Default::default(), world);
        let answer = crate::testing::ask(feature, request("GET", target), core).await;
        let rows = serde_json::from_slice(&answer.body().as_whole().unwrap()).unwrap();
        let asked = asked.lock().clone();
        (rows, asked)
    }

    #[tokio::test]
    async fn hidden_containers_are_asked_for_where_there_are_some() {
        let whole = "/v1/a?";
        let hidden = "/v1/a?format=json&limit=10000&prefix=%00versions%00";
        let (rows, asked) = listed("/v1/a", "3").await;
        assert_eq!(rows, json!([container("a", 1, 5), container("b", 2, 16)]));
        assert_eq!(asked, [whole, hidden]);
        let (rows, asked) = listed("/v1/a", "2").await;
        assert_eq!(rows, json!([container("a", 1, 5), container("b", 2, 0)]));
        assert_eq!(asked, [whole]);
        let (_, asked) = listed("/v1/a?marker=0", "2").await;
        assert_eq!(asked, ["/v1/a?marker=0", &format!("{hidden}&marker=%00versions%000")]);
    }

    #[test]
    fn the_same_part_of_the_hidden_containers_is_asked_for() {
        let part = Part::read(
            &request("GET", "/v1/a?marker=m&prefix=p&delimiter=/&limit=7&end_marker=z"),
            10,
        );
        let wanted = "format=json&limit=7&prefix=%00versions%00p&marker=%00versions%00m\
                      &end_marker=%00versions%00z&delimiter=/";
        assert_eq!(part.query, wanted);
        assert!(!part.is_whole);
        assert!(Part::read(&request("GET", "/v1/a?limit=7&format=json"), 10).is_whole);
    }
}
