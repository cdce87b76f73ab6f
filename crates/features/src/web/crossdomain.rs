//! `/crossdomain.xml`: what browser plug-ins from elsewhere may ask of this cluster.
//!
//! Always holds: only a GET of that very path is answered; everything else goes on.

use http::{HeaderValue, Method};
use request_pipeline::{ClientRequest, Feature, Next, Response, reply};
use serde_json::{Value, json};
use settings::gateway_filters::CrossdomainSettings;

/// Swift's `crossdomain`.
pub struct Crossdomain {
    page: String,
}

const BEGINS: &str = "<?xml version=\"1.0\"?>\n<!DOCTYPE cross-domain-policy SYSTEM \
    \"http://www.adobe.com/xml/dtds/cross-domain-policy.dtd\" >\n<cross-domain-policy>\n";

impl Crossdomain {
    /// As configured.
    pub fn new(settings: &CrossdomainSettings) -> Self {
        Self {
            page: format!("{BEGINS}{}\n</cross-domain-policy>", settings.cross_domain_policy),
        }
    }
}

#[async_trait::async_trait]
impl Feature for Crossdomain {
    fn name(&self) -> &'static str {
        "crossdomain"
    }

    fn info(&self) -> Vec<(&'static str, Value)> {
        vec![("crossdomain", json!({}))]
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        *request.path == *"/crossdomain.xml"
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        if *request.path != *"/crossdomain.xml" || request.method != Method::GET {
            return next.run(request).await;
        }
        reply::with_body(200, HeaderValue::from_static("application/xml"), self.page.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answer, ask, request};

    #[tokio::test]
    async fn as_openstack_answers() {
        for (method, target, length) in [
            ("GET", "/crossdomain.xml?x", "209"),
            ("HEAD", "/crossdomain.xml", "7"),
            ("GET", "/crossdomain.xml/", "7"),
        ] {
            let feature = Crossdomain::new(&CrossdomainSettings::default());
            let below = Answer::new(|_| reply::html(412, "Bad URL".into()));
            let response = ask(feature, request(method, target), below).await;
            assert_eq!(response.headers()["content-length"], length, "{method} {target}");
        }
    }
}
