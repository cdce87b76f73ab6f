//! The features in their order, and how a request runs through them.
//!
//! Always holds: a feature that does not call its [`Next`] answers by itself; one that calls it
//! several times sends several requests, each through everything below it.

use crate::{ClientRequest, InfoSource, Response};
use std::sync::Arc;

/// One of Swift's features.
#[async_trait::async_trait]
pub trait Feature: Send + Sync {
    /// Its name in `[pipeline:main]`.
    fn name(&self) -> &'static str;
    /// Answers `request`, usually with the help of `next`.
    async fn handle(&self, request: ClientRequest, next: Next<'_>) -> Response;
}

/// The end of the pipeline: Swift's core verbs.
#[async_trait::async_trait]
pub trait Core: Send + Sync {
    /// Answers `request`.
    async fn handle(&self, request: ClientRequest) -> Response;
    /// Describes accounts and containers.
    fn info(&self) -> &dyn InfoSource;
}

/// The rest of the pipeline.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    features: &'a [Arc<dyn Feature>],
    core: &'a dyn Core,
}

impl<'a> Next<'a> {
    /// Sends `request` through the rest of the pipeline.
    pub async fn run(self, request: ClientRequest) -> Response {
        match self.features.split_first() {
            Some((feature, features)) => feature.handle(request, Next { features, ..self }).await,
            None => self.core.handle(request).await,
        }
    }

    /// Describes accounts and containers.
    pub fn info(self) -> &'a dyn InfoSource {
        self.core.info()
    }
}

/// The features, outermost first, and the core.
pub struct Pipeline {
    features: Vec<Arc<dyn Feature>>,
    core: Arc<dyn Core>,
}

impl Pipeline {
    /// In this order.
    pub fn new(features: Vec<Arc<dyn Feature>>, core: Arc<dyn Core>) -> Self {
        Self { features, core }
    }

    /// Runs a request through everything.
    pub async fn run(&self, request: ClientRequest) -> Response {
        Next {
            features: &self.features,
            core: &*self.core,
        }
        .run(request)
        .await
    }

    /// The names, outermost first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.features.iter().map(|f| f.name())
    }
}
