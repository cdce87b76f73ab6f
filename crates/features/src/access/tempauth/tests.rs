//! The adapter with the real TempAuth; the decisions themselves are tested in `identity`.

use super::*;
use crate::testing::{request, shown_headers, with_headers};
use http::header::WWW_AUTHENTICATE;
use identity::TempAuth;
use request_pipeline::{AccountInfo, Core, Pipeline};
use settings::declare::Scope;
use settings::{Document, TempAuthSettings};
use std::path::Path;

/// Authorises as the core does and tells what it saw.
struct Core1 {
    account: Arc<AccountInfo>,
    acl: Option<&'static str>,
}

#[async_trait::async_trait]
impl Core for Core1 {
    async fn handle(&self, mut request: ClientRequest) -> Response {
        let authorizer = request.authorizer.clone().unwrap();
        request.acl = self.acl.map(Into::into);
        if let Err(refusal) = authorizer.authorize(&mut request, self).await {
            return refusal;
        }
        let kept = [STORED_ACCOUNT_ACL, "x-container-read"].map(|name| request.header(name).unwrap_or("-").to_owned());
        reply::plain(
            200,
            format!(
                "{} owner={} reseller={} {}",
                request.remote_user.as_deref().unwrap_or("-"),
                request.is_owner,
                request.is_reseller_admin,
                kept.join(" ")
            ),
        )
    }

    fn info(&self) -> &dyn InfoSource {
        self
    }
}

#[async_trait::async_trait]
impl InfoSource for Core1 {
    async fn account(&self, _account: &str) -> Arc<AccountInfo> {
        self.account.clone()
    }

    async fn container(&self, _account: &str, _container: &str) -> Arc<request_pipeline::ContainerInfo> {
        Arc::default()
    }
}

fn pipeline(acl: Option<&'static str>, account_acl: Option<&str>) -> Pipeline {
    let text = "[filter:tempauth]\nuse = egg:swift#tempauth\nuser_test_tester = testing .admin\n\
                user_test_tester3 = testing3\nuser_admin_admin = admin .reseller_admin\n";
    let document = Document::parse(Path::new("p.conf"), text).unwrap();
    let settings = TempAuthSettings::read(&Scope::paste(&document, "filter:tempauth").unwrap()).unwrap();
    let auth = Auth::new("tempauth", Arc::new(TempAuth::new(&settings, None)), World::real());
    let sysmeta = account_acl.map(|acl| ("core-access-control".to_owned(), acl.to_owned()));
    let account = Arc::new(AccountInfo {
        sysmeta: sysmeta.into_iter().collect(),
        ..AccountInfo::default()
    });
    Pipeline::new(vec![Arc::new(auth)], Arc::new(Core1 { account, acl }))
}

async fn log_in(pipeline: &Pipeline, user: &str, key: &str) -> Response {
    let asked = [("x-auth-user", user), ("x-auth-key", key), ("host", "h:8080")];
    pipeline.run(with_headers(request("GET", "/auth/v1.0"), &asked)).await
}

async fn answer(pipeline: &Pipeline, asked: ClientRequest) -> (u16, String) {
    let response = pipeline.run(asked).await;
    let body = response.body().as_whole().unwrap();
    let realm = response
        .headers()
        .get(WWW_AUTHENTICATE)
        .map(|v| v.to_str().unwrap().to_owned());
    let text = realm.unwrap_or_else(|| String::from_utf8_lossy(&body).into_owned());
    (response.status().as_u16(), text)
}

#[tokio::test]
async fn logging_in() {
    let pipeline = pipeline(None, None);
    let granted = log_in(&pipeline, "test:tester", "testing").await;
    let shown = shown_headers(&granted);
    assert_eq!(granted.status(), 200);
    assert_eq!(
        shown[..2],
        ["content-length: 0", "content-type: text/html; charset=UTF-8"]
    );
    assert_eq!(shown.last().unwrap(), "x-storage-url: http://h:8080/v1/AUTH_test");
    let refused = log_in(&pipeline, "test:tester", "wrong").await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["content-length"]),
        (401, &HeaderValue::from(131))
    );
    let head = pipeline.run(request("HEAD", "/auth/v1.0")).await;
    assert_eq!(
        (head.status().as_u16(), &head.headers()["content-length"]),
        (405, &HeaderValue::from(0))
    );
}

#[tokio::test]
async fn owners_strangers_and_nobody() {
    let pipeline = pipeline(None, None);
    for (user, key, expected) in [
        (
            "test:tester",
            "testing",
            (200, "test,test:tester,AUTH_test owner=true reseller=false - -"),
        ),
        (
            "admin:admin",
            "admin",
            (200, "admin,admin:admin,.reseller_admin owner=true reseller=true - -"),
        ),
        (
            "test:tester3",
            "testing3",
            (
                403,
                "<html><h1>Forbidden</h1><p>Access was denied to this resource.</p></html>",
            ),
        ),
    ] {
        let token = log_in(&pipeline, user, key).await.headers()["x-auth-token"]
            .to_str()
            .unwrap()
            .to_owned();
        let asked = with_headers(request("GET", "/v1/AUTH_test/c"), &[("x-auth-token", &token)]);
        let notes = asked.notes.clone();
        assert_eq!(answer(&pipeline, asked).await, (expected.0, expected.1.to_owned()));
        assert_eq!(notes.read().user.as_deref(), Some(user));
    }
    let nobody = answer(&pipeline, request("GET", "/v1/AUTH_test/c")).await;
    assert_eq!(nobody, (401, "Swift realm=\"AUTH_test\"".into()));
    let rubbish = with_headers(request("HEAD", "/v1/AUTH_x/c"), &[("x-auth-token", "AUTH_tk0")]);
    assert_eq!(answer(&pipeline, rubbish).await, (401, "Swift realm=\"AUTH_x\"".into()));
}

#[tokio::test]
async fn acls_of_containers_and_accounts() {
    let open = pipeline(Some(".r:*"), None);
    let anyone = answer(&open, request("GET", "/v1/AUTH_test/c/o")).await;
    assert_eq!(anyone, (200, "- owner=false reseller=false - -".into()));
    let shared = pipeline(None, Some("{\"admin\": [\"test:tester3\"]}"));
    let token = log_in(&shared, "test:tester3", "testing3").await.headers()["x-auth-token"]
        .to_str()
        .unwrap()
        .to_owned();
    let asked = with_headers(request("GET", "/v1/AUTH_test"), &[("x-auth-token", &token)]);
    assert!(answer(&shared, asked).await.1.contains("owner=true"));
}

#[tokio::test]
async fn acls_are_checked_before_they_are_stored() {
    let pipeline = pipeline(None, None);
    let token = log_in(&pipeline, "test:tester", "testing").await.headers()["x-auth-token"]
        .to_str()
        .unwrap()
        .to_owned();
    for (target, name, value, expected) in [
        (
            "/v1/AUTH_test/c",
            "x-container-read",
            " .r : * , .rlistings ",
            "- .r:*,.rlistings",
        ),
        (
            "/v1/AUTH_test/c",
            "x-container-write",
            ".r:*",
            "Referrers not allowed in write ACL: '.r:*'",
        ),
        (
            "/v1/AUTH_test",
            "x-account-access-control",
            "{\"admin\":[]}",
            "{\"admin\":[]} -",
        ),
        ("/v1/AUTH_test", "x-account-access-control", "", " -"),
        (
            "/v1/AUTH_test",
            "x-account-access-control",
            "x",
            "error in input ('x')\n\nInput: x\n",
        ),
    ] {
        let asked = with_headers(request("POST", target), &[("x-auth-token", &token), (name, value)]);
        let (status, body) = answer(&pipeline, asked).await;
        assert!(body.ends_with(expected), "{status} {body}");
    }
}
