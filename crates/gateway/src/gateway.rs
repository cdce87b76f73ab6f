//! The journey of a client's request: accept → recognise → features (authorise among them) → verb → reply.
//!
//! [`Gateway`] is the HTTP service; behind its features stands [`CoreVerbs`], which knows accounts,
//! containers and objects. What all requests share: `shared.rs`.

use crate::nodes::Node;
use crate::recognise::{not_text, recognise};
use crate::shared::{Shared, VERBS};
use crate::write_clock::ClockSkewMetrics;
use crate::write_lock::GatewayLocks;
use crate::{account, constraints, container, object, write_order};
use http::{HeaderValue, Method, StatusCode};
use peer::message::header_names::X_ALLOW_RESERVED_NAMES;
use peer::{Body, HttpService, Silence};
use request_pipeline::{ClientRequest, Core, Feature, InfoSource, Pipeline, Response, WriteLocks, cors, reply};
use std::net::SocketAddr;
use std::sync::Arc;
use vocabulary::names::RESERVED;

/// Swift's core verbs: the end of the pipeline.
pub struct CoreVerbs {
    shared: Arc<Shared>,
}

impl CoreVerbs {
    /// Over what all requests share.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

#[async_trait::async_trait]
impl Core for CoreVerbs {
    async fn handle(&self, request: ClientRequest) -> Response {
        let method = request.method.clone();
        let response = match self.check(&request) {
            Err(refusal) => {
                // What names nothing, or has no name.
                self.shared.options.statsd.increment("errors");
                refusal
            }
            Ok(()) if method == Method::OPTIONS => self.options(&request).await,
            Ok(()) => self.verb(request).await,
        };
        match method {
            Method::HEAD => without_page(response),
            _ => response,
        }
    }

    fn info(&self) -> &dyn InfoSource {
        &*self.shared
    }

    fn write_locks(&self) -> Option<Arc<dyn WriteLocks>> {
        Some(Arc::new(GatewayLocks(self.shared.clone())))
    }
}

impl CoreVerbs {
    /// A verb, and what a browser's page from elsewhere may see of its answer, by what the container
    /// said before.
    async fn verb(&self, request: ClientRequest) -> Response {
        let page = match (cors::origin(&request.headers), &request.entity) {
            (Some(origin), Some(entity)) => match &entity.container {
                Some(container) => Some((origin.clone(), self.shared.container(&entity.account, container).await)),
                None => None,
            },
            _ => None,
        };
        let checked = match constraints::check_head(&request) {
            Ok(()) => self.check_clock(&request).await,
            refused => refused,
        };
        let mut response = match checked {
            Ok(()) => dispatch(&self.shared, request).await,
            Err(refusal) => refusal,
        };
        if let Some((origin, container)) = page.filter(|_| response.status() != StatusCode::METHOD_NOT_ALLOWED) {
            cors::decorate(&mut response, &origin, &container, &self.shared.options.cors);
        }
        response
    }

    /// Refuses what would be written by a clock that is wrong.
    async fn check_clock(&self, request: &ClientRequest) -> Result<(), Response> {
        let is_write = matches!(request.method, Method::PUT | Method::POST | Method::DELETE);
        if !is_write || request.headers.contains_key("x-timestamp") {
            return Ok(());
        }
        let checked = self.shared.server_clocks.check(self.shared.ask_for_the_time()).await;
        checked.map_err(|differs| write_order::refuse_by_clock(&self.shared.write_clock, differs))
    }

    async fn options(&self, request: &ClientRequest) -> Response {
        let Some(entity) = &request.entity else {
            return reply::status(404);
        };
        let Some(container) = &entity.container else {
            let mut response = reply::html(200, String::new());
            response.headers_mut().insert("allow", HeaderValue::from_static(VERBS));
            return response;
        };
        let container = self.shared.container(&entity.account, container).await;
        cors::preflight(&request.headers, &container, VERBS, &self.shared.options.cors)
    }

    /// Refuses what names nothing, with the answers Swift gives.
    fn check(&self, request: &ClientRequest) -> Result<(), Response> {
        if let Some(refusal) = request.denied_host(&self.shared.options.deny_host_headers) {
            return Err(refusal);
        }
        if request.path.contains(RESERVED) && !request.is_true(X_ALLOW_RESERVED_NAMES.as_str()) {
            return Err(not_text(&request.method));
        }
        if request.entity.is_none() {
            let without_slashes = request.path.trim_end_matches('/');
            let names_a_version = !request.api_version.is_empty() && request.path.starts_with('/');
            let ends_there = without_slashes.len() == request.api_version.len() + 1;
            return Err(
                match names_a_version && ends_there && request.path.len() <= without_slashes.len() + 1 {
                    true => reply::html(412, "Bad URL".into()),
                    false => reply::status(404),
                },
            );
        }
        if !(self.shared.options.limits.valid_api_versions).contains(&request.api_version) {
            return Err(reply::status(400));
        }
        Ok(())
    }
}

async fn dispatch(shared: &Arc<Shared>, request: ClientRequest) -> Response {
    let Some(entity) = request.entity.clone() else {
        return reply::status(404);
    };
    match (&entity.container, &entity.object) {
        (None, _) => account::handle(shared, request, &entity.account).await,
        (Some(container), None) => container::handle(shared, request, &entity.account, container).await,
        (Some(_), Some(_)) => object::handle(shared, request, entity.clone()).await,
    }
}

/// An answer to HEAD has headers only; those of an error page go with the page.
fn without_page(response: Response) -> Response {
    if response.status().is_success() || response.status().as_u16() == 412 {
        return response;
    }
    let mut response = response.map(|_| Body::empty());
    if response.headers().contains_key("content-length") {
        response
            .headers_mut()
            .insert("content-length", HeaderValue::from_static("0"));
    }
    response
}

/// The HTTP service clients speak to.
pub struct Gateway {
    shared: Arc<Shared>,
    pipeline: Pipeline,
}

impl Gateway {
    /// With these features in front of the core verbs, outermost first.
    pub fn new(shared: Arc<Shared>, features: Vec<Arc<dyn Feature>>) -> Self {
        let core = Arc::new(CoreVerbs::new(shared.clone()));
        Self {
            shared,
            pipeline: Pipeline::new(features, core),
        }
    }

    /// With other features over the same core: both know and remember the same.
    pub fn beside(&self, features: Vec<Arc<dyn Feature>>) -> Self {
        Self::new(self.shared.clone(), features)
    }

    /// Where write locks of objects are taken.
    pub fn write_locks(&self) -> Arc<dyn WriteLocks> {
        Arc::new(GatewayLocks(self.shared.clone()))
    }

    /// What the clock of its writes counts.
    pub fn clock_skew_metrics(&self) -> Arc<ClockSkewMetrics> {
        self.shared.write_clock.metrics().clone()
    }

    /// Which devices of storage servers are silent.
    pub fn silence(&self) -> Arc<Silence<Node>> {
        self.shared.silence.clone()
    }

    /// The features in force, outermost first.
    pub fn feature_names(&self) -> Vec<&'static str> {
        self.pipeline.names().collect()
    }
}

#[async_trait::async_trait]
impl HttpService for Gateway {
    async fn serve(&self, request: http::Request<Body>, from: SocketAddr) -> Response {
        match recognise(&self.shared, request, from) {
            Ok(request) => self.pipeline.run(request).await,
            Err(refusal) => *refusal,
        }
    }
}
