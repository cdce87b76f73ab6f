//! Paths that an operator does not want: with certain characters, too long, or of a certain shape.
//!
//! Always holds: a path is read once, in time linear in its length, whatever the regular expression is.

use regex::Regex;
use request_pipeline::{ClientRequest, Feature, Next, Response, reply};
use serde_json::{Value, json};
use settings::SettingsError;
use settings::declare::{Options, Scope};
use settings::gateway_filters::NameCheckSettings;

/// Swift's `name_check`.
pub struct NameCheck {
    settings: NameCheckSettings,
    pattern: Option<Regex>,
}

impl NameCheck {
    /// As configured. A regular expression that is none is refused.
    pub fn read(options: &Scope) -> Result<Self, SettingsError> {
        let settings = NameCheckSettings::read(options)?;
        let pattern = match settings.forbidden_regexp.as_str() {
            "" => None,
            text => Some(Regex::new(text).map_err(|_| {
                options.wrong(
                    "forbidden_regexp",
                    "a regular expression without look-around and back references",
                )
            })?),
        };
        Ok(Self { settings, pattern })
    }

    fn problem(&self, path: &str) -> Option<String> {
        let settings = &self.settings;
        if path.contains(|c| settings.forbidden_chars.contains(c)) {
            let chars = &settings.forbidden_chars;
            return Some(format!(
                "Object/Container/Account name contains forbidden chars from {chars}"
            ));
        }
        if path.len() > settings.maximum_length {
            let most = settings.maximum_length;
            return Some(format!(
                "Object/Container/Account name longer than the allowed maximum {most}"
            ));
        }
        let pattern = self.pattern.as_ref().filter(|pattern| pattern.is_match(path))?;
        Some(format!(
            "Object/Container/Account name contains a forbidden substring from regular expression {pattern}"
        ))
    }
}

#[async_trait::async_trait]
impl Feature for NameCheck {
    fn name(&self) -> &'static str {
        "name_check"
    }

    fn info(&self) -> Vec<(&'static str, Value)> {
        let settings = &self.settings;
        let section = json!({
            "forbidden_chars": settings.forbidden_chars,
            "maximum_length": settings.maximum_length,
            "forbidden_regexp": settings.forbidden_regexp,
        });
        vec![("name_check", section)]
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        match self.problem(&request.path) {
            Some(problem) => reply::html(400, problem),
            None => next.run(request).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check() -> NameCheck {
        NameCheck::read(&Scope::empty()).unwrap()
    }

    #[test]
    fn as_openstack_refuses() {
        let problem_of = |path: &str| {
            check()
                .problem(path)
                .unwrap_or_default()
                .replace("Object/Container/Account name ", "")
        };
        assert_eq!(
            problem_of("/v1/AUTH_test/bk/a'b"),
            "contains forbidden chars from '\"`<>"
        );
        let long = format!("/v1/AUTH_test/bk/{}", "ü".repeat(119));
        assert_eq!(problem_of(&long), "");
        assert_eq!(problem_of(&format!("{long}x")), "longer than the allowed maximum 255");
        for path in ["/v1/a/../x", "/v1/a/./x", "/v1/a/..", "/v1/a/."] {
            let expected = r"contains a forbidden substring from regular expression /\./|/\.\./|/\.$|/\.\.$";
            assert_eq!(problem_of(path), expected, "{path}");
        }
        assert_eq!(problem_of("/v1/a/.x"), "");
    }

    proptest! {
        #[test]
        fn any_path_is_checked(path in "\\PC{0,300}") {
            let _ = check().problem(&path);
        }
    }
}
