//! Signed addresses in front of a core that tells what it sees.

use super::*;
use crate::access::signatures::sign;
use crate::testing::{request, shown_headers, with_headers};
use request_pipeline::{AccountInfo, ContainerInfo, Core, InfoSource, Pipeline};
use settings::kinds::DigestKind;
use world::clock::RealClock;

/// An account with the key `akey`, with containers whose key is `ckey`.
struct SignedCore;

#[async_trait::async_trait]
impl Core for SignedCore {
    async fn handle(&self, mut request: ClientRequest) -> Response {
        if let Some(authorizer) = request.authorizer.clone()
            && let Err(refusal) = authorizer.authorize(&mut request, self).await
        {
            return refusal;
        }
        let status = if request.path.ends_with("none") { 404 } else { 200 };
        let user = request.remote_user.clone().unwrap_or_default();
        let mut response = reply::plain(status, format!("{user} {}", request.query));
        for (name, value) in request.headers {
            response.headers_mut().insert(name.unwrap(), value);
        }
        response
    }

    fn info(&self) -> &dyn InfoSource {
        self
    }
}

#[async_trait::async_trait]
impl InfoSource for SignedCore {
    async fn account(&self, _account: &str) -> Arc<AccountInfo> {
        let meta = [("temp-url-key".to_owned(), "akey".to_owned())].into();
        Arc::new(AccountInfo {
            meta,
            ..AccountInfo::default()
        })
    }

    async fn container(&self, _account: &str, _container: &str) -> Arc<ContainerInfo> {
        let meta = [("temp-url-key-2".to_owned(), "ckey".to_owned())].into();
        Arc::new(ContainerInfo {
            meta,
            ..ContainerInfo::default()
        })
    }
}

const LATER: u64 = 9_000_000_000;

fn target(key: &str, method: &str, path: &str) -> String {
    let signature = sign(DigestKind::Sha256, key, &format!("{method}\n{LATER}\n{path}"));
    format!("{path}?temp_url_sig={signature}&temp_url_expires={LATER}")
}

async fn ask(request: ClientRequest) -> Response {
    let feature = TempUrl::new(TempUrlSettings::default(), Arc::new(RealClock::new()));
    Pipeline::new(vec![Arc::new(feature)], Arc::new(SignedCore))
        .run(request)
        .await
}

async fn status(method: &str, target: &str) -> u16 {
    ask(request(method, target)).await.status().as_u16()
}

#[tokio::test]
async fn a_right_signature_is_enough() {
    for key in ["akey", "ckey"] {
        assert_eq!(status("GET", &target(key, "GET", "/v1/a/c/o")).await, 200);
    }
    let response = ask(request(
        "GET",
        &(target("akey", "GET", "/v1/a/c/o") + "&multipart-manifest=get"),
    ))
    .await;
    assert_eq!(
        response.headers()[CONTENT_DISPOSITION],
        "attachment; filename=\"o\"; filename*=UTF-8''o"
    );
    assert_eq!(response.headers()[EXPIRES], "Wed, 14 Mar 2255 16:00:00 GMT");
    let body = response.body().as_whole().unwrap();
    assert!(body.starts_with(b".wsgi.tempurl temp_url_sig="));
    assert!(
        body.ends_with(b"&temp_url_expires=9000000000"),
        "no other parameter goes on"
    );
    let response = ask(request("GET", &target("akey", "GET", "/v1/a/c/none"))).await;
    assert_eq!(response.status(), 404);
    assert!(!response.headers().contains_key(EXPIRES));
}

#[tokio::test]
async fn anything_else_is_not() {
    let right = target("akey", "GET", "/v1/a/c/o");
    for (method, target) in [
        ("GET", target("other", "GET", "/v1/a/c/o")),
        ("GET", right.replace("/o?", "/p?")),
        ("GET", right.replace("9000000000", "9000000001")),
        ("GET", right.replace("9000000000", "5")),
        ("GET", right.replace("temp_url_expires", "x")),
        ("GET", right.replace("temp_url_sig", "x")),
        ("GET", format!("{right}&temp_url_prefix=")),
        ("GET", format!("{right}&temp_url_ip_range=127.0.0.1")),
        ("PUT", right.clone()),
        ("COPY", target("akey", "COPY", "/v1/a/c/o")),
        ("GET", target("akey", "GET", "/v1/a/c")),
        ("GET", target("akey", "GET", "/v1/a/c/")),
        ("GET", target("akey", "GET", "/v1/a/c///")),
        ("GET", target("akey", "GET", "/v2/a/c/o")),
        ("HEAD", target("akey", "DELETE", "/v1/a/c/o")),
    ] {
        let response = ask(request(method, &target)).await;
        assert_eq!(response.status(), 401, "{method} {target}");
        assert_eq!(response.headers()[WWW_AUTHENTICATE], "Swift realm=\"unknown\"");
    }
    let text = ask(request("PUT", &right)).await.body().as_whole().unwrap();
    assert_eq!(text, "401 Unauthorized: Temp URL invalid\n");
}

#[tokio::test]
async fn who_may_use_an_object_may_look_at_it() {
    for method in ["HEAD", "GET", "PUT", "POST"] {
        assert_eq!(status("HEAD", &target("akey", method, "/v1/a/c/o")).await, 200);
    }
    assert_eq!(status("GET", &target("akey", "HEAD", "/v1/a/c/o")).await, 401);
    assert_eq!(status("OPTIONS", "/v1/a/c/o?temp_url_sig=x").await, 200);
    assert_eq!(status("GET", "/v1/a/c/o?x=temp_url_sig").await, 200);
}

#[tokio::test]
async fn prefixes_and_ranges_are_signed_too() {
    let signed = |text: &str| sign(DigestKind::Sha1, "akey", text);
    let by_prefix = signed("GET\n9000000000\nprefix:/v1/a/c/p/");
    let query = format!("temp_url_sig={by_prefix}&temp_url_expires={LATER}&temp_url_prefix=p/");
    assert_eq!(status("GET", &format!("/v1/a/c/p/q/o?{query}")).await, 200);
    assert_eq!(status("GET", &format!("/v1/a/c/p?{query}")).await, 401);
    assert_eq!(status("GET", &format!("/v1/a/d/p/q?{query}")).await, 401);
    let by_range = signed("ip=127.0.0.0/8\nGET\n9000000000\n/v1/a/c/o");
    let query = format!("temp_url_sig={by_range}&temp_url_expires={LATER}&temp_url_ip_range=127.0.0.0/8");
    assert_eq!(status("GET", &format!("/v1/a/c/o?{query}")).await, 200);
    let mut from_elsewhere = request("GET", &format!("/v1/a/c/o?{query}"));
    from_elsewhere.from = ([10, 0, 0, 1], 1).into();
    from_elsewhere
        .headers
        .insert("x-forwarded-for", HeaderValue::from_static("127.0.0.1"));
    assert_eq!(ask(from_elsewhere).await.status(), 401);
}

#[tokio::test]
async fn containers_are_shown_as_pages_only() {
    let signature = sign(DigestKind::Sha1, "akey", "GET\n9000000000\nprefix:/v1/a/c/");
    let target = format!("/v1/a/c/?temp_url_sig={signature}&temp_url_expires={LATER}&temp_url_prefix=");
    assert_eq!(status("GET", &target).await, 401);
    let page = with_headers(request("GET", &target), &[("x-backend-content-generator", "staticweb")]);
    let response = ask(page).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()[CONTENT_DISPOSITION], "inline");
}

#[tokio::test]
async fn headers_are_taken_off() {
    let sent = [
        ("x-timestamp", "1"),
        ("x-open-expired", "1"),
        ("x-object-meta-a", "1"),
        ("x-object-meta-public-a", "1"),
    ];
    let response = ask(with_headers(request("GET", &target("akey", "GET", "/v1/a/c/o")), &sent)).await;
    let seen: Vec<String> = shown_headers(&response)
        .into_iter()
        .filter(|line| line.starts_with("x-"))
        .collect();
    assert_eq!(seen, ["x-object-meta-public-a: 1"]);
    for (name, shown) in NOT_WHEN_WRITING {
        for (method, code) in [("PUT", 400), ("POST", 400), ("GET", 200)] {
            let asked = with_headers(request(method, &target("akey", method, "/v1/a/c/o")), &[(name, "c/x")]);
            let response = ask(asked).await;
            assert_eq!(response.status(), code);
            let text = response.body().as_whole().unwrap();
            let refusal = format!("The header '{shown}' is not allowed in this tempurl");
            assert_eq!(text == refusal.as_bytes(), code == 400);
        }
    }
}

#[test]
fn as_openstack_tells_in_info() {
    let feature = TempUrl::new(TempUrlSettings::default(), Arc::new(RealClock::new()));
    let (name, section) = feature.info().pop().unwrap();
    assert_eq!(
        format!("{name} {}", pythonic::json(&section)),
        r#"tempurl {"methods": ["GET", "HEAD", "PUT", "POST", "DELETE"], "incoming_remove_headers": ["x-timestamp", "x-open-expired"], "incoming_allow_headers": [], "outgoing_remove_headers": ["x-object-meta-*"], "outgoing_allow_headers": ["x-object-meta-public-*"], "allowed_digests": ["sha1", "sha256", "sha512"], "deprecated_digests": ["sha1"]}"#
    );
}
