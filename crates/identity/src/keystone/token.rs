//! A token as Keystone describes it, and the headers that `authtoken` makes of it.
//!
//! The JSON is that of `GET /v3/auth/tokens`: `{"token": {"user": …, "project": …, "roles": […], "expires_at": …}}`.

use http::{HeaderName, HeaderValue};
use serde_json::Value;
use vocabulary::calendar::{LAST_SECOND, parse_iso};

/// Why a description of a token cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not the JSON of a token.
    #[error("the identity server described a token in a way that is not understood")]
    Shape,
    /// Of an application credential that is for some requests only. Keystone confirms none to a service that does not
    /// announce that it checks such rules; other services may, and leave it in the cache that they share.
    #[error("the token has access rules, which are not checked here")]
    AccessRules,
}

/// Whose token: the caller's own, or that of a service which passes a caller's on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// `X-Auth-Token`.
    User,
    /// `X-Service-Token`.
    Service,
}

/// What Keystone says about a good token.
#[derive(Clone, PartialEq)]
pub struct Token {
    /// Seconds since 1970.
    pub expires: f64,
    roles: Vec<String>,
    user: Named,
    project: Option<Named>,
    domain: Option<(String, String)>,
    system: bool,
    /// By what the user has handed it to another, if they have.
    delegation: Option<&'static str>,
    /// As Keystone sent it, without the catalogue and the token's own text, for the shared cache.
    description: Value,
}

#[derive(Clone, PartialEq)]
struct Named {
    id: String,
    name: String,
    domain_id: String,
    domain_name: String,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let project = self.project.as_ref().map_or("no project", |project| &project.id);
        write!(f, "Token({} in {project}: {})", self.user.id, self.roles.join(","))
    }
}

impl Token {
    /// Reads a description.
    pub fn parse(description: &Value) -> Result<Self, TokenError> {
        let token = description.get("token").ok_or(TokenError::Shape)?;
        let credential = token.get("application_credential");
        if credential
            .and_then(|credential| credential.get("access_rules"))
            .is_some_and(|rules| !rules.is_null())
        {
            return Err(TokenError::AccessRules);
        }
        let roles = token.get("roles").and_then(Value::as_array);
        let names = roles
            .into_iter()
            .flatten()
            .filter_map(|role| role.get("name")?.as_str());
        let expires = token.get("expires_at").and_then(Value::as_str).and_then(seconds);
        let mut kept = token.clone();
        if let Some(fields) = kept.as_object_mut() {
            fields.shift_remove("catalog");
            fields.shift_remove("auth_token");
        }
        Ok(Self {
            expires: expires.ok_or(TokenError::Shape)?,
            roles: names.map(Into::into).collect(),
            user: token.get("user").and_then(named).ok_or(TokenError::Shape)?,
            project: token.get("project").and_then(named),
            domain: token.get("domain").and_then(pair),
            system: token.get("system").is_some_and(Value::is_object),
            delegation: delegation(token),
            description: kept,
        })
    }

    /// Without what only [`Token::to_cache`] needs, to hold many in memory.
    pub fn without_description(self) -> Self {
        Self {
            description: Value::Null,
            ..self
        }
    }

    /// Whether the token has one of these roles.
    pub fn has_role_of(&self, roles: &[String]) -> bool {
        self.roles.iter().any(|role| roles.contains(role))
    }

    /// The description as OpenStack's filter leaves it in memcached, without the token's own text, which that does not
    /// read: the entry is found by its digest.
    pub fn to_cache(&self) -> Value {
        let mut token = self.description.clone();
        if let Some(fields) = token.as_object_mut() {
            fields.insert("version".into(), "v3".into());
        }
        let mut whole = serde_json::Map::new();
        whole.insert("token".into(), token);
        // A text that holds JSON: the filter serialises once itself, and the cache does again.
        Value::String(Value::Object(whole).to_string())
    }

    /// Reads what [`Token::to_cache`] or OpenStack's filter left, if it is about this token.
    pub fn from_cache(value: &Value, secret: &str) -> Option<Self> {
        let description: Value = serde_json::from_str(value.as_str()?).ok()?;
        let about = description.get("token")?.get("auth_token");
        if about.is_some_and(|text| text.as_str() != Some(secret)) {
            return None;
        }
        let mut token = Self::parse(&description).ok()?;
        if let Some(fields) = token.description.as_object_mut() {
            fields.shift_remove("version");
        }
        Some(token)
    }

    /// The headers that say who it is for. What does not fit into a header is left out: it then matches nothing.
    pub fn headers(&self, whose: Whose) -> Vec<(HeaderName, HeaderValue)> {
        let mut headers = Vec::with_capacity(16);
        let names = match whose {
            Whose::User => &USER_HEADERS,
            Whose::Service => &SERVICE_HEADERS,
        };
        let roles = self.roles.join(",");
        let mut add = |name: &'static str, value: &str| {
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                headers.push((HeaderName::from_static(name), value));
            }
        };
        add(names.status, "Confirmed");
        add(names.roles, &roles);
        for (of, entity) in [(&names.user, Some(&self.user)), (&names.project, self.project.as_ref())] {
            if let Some(entity) = entity {
                let values = [&entity.id, &entity.name, &entity.domain_id, &entity.domain_name];
                of.iter().zip(values).for_each(|(name, value)| add(name, value));
            }
        }
        if let Some((id, name)) = &self.domain {
            add(names.domain[0], id);
            add(names.domain[1], name);
        }
        if whose == Whose::User && self.system {
            add(SYSTEM_SCOPE, "all");
        }
        if let Some(delegation) = self.delegation.filter(|_| whose == Whose::User) {
            add(DELEGATION_HEADER, delegation);
        }
        headers
    }
}

const SYSTEM_SCOPE: &str = "openstack-system-scope";

/// By what the token was handed on: a header of Martlet's own, which says that the caller may not get lasting rights.
pub(super) const DELEGATION_HEADER: &str = "x-token-delegation";

struct Headers {
    status: &'static str,
    roles: &'static str,
    user: [&'static str; 4],
    project: [&'static str; 4],
    domain: [&'static str; 2],
}

const USER_HEADERS: Headers = Headers {
    status: "x-identity-status",
    roles: "x-roles",
    user: ["x-user-id", "x-user-name", "x-user-domain-id", "x-user-domain-name"],
    project: [
        "x-project-id",
        "x-project-name",
        "x-project-domain-id",
        "x-project-domain-name",
    ],
    domain: ["x-domain-id", "x-domain-name"],
};

const SERVICE_HEADERS: Headers = Headers {
    status: "x-service-identity-status",
    roles: "x-service-roles",
    user: [
        "x-service-user-id",
        "x-service-user-name",
        "x-service-user-domain-id",
        "x-service-user-domain-name",
    ],
    project: [
        "x-service-project-id",
        "x-service-project-name",
        "x-service-project-domain-id",
        "x-service-project-domain-name",
    ],
    domain: ["x-service-domain-id", "x-service-domain-name"],
};

/// The old names, and what is said of a token without being any of the above.
const OTHER_HEADERS: [&str; 9] = [
    "x-user",
    "x-role",
    "x-tenant",
    "x-tenant-id",
    "x-tenant-name",
    "x-service-catalog",
    "x-is-admin-project",
    DELEGATION_HEADER,
    SYSTEM_SCOPE,
];

/// Whether only `authtoken` may set this header.
pub fn is_identity_header(name: &str) -> bool {
    if !name.starts_with("x-") {
        return name == SYSTEM_SCOPE;
    }
    let of = |headers: &Headers| {
        name == headers.status
            || name == headers.roles
            || headers.user.contains(&name)
            || headers.project.contains(&name)
            || headers.domain.contains(&name)
    };
    of(&USER_HEADERS) || of(&SERVICE_HEADERS) || OTHER_HEADERS.contains(&name)
}

/// By what a user has handed rights to the holder of the token; nothing for who has shown that they are the user, and
/// for an application credential that was made to stand for its user in everything.
fn delegation(token: &Value) -> Option<&'static str> {
    let methods = token.get("methods").and_then(Value::as_array);
    let has = |field: &str| token.get(field).is_some_and(|value| !value.is_null());
    let is_by = |method: &str| {
        let mut methods = methods.into_iter().flatten();
        methods.any(|one| one.as_str() == Some(method))
    };
    let is_restricted = token
        .get("application_credential")
        .and_then(|credential| credential.get("restricted"))
        .and_then(Value::as_bool);
    let has_credential = has("application_credential") || is_by("application_credential");
    [
        (has("OS-TRUST:trust"), "trust"),
        (has("OS-OAUTH1") || is_by("oauth1"), "OAuth"),
        (is_by("oauth2_credential"), "OAuth"),
        (is_by("ec2credential"), "EC2 credential"),
        (has_credential && is_restricted != Some(false), "application credential"),
    ]
    .into_iter()
    .find_map(|(is_so, name)| is_so.then_some(name))
}

fn named(value: &Value) -> Option<Named> {
    let (id, name) = pair(value)?;
    let (domain_id, domain_name) = value.get("domain").and_then(pair).unwrap_or_default();
    Some(Named {
        id,
        name,
        domain_id,
        domain_name,
    })
}

fn pair(value: &Value) -> Option<(String, String)> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    Some((text("id")?.into(), text("name").unwrap_or_default().into()))
}

/// `2026-11-20T16:10:59.000000Z` in seconds since 1970.
fn seconds(text: &str) -> Option<f64> {
    let (seconds, rest) = parse_iso(text, LAST_SECOND)?;
    let decimals = rest.strip_suffix('Z')?;
    let is_fraction = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let fraction: f64 = match decimals.strip_prefix('.') {
        None => decimals.is_empty().then_some(0.0)?,
        Some(digits) => decimals.parse().ok().filter(|_| is_fraction(digits))?,
    };
    Some(seconds as f64 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn description() -> Value {
        json!({"token": {
            "user": {"id": "u1", "name": "ü", "domain": {"id": "default", "name": "Default"}},
            "project": {"id": "p1", "name": "test", "domain": {"id": "d2", "name": "other"}},
            "roles": [{"id": "1", "name": "admin"}, {"id": "2", "name": "reader"}],
            "expires_at": "2026-11-20T16:10:59.500000Z", "catalog": [{"type": "x"}],
        }})
    }

    #[test]
    fn what_a_token_says() {
        let token = Token::parse(&description()).unwrap();
        assert_eq!(token.expires, 1_795_191_059.5);
        let shown = |whose| -> Vec<String> {
            let headers = token.headers(whose);
            assert!(headers.iter().all(|(name, _)| is_identity_header(name.as_str())));
            headers
                .iter()
                .map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(value.as_bytes())))
                .collect()
        };
        assert_eq!(
            shown(Whose::User),
            [
                "x-identity-status=Confirmed",
                "x-roles=admin,reader",
                "x-user-id=u1",
                "x-user-name=ü",
                "x-user-domain-id=default",
                "x-user-domain-name=Default",
                "x-project-id=p1",
                "x-project-name=test",
                "x-project-domain-id=d2",
                "x-project-domain-name=other"
            ]
        );
        assert_eq!(shown(Whose::Service)[1], "x-service-roles=admin,reader");
        assert!(!is_identity_header("x-auth-token") && is_identity_header("x-tenant-id"));
    }

    #[test]
    fn the_shared_cache_keeps_it() {
        let token = Token::parse(&description()).unwrap();
        let cached = token.to_cache();
        let text = cached.as_str().unwrap();
        assert!(text.contains("\"version\":\"v3\""));
        assert!(!text.contains("catalog") && !text.contains("auth_token"));
        assert_eq!(Token::from_cache(&cached, "secret"), Some(token.clone()));
        // OpenStack's filter leaves the text of the token in it.
        let mut theirs: Value = serde_json::from_str(text).unwrap();
        theirs["token"]["auth_token"] = "secret".into();
        let theirs = Value::String(theirs.to_string());
        assert_eq!(Token::from_cache(&theirs, "secret"), Some(token));
        assert_eq!(Token::from_cache(&theirs, "other"), None);
        assert_eq!(Token::from_cache(&json!("rubbish"), "secret"), None);
        assert_eq!(Token::from_cache(&json!(["invalid"]), "secret"), None);
    }

    #[test]
    fn access_rules_make_it_none() {
        let mut described = description();
        described["token"]["application_credential"] = json!({"id": "c", "restricted": true, "access_rules": null});
        let cached = |described: &Value| Value::String(described.to_string());
        assert!(Token::parse(&described).is_ok() && Token::from_cache(&cached(&described), "secret").is_some());
        for rules in [
            json!([]),
            json!([{"path": "/v1/AUTH_p/c", "method": "GET", "service": "object-store"}]),
        ] {
            described["token"]["application_credential"]["access_rules"] = rules;
            assert_eq!(Token::parse(&described), Err(TokenError::AccessRules));
            assert_eq!(Token::from_cache(&cached(&described), "secret"), None);
        }
    }

    #[test]
    fn rights_that_were_handed_on() {
        let found = |field: &str, value: Value| {
            let mut described = description();
            described["token"][field] = value;
            let token = Token::parse(&described).unwrap();
            let name = |whose| {
                let mut headers = token.headers(whose).into_iter();
                headers.find(|(name, _)| name == DELEGATION_HEADER)
            };
            assert!(name(Whose::Service).is_none());
            let again = Token::from_cache(&token.to_cache(), "secret").unwrap();
            assert!(again == token && again.without_description().delegation == token.delegation);
            name(Whose::User).map(|(_, value)| value.to_str().unwrap().to_owned())
        };
        assert!(is_identity_header(DELEGATION_HEADER));
        for (field, value, expected) in [
            ("methods", json!(["password", "token", "totp"]), None),
            (
                "OS-TRUST:trust",
                json!({"id": "t", "impersonation": true}),
                Some("trust"),
            ),
            ("OS-OAUTH1", json!({"access_token_id": "a"}), Some("OAuth")),
            ("methods", json!(["oauth1"]), Some("OAuth")),
            ("methods", json!(["ec2credential"]), Some("EC2 credential")),
            (
                "application_credential",
                json!({"id": "c", "restricted": true}),
                Some("application credential"),
            ),
            (
                "application_credential",
                json!({"id": "c"}),
                Some("application credential"),
            ),
            (
                "methods",
                json!(["token", "application_credential"]),
                Some("application credential"),
            ),
            ("application_credential", json!({"id": "c", "restricted": false}), None),
        ] {
            assert_eq!(found(field, value.clone()).as_deref(), expected, "{field} {value}");
        }
    }

    #[test]
    fn moments() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0.0)),
            ("2000-02-29T12:00:00.000000Z", Some(951_825_600.0)),
            ("2100-03-01T00:00:00Z", Some(4_107_542_400.0)),
            ("1970-01-01T00:00:00.25Z", Some(0.25)),
            ("2026-13-01T00:00:00Z", None),
            ("2026-02-30T00:00:00Z", None),
            ("2026-11-20T16:10:60Z", None),
            ("2026-11-20T16:10:59.Z", None),
            ("2026-11-20T16:10:59", None),
            ("2026-11-20 16:10:59", None),
            ("", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC*", moment in "[0-9:.TZ-]*") {
            let _ = seconds(&moment);
            let _ = Token::from_cache(&Value::String(text.clone()), "x");
            let nested = json!({"token": {"user": text, "roles": [text, {"name": 1}], "expires_at": moment}});
            let _ = Token::parse(&nested);
        }
    }
}
