//! Listings as clients want them: plain, JSON or XML, from the JSON that storage speaks.
//!
//! Asks the rest of the pipeline for JSON (`format=json`) and renders its answer in the form that
//! `format=` names or `Accept` prefers. Rows are `listing_rows.rs`, `Accept` is `listing_accept.rs`.
//! Always holds: what is not a listing passes unchanged; an answer whose JSON cannot be read passes as
//! it came; an answer that depended on `Accept` says so in `Vary`.

use crate::listings::listing_accept::{Form, choose, only_json};
use crate::listings::listing_rows::{NotRows, account_xml, container_xml, json_without_reserved, plain};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use peer::Body;
use peer::message::header_names::X_ALLOW_RESERVED_NAMES;
use request_pipeline::{ClientRequest, Feature, Next, Response, is_true, reply};
use std::sync::Arc;
use vocabulary::EntityPath;

/// Swift's `listing_formats`.
pub struct ListingFormats {
    api_versions: Vec<String>,
    versions: bool,
}

/// More than ten thousand rows of the longest names that JSON can blow up.
const MAX_LISTING: u64 = 256 << 20;

/// What to make of the answer.
struct Wanted {
    form: Form,
    /// `Accept` decided, or would have.
    vary: bool,
    entity: Arc<EntityPath>,
    reserved: bool,
}

impl ListingFormats {
    /// For paths that begin with one of these (`v1`). With `versions`, listings of versions are distinguished from
    /// others: they are JSON or nothing.
    pub fn new(api_versions: Vec<String>, versions: bool) -> Self {
        Self { api_versions, versions }
    }

    /// Whether versions are to be listed.
    fn lists_versions(&self, request: &ClientRequest, entity: &EntityPath) -> bool {
        self.versions
            && request.method == Method::GET
            && entity.container.is_some()
            && !request.query.is_empty()
            && request.param("versions").is_some()
    }

    /// The account or container to be listed, if the request is about one.
    fn listed(&self, request: &ClientRequest) -> Option<Arc<EntityPath>> {
        let reads = request.method == Method::GET || request.method == Method::HEAD;
        let entity = request
            .entity
            .as_ref()
            .filter(|entity| reads && entity.object.is_none())?;
        self.api_versions.contains(&request.api_version).then(|| entity.clone())
    }
}

#[async_trait::async_trait]
impl Feature for ListingFormats {
    fn name(&self) -> &'static str {
        "listing_formats"
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        request.entity.as_ref().is_some_and(|entity| entity.object.is_none())
    }

    async fn handle(&self, mut request: ClientRequest, next: Next) -> Response {
        let Some(entity) = self.listed(&request) else {
            return next.run(request).await;
        };
        let wanted = match self.lists_versions(&request, &entity) {
            true => as_json(&request).map(|()| (Form::Json, false)),
            false => wanted_form(&request),
        };
        let (form, vary) = match wanted {
            Ok(wanted) => wanted,
            Err(refusal) => return *refusal,
        };
        let reserved = request.header(X_ALLOW_RESERVED_NAMES.as_str()).is_some_and(is_true);
        let wanted = Wanted {
            form,
            vary,
            entity,
            reserved,
        };
        request.query = asking_for_json(&request.query);
        let is_head = request.method == Method::HEAD;
        let response = next.run(request).await;
        match (has_listing(&response), is_head) {
            (false, _) => elsewhere_made(response, &wanted),
            (true, true) => head(response, &wanted),
            (true, false) => render(response, &wanted).await,
        }
    }
}

/// The form, and whether `Accept` had a say in it.
fn wanted_form(request: &ClientRequest) -> Result<(Form, bool), Box<Response>> {
    match request.param("format") {
        None => by_accept(request).map(|form| (form, true)),
        Some(Err(_)) => Err(Box::new(reply::plain(400, "\"format\" parameter not valid UTF-8"))),
        Some(Ok(name)) if name.is_empty() => by_accept(request).map(|form| (form, false)),
        Some(Ok(name)) => Ok((named(&name), false)),
    }
}

/// Refuses a listing that only JSON can express to a client that wants another form.
fn as_json(request: &ClientRequest) -> Result<(), Box<Response>> {
    let accept = accept(request);
    let suits = match request.param("format") {
        None if accept.is_empty() => true,
        None => only_json(&accept).map_err(|_| invalid_accept())?,
        Some(Err(_)) => return wanted_form(request).map(drop),
        Some(Ok(name)) => name.is_empty() || named(&name) == Form::Json,
    };
    match suits {
        true => Ok(()),
        false => Err(Box::new(reply::status_for(&request.method, 406))),
    }
}

fn named(format: &str) -> Form {
    match format.to_lowercase().as_str() {
        "json" => Form::Json,
        "xml" => Form::Xml,
        _ => Form::Plain,
    }
}

fn accept(request: &ClientRequest) -> Vec<u8> {
    let accepts: Vec<&[u8]> = request
        .headers
        .get_all(ACCEPT)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    accepts.join(&b","[..])
}

fn invalid_accept() -> Box<Response> {
    Box::new(reply::html(400, "Invalid Accept header".into()))
}

fn by_accept(request: &ClientRequest) -> Result<Form, Box<Response>> {
    let accept = accept(request);
    if accept.is_empty() {
        return Ok(Form::Plain);
    }
    match choose(&accept) {
        Ok(Some(form)) => Ok(form),
        Ok(None) => Err(Box::new(reply::status_for(&request.method, 406))),
        Err(_) => Err(invalid_accept()),
    }
}

/// The query with `format=json` in place of any other format.
fn asking_for_json(query: &str) -> String {
    let is_format = |pair: &&str| vocabulary::names::query_value(pair, "format").is_some();
    let mut kept: Vec<&str> = query
        .split('&')
        .filter(|pair| !pair.is_empty() && !is_format(pair))
        .collect();
    kept.push("format=json");
    kept.join("&")
}

fn has_listing(response: &Response) -> bool {
    let is_json = |value: &HeaderValue| value.as_bytes().starts_with(b"application/json");
    matches!(response.status(), StatusCode::OK | StatusCode::NO_CONTENT)
        && response.headers().get(CONTENT_TYPE).is_some_and(is_json)
}

/// What another feature has made of a listing (a web page); `Accept` would have had a say otherwise.
fn elsewhere_made(mut response: Response, wanted: &Wanted) -> Response {
    if wanted.vary && matches!(response.status(), StatusCode::OK | StatusCode::NO_CONTENT) {
        reply::vary_on(response.headers_mut(), &ACCEPT);
    }
    response
}

/// The answer to HEAD: the headers of a listing without its length.
fn head(mut response: Response, wanted: &Wanted) -> Response {
    dress(response.headers_mut(), wanted, 0);
    response.map(|_| Body::empty())
}

async fn render(response: Response, wanted: &Wanted) -> Response {
    let (mut head, body) = response.into_parts();
    let Ok(json) = body.collect(MAX_LISTING).await else {
        return reply::status(503);
    };
    if json.is_empty() {
        add_vary(&mut head.headers, wanted);
        return Response::from_parts(head, Body::empty());
    }
    match text(&json, wanted) {
        Ok(text) => {
            dress(&mut head.headers, wanted, text.len());
            if wanted.form == Form::Plain && text.is_empty() {
                head.status = StatusCode::NO_CONTENT;
            }
            Response::from_parts(head, Body::whole(text))
        }
        Err(NotRows) => {
            add_vary(&mut head.headers, wanted);
            head.headers.insert(CONTENT_LENGTH, HeaderValue::from(json.len()));
            Response::from_parts(head, Body::whole(json))
        }
    }
}

fn text(json: &Bytes, wanted: &Wanted) -> Result<Bytes, NotRows> {
    let entity = &*wanted.entity;
    let text = match (wanted.form, &entity.container) {
        (Form::Plain, _) => plain(json, wanted.reserved)?,
        (Form::Json, _) if wanted.reserved => return Ok(json.clone()),
        (Form::Json, _) => match json_without_reserved(json)? {
            None => return Ok(json.clone()),
            Some(text) => text,
        },
        (Form::Xml | Form::TextXml, None) => account_xml(json, &entity.account, wanted.reserved)?,
        (Form::Xml | Form::TextXml, Some(container)) => container_xml(json, container, wanted.reserved)?,
    };
    Ok(text.into())
}

fn dress(headers: &mut HeaderMap, wanted: &Wanted, length: usize) {
    let content_type = match wanted.form {
        Form::Plain => "text/plain; charset=utf-8",
        Form::Json => "application/json; charset=utf-8",
        Form::Xml => "application/xml; charset=utf-8",
        Form::TextXml => "text/xml; charset=utf-8",
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    add_vary(headers, wanted);
}

fn add_vary(headers: &mut HeaderMap, wanted: &Wanted) {
    if wanted.vary {
        reply::vary_on(headers, &ACCEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answer, ask, request, shown_headers, with_headers};

    const ROWS: &str = r#"[{"bytes": 3, "hash": "h", "name": "o", "content_type": "t/x", "last_modified": "l"}]"#;

    fn storage(status: u16, body: &'static str) -> Answer {
        Answer::new(move |request| {
            assert_eq!(request.param("format"), Some(Ok("json".into())), "{}", request.query);
            let json = HeaderValue::from_static("application/json; charset=utf-8");
            reply::with_body(status, json, body.into())
        })
    }

    async fn answer(
        method: &str,
        target: &str,
        accept: &[(&'static str, &str)],
        core: Answer,
    ) -> (u16, Vec<String>, String) {
        let asked = with_headers(request(method, target), accept);
        let response = ask(ListingFormats::new(vec!["v1".into()], true), asked, core).await;
        let body = response.body().as_whole().unwrap();
        (
            response.status().as_u16(),
            shown_headers(&response),
            String::from_utf8_lossy(&body).into_owned(),
        )
    }

    async fn headers(method: &str, target: &str, accept: &[(&'static str, &str)]) -> String {
        answer(method, target, accept, storage(200, ROWS)).await.1.join("; ")
    }

    #[tokio::test]
    async fn forms_by_name_and_by_accept() {
        let plain = "content-length: 2; content-type: text/plain; charset=utf-8";
        assert_eq!(headers("GET", "/v1/a/c", &[]).await, format!("{plain}; vary: Accept"));
        assert_eq!(
            headers("GET", "/v1/a/c?format=zz", &[("accept", "rubbish")]).await,
            plain
        );
        assert_eq!(headers("GET", "/v1/a/c?format=", &[]).await, plain);
        assert_eq!(headers("GET", "/v1/a/c?format=xml&format=plain", &[]).await, plain);
        let json = "content-length: 85; content-type: application/json; charset=utf-8";
        assert_eq!(headers("GET", "/v1/a/c?format=JSON", &[]).await, json);
        assert_eq!(
            headers("GET", "/v1/a/c", &[("accept", "application/*")]).await,
            format!("{json}; vary: Accept")
        );
        let split = [("accept", "text/xml;q=0.1"), ("accept", "application/json")];
        assert_eq!(headers("GET", "/v1/a/c", &split).await, format!("{json}; vary: Accept"));
        let head = "content-length: 0; content-type: text/xml; charset=utf-8; vary: Accept";
        assert_eq!(headers("HEAD", "/v1/a/c", &[("accept", "text/xml")]).await, head);
    }

    #[tokio::test]
    async fn refusals() {
        let core = || Answer::new(|_| panic!("asked nevertheless"));
        let (status, headers, body) = answer("GET", "/v1/a", &[("accept", "image/png")], core()).await;
        assert_eq!((status, &*headers[0]), (406, "content-length: 112"), "{body}");
        let (status, headers, body) = answer("HEAD", "/v1/a", &[("accept", "image/png")], core()).await;
        assert_eq!((status, &*headers[0], &*body), (406, "content-length: 0", ""));
        let (status, _, body) = answer("GET", "/v1/a/c", &[("accept", "rubbish")], core()).await;
        assert_eq!((status, &*body), (400, "Invalid Accept header"));
        let (status, headers, body) = answer("GET", "/v1/a/c?format=%FF", &[], core()).await;
        assert_eq!(
            (status, &*headers[1], &*body),
            (400, "content-type: text/plain", "\"format\" parameter not valid UTF-8")
        );
    }

    #[tokio::test]
    async fn empty_and_strange_answers() {
        let (status, headers, body) = answer("GET", "/v1/a/c", &[], storage(200, "[]")).await;
        assert_eq!((status, &*body, headers.len()), (204, "", 3));
        assert_eq!(
            answer("GET", "/v1/a/c?format=json", &[], storage(200, "[]")).await.2,
            "[]"
        );
        assert!(
            answer("GET", "/v1/a?format=xml", &[], storage(200, "[]"))
                .await
                .2
                .ends_with("<account name=\"a\">\n</account>")
        );
        let (status, headers, body) = answer("GET", "/v1/a/c?format=xml", &[], storage(200, "[1]")).await;
        assert_eq!(
            (status, &*headers[1], &*body),
            (200, "content-type: application/json; charset=utf-8", "[1]")
        );
        let (status, headers, body) = answer("GET", "/v1/a/c", &[], storage(404, "[]")).await;
        assert_eq!((status, headers.len(), &*body), (404, 2, "[]"));
    }

    #[tokio::test]
    async fn other_requests_pass() {
        for (method, target) in [
            ("GET", "/v1/a/c/o?format=xml"),
            ("PUT", "/v1/a/c?format=xml"),
            ("GET", "/v2/a?format=xml"),
        ] {
            let core = Answer::new(|request| reply::plain(200, request.query));
            assert_eq!(
                answer(method, target, &[("accept", "rubbish")], core).await.2,
                "format=xml"
            );
        }
        let core = Answer::new(|request| reply::plain(200, request.query));
        let asked = answer("GET", "/v1/a/c?prefix=a%20b&form%61t=xml&limit=2", &[], core).await;
        assert_eq!(asked.2, "prefix=a%20b&limit=2&format=json");
    }
}
