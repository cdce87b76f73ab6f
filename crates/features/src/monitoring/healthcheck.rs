//! `/healthcheck`: a load balancer's question whether this gateway should get requests.
//!
//! Always holds: nothing behind this feature is asked; a file at `disable_path` takes the gateway out.

use request_pipeline::{ClientRequest, Feature, Next, Response, reply};
use settings::HealthcheckSettings;
use std::sync::Arc;
use world::files::FileSystem;

/// Swift's `healthcheck`.
pub struct Healthcheck {
    settings: HealthcheckSettings,
    files: Arc<dyn FileSystem>,
}

impl Healthcheck {
    /// As configured; `files` is where `disable_path` is.
    pub fn new(settings: HealthcheckSettings, files: Arc<dyn FileSystem>) -> Self {
        Self { settings, files }
    }

    fn is_disabled(&self) -> bool {
        let path = self.settings.disable_path.as_ref();
        path.is_some_and(|path| self.files.info(path).is_ok())
    }
}

#[async_trait::async_trait]
impl Feature for Healthcheck {
    fn name(&self) -> &'static str {
        "healthcheck"
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        *request.path == *"/healthcheck"
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        match &*request.path {
            "/healthcheck" if self.is_disabled() => reply::plain(503, "DISABLED BY FILE"),
            "/healthcheck" => reply::plain(200, "OK"),
            _ => next.run(request).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answer, ask, request};
    use world::real_files::RealFiles;

    async fn status(target: &str, disable_path: Option<&str>) -> (u16, String) {
        let settings = HealthcheckSettings {
            disable_path: disable_path.map(Into::into),
        };
        let feature = Healthcheck::new(settings, Arc::new(RealFiles));
        let response = ask(feature, request("GET", target), Answer::new(|_| reply::status(404))).await;
        let body = response.body().as_whole().unwrap();
        (response.status().as_u16(), String::from_utf8_lossy(&body).into_owned())
    }

    #[tokio::test]
    async fn only_the_exact_path_is_answered() {
        assert_eq!(status("/healthcheck", None).await, (200, "OK".into()));
        assert_eq!(status("/healthcheck?x=y", Some("/none")).await.0, 200);
        assert_eq!(
            status("/healthcheck", Some("/")).await,
            (503, "DISABLED BY FILE".into())
        );
        assert_eq!(status("/healthcheck/", None).await.0, 404);
    }
}
