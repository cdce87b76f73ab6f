//! Containers as web sites: index files, error pages, listings as HTML.
//!
//! Swift's `staticweb`. Reads of visitors without a token (or with `X-Web-Mode: true`, or by a signed URL) are
//! looked at; a container says by its metadata (`Web-Index`, `Web-Error`, `Web-Listings`, …) what becomes of them.
//! Always holds: whatever is shown was authorised like the visitor's own request, by the core or, for a
//! redirect, here; an answer that no metadata concerns passes unchanged.
//! Deliberately absent: how a page looks (`page.rs`).

mod page;

use crate::access::authorised;
use http::header::{CONTENT_TYPE, HOST, HeaderValue, LOCATION};
use http::{Method, StatusCode};
use page::{ListingPage, PageRow};
use peer::Body;
use peer::message::header_names::X_CONTENT_GENERATOR;
use request_pipeline::{AccessNotes, ClientRequest, ContainerInfo, Feature, Next, Response, is_true, reply};
use serde_json::{Value, json};
use settings::gateway_filters::StaticwebSettings;
use std::sync::Arc;
use vocabulary::EntityPath;
use vocabulary::names::{quote, unquote};

/// How its own requests are marked in the access log.
const SOURCE: &str = "SW";
/// The author of a signed URL's request, as `tempurl` says it.
const BY_SIGNED_URL: &str = ".wsgi.tempurl";
/// More than ten thousand rows of the longest names.
const MAX_LISTING: u64 = 256 << 20;

/// Swift's `staticweb`.
pub struct Staticweb {
    scheme: Option<String>,
    host: Option<String>,
}

/// What a container says about itself as a site; nothing here is empty.
#[derive(Debug, Default, PartialEq)]
struct Site {
    index: Option<String>,
    error: Option<String>,
    listings: Option<String>,
    css: Option<String>,
    label: Option<String>,
    directory_type: Option<String>,
}

impl Site {
    fn of(info: &ContainerInfo) -> Self {
        let meta_value = |name: &str| info.meta.get(name).filter(|value| !value.is_empty()).cloned();
        Self {
            index: meta_value("web-index"),
            error: meta_value("web-error"),
            listings: meta_value("web-listings"),
            css: meta_value("web-listings-css"),
            label: meta_value("web-listings-label"),
            directory_type: meta_value("web-directory-type"),
        }
    }

    fn has_pages(&self) -> bool {
        self.index.is_some() || self.listings.is_some()
    }

    fn lists(&self) -> bool {
        self.listings.as_deref().is_some_and(is_true)
    }

    fn directory_type(&self) -> &str {
        self.directory_type.as_deref().unwrap_or("application/directory")
    }
}

/// One visit: the request, the site, and the way to storage.
struct Visit<'a> {
    request: &'a ClientRequest,
    container: Arc<EntityPath>,
    site: Site,
    next: Next,
    feature: &'a Staticweb,
}

impl Staticweb {
    /// With its configuration.
    pub fn new(settings: &StaticwebSettings) -> Self {
        let (scheme, host) = match settings.url_base.split_once("//") {
            Some((scheme, host)) => (scheme.trim_end_matches(':'), host.trim_end_matches('/')),
            None => (settings.url_base.trim_end_matches(':'), ""),
        };
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Self {
            scheme: some(scheme),
            host: some(host),
        }
    }

    /// Whether the request is a visitor's.
    fn concerns(request: &ClientRequest) -> bool {
        let reads = request.method == Method::GET || request.method == Method::HEAD;
        let names_container = request.entity.as_deref().is_some_and(|e| e.container.is_some());
        let is_checked = request.authorizer.is_some() || request.authorize_override;
        let is_visitor = match request.remote_user.as_deref() {
            None | Some(BY_SIGNED_URL) => true,
            Some(_) => request.is_true("x-web-mode"),
        };
        reads && names_container && is_checked && is_visitor
    }
}

#[async_trait::async_trait]
impl Feature for Staticweb {
    fn name(&self) -> &'static str {
        "staticweb"
    }

    fn info(&self) -> Vec<(&'static str, Value)> {
        vec![("staticweb", json!({}))]
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        Self::concerns(request)
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        if !Self::concerns(&request) {
            return next.run(request).await;
        }
        let Some((entity, container)) = request
            .entity
            .clone()
            .and_then(|e| Some((e.clone(), e.container.clone()?)))
        else {
            return next.run(request).await;
        };
        let info = next.info().container(&entity.account, &container).await;
        let site = Site::of(&info);
        if entity.object.is_some() && site == Site::default() {
            return next.run(request).await;
        }
        let visit = Visit {
            request: &request,
            container: Arc::new(EntityPath::account(&entity.account).with_container(&container)),
            site,
            next,
            feature: self,
        };
        match &entity.object {
            Some(object) => Box::pin(visit.object(object)).await,
            None => Box::pin(visit.container(info.read_acl.clone())).await,
        }
    }
}

/// Tells filters in front that this was made here: an answer about a container that is no plain listing.
fn generated(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(X_CONTENT_GENERATOR, HeaderValue::from_static("staticweb"));
    response
}

impl Visit<'_> {
    async fn container(&self, read_acl: Option<String>) -> Response {
        if let Err(refusal) = authorised::check(self.request, self.next.info(), read_acl).await {
            return self.explain(refusal).await;
        }
        if !self.site.has_pages() {
            return match self.request.is_true("x-web-mode") {
                true => reply::status_for(&self.request.method, 404),
                false => self.next.clone().run(self.request.without_body()).await,
            };
        }
        if !self.request.path.ends_with('/') {
            return self.redirect();
        }
        if self.site.index.is_none() {
            return self.listing("").await;
        }
        let index = self.index("").await;
        match index.status() {
            status if status.is_success() || status.is_redirection() => generated(index),
            StatusCode::NOT_FOUND => self.listing("").await,
            _ => self.explain(index).await,
        }
    }

    async fn object(&self, object: &str) -> Response {
        let found = self.next.clone().run(self.request.without_body()).await;
        let status = found.status();
        match status {
            StatusCode::UNAUTHORIZED => return self.explain(found).await,
            StatusCode::NOT_FOUND if self.site.has_pages() => {}
            _ if status.is_success() && self.site.has_pages() && self.is_directory(&found) => {}
            _ => return found,
        }
        let not_found = match status.is_success() {
            true => reply::status_for(&self.request.method, 404),
            false => found,
        };
        let directory = match object.ends_with('/') {
            true => object.to_owned(),
            false => format!("{object}/"),
        };
        if self.site.index.is_some() {
            let index = self.index(&directory).await;
            match index.status() {
                status if status.is_success() || status.is_redirection() => {
                    return if object.ends_with('/') { index } else { self.redirect() };
                }
                StatusCode::NOT_FOUND => {}
                _ => return self.explain(index).await,
            }
        }
        if object.ends_with('/') {
            return self.listing(&directory).await;
        }
        match self.rows(&directory, Some(1)).await {
            Ok(rows) if !rows.is_empty() => self.redirect(),
            _ => self.explain(not_found).await,
        }
    }

    /// Objects that only stand for a directory have its type and (almost) no content.
    fn is_directory(&self, found: &Response) -> bool {
        let headers = found.headers();
        let length: Option<u64> = headers
            .get("content-length")
            .and_then(|length| length.to_str().ok()?.parse().ok());
        let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        length.is_none_or(|length| length <= 1) && content_type == Some(self.site.directory_type().as_bytes())
    }

    /// The index file of a directory (`a/b/`, or nothing for the container itself), as the visitor asked for it.
    async fn index(&self, directory: &str) -> Response {
        let mut request = self.request.without_body();
        let name = self.site.index.as_deref().unwrap_or_default();
        request.aim_at(self.container.with_object(format!("{directory}{name}")));
        request.notes = AccessNotes::of_feature(SOURCE);
        if let Some(user) = self.request.notes.read().user {
            request.notes.set_user(user);
        }
        self.next.clone().run(request).await
    }

    /// To the same place with a slash at its end, by the path that the client used.
    fn redirect(&self) -> Response {
        let host = self.request.headers.get(HOST).and_then(|host| host.to_str().ok());
        let host = self.feature.host.as_deref().or(host).unwrap_or("localhost");
        let scheme = self.feature.scheme.as_deref().unwrap_or(self.request.scheme);
        let path = unquote(&self.request.raw_path).unwrap_or_else(|_| self.request.path.to_string());
        let mut response = reply::status_for(&self.request.method, 301);
        if let Ok(location) = HeaderValue::try_from(format!("{scheme}://{host}{}/", quote(&path))) {
            response.headers_mut().insert(LOCATION, location);
        }
        generated(response)
    }

    /// What lies directly in a directory; `Err` is the answer of storage.
    async fn rows(&self, directory: &str, limit: Option<u64>) -> Result<Vec<PageRow>, Response> {
        let container = EntityPath::clone(&self.container);
        let mut asked = self.request.subrequest(Method::GET, container, SOURCE);
        asked.query = "format=json&delimiter=/".into();
        if !directory.is_empty() {
            asked.query.push_str(&format!("&prefix={}", quote(directory)));
        }
        if let Some(limit) = limit {
            asked.query.push_str(&format!("&limit={limit}"));
        }
        let answer = self.next.clone().run(asked).await;
        if !answer.status().is_success() {
            return Err(answer);
        }
        let body = answer.into_body().collect(MAX_LISTING).await;
        let body = body.map_err(|_| reply::status(503))?;
        if body.is_empty() {
            return Ok(Vec::new());
        }
        serde_json::from_slice(&body).map_err(|_| reply::status(503))
    }

    /// The page that lists a directory.
    async fn listing(&self, directory: &str) -> Response {
        let shown = ListingPage {
            path: &self.request.path,
            root: self.container.path().len() + self.request.api_version.len() + 1,
            directory,
            label: self.site.label.as_deref(),
            css: self.site.css.as_deref(),
            query: &self.request.query,
        };
        if !self.site.lists() {
            let page = reply::page(404, shown.disabled(self.site.index.as_deref()));
            return self.explain(page).await;
        }
        match self.rows(directory, None).await {
            Err(refusal) => self.explain(refusal).await,
            Ok(rows) if rows.is_empty() && !directory.is_empty() => {
                self.explain(reply::status_for(&self.request.method, 404)).await
            }
            Ok(rows) => generated(reply::page(200, shown.page(&rows))),
        }
    }

    /// An answer that is no success, with the site's own page for it if there is one.
    async fn explain(&self, answer: Response) -> Response {
        let Some(error) = &self.site.error else {
            return answer;
        };
        let status = answer.status();
        let page = self.container.with_object(format!("{}{error}", status.as_str()));
        let asked = self.request.subrequest(Method::GET, page, SOURCE);
        let mut page = self.next.clone().run(asked).await;
        if !page.status().is_success() {
            return answer;
        }
        *page.status_mut() = status;
        match self.request.method == Method::HEAD {
            true => page.map(|_| Body::empty()),
            false => page,
        }
    }
}

#[cfg(test)]
mod tests;
