//! Listings of versioned containers: the plain one without hidden names, and `?versions`.
//!
//! `?versions` merges two listings in one order: the container's (links and objects that are no versions) and the
//! hidden container's (versions, newest first within a name). Forwards a `null` version stands before the others of
//! its name, backwards behind them.
//! Always holds: no more rows than the limit are asked for (one more to know whether a version is the
//! newest of its name); a version is the latest when the link of its name leads to it, or when it is
//! a delete marker, the newest, and nothing stands at its name.

use super::names::{Hidden, VersionId, hidden_name, read_hidden_name};
use super::{DELETE_MARKER, ObjectVersioning, SOURCE, Versioned, allow_hidden, refused};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{Method, StatusCode};
use peer::Body;
use request_pipeline::{ClientRequest, Next, Response, is_true, reply};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use vocabulary::EntityPath;
use vocabulary::names::{RESERVED, quote, unquote};

/// More than ten thousand rows of the longest names that JSON can blow up.
const MAX_LISTING: u64 = 256 << 20;

/// Says whether versions are made, and switches that.
pub(in super::super) const SWITCH: &str = "x-versions-enabled";
const BYTES_USED: &str = "x-container-bytes-used";

pub(super) type VersionRow = Map<String, Value>;

/// What `?versions` asks for.
struct Wanted {
    marker: String,
    version_marker: Option<VersionId>,
    end_marker: String,
    prefix: String,
    delimiter: String,
    limit: usize,
    /// The most that may be asked for.
    most: usize,
    reverse: bool,
}

impl ObjectVersioning {
    /// Answers `GET ?versions`.
    pub(super) async fn list_versions(&self, request: ClientRequest, entity: &EntityPath, next: Next) -> Response {
        let wanted = match Wanted::read(&request, self.listing_limit) {
            Ok(wanted) => wanted,
            Err(refusal) => return refusal,
        };
        let container = entity.container.as_deref().unwrap_or_default();
        let info = next.info().container(&entity.account, container).await;
        let versioned = Versioned::of(&entity.account, container, &info);
        let mut own = request.without_body();
        own.query = wanted.query_of_own();
        let mut response = next.clone().run(own).await;
        if !response.status().is_success() {
            return response;
        }
        // A container that was lost and made again knows nothing of its versions, which are where they always were.
        let is_described = versioned.is_some();
        let versioned = versioned.unwrap_or_else(|| Versioned {
            hidden: Hidden::new(&entity.account, container),
            enabled: false,
        });
        let mut list = request
            .subrequest(Method::GET, versioned.hidden.container(), SOURCE)
            .preauthorised();
        allow_hidden(&mut list);
        list.query = wanted.query_of_versions();
        let mut found = next.run(list).await;
        if !found.status().is_success() && found.status() != StatusCode::NOT_FOUND {
            return refused(&found, &request);
        }
        if is_described {
            describe(&mut response, &versioned, &found);
        }
        let rows = match found.status() {
            StatusCode::OK => match take_rows(&mut found).await {
                Ok(rows) => rows,
                Err(refusal) => return refusal,
            },
            _ => Vec::new(),
        };
        let current = match take_rows(&mut response).await {
            Ok(rows) => rows,
            Err(refusal) => return refusal,
        };
        let merged = merge(&wanted, entity, &versioned, current, rows);
        with_rows(response, merged)
    }
}

impl Wanted {
    fn read(request: &ClientRequest, most: usize) -> Result<Self, Response> {
        let text = |name: &str| match request.param(name) {
            None => Ok(String::new()),
            Some(Ok(text)) => Ok(text),
            Some(Err(_)) => Err(reply::plain(400, format!("\"{name}\" parameter not valid UTF-8"))),
        };
        let (marker, version_marker) = (text("marker")?, text("version_marker")?);
        let version_marker = match version_marker.as_str() {
            "" => None,
            _ if marker.is_empty() => {
                return Err(reply::html(400, "version_marker param requires marker".into()));
            }
            id => Some(
                id.parse()
                    .map_err(|_| reply::html(400, "invalid version_marker param".into()))?,
            ),
        };
        let delimiter = text("delimiter")?;
        // It would cut the versions' own numbers.
        if !delimiter.is_empty() && delimiter.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return Err(reply::html(400, "invalid delimiter param".into()));
        }
        let limit = text("limit")?.parse().unwrap_or(most);
        if limit > most {
            return Err(reply::html(412, format!("Maximum limit is {most}")));
        }
        Ok(Self {
            marker,
            version_marker,
            end_marker: text("end_marker")?,
            prefix: text("prefix")?,
            delimiter,
            limit,
            most,
            reverse: is_true(&text("reverse")?),
        })
    }

    fn query_of_own(&self) -> String {
        let keeps_name = self.reverse && matches!(self.version_marker, Some(VersionId::At(_)));
        let mut marker = self.marker.clone();
        if keeps_name {
            // The name itself is still to come; nothing is between it and this.
            marker.push('\u{1}');
        }
        self.query(&marker, &self.end_marker, &self.prefix, self.limit)
    }

    fn query_of_versions(&self) -> String {
        let hidden = |name: &str| format!("{RESERVED}{name}");
        let behind = |name: &str| format!("{RESERVED}{name}\u{1}");
        let marker = match (self.marker.as_str(), self.version_marker) {
            ("", _) => String::new(),
            // Servers go on behind all names below a common prefix only when their marker is that prefix itself.
            (name, None) if self.reverse || self.is_common_prefix(name) => hidden(name),
            (name, None) => behind(name),
            (name, Some(VersionId::Null)) if self.reverse => hidden(name),
            (name, Some(VersionId::Null)) => format!("{RESERVED}{name}{RESERVED}"),
            (name, Some(id)) => hidden_name(name, id),
        };
        let end_marker = match self.end_marker.as_str() {
            "" => String::new(),
            name if self.reverse => behind(name),
            name => hidden(name),
        };
        // One more tells whether the last is the newest of its name; the servers have a limit of their own.
        let limit = (self.limit + 1).min(self.most.max(self.limit));
        self.query(&marker, &end_marker, &hidden(&self.prefix), limit)
    }

    /// Whether this name is what all names below it are listed as.
    fn is_common_prefix(&self, name: &str) -> bool {
        let first = |rest: &str| rest.find(&self.delimiter).map(|at| at + self.delimiter.len());
        let below = name.strip_prefix(&self.prefix).filter(|_| !self.delimiter.is_empty());
        below.is_some_and(|rest| first(rest) == Some(rest.len()))
    }

    fn query(&self, marker: &str, end_marker: &str, prefix: &str, limit: usize) -> String {
        let mut query = format!("format=json&limit={limit}");
        for (name, value) in [
            ("marker", marker),
            ("end_marker", end_marker),
            ("prefix", prefix),
            ("delimiter", &self.delimiter),
        ] {
            if !value.is_empty() {
                query.push_str(&format!("&{name}={}", quote(value)));
            }
        }
        if self.reverse {
            query.push_str("&reverse=true");
        }
        query
    }
}

/// A row of either listing in the common order.
struct Entry {
    name: String,
    row: VersionRow,
}

/// One listing of both.
fn merge(
    wanted: &Wanted,
    entity: &EntityPath,
    versioned: &Versioned,
    current: Vec<VersionRow>,
    versions: Vec<VersionRow>,
) -> Vec<Value> {
    let mut links: std::collections::HashMap<String, VersionId> = std::collections::HashMap::new();
    let mut own: Vec<Entry> = Vec::new();
    for row in current {
        let name = name_of(&row);
        match link_of(&row, entity, versioned) {
            Some((_, id)) => {
                links.insert(name, id);
            }
            None if row.contains_key("subdir") => own.push(Entry { name, row }),
            None => {
                links.insert(name.clone(), VersionId::Null);
                let row = as_null_version(row);
                own.push(Entry { name, row });
            }
        }
    }
    let hidden = with_ids(wanted, versions, &links);
    let merged = interleave(own, hidden, wanted.reverse);
    merged.into_iter().take(wanted.limit).map(Value::Object).collect()
}

pub(super) fn name_of(row: &VersionRow) -> String {
    let name = row.get("name").or_else(|| row.get("subdir"));
    name.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn as_null_version(mut row: VersionRow) -> VersionRow {
    if !row.contains_key("subdir") {
        row.insert("version_id".into(), "null".into());
        row.insert("is_latest".into(), true.into());
    }
    row
}

/// The rows of the hidden container with the names and ids they stand for.
fn with_ids(
    wanted: &Wanted,
    rows: Vec<VersionRow>,
    links: &std::collections::HashMap<String, VersionId>,
) -> Vec<Entry> {
    let read: Vec<(String, Option<VersionId>, VersionRow)> = rows
        .into_iter()
        .filter_map(|row| {
            let hidden = name_of(&row);
            if row.contains_key("subdir") {
                return Some((hidden.strip_prefix(RESERVED)?.to_owned(), None, row));
            }
            let (name, id) = read_hidden_name(&hidden)?;
            Some((name, Some(id), row))
        })
        .collect();
    let names: Vec<String> = read.iter().map(|(name, ..)| name.clone()).collect();
    let is_newest = |at: usize| match wanted.reverse {
        true => names.get(at + 1) != Some(&names[at]),
        false => {
            at.checked_sub(1).map(|before| &names[before]) != Some(&names[at]) && !wanted.begins_within(&names[at])
        }
    };
    read.into_iter()
        .enumerate()
        .map(|(at, (name, id, mut row))| {
            match id {
                None => {
                    row.insert("subdir".into(), name.clone().into());
                }
                Some(id) => {
                    let marker = row.get("content_type").and_then(Value::as_str) == Some(DELETE_MARKER);
                    let latest = match links.get(&name) {
                        Some(linked) => *linked == id,
                        None => marker && is_newest(at),
                    };
                    row.insert("name".into(), name.clone().into());
                    row.insert("is_latest".into(), latest.into());
                    row.insert("version_id".into(), id.to_string().into());
                }
            }
            Entry { name, row }
        })
        .collect()
}

impl Wanted {
    /// Whether the listing begins behind some version of this name.
    fn begins_within(&self, name: &str) -> bool {
        self.version_marker.is_some() && self.marker == name
    }
}

/// Both in one order; a directory that both have stands there once.
fn interleave(own: Vec<Entry>, hidden: Vec<Entry>, reverse: bool) -> Vec<VersionRow> {
    let (mut own, mut hidden) = (own.into_iter().peekable(), hidden.into_iter().peekable());
    let mut rows: Vec<VersionRow> = Vec::new();
    let mut last_subdir: Option<String> = None;
    loop {
        let order = match (own.peek(), hidden.peek()) {
            (None, None) => return rows,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) if reverse => b.name.cmp(&a.name).then(Ordering::Greater),
            (Some(a), Some(b)) => a.name.cmp(&b.name).then(Ordering::Less),
        };
        let entry = match order {
            Ordering::Less => own.next(),
            _ => hidden.next(),
        };
        let Some(Entry { name, row }) = entry else { return rows };
        if row.contains_key("subdir") && last_subdir.replace(name.clone()).as_ref() == Some(&name) {
            continue;
        }
        rows.push(row);
    }
}

/// The object and version that a row of the container itself links to.
fn link_of(row: &VersionRow, entity: &EntityPath, versioned: &Versioned) -> Option<(String, VersionId)> {
    let path = unquote(row.get("symlink_path")?.as_str()?).ok()?;
    let (name, id) = versioned.hidden.read_path(&path)?;
    // A link of the client's own to another's hidden version is none.
    (row.get("name").and_then(Value::as_str) == Some(&name) && entity.container.is_some()).then_some((name, id))
}

/// The plain listing: links look like the versions they show.
pub(super) async fn with_own_names(mut response: Response, entity: &EntityPath, versioned: &Versioned) -> Response {
    if response.status() != StatusCode::OK || !is_json(&response) {
        return response;
    }
    let rows = match take_rows(&mut response).await {
        Ok(rows) => rows,
        Err(refusal) => return refusal,
    };
    let container = entity.container.as_deref().unwrap_or_default();
    let shown = rows.into_iter().map(|mut row| {
        if let Some((name, id)) = link_of(&row, entity, versioned) {
            let path = format!("/v1/{}/{container}/{name}", entity.account);
            row.insert(
                "symlink_path".into(),
                format!("{}?version-id={id}", quote(&path)).into(),
            );
            if let Some(bytes) = row.shift_remove("symlink_bytes") {
                row.insert("bytes".into(), bytes);
            }
            if let Some(Value::String(etag)) = row.shift_remove("symlink_etag") {
                let own = row.get("hash").and_then(Value::as_str).unwrap_or_default();
                // What other features put behind the link's entity tag belongs to the version.
                let rest = own.find(';').map_or("", |at| &own[at..]);
                row.insert("hash".into(), format!("{etag}{rest}").into());
            }
            row.insert("version_symlink".into(), true.into());
        }
        Value::Object(row)
    });
    let shown = shown.collect();
    with_rows(response, shown)
}

/// Says whether versions are made, and adds the bytes of those there are.
pub(super) fn describe(response: &mut Response, versioned: &Versioned, hidden: &Response) {
    let bytes =
        |response: &Response| -> Option<u64> { response.headers().get(BYTES_USED)?.to_str().ok()?.parse().ok() };
    let enabled = if versioned.enabled { "True" } else { "False" };
    let total = bytes(response).map(|own| own.saturating_add(bytes(hidden).unwrap_or(0)));
    let headers = response.headers_mut();
    headers.insert(SWITCH, HeaderValue::from_static(enabled));
    if let Some(total) = total {
        headers.insert(BYTES_USED, HeaderValue::from(total));
    }
}

pub(super) fn is_json(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|value| value.as_bytes().starts_with(b"application/json"))
}

/// The rows of a listing, taken out of its answer.
pub(super) async fn take_rows(response: &mut Response) -> Result<Vec<VersionRow>, Response> {
    let body = std::mem::replace(response.body_mut(), Body::empty());
    let unreadable = || reply::status(503);
    let json = body.collect(MAX_LISTING).await.map_err(|_| unreadable())?;
    if json.is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_slice(&json).map_err(|_| unreadable())
}

pub(super) fn with_rows(mut response: Response, rows: Vec<Value>) -> Response {
    let text = pythonic::json(&Value::Array(rows));
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/json; charset=utf-8"),
    );
    headers.insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
    *response.status_mut() = StatusCode::OK;
    response.map(|_| Body::whole(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const V1: &str = "1700000001.00000";
    const V2: &str = "1700000002.00000";

    fn row(value: Value) -> VersionRow {
        value.as_object().unwrap().clone()
    }

    fn link(name: &str, id: &str) -> VersionRow {
        let path = Hidden::new("a", "c").link_target(name, id.parse().unwrap());
        row(json!({"name": name, "symlink_path": format!("/v1/a/{path}")}))
    }

    fn version(name: &str, id: &str, kind: &str) -> VersionRow {
        row(json!({"name": hidden_name(name, id.parse().unwrap()), "content_type": kind}))
    }

    fn listed(wanted: &Wanted, current: Vec<VersionRow>, versions: Vec<VersionRow>) -> Vec<String> {
        let versioned = Versioned {
            hidden: Hidden::new("a", "c"),
            enabled: true,
        };
        let entity = EntityPath::account("a").with_container("c");
        let show = |row: Value| match row.get("subdir") {
            Some(subdir) => subdir.as_str().unwrap().to_owned(),
            None => format!(
                "{} {}{}",
                row["name"].as_str().unwrap(),
                &row["version_id"].as_str().unwrap().chars().nth(9).unwrap_or('n'),
                if row["is_latest"] == true { "*" } else { "" }
            ),
        };
        let merged = merge(wanted, &entity, &versioned, current, versions);
        merged.into_iter().map(show).collect()
    }

    fn wanted(reverse: bool, limit: usize) -> Wanted {
        Wanted {
            marker: String::new(),
            version_marker: None,
            end_marker: String::new(),
            prefix: String::new(),
            delimiter: String::new(),
            limit,
            most: 10_000,
            reverse,
        }
    }

    #[test]
    fn two_listings_become_one() {
        let current = || vec![link("a", V1), row(json!({"name": "b"}))];
        let versions = || {
            vec![
                version("a", V2, "t"),
                version("a", V1, "t"),
                version("b", V1, "t"),
                version("c", V2, DELETE_MARKER),
                version("c", V1, DELETE_MARKER),
            ]
        };
        assert_eq!(
            listed(&wanted(false, 10), current(), versions()),
            ["a 2", "a 1*", "b n*", "b 1", "c 2*", "c 1"]
        );
        let backwards = |mut rows: Vec<VersionRow>| {
            rows.reverse();
            rows
        };
        assert_eq!(
            listed(&wanted(true, 5), backwards(current()), backwards(versions())),
            ["c 1", "c 2*", "b 1", "b n*", "a 1*"]
        );
    }

    #[test]
    fn directories_stand_there_once() {
        let subdir = |name: &str| row(json!({"subdir": name}));
        let rows = listed(
            &wanted(false, 10),
            vec![subdir("x/")],
            vec![subdir("\0w/"), subdir("\0x/")],
        );
        assert_eq!(rows, ["w/", "x/"]);
    }
}
