//! The features in their order, and how a request runs through them.
//!
//! Always holds: a feature that does not call its [`Next`] answers by itself; one that calls it
//! several times sends several requests, each through everything below it. A [`Next`] may be kept: the
//! body of an answer asks for more while it streams.

use crate::info::InfoSource;
use crate::request::ClientRequest;
use crate::write_lock::WriteLocks;
use peer::Response;
use serde_json::Value;
use std::sync::Arc;

/// One of Swift's features.
#[async_trait::async_trait]
pub trait Feature: Send + Sync {
    /// Its name in `[pipeline:main]`.
    fn name(&self) -> &'static str;
    /// Whether `request` is any of its business. Where it is not, it is passed over without cost; a question for what
    /// is cheap to see: the method, the path, a header, whether there is a query.
    fn wants(&self, _request: &ClientRequest) -> bool {
        true
    }
    /// Answers `request`, usually with the help of `next`. The space for all that it may do is taken and filled for
    /// each request that passes: what few requests need goes into a box of its own (`Box::pin(…).await`).
    async fn handle(&self, request: ClientRequest, next: Next) -> Response;
    /// Its sections in `/info`: name and content.
    fn info(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }
    /// Its sections in `/info` for administrators only.
    fn info_for_administrators(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }
}

/// The end of the pipeline: Swift's core verbs.
#[async_trait::async_trait]
pub trait Core: Send + Sync {
    /// Answers `request`.
    async fn handle(&self, request: ClientRequest) -> Response;
    /// Describes accounts and containers.
    fn info(&self) -> &dyn InfoSource;
    /// Where objects are locked; nowhere, unless this is a gateway.
    fn write_locks(&self) -> Option<Arc<dyn WriteLocks>> {
        None
    }
}

struct Stages {
    features: Vec<Arc<dyn Feature>>,
    core: Arc<dyn Core>,
}

/// The rest of the pipeline.
#[derive(Clone)]
pub struct Next {
    stages: Arc<Stages>,
    at: usize,
}

impl Next {
    /// Sends `request` through the rest of the pipeline.
    pub async fn run(self, request: ClientRequest) -> Response {
        let stages = self.stages.clone();
        let rest = stages.features.iter().enumerate().skip(self.at);
        let wanting = rest.into_iter().find(|(_, feature)| feature.wants(&request));
        match wanting {
            Some((at, feature)) => feature.handle(request, Next { at: at + 1, ..self }).await,
            None => stages.core.handle(request).await,
        }
    }

    /// Describes accounts and containers.
    pub fn info(&self) -> &dyn InfoSource {
        self.stages.core.info()
    }

    /// Where objects are locked.
    pub fn write_locks(&self) -> Option<Arc<dyn WriteLocks>> {
        self.stages.core.write_locks()
    }
}

/// The features, outermost first, and the core.
pub struct Pipeline(Arc<Stages>);

impl Pipeline {
    /// In this order.
    pub fn new(features: Vec<Arc<dyn Feature>>, core: Arc<dyn Core>) -> Self {
        Self(Arc::new(Stages { features, core }))
    }

    /// Runs a request through everything.
    pub async fn run(&self, request: ClientRequest) -> Response {
        let first = Next {
            stages: self.0.clone(),
            at: 0,
        };
        first.run(request).await
    }

    /// The names, outermost first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.features.iter().map(|f| f.name())
    }
}
