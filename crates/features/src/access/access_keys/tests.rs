use super::*;
use crate::testing::{Answer, request};
use http::HeaderMap;
use identity::access_key::{KeyHolder, KeyLimits, new_id};
use identity::signed_request::sha256;
use parking_lot::Mutex;
use request_pipeline::{ContainerInfo, Pipeline};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use vocabulary::Timestamp;
use world::Clock;

/// Seconds since the start.
struct SetSeconds(AtomicU64);

impl Clock for SetSeconds {
    fn now(&self) -> Timestamp {
        Timestamp::from_seconds(1_700_000_000 + self.0.load(Ordering::SeqCst))
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::SeqCst))
    }

    fn sleep(&self, _: Duration) -> world::BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// A gateway whose store holds one record, and what of it is read.
struct Bench {
    pipeline: Pipeline,
    clock: Arc<SetSeconds>,
    /// The status of the store's objects and the one that it holds.
    store: Arc<Mutex<(u16, String)>>,
    asked: Arc<AtomicU64>,
}

fn record() -> KeyRecord {
    KeyRecord {
        id: new_id("AUTH_a", [7; 16]),
        account: "AUTH_a".into(),
        holder: KeyHolder {
            user: "a:u".into(),
            keystone: None,
        },
        secret: "one".into(),
        former: None,
        enabled: true,
        expires: None,
        limits: KeyLimits {
            buckets: vec!["b".into()],
            actions: vec![],
        },
        description: String::new(),
        created: 0,
        secret_since: 0,
    }
}

fn bench(container_status: u16) -> Bench {
    let clock = Arc::new(SetSeconds(AtomicU64::new(0)));
    let world = World {
        clock: clock.clone(),
        ..World::real()
    };
    let settings = S3ApiSettings {
        access_key_cache_duration: Duration::from_secs(10),
        access_keys_per_account: 2,
        ..S3ApiSettings::default()
    };
    let store = Arc::new(Mutex::new((200, serde_json::to_string(&record()).unwrap())));
    let asked = Arc::new(AtomicU64::new(0));
    let (held, count) = (store.clone(), asked.clone());
    let core = Answer::new(move |request| {
        if request.path.starts_with("/v1/.access_keys/") {
            count.fetch_add(1, Ordering::SeqCst);
            assert!(request.authorize_override && request.header("x-newest") == Some("true"));
            let (status, text) = held.lock().clone();
            return match status {
                200 => reply::plain(200, text),
                status => reply::status(status),
            };
        }
        let holder = request.extensions.get::<KeyHolder>().map_or("", |holder| &holder.user);
        let limits = request
            .extensions
            .get::<Arc<KeyLimits>>()
            .map_or(0, |limits| limits.buckets.len());
        let key = request
            .extensions
            .get::<VerifiedKey>()
            .is_some_and(|key| key.signing_key.is_none());
        let is_signed = request.extensions.get::<Arc<SignedRequest>>().is_some();
        reply::plain(200, format!("{} {holder} {limits} {key} {is_signed}", request.path))
    });
    let container = ContainerInfo {
        status: container_status,
        ..ContainerInfo::default()
    };
    *core.container.lock().unwrap() = Arc::new(container);
    let feature = AccessKeys::new(&settings, store_account("."), world);
    Bench {
        pipeline: Pipeline::new(vec![Arc::new(feature)], Arc::new(core)),
        clock,
        store,
        asked,
    }
}

impl Bench {
    /// Status, the text or the refusal, and how often the store was read.
    async fn ask(&self, id: &str, secret: &str) -> (u16, String, u64) {
        let signature = base64::Engine::encode(
            &base64::engine::general_purpose::STANDARD,
            hmac_sha1(secret.as_bytes(), b"text"),
        );
        let mut asked = request("GET", &format!("/v1/{id}/b/k"));
        asked.extensions.insert(Arc::new(SignedRequest {
            access_key: id.to_owned(),
            signature,
            string_to_sign: "text".into(),
            alternative: None,
            canonical_request: None,
            scope: None,
            session_token: None,
        }));
        self.run(asked).await
    }

    async fn run(&self, asked: ClientRequest) -> (u16, String, u64) {
        let before = self.asked.load(Ordering::SeqCst);
        let response = self.pipeline.run(asked).await;
        let text = match response.extensions().get::<SignatureRefusal>() {
            Some(refusal) => format!("{refusal:?}"),
            None => String::from_utf8_lossy(&response.body().as_whole().unwrap_or_default()).into_owned(),
        };
        (
            response.status().as_u16(),
            text,
            self.asked.load(Ordering::SeqCst) - before,
        )
    }

    fn hold(&self, change: impl Fn(&mut KeyRecord)) {
        let mut changed = record();
        change(&mut changed);
        self.store.lock().1 = serde_json::to_string(&changed).unwrap();
    }

    fn pass(&self, seconds: u64) {
        self.clock.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

fn hmac_sha1(key: &[u8], message: &[u8]) -> Vec<u8> {
    use hmac::{KeyInit, Mac};
    let mut mac = hmac::Hmac::<sha1::Sha1>::new_from_slice(key).unwrap();
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

#[tokio::test]
async fn a_key_acts_as_its_user_in_its_account() {
    let (bench, id) = (bench(204), record().id);
    let passed = (200, "/v1/AUTH_a/b/k a:u 1 true false".to_owned());
    let (status, text, asked) = bench.ask(&id, "one").await;
    assert_eq!(((status, text), asked), (passed.clone(), 1));
    let (status, text, asked) = bench.ask(&id, "one").await;
    assert_eq!(((status, text), asked), (passed, 0));
    assert_eq!(bench.ask(&id, "wrong").await, (403, "WrongSignature".into(), 1));
}

#[tokio::test]
async fn changes_take_effect_within_the_cache_duration() {
    let (bench, id) = (bench(204), record().id);
    assert_eq!(bench.ask(&id, "one").await.0, 200);
    // A new secret is good at once, the old one until then.
    bench.hold(|record| record.rotate("two".into(), 1_700_000_000, 0));
    assert_eq!(bench.ask(&id, "one").await.0, 200);
    assert_eq!(bench.ask(&id, "two").await.0, 200);
    assert_eq!(bench.ask(&id, "one").await, (403, "WrongSignature".into(), 1));
    bench.store.lock().0 = 404;
    bench.pass(9);
    assert_eq!(bench.ask(&id, "two").await.0, 200);
    bench.pass(1);
    // No such key: an authenticator behind may have one of this form.
    let (status, text, asked) = bench.ask(&id, "two").await;
    assert_eq!((status, asked), (200, 1));
    assert!(text.ends_with(" true"), "{text}");
    assert_eq!(bench.ask(&id, "two").await.2, 0);
}

#[tokio::test]
async fn a_store_that_cannot_be_read_is_no_refusal() {
    let id = record().id;
    let unknown = bench(0);
    assert_eq!(unknown.ask(&id, "one").await.0, 503);
    let bench = bench(204);
    for status in [500, 503, 507, 403] {
        bench.store.lock().0 = status;
        assert_eq!(bench.ask(&id, "one").await.0, 503, "{status}");
    }
    *bench.store.lock() = (200, "no record".into());
    assert_eq!(bench.ask(&id, "one").await.0, 503);
    bench.hold(|record| record.id = new_id("AUTH_a", [8; 16]));
    assert_eq!(bench.ask(&id, "one").await.0, 503);
    // A key that was read is good until its time is over, and no longer.
    bench.hold(|_| {});
    assert_eq!(bench.ask(&id, "one").await.0, 200);
    bench.store.lock().0 = 503;
    assert_eq!(bench.ask(&id, "one").await.0, 200);
    bench.pass(10);
    assert_eq!(bench.ask(&id, "one").await.0, 503);
}

#[tokio::test]
async fn unknown_keys_push_none_out() {
    let (bench, id) = (bench(204), record().id);
    assert_eq!(bench.ask(&id, "one").await.2, 1);
    bench.store.lock().0 = 404;
    for number in 0..10_000_u32 {
        let unknown = new_id("AUTH_b", sha256(b"", &number.to_be_bytes())[..16].try_into().unwrap());
        assert_eq!(bench.ask(&unknown, "x").await.2, 1);
    }
    assert_eq!(
        bench.ask(&id, "one").await,
        (200, "/v1/AUTH_a/b/k a:u 1 true false".into(), 0)
    );
}

#[tokio::test]
async fn what_is_not_of_the_store_passes() {
    let bench = bench(204);
    for key in ["test:tester", "0123456789abcdef0123456789abcdef"] {
        let (status, text, asked) = bench.ask(key, "one").await;
        assert_eq!((status, asked), (200, 0));
        assert!(text.ends_with(" true"), "{text}");
    }
    let names_store = request("GET", "/v1/.access_keys/ABC234/MRTKABC234");
    assert_eq!(bench.run(names_store).await.0, 403);
    assert_eq!(bench.run(request("GET", "/v1/AUTH_a/c")).await.0, 200);
}

/// Authorises as an authenticator of one user would, whose rights may be lent to another.
struct Owner {
    lent: bool,
}

#[async_trait::async_trait]
impl request_pipeline::Authorizer for Owner {
    async fn authorize(
        &self,
        request: &mut ClientRequest,
        _: &dyn request_pipeline::InfoSource,
    ) -> Result<(), Response> {
        request.is_owner = request.entity.as_ref().is_some_and(|entity| entity.account == "AUTH_a");
        Ok(())
    }

    fn key_holder(&self, _: &request_pipeline::Request, _: &str, user: Option<&str>) -> Option<serde_json::Value> {
        let user = user.unwrap_or("a:u");
        (user != "a:nobody").then(|| serde_json::json!({"user": user}))
    }

    fn refuses_keys(&self) -> Option<String> {
        self.lent.then(|| "lent".into())
    }
}

#[tokio::test]
async fn owners_look_after_keys() {
    let objects: Arc<Mutex<std::collections::BTreeMap<String, bytes::Bytes>>> = Arc::default();
    let kept = objects.clone();
    let core = Answer::new(move |request| {
        let mut kept = kept.lock();
        let path = request.path.to_string();
        let is_object = request.entity.as_ref().is_some_and(|entity| entity.object.is_some());
        match (request.method.as_str(), is_object) {
            ("PUT", true) => {
                kept.insert(path, request.body.as_whole().unwrap());
                reply::status(201)
            }
            ("GET", true) => match kept.get(&path) {
                Some(body) => Response::new(peer::Body::whole(body.clone())),
                None => reply::status(404),
            },
            ("DELETE", true) => reply::status(if kept.remove(&path).is_some() { 204 } else { 404 }),
            _ => {
                let marker = request.param("marker").unwrap().unwrap();
                let names = kept.keys().filter_map(|path| path.rsplit('/').next());
                let rows: Vec<_> = names
                    .filter(|name| *name > marker.as_str())
                    .map(|name| serde_json::json!({"name": name}))
                    .collect();
                reply::plain(200, serde_json::to_string(&rows).unwrap())
            }
        }
    });
    *core.container.lock().unwrap() = Arc::new(ContainerInfo {
        status: 204,
        ..ContainerInfo::default()
    });
    let settings = S3ApiSettings {
        access_key_cache_duration: Duration::from_secs(10),
        access_keys_per_account: 2,
        ..S3ApiSettings::default()
    };
    let feature = AccessKeysApi::new(&settings, store_account("."), World::real());
    let pipeline = Pipeline::new(vec![Arc::new(feature)], Arc::new(core));
    let is_lent = std::cell::Cell::new(false);
    let ask = |method: &'static str, target: String, body: &'static str| {
        let pipeline = &pipeline;
        let lent = is_lent.get();
        async move {
            let mut asked = request(method, &target);
            asked.authorizer = Some(Arc::new(Owner { lent }));
            asked.body = peer::Body::whole(body);
            let response = pipeline.run(asked).await;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let body = response.body().as_whole().unwrap_or_default();
            let value: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
            (status, value, headers)
        }
    };
    let keys = "/access-keys/AUTH_a".to_owned();
    let (status, made, headers): (u16, _, HeaderMap) = ask("POST", keys.clone(), r#"{"buckets": ["b*"]}"#).await;
    assert_eq!((status, &headers["cache-control"]), (201, &"no-store".parse().unwrap()));
    let id = made["access_key_id"].as_str().unwrap().to_owned();
    assert_eq!(
        (made["user"].as_str(), made["secret_access_key"].as_str().unwrap().len()),
        (Some("a:u"), 40)
    );
    let key = format!("{keys}/{id}");
    for (method, target, body, status) in [
        ("POST", keys.clone(), r#"{"user": "a:nobody"}"#, 400),
        ("POST", keys.clone(), r#"{"bucket": ["b"]}"#, 400),
        ("POST", keys.clone(), r#"{"actions": ["s3:GetObjekt"]}"#, 400),
        ("POST", keys.clone(), r#"{"expires": "2000-01-01T00:00:00Z"}"#, 400),
        ("POST", keys.clone(), r#"{"expires": "tomorrow"}"#, 400),
        (
            "POST",
            keys.clone(),
            r#"{"expires": "2100-01-01T00:00:00Z", "expires_in": 5}"#,
            400,
        ),
        ("POST", keys.clone(), "{}", 201),
        ("POST", keys.clone(), "{}", 409),
        ("PUT", keys.clone(), "", 405),
        ("GET", "/access-keys/AUTH_b".into(), "", 403),
        ("GET", format!("/access-keys/AUTH_b/{id}"), "", 403),
        ("GET", format!("{keys}/{}", new_id("AUTH_b", [1; 16])), "", 404),
        ("GET", format!("{keys}/x/y/z"), "", 404),
        (
            "POST",
            key.clone(),
            r#"{"enabled": false, "expires_in": 100, "actions": ["read"]}"#,
            200,
        ),
        ("POST", key.clone(), r#"{"secret": "x"}"#, 400),
    ] {
        assert_eq!(
            ask(method, target.clone(), body).await.0,
            status,
            "{method} {target} {body}"
        );
    }
    let (_, shown, _) = ask("GET", key.clone(), "").await;
    assert_eq!(
        (&shown["enabled"], &shown["buckets"][0], &shown["actions"][0]),
        (&false.into(), &"b*".into(), &"read".into())
    );
    assert!(shown["expires"].is_string() && shown.get("secret_access_key").is_none());
    assert!(ask("POST", key.clone(), r#"{"expires": null}"#).await.1["expires"].is_null());
    let (_, listed, _) = ask("GET", keys.clone(), "").await;
    assert_eq!(listed["keys"].as_array().unwrap().len(), 2);
    assert!(!listed.to_string().contains("secret_access_key"));
    is_lent.set(true);
    for (method, target, status) in [
        ("POST", keys.clone(), 403),
        ("POST", key.clone(), 403),
        ("POST", format!("{key}/rotate"), 403),
        ("GET", key.clone(), 200),
        ("GET", keys.clone(), 200),
    ] {
        assert_eq!(ask(method, target.clone(), "").await.0, status, "{method} {target}");
    }
    is_lent.set(false);
    let (status, rotated, _) = ask("POST", format!("{key}/rotate"), r#"{"grace": 60}"#).await;
    assert_eq!(status, 200);
    assert!(rotated["former_secret_until"].is_string());
    assert_ne!(rotated["secret_access_key"], made["secret_access_key"]);
    assert_eq!(ask("DELETE", key.clone(), "").await.0, 204);
    assert_eq!(ask("DELETE", key, "").await.0, 404);
    let (_, listed, _) = ask("GET", keys.clone(), "").await;
    assert_eq!(listed["keys"].as_array().unwrap().len(), 1);
    // A record that cannot be read counts, and keeps its account from nothing.
    for record in objects.lock().values_mut() {
        *record = "garbage".into();
    }
    let (_, listed, _) = ask("GET", keys.clone(), "").await;
    let unreadable = listed["unreadable"][0].as_str().unwrap().to_owned();
    assert_eq!(listed, serde_json::json!({"keys": [], "unreadable": [unreadable]}));
    assert_eq!(ask("POST", keys.clone(), "{}").await.0, 201);
    assert_eq!(ask("POST", keys.clone(), "{}").await.0, 409);
    let lost = format!("{keys}/{unreadable}");
    assert_eq!(ask("GET", lost.clone(), "").await.0, 503);
    assert_eq!(ask("DELETE", lost.replace("AUTH_a", "AUTH_b"), "").await.0, 403);
    assert_eq!(ask("DELETE", lost.clone(), "").await.0, 204);
    assert_eq!(ask("DELETE", lost, "").await.0, 404);
    assert_eq!(ask("POST", keys, "{}").await.0, 201);
}
