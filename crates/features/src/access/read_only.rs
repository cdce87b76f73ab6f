//! Accounts that cannot be changed: all of them, or those that an operator has marked.
//!
//! Swift's `read_only`. `X-Account-Sysmeta-Read-Only` of an account counts more than the option.
//! Always holds: a write to a read-only account is refused before anything else happens to it, and one to an account of
//! which no server can say whether it is; of a COPY the destination counts. Reads cost nothing but a look at the verb.

use request_pipeline::{ClientRequest, Feature, Next, Response, is_true, reply};
use serde_json::{Value, json};
use settings::gateway_filters::ReadOnlySettings;
use std::borrow::Cow;
use vocabulary::names::unquote;

/// Swift's `read_only`.
pub struct ReadOnly {
    settings: ReadOnlySettings,
    api_versions: Vec<String>,
}

impl ReadOnly {
    /// For paths that begin with one of these (`v1`).
    pub fn new(settings: ReadOnlySettings, api_versions: Vec<String>) -> Self {
        Self { settings, api_versions }
    }

    /// The account that the request would change.
    fn changed<'a>(&self, request: &'a ClientRequest) -> Option<Cow<'a, str>> {
        let writes = match request.method.as_str() {
            "PUT" | "POST" | "COPY" => true,
            "DELETE" => !self.settings.allow_deletes,
            _ => false,
        };
        let entity = request.entity.as_deref().filter(|_| writes)?;
        if !self.api_versions.contains(&request.api_version) {
            return None;
        }
        let elsewhere = request
            .header("destination-account")
            .filter(|_| request.method.as_str() == "COPY");
        Some(match elsewhere {
            // As `copy` reads it, which refuses what is no text.
            Some(account) => unquote(account).map_or(Cow::Borrowed(account), Cow::Owned),
            None => Cow::Borrowed(&entity.account),
        })
    }
}

#[async_trait::async_trait]
impl Feature for ReadOnly {
    fn name(&self) -> &'static str {
        "read_only"
    }

    fn info(&self) -> Vec<(&'static str, Value)> {
        let is_global = self.settings.read_only;
        if is_global {
            vec![("read_only", json!({}))]
        } else {
            vec![]
        }
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        !matches!(request.method.as_str(), "GET" | "HEAD" | "OPTIONS")
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        let Some(account) = self.changed(&request) else {
            return next.run(request).await;
        };
        let account = next.info().account(&account).await;
        if account.is_unknown() {
            return reply::status(503);
        }
        let setting = account.sysmeta.get("read-only").filter(|setting| !setting.is_empty());
        match setting.map_or(self.settings.read_only, |setting| is_true(setting)) {
            false => next.run(request).await,
            true => reply::html(405, "Writes are disabled for this account.".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answer, ask, request, with_headers};
    use request_pipeline::AccountInfo;
    use std::sync::Arc;

    async fn asked(read_only: bool, allow_deletes: bool, setting: &str, method: &str, path: &str) -> u16 {
        let settings = ReadOnlySettings {
            read_only,
            allow_deletes,
        };
        let core = Answer::new(|_| reply::status(200));
        let sysmeta = [("read-only".to_owned(), setting.to_owned())].into();
        *core.account.lock().unwrap() = Arc::new(AccountInfo {
            status: 204,
            sysmeta,
            ..AccountInfo::default()
        });
        let request = with_headers(request(method, path), &[("destination-account", "b")]);
        let feature = ReadOnly::new(settings, vec!["v1".into()]);
        ask(feature, request, core).await.status().as_u16()
    }

    #[tokio::test]
    async fn an_account_counts_more_than_the_option() {
        for method in ["PUT", "POST", "DELETE", "COPY"] {
            for (global, setting, expected) in [
                (false, "", 200),
                (true, "", 405),
                (false, "on", 405),
                (true, "false", 200),
            ] {
                assert_eq!(
                    asked(global, false, setting, method, "/v1/a").await,
                    expected,
                    "{method} {global} {setting}"
                );
            }
            assert_eq!(asked(true, false, "", method, "/auth/v1.0").await, 200);
            assert_eq!(asked(true, false, "", method, "/v1").await, 200);
        }
        assert_eq!(asked(true, false, "", "GET", "/v1/a").await, 200);
        assert_eq!(asked(true, true, "", "DELETE", "/v1/a").await, 200);
    }

    #[test]
    fn a_copy_changes_the_account_that_its_encoded_header_names() {
        let feature = ReadOnly::new(ReadOnlySettings::default(), vec!["v1".into()]);
        for (header, account) in [("AUTH%5Fb", "AUTH_b"), ("AUTH_b", "AUTH_b"), ("%ff", "%ff")] {
            let request = with_headers(request("COPY", "/v1/a/c/o"), &[("destination-account", header)]);
            assert_eq!(feature.changed(&request).as_deref(), Some(account));
        }
    }
}
