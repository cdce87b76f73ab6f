//! Decisions about Keystone's callers against OpenStack's keystoneauth, question by question.
#![allow(clippy::unwrap_used, reason = "tests may fail by panicking")]

mod oracle;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use identity::decide::RequestFacts;
use identity::keystone::{AccountDomain, Caller, DomainSource, KeystoneRules, KeystoneVerdict, UNKNOWN_DOMAIN};
use oracle::compare;
use serde_json::{Value, json};
use settings::declare::Scope;
use settings::{Document, KeystoneAuthSettings};
use std::path::Path;
use vocabulary::EntityPath;

fn confs() -> Vec<Value> {
    vec![
        json!({}),
        json!({"reseller_prefix": "AUTH, SERVICE", "operator_roles": "Admin, operator", "SERVICE_service_roles": "service",
               "system_reader_roles": "Auditor", "AUTH_project_reader_roles": "reader"}),
        json!({"reseller_prefix": "'', SERVICE", "SERVICE_operator_roles": "other", "allow_names_in_acls": "false",
               "reseller_admin_role": "Boss", "project_reader_roles": "reader"}),
        json!({"default_domain_id": "d2", "service_roles": "service"}),
    ]
}

const PATHS: [&str; 10] = [
    "/v1/AUTH_p1",
    "/v1/AUTH_p1/c",
    "/v1/AUTH_p1/c/o",
    "/v1/AUTH_p2",
    "/v1/AUTH_p2/c",
    "/v1/AUTH_p2/c/o",
    "/v1/SERVICE_p1/c",
    "/v1/SERVICE_p1",
    "/v1/p1/c/o",
    "/v1/FOO_p1/c/o",
];

const ACLS: [Option<&str>; 14] = [
    None,
    Some("p1:u1"),
    Some("p1:*,x"),
    Some("*:u1"),
    Some("*:*"),
    Some("n1:m1"),
    Some("*:m1"),
    Some("n1:*"),
    Some("p1:m1"),
    Some("p2:u2"),
    Some(".r:*"),
    Some(".r:*,.rlistings,member"),
    Some("member"),
    Some("x,Admin,p1"),
];

/// What authtoken leaves for a user with these roles; a `-` leaves something out.
fn headers(roles: &str, service: Option<&str>, domains: (Option<&str>, Option<&str>)) -> Value {
    let mut headers = json!({
        "X-Identity-Status": "Confirmed", "X-User-Id": "u1", "X-User-Name": "m1",
        "X-Project-Id": "p1", "X-Project-Name": "n1", "X-Roles": roles
    });
    if let Some(service) = service {
        headers["X-Service-Roles"] = service.into();
        headers["X-Service-Identity-Status"] = "Confirmed".into();
    }
    if let Some(domain) = domains.0 {
        headers["X-User-Domain-Id"] = domain.into();
    }
    if let Some(domain) = domains.1 {
        headers["X-Project-Domain-Id"] = domain.into();
    }
    headers
}

fn callers() -> Vec<Value> {
    let default = (Some("default"), Some("default"));
    vec![
        json!({}),
        json!({"X-Identity-Status": "Invalid", "X-Roles": "admin", "X-Project-Id": "p1"}),
        headers("member", None, default),
        headers("ADMIN", None, default),
        headers("other,member", Some("service"), default),
        headers("admin", Some("Service"), default),
        headers("reader", None, default),
        headers("auditor", None, default),
        headers("reselleradmin", None, (Some("d2"), Some("d2"))),
        headers("boss,service", None, (Some("d2"), Some("default"))),
        headers("", None, (Some("d2"), Some("d2"))),
        headers("member", None, (None, None)),
        json!({"X-Identity-Status": "Confirmed", "X-Service-Identity-Status": "Invalid", "X-Roles": "admin",
               "X-Project-Id": "p1", "X-User-Id": "u1"}),
    ]
}

fn header_map(question: &Value) -> HeaderMap {
    let lines = question["headers"].as_object().unwrap().iter();
    lines
        .map(|(name, value)| {
            let value = HeaderValue::from_bytes(value.as_str().unwrap().as_bytes()).unwrap();
            (name.parse::<HeaderName>().unwrap(), value)
        })
        .collect()
}

fn auth(conf: &Value) -> KeystoneRules {
    let mut text = String::from("[filter:k]\n");
    for (name, value) in conf.as_object().unwrap() {
        text.push_str(&format!("{name} = {}\n", value.as_str().unwrap()));
    }
    let document = Document::parse(Path::new("proxy-server.conf"), &text).unwrap();
    let scope = Scope::paste(&document, "filter:k").unwrap();
    KeystoneRules::new(KeystoneAuthSettings::read(&scope).unwrap())
}

fn ours(question: &Value) -> Value {
    let auth = auth(&question["conf"]);
    let method: Method = question["method"].as_str().unwrap().parse().unwrap();
    let entity = EntityPath::split(question["path"].as_str().unwrap().splitn(3, '/').nth(2).unwrap()).ok();
    let account = entity.as_ref().map(|entity| entity.account.as_str());
    let facts = RequestFacts {
        method: &method,
        account,
        container: entity.as_ref().and_then(|e| e.container.as_deref()),
        object: entity.as_ref().and_then(|e| e.object.as_deref()),
        referer: question["referer"].as_str(),
    };
    let caller = Caller::of(&header_map(question));
    let exists = question["exists"].as_bool().unwrap();
    let stored = question["domain"].as_str();
    let of_account = if exists || stored.is_some() {
        stored
    } else {
        Some(UNKNOWN_DOMAIN)
    };
    let acl = question["acl"].as_str();
    let verdict = match auth.authorize(&facts, caller.as_ref(), acl, DomainSource::NotFetched) {
        KeystoneVerdict::NeedsDomain => auth.authorize(&facts, caller.as_ref(), acl, DomainSource::Fetched(of_account)),
        verdict => verdict,
    };
    let (status, owner) = match verdict {
        KeystoneVerdict::Allow { owner } => (StatusCode::OK, owner),
        KeystoneVerdict::Deny(status) => (status, false),
        KeystoneVerdict::NeedsDomain => panic!("asked for what was given"),
    };
    let allowed = status == 200;
    let reseller = allowed && caller.as_ref().is_some_and(|caller| auth.is_reseller(caller));
    let account_itself = facts.container.is_none() && (method == Method::PUT || method == Method::POST);
    let makes_container = facts.container.is_some() && facts.object.is_none() && method == Method::PUT;
    let sends = account_itself || makes_container;
    let sent = caller.as_ref().filter(|_| allowed && sends).and_then(|caller| {
        let own = auth.is_own(account.unwrap(), caller);
        auth.domain_to_store(AccountDomain { own, exists, stored }, caller)
    });
    let realm = (status == 401).then(|| identity::www_authenticate(question["path"].as_str().unwrap()));
    json!({
        "status": status.as_u16(), "owner": owner, "reseller": reseller, "domain_sent": sent,
        "domain_shown": null, "realm": realm.map(|realm| realm.to_str().unwrap().to_owned())
    })
}

#[test]
fn decisions() {
    let mut questions = Vec::new();
    for conf in confs() {
        for headers in callers() {
            for path in PATHS {
                for method in ["GET", "PUT", "DELETE", "OPTIONS"] {
                    for acl in ACLS {
                        questions.push(json!({
                            "conf": conf, "headers": headers, "path": path, "method": method, "acl": acl,
                            "domain": "default", "exists": true, "referer": null
                        }));
                    }
                }
            }
        }
    }
    compare("openstack_keystone.py", &questions, ours);
}

#[test]
fn domains() {
    let mut questions = Vec::new();
    for conf in confs() {
        for headers in callers() {
            for path in PATHS {
                for (domain, exists) in [
                    (None, false),
                    (None, true),
                    (Some("default"), true),
                    (Some("d2"), true),
                    (Some(UNKNOWN_DOMAIN), true),
                    (Some(""), true),
                ] {
                    for (method, acl) in [
                        ("PUT", None),
                        ("POST", None),
                        ("HEAD", Some("n1:m1")),
                        ("PUT", Some("n1:*")),
                    ] {
                        questions.push(json!({
                            "conf": conf, "headers": headers, "path": path, "method": method, "acl": acl,
                            "domain": domain, "exists": exists, "referer": "http://a.b/"
                        }));
                    }
                }
            }
        }
    }
    compare("openstack_keystone.py", &questions, ours);
}
