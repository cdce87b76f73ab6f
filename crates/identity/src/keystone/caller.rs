//! The user of a request, read from the headers that `authtoken` left on the request.

use super::token::DELEGATION_HEADER;
use http::HeaderMap;

/// A user whose token Keystone confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Caller {
    /// The user's id.
    pub user_id: String,
    /// The user's name.
    pub user_name: String,
    /// The domain of the user; nothing for a token from before there were domains.
    pub user_domain: Option<String>,
    /// The project the token is for; empty when it is for none.
    pub project_id: String,
    /// Its name.
    pub project_name: String,
    /// Its domain.
    pub project_domain: Option<String>,
    /// In lower case.
    pub roles: Vec<String>,
    /// Roles of the service token that came along, in lower case.
    pub service_roles: Vec<String>,
    /// By what the user has handed the token to the one who asks; nothing where the user asks.
    pub delegation: Option<String>,
}

impl Caller {
    /// The user of the request; `None` without a confirmed token, or with an invalid service token.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        if text(headers, "x-identity-status") != Some("Confirmed") {
            return None;
        }
        if headers.contains_key("x-service-identity-status")
            && text(headers, "x-service-identity-status") != Some("Confirmed")
        {
            return None;
        }
        let one = |name: &str, older: &str| {
            let found = text(headers, name).or_else(|| text(headers, older));
            found.unwrap_or_default().to_owned()
        };
        let domain = |name: &str| text(headers, name).map(Into::into);
        Some(Self {
            user_id: one("x-user-id", ""),
            user_name: one("x-user-name", ""),
            user_domain: domain("x-user-domain-id"),
            project_id: one("x-project-id", "x-tenant-id"),
            project_name: one("x-project-name", "x-tenant-name"),
            project_domain: domain("x-project-domain-id"),
            roles: list(headers, "x-roles"),
            service_roles: list(headers, "x-service-roles"),
            delegation: text(headers, DELEGATION_HEADER).map(Into::into),
        })
    }

    /// Whether they have one of these roles, which are in lower case.
    pub fn has_role_of(&self, roles: &[String]) -> bool {
        roles.iter().any(|role| self.roles.contains(role))
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    if name.is_empty() {
        return None;
    }
    std::str::from_utf8(headers.get(name)?.as_bytes()).ok()
}

fn list(headers: &HeaderMap, name: &str) -> Vec<String> {
    let words = text(headers, name).unwrap_or_default().split(',').map(str::trim);
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(lines: &[(&'static str, &str)]) -> Option<Caller> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.insert(*name, value.parse().unwrap());
        }
        Caller::of(&headers)
    }

    #[test]
    fn only_the_confirmed() {
        assert_eq!(caller(&[("x-user-id", "u")]), None);
        assert_eq!(caller(&[("x-identity-status", "Invalid"), ("x-user-id", "u")]), None);
        let found = caller(&[("x-identity-status", "Confirmed"), ("x-roles", "Admin, b,")]).unwrap();
        assert_eq!(
            (found.roles, found.project_id),
            (vec!["admin".into(), "b".into()], String::new())
        );
        let service = ("x-service-identity-status", "Invalid");
        assert_eq!(caller(&[("x-identity-status", "Confirmed"), service]), None);
    }
}
