//! Keeps what servers say to each other out of clients' hands, in both directions.
//!
//! Stands right behind `catch_errors`. Takes off requests and responses: backend headers, system
//! metadata, and the headers that tell an object server whom to send listing updates to (a client that
//! could set those would make the cluster send requests for it).
//! Always holds: behind this feature such a header was put there by Martlet itself.
//! Source: `doc/source/development_middleware.rst` and what OpenStack Swift dropped when asked.

use http::{HeaderMap, HeaderName};
use peer::message::header_names::{
    X_ACCOUNT_DEVICE, X_ACCOUNT_HOST, X_ACCOUNT_PARTITION, X_ALLOW_RESERVED_NAMES, X_CONTAINER_DEVICE,
    X_CONTAINER_HOST, X_CONTAINER_PARTITION, X_DELETE_AT_CONTAINER, X_DELETE_AT_DEVICE, X_DELETE_AT_HOST,
    X_DELETE_AT_PARTITION, X_INBOUND_TIMESTAMP, X_ROOT_DB_STATE, X_TIMESTAMP,
};
use request_pipeline::{ClientRequest, Feature, Next, Response};
use settings::GatekeeperSettings;
use vocabulary::metadata::{Entity, TRANSIENT_SYSTEM_PREFIX};

/// Swift's `gatekeeper`.
pub struct Gatekeeper {
    settings: GatekeeperSettings,
}

/// Set when a client may name what begins with NUL.
const CLIENT_ALLOW_RESERVED_NAMES: HeaderName = HeaderName::from_static("x-allow-reserved-names");

/// Where updates are to be sent, and the state of a root database.
const UPDATE_HEADERS: [HeaderName; 11] = [
    X_ACCOUNT_DEVICE,
    X_ACCOUNT_HOST,
    X_ACCOUNT_PARTITION,
    X_CONTAINER_DEVICE,
    X_CONTAINER_HOST,
    X_CONTAINER_PARTITION,
    X_ROOT_DB_STATE,
    X_DELETE_AT_CONTAINER,
    X_DELETE_AT_DEVICE,
    X_DELETE_AT_HOST,
    X_DELETE_AT_PARTITION,
];

impl Gatekeeper {
    /// As configured.
    pub fn new(settings: GatekeeperSettings) -> Self {
        Self { settings }
    }

    fn clean_request(&self, headers: &mut HeaderMap) {
        // OpenStack's HTTP server drops names with underscores: they would pass for others in CGI.
        // Clients of S3 sign theirs, which are no headers of Swift's.
        strip(headers, |name| {
            is_private(name) || (name.contains('_') && !name.starts_with("x-amz-meta-"))
        });
        if self.settings.shunt_inbound_x_timestamp
            && let Some(value) = headers.remove(X_TIMESTAMP)
        {
            headers.insert(X_INBOUND_TIMESTAMP, value);
        }
        if self.settings.allow_reserved_names_header
            && let Some(value) = headers.remove(CLIENT_ALLOW_RESERVED_NAMES)
        {
            headers.insert(X_ALLOW_RESERVED_NAMES, value);
        }
    }
}

#[async_trait::async_trait]
impl Feature for Gatekeeper {
    fn name(&self) -> &'static str {
        "gatekeeper"
    }

    async fn handle(&self, mut request: ClientRequest, next: Next) -> Response {
        self.clean_request(&mut request.headers);
        let mut response = next.run(request).await;
        strip(response.headers_mut(), is_private);
        response
    }
}

/// Whether no client may send or see the header.
fn is_private(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("x-") else {
        return false;
    };
    rest.starts_with("backend")
        || name.starts_with(TRANSIENT_SYSTEM_PREFIX)
        || [Entity::Account, Entity::Container, Entity::Object]
            .iter()
            .any(|entity| name.starts_with(entity.system_prefix()))
        || UPDATE_HEADERS.iter().any(|update| *update == *name)
}

fn strip(headers: &mut HeaderMap, unwanted: impl Fn(&str) -> bool) {
    let found: Vec<HeaderName> = headers.keys().filter(|name| unwanted(name.as_str())).cloned().collect();
    for name in found {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answer, ask, request, shown_headers, with_headers};
    use request_pipeline::reply;

    const PRIVATE: &[(&str, &str)] = &[
        ("x-backend", "1"),
        ("x-backend-timestamp", "1"),
        ("x-backendx", "1"),
        ("x-account-sysmeta-", "1"),
        ("x-container-sysmeta-a", "1"),
        ("x-object-sysmeta-container-update-override-etag", "1"),
        ("x-object-transient-sysmeta-a", "1"),
        ("x-container-host", "1"),
        ("x-container-root-db-state", "1"),
        ("x-delete-at-container", "1"),
        ("x-delete-at-host", "1"),
    ];
    const PUBLIC: &[(&str, &str)] = &[
        ("x-container-host-x", "1"),
        ("x-delete-at", "1"),
        ("x-object-meta-x-backend-a", "1"),
        ("x-object-sysmetax", "1"),
        ("x-etag", "1"),
    ];

    async fn passed(settings: GatekeeperSettings, headers: &[(&'static str, &str)]) -> Vec<String> {
        let asked = with_headers(request("PUT", "/v1/a/c/o"), headers);
        let core = Answer::new(|request| {
            let mut seen = reply::plain(200, "");
            *seen.headers_mut() = request.headers;
            let text = shown_headers(&seen).join("\n");
            reply::plain(200, text)
        });
        let response = ask(Gatekeeper::new(settings), asked, core).await;
        let text = response.body().as_whole().unwrap();
        String::from_utf8_lossy(&text).lines().map(Into::into).collect()
    }

    #[tokio::test]
    async fn clients_cannot_send_what_servers_say() {
        assert!(passed(GatekeeperSettings::default(), PRIVATE).await.is_empty());
        assert_eq!(passed(GatekeeperSettings::default(), PUBLIC).await.len(), PUBLIC.len());
        assert!(
            passed(
                GatekeeperSettings::default(),
                &[("x_backend_a", "1"), ("x-object-meta-a_b", "1")]
            )
            .await
            .is_empty()
        );
    }

    #[tokio::test]
    async fn wishes_are_set_aside_or_granted() {
        let wish = [
            ("x-timestamp", "5"),
            ("x-allow-reserved-names", "yes"),
            ("x-backend-inbound-x-timestamp", "6"),
        ];
        let shunted = passed(GatekeeperSettings::default(), &wish).await;
        assert_eq!(
            shunted,
            ["x-allow-reserved-names: yes", "x-backend-inbound-x-timestamp: 5"]
        );
        let granting = GatekeeperSettings {
            shunt_inbound_x_timestamp: false,
            allow_reserved_names_header: true,
        };
        assert_eq!(
            passed(granting, &wish).await,
            ["x-backend-allow-reserved-names: yes", "x-timestamp: 5"]
        );
    }

    #[tokio::test]
    async fn clients_do_not_see_what_servers_say() {
        let core = Answer::new(|_| {
            let mut response = reply::plain(200, "");
            for (name, value) in PRIVATE.iter().chain(PUBLIC) {
                response
                    .headers_mut()
                    .insert(*name, http::HeaderValue::from_static(value));
            }
            response
        });
        let response = ask(
            Gatekeeper::new(GatekeeperSettings::default()),
            request("GET", "/v1/a"),
            core,
        )
        .await;
        assert_eq!(response.headers().len(), PUBLIC.len() + 2);
    }
}
