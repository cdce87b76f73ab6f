//! ETags in quotes, as HTTP wants them, for accounts and containers that ask for it.
//!
//! `X-Container-Rfc-Compliant-Etags` (or `X-Account-…`) of their owners is kept as system metadata; a container that
//! does not say does as its account, an account as the operator says.
//! Always holds: an ETag that has quotes is left as it is; an answer without one costs nothing.

use http::header::{ETAG, HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use request_pipeline::{ClientRequest, Feature, InfoSource, Next, Response};
use serde_json::{Value, json};
use settings::gateway_filters::EtagQuoterSettings;
use std::collections::BTreeMap;
use vocabulary::EntityPath;

/// Swift's `etag_quoter`.
pub struct EtagQuoter {
    settings: EtagQuoterSettings,
}

/// The names of one wish: as clients say it, as they take it back, and as it is stored.
struct Names {
    client: HeaderName,
    remove: HeaderName,
    stored: HeaderName,
}

const OF_ACCOUNT: Names = Names {
    client: HeaderName::from_static("x-account-rfc-compliant-etags"),
    remove: HeaderName::from_static("x-remove-account-rfc-compliant-etags"),
    stored: HeaderName::from_static("x-account-sysmeta-rfc-compliant-etags"),
};
const OF_CONTAINER: Names = Names {
    client: HeaderName::from_static("x-container-rfc-compliant-etags"),
    remove: HeaderName::from_static("x-remove-container-rfc-compliant-etags"),
    stored: HeaderName::from_static("x-container-sysmeta-rfc-compliant-etags"),
};

impl EtagQuoter {
    /// As configured.
    pub fn new(settings: EtagQuoterSettings) -> Self {
        Self { settings }
    }

    async fn of_object(&self, request: ClientRequest, next: Next, entity: &EntityPath) -> Response {
        let mut response = next.clone().run(request).await;
        let Some(etag) = response.headers().get(ETAG) else {
            return response;
        };
        if is_quoted(etag.as_bytes()) || !self.quotes(next.info(), entity).await {
            return response;
        }
        let quoted = [b"\"", etag.as_bytes(), b"\""].concat();
        if let Ok(value) = HeaderValue::from_bytes(&quoted) {
            response.headers_mut().insert(ETAG, value);
        }
        response
    }

    /// Whether ETags around here are quoted.
    async fn quotes(&self, info: &dyn InfoSource, entity: &EntityPath) -> bool {
        if let Some(container) = &entity.container {
            let container = info.container(&entity.account, container).await;
            if let Some(wish) = wish(&container.sysmeta) {
                return wish;
            }
        }
        let account = info.account(&entity.account).await;
        wish(&account.sysmeta).unwrap_or(self.settings.enable_by_default)
    }
}

fn wish(sysmeta: &BTreeMap<String, String>) -> Option<bool> {
    let stored = sysmeta.get("rfc-compliant-etags").filter(|wish| !wish.is_empty())?;
    Some(request_pipeline::is_true(stored))
}

fn is_quoted(etag: &[u8]) -> bool {
    (etag.starts_with(b"\"") || etag.starts_with(b"W/\"")) && etag.ends_with(b"\"") && etag.len() > 1
}

/// A wish of an account's or container's owner becomes what is stored.
fn store_wish(headers: &mut HeaderMap, names: &Names) {
    let stored = match (headers.remove(&names.client), headers.remove(&names.remove)) {
        (Some(wish), _) if !wish.is_empty() => {
            let is_true = wish.to_str().is_ok_and(request_pipeline::is_true);
            if is_true { "True" } else { "False" }
        }
        (None, None) => return,
        _ => "",
    };
    headers.insert(names.stored.clone(), HeaderValue::from_static(stored));
}

/// What is stored is shown as it was wished.
fn show_wish(headers: &mut HeaderMap, names: &Names) {
    if let Some(stored) = headers.get(&names.stored).cloned() {
        headers.insert(names.client.clone(), stored);
    }
}

#[async_trait::async_trait]
impl Feature for EtagQuoter {
    fn name(&self) -> &'static str {
        "etag_quoter"
    }

    fn info(&self) -> Vec<(&'static str, Value)> {
        let section = json!({"enable_by_default": self.settings.enable_by_default});
        vec![("etag_quoter", section)]
    }

    async fn handle(&self, mut request: ClientRequest, next: Next) -> Response {
        let Some(entity) = request.entity.clone() else {
            return next.run(request).await;
        };
        if entity.object.is_some() {
            return self.of_object(request, next, &entity).await;
        }
        let names = if entity.container.is_some() {
            OF_CONTAINER
        } else {
            OF_ACCOUNT
        };
        match request.method {
            Method::PUT | Method::POST => {
                store_wish(&mut request.headers, &names);
                next.run(request).await
            }
            Method::GET | Method::HEAD => {
                let mut response = next.run(request).await;
                show_wish(response.headers_mut(), &names);
                response
            }
            _ => next.run(request).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answer, ask, request, with_headers};
    use request_pipeline::reply;
    use request_pipeline::{ContainerInfo, Response};
    use std::sync::Arc;

    async fn etag(stored: &str, etag: &str, enable_by_default: bool) -> String {
        let etag = etag.to_owned();
        let below = Answer::new(move |_| {
            let mut response = reply::plain(200, "");
            response.headers_mut().insert(ETAG, etag.parse().unwrap());
            response
        });
        let sysmeta = [("rfc-compliant-etags".to_owned(), stored.to_owned())].into();
        *below.container.lock().unwrap() = Arc::new(ContainerInfo {
            sysmeta,
            ..ContainerInfo::default()
        });
        let feature = EtagQuoter::new(EtagQuoterSettings { enable_by_default });
        let response = ask(feature, request("GET", "/v1/a/c/o"), below).await;
        response.headers()[ETAG].to_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn etags_get_quotes_where_they_are_wanted() {
        assert_eq!(etag("True", "abc", false).await, "\"abc\"");
        assert_eq!(etag("True", "\"abc\"", false).await, "\"abc\"");
        assert_eq!(etag("True", "W/\"abc\"", false).await, "W/\"abc\"");
        assert_eq!(etag("", "abc", false).await, "abc");
        assert_eq!(etag("", "abc", true).await, "\"abc\"");
        assert_eq!(etag("False", "abc", true).await, "abc");
    }

    async fn response_to(method: &str, headers: &[(&'static str, &str)]) -> Response {
        let echo = Answer::new(|request| {
            let mut response = reply::plain(200, "");
            response.headers_mut().extend(request.headers);
            response
        });
        let feature = EtagQuoter::new(EtagQuoterSettings::default());
        ask(feature, with_headers(request(method, "/v1/a/c"), headers), echo).await
    }

    #[tokio::test]
    async fn wishes_are_stored_and_shown() {
        for (name, value, stored) in [
            ("x-container-rfc-compliant-etags", "yes", "True"),
            ("x-container-rfc-compliant-etags", "junk", "False"),
            ("x-container-rfc-compliant-etags", "", ""),
            ("x-remove-container-rfc-compliant-etags", "x", ""),
        ] {
            let response = response_to("POST", &[(name, value)]).await;
            assert_eq!(response.headers()[&OF_CONTAINER.stored], stored, "{name}: {value}");
            assert!(!response.headers().contains_key(name));
        }
        let response = response_to("HEAD", &[("x-container-sysmeta-rfc-compliant-etags", "True")]).await;
        assert_eq!(response.headers()[&OF_CONTAINER.client], "True");
    }
}
