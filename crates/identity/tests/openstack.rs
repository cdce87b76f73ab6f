//! TempAuth's answers and decisions against OpenStack's, question by question.
#![allow(clippy::unwrap_used, reason = "tests may fail by panicking")]

mod oracle;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use identity::account_acl::AccountAcl;
use identity::authenticator::{AuthRequest, Authenticator, Unauthorized, www_authenticate};
use identity::decide::{AccountAclSource, Decision, RequestFacts};
use identity::{TempAuth, TokenCache};
use oracle::compare;
use serde_json::{Value, json};
use settings::declare::Scope;
use settings::{Document, TempAuthSettings};
use std::path::Path;
use std::sync::Arc;
use vocabulary::{EntityPath, Timestamp};

fn conf(extra: &[(&str, &str)]) -> Value {
    let mut conf = json!({
        "user_test_tester": "testing .admin",
        "user_test_tester3": "testing3",
        "user_test2_tester2": "testing2 .admin",
        "user_test5_tester5": "testing5 service",
        "user_admin_admin": "admin .admin .reseller_admin",
        "user_admin_auditor": "admin_ro .reseller_reader",
        "user_test_url": "k .admin http://other/v1/AUTH_x",
        "user_test_host": "k .admin $HOST/v1/AUTH_y",
        "user64_YV9j_w7w": "k .admin"
    });
    for (name, value) in extra {
        conf[*name] = Value::from(*value);
    }
    conf
}

fn confs() -> [Value; 3] {
    [
        conf(&[
            ("reseller_prefix", "AUTH, SERVICE"),
            ("SERVICE_require_group", "service"),
        ]),
        conf(&[("require_group", "service"), ("auth_prefix", "login")]),
        conf(&[("reseller_prefix", "'', SERVICE"), ("SERVICE_require_group", "service")]),
    ]
}

fn tempauth(conf: &Value, cache: Option<Arc<dyn TokenCache>>) -> TempAuth {
    let mut text = String::from("[filter:tempauth]\n");
    for (name, value) in conf.as_object().unwrap() {
        text.push_str(&format!("{name} = {}\n", value.as_str().unwrap()));
    }
    let document = Document::parse(Path::new("proxy-server.conf"), &text).unwrap();
    let scope = Scope::paste(&document, "filter:tempauth").unwrap();
    TempAuth::new(&TempAuthSettings::read(&scope).unwrap(), cache)
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(future)
}

struct Asked {
    method: Method,
    path: String,
    headers: HeaderMap,
}

impl Asked {
    fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.parse().unwrap(),
            path: vocabulary::names::unquote(path).unwrap(),
            headers: HeaderMap::new(),
        }
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().unwrap();
        self.headers
            .insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        self
    }

    fn request(&self) -> AuthRequest<'_> {
        AuthRequest {
            method: &self.method,
            path: &self.path,
            headers: &self.headers,
            scheme: "http",
            host: self.headers.get("host").map_or("localhost:80", |h| h.to_str().unwrap()),
            now: Timestamp::from_seconds(1_700_000_000),
            random: &|| [0xab; 16],
        }
    }
}

/// One user has one token at a time here, so each needs a TempAuth of its own; the random
/// bytes distinguish the tokens.
fn token(auth: &TempAuth, auth_path: &str, who: &Value, random: u8) -> Option<String> {
    let Some(pair) = who.as_array() else {
        return who.as_str().map(Into::into);
    };
    let asked = Asked::new("GET", auth_path)
        .with("x-auth-user", pair[0].as_str().unwrap())
        .with("x-auth-key", pair[1].as_str().unwrap());
    let bytes = move || [random; 16];
    let request = AuthRequest {
        random: &bytes,
        ..asked.request()
    };
    let reply = run(auth.serve(&request)).unwrap();
    let (_, token) = reply.headers.iter().find(|(name, _)| name == "x-auth-token").unwrap();
    Some(token.to_str().unwrap().to_owned())
}

fn our_decision(question: &Value) -> Value {
    let auth = tempauth(&question["conf"], None);
    let login = question["conf"]
        .get("auth_prefix")
        .map_or("/auth/v1.0", |_| "/login/v1.0");
    let mut asked = Asked::new(question["method"].as_str().unwrap(), question["path"].as_str().unwrap());
    for (name, field, random) in [("x-auth-token", "user", 1), ("x-service-token", "service", 2)] {
        if let Some(token) = token(&auth, login, &question[field], random) {
            asked = asked.with(name, &token);
        }
    }
    let identity = match run(auth.identify(&asked.request())) {
        Ok(identity) => identity,
        Err(Unauthorized(realm)) => {
            return json!({"status": 401, "owner": false, "realm": realm.to_str().unwrap()});
        }
    };
    let path = EntityPath::split(asked.path.splitn(3, '/').nth(2).unwrap()).ok();
    let facts = RequestFacts {
        method: &asked.method,
        account: path.as_ref().map(|p| p.account.as_str()),
        container: path.as_ref().and_then(|p| p.container.as_deref()),
        object: path.as_ref().and_then(|p| p.object.as_deref()),
        referer: question["referer"].as_str(),
    };
    let container_acl = question["container_acl"].as_str();
    let decide = |source| auth.authorize(&facts, identity.as_deref(), container_acl, source);
    let stored = question["account_acl"].as_str().map(AccountAcl::parse);
    let decision = match decide(AccountAclSource::NotFetched) {
        Decision::NeedsAccountAcl => decide(AccountAclSource::Fetched(stored.as_ref())),
        decision => decision,
    };
    let (status, owner) = match decision {
        Decision::Allow { owner } => (StatusCode::OK, owner),
        Decision::Deny(status) => (status, false),
        Decision::NeedsAccountAcl => unreachable!(),
    };
    let realm = (status == StatusCode::UNAUTHORIZED).then(|| www_authenticate(&asked.path));
    let realm = realm.map(|r| r.to_str().unwrap().to_owned());
    json!({"status": status.as_u16(), "owner": owner, "realm": realm})
}

/// A few thousand combinations, always the same ones.
#[test]
fn decisions() {
    let users = json!([
        null,
        ["test:tester", "testing"],
        ["test:tester3", "testing3"],
        ["test2:tester2", "testing2"],
        ["test5:tester5", "testing5"],
        ["admin:admin", "admin"],
        ["admin:auditor", "admin_ro"],
        ["test:url", "k"],
        ["a_c:ü", "k"],
        "AUTH_tkbad",
        "bogus"
    ]);
    let services = json!([null, null, ["test5:tester5", "testing5"], "AUTH_tkbad"]);
    let methods = ["GET", "HEAD", "PUT", "POST", "DELETE", "COPY", "OPTIONS"];
    let paths = [
        "/v1/AUTH_test",
        "/v1/AUTH_test/c",
        "/v1/AUTH_test/c/o",
        "/v1/SERVICE_test",
        "/v1/SERVICE_test/c/o",
        "/v1/AUTH_x/c",
        "/v1/test/c/o",
        "/v1/AUTH_",
        "/v1/AUTH_.x/c/o",
        "/v1/.x/c",
        "/v1/SERVICE_",
        "/v1/AUTH_a_c/c",
    ];
    let acls = json!([
        null,
        null,
        "",
        ".r:*",
        ".r:*,.rlistings",
        ".rlistings",
        "test:tester3",
        "test",
        "*:*",
        "test:*",
        "AUTH_test2",
        "service",
        ".r:.example.com,.rlistings",
        ".r:*,.r:-.example.com",
        ".r:-*",
        ".r:*,test2",
        ".reseller_admin",
        "a_c:ü"
    ]);
    let account_acls = json!([
        null,
        null,
        "",
        "rubbish",
        "[]",
        "{\"admin\":[\"test:tester3\"]}",
        "{\"read-write\":[\"test\",\"test2:tester2\"]}",
        "{\"read-only\":[\"test:tester3\",\"test2\",\"service\"]}",
        "{\"read-only\":[\"test\"],\"admin\":[\"test2:tester2\"]}",
        "{\"admin\":[\"*\"]}"
    ]);
    let referers = json!([null, null, "http://www.example.com/x", "http://example.com", "junk"]);
    let confs = confs();
    let mut seed: u64 = 1;
    let mut pick = |n: usize| -> usize {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    };
    let mut from = |list: &Value| -> Value { list[pick(list.as_array().unwrap().len())].clone() };
    let mut questions = Vec::new();
    for n in 0..6000 {
        let conf = &confs[n % confs.len()];
        let mut user = from(&users);
        if n % confs.len() == 2 && user == "bogus" {
            // With the empty prefix every token is ours.
            user = Value::Null;
        }
        let mut question = json!({"ask": "authorize", "conf": conf, "user": user});
        question["service"] = from(&services);
        question["method"] = from(&json!(methods));
        question["path"] = from(&json!(paths));
        question["container_acl"] = from(&acls);
        question["account_acl"] = from(&account_acls);
        question["referer"] = from(&referers);
        if conf.get("auth_prefix").is_some() {
            // The script signs in at /auth/.
            question["conf"]["auth_prefix"] = Value::from("/auth/");
        }
        questions.push(question);
    }
    compare("openstack_tempauth.py", &questions, |question| {
        let mut question = question.clone();
        if let Some(conf) = question["conf"].as_object_mut() {
            conf.remove("auth_prefix");
        }
        our_decision(&question)
    });
}

#[test]
fn granting() {
    let [two_prefixes, other_path, empty_prefix] = confs();
    let pairs: [&[(&str, &str)]; 13] = [
        &[],
        &[("X-Auth-User", "test:tester"), ("X-Auth-Key", "testing")],
        &[("X-Storage-User", "test:tester"), ("X-Storage-Pass", "testing")],
        &[("X-Storage-User", "tester"), ("X-Storage-Pass", "testing")],
        &[("X-Auth-User", "test:tester"), ("X-Auth-Key", "wrong")],
        &[("X-Auth-User", "test:nobody"), ("X-Auth-Key", "testing")],
        &[("X-Auth-User", "test:tester")],
        &[("X-Auth-User", "tester"), ("X-Auth-Key", "testing")],
        &[("X-Auth-User", "a_c:ü"), ("X-Auth-Key", "k")],
        &[
            ("X-Auth-User", "test:url"),
            ("X-Auth-Key", "k"),
            ("Host", "example.com:8080"),
        ],
        &[
            ("X-Auth-User", "test:host"),
            ("X-Auth-Key", "k"),
            ("Host", "example.com:8080"),
        ],
        &[("X-Auth-User", "admin:admin"), ("X-Storage-Pass", "admin")],
        &[
            ("X-Storage-User", "test:tester3"),
            ("X-Auth-User", "test:tester"),
            ("X-Auth-Key", "testing3"),
        ],
    ];
    let paths = [
        "/auth/v1.0",
        "/auth/v1.0/",
        "/auth/v1.0/a/b/c/d",
        "/auth/auth",
        "/auth/v1",
        "/auth/v1/",
        "/auth/v1/test",
        "/auth/v1/test/",
        "/auth/v1/test/auth",
        "/auth/v1/test/auth/",
        "/auth/v1/test/auth/x",
        "/auth/v1/other/auth",
        "/auth/v1//auth",
        "/auth/",
        "/auth//v1.0",
        "/auth/v2.0",
        "/auth/test/auth",
        "/auth/a/b",
        "/login/v1.0",
    ];
    let mut questions = Vec::new();
    for conf in [&two_prefixes, &other_path, &empty_prefix] {
        let prefix = conf.get("auth_prefix").map_or("/auth/", |_| "/login/");
        for path in paths {
            for (method, pairs) in pairs
                .iter()
                .map(|p| ("GET", p))
                .chain([("POST", &pairs[1]), ("HEAD", &pairs[1])])
            {
                if !path.starts_with(prefix) {
                    continue;
                }
                let headers: serde_json::Map<String, Value> =
                    pairs.iter().map(|(n, v)| ((*n).to_owned(), Value::from(*v))).collect();
                questions
                    .push(json!({"ask": "grant", "conf": conf, "method": method, "path": path, "headers": headers}));
            }
        }
    }
    assert!(questions.len() > 300);
    compare("openstack_tempauth.py", &questions, our_grant);
}

fn our_grant(question: &Value) -> Value {
    let cache = Arc::new(Recorder::default());
    let auth = tempauth(&question["conf"], Some(cache.clone()));
    let mut asked = Asked::new(question["method"].as_str().unwrap(), question["path"].as_str().unwrap());
    for (name, value) in question["headers"].as_object().unwrap() {
        asked = asked.with(name, value.as_str().unwrap());
    }
    let reply = run(auth.serve(&asked.request())).unwrap();
    let header = |wanted: &str| {
        let found = reply.headers.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.to_str().unwrap().to_owned())
    };
    let groups = header("x-auth-token").map(|token| {
        let stored = cache.0.lock();
        let (key, value) = stored
            .iter()
            .find(|(key, _)| key.ends_with(&format!("/token/{token}")))
            .unwrap();
        let mut groups: Vec<&str> = value[1].as_str().unwrap().split(',').collect();
        groups.sort_unstable();
        json!([key.replace(&token, "<token>"), groups])
    });
    let realm = header("www-authenticate");
    json!({"status": reply.status.as_u16(), "url": header("x-storage-url"), "groups": groups, "realm": realm})
}

#[derive(Default)]
struct Recorder(parking_lot::Mutex<Vec<(String, Value)>>);

#[async_trait::async_trait]
impl TokenCache for Recorder {
    async fn get(&self, key: &str) -> Option<Value> {
        self.0.lock().iter().find(|(k, _)| k == key).map(|(_, v)| v.clone())
    }

    async fn set(&self, key: &str, value: &Value, _: std::time::Duration) {
        self.0.lock().push((key.into(), value.clone()));
    }
}
