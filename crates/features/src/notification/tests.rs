use super::*;
use crate::testing::{Answer, request, with_headers};
use http::HeaderValue;
use parking_lot::Mutex;
use request_pipeline::Pipeline;
use std::collections::BTreeMap;

const RULES: &str = r#"[{"id":"new","to":"arn:martlet:sqs::hook:webhook","on":["s3:ObjectCreated:*","s3:ObjectRemoved:*"],"pre":"in/"},
{"id":"two","to":"arn:martlet:sns::other:webhook","on":["s3:ObjectCreated:Put"],"suf":".pdf"}]"#;

/// What came to the core: method, path and, of an entry of the queue, what it says.
#[derive(Clone, Default)]
struct Came {
    lines: Arc<Mutex<Vec<String>>>,
    headers: Arc<Mutex<BTreeMap<String, HeaderMap>>>,
}

impl Came {
    fn note(&self, request: &ClientRequest) {
        let mut line = format!("{} {}", request.method, request.path);
        if let Some(at) = line.find("/.notifications/") {
            line.truncate(at + "/.notifications".len());
        }
        if request.path.contains("/.notifications/") && request.method == Method::PUT {
            let body = request.body.as_whole().unwrap_or_default();
            if let Some(entry) = QueuedEvent::of_text(&body) {
                let state = match &entry.written {
                    None => "intent".to_owned(),
                    Some(facts) => format!("{:?} {:?}", facts.size, facts.etag),
                };
                line = format!("{line} {} {} {} {state}", entry.rule, entry.event.name(), entry.key);
            }
        }
        self.lines.lock().push(line);
        self.headers
            .lock()
            .insert(request.path.to_string(), request.headers.clone());
    }
}

struct Tried {
    came: Vec<String>,
    headers: BTreeMap<String, HeaderMap>,
    status: u16,
}

/// What becomes of a request in front of a core that answers the bucket's part with `status`, and the `n`th request to
/// the queue with what `queue` says.
async fn try_with(request: ClientRequest, sysmeta: &[(&str, &str)], status: u16, queue: fn(usize) -> u16) -> Tried {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join(settings::notification_targets::FILE),
        "[hook]\nurl = http://127.0.0.1:1/\n[narrow]\nurl = http://127.0.0.1:1/\naccounts = other\n",
    )
    .unwrap();
    let came = Came::default();
    let noted = came.clone();
    let asked = Mutex::new(0);
    let core = Answer::new(move |request| {
        noted.note(&request);
        if request.path.contains("/.notifications/") {
            let mut asked = asked.lock();
            *asked += 1;
            return reply::status(queue(*asked));
        }
        let mut response = reply::status(status);
        response
            .headers_mut()
            .insert("etag", HeaderValue::from_static("\"abc\""));
        if let Some(slot) = request.extensions.get::<WriteTimeSlot>() {
            slot.note(Timestamp::from_seconds(1_795_197_315));
        }
        response
    });
    let sysmeta = sysmeta
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    *core.container.lock().unwrap() = Arc::new(ContainerInfo {
        status: 200,
        sysmeta: sysmeta.collect(),
        ..ContainerInfo::default()
    });
    let world = World::real();
    let targets = Arc::new(WatchedTargets::new(folder.path(), world.clone()));
    let feature = BucketNotifications::new(targets, ".", "eu".into(), world);
    let answer = Pipeline::new(vec![Arc::new(feature)], Arc::new(core))
        .run(request)
        .await;
    Tried {
        came: came.lines.lock().clone(),
        headers: came.headers.lock().clone(),
        status: answer.status().as_u16(),
    }
}

fn put(key: &str) -> ClientRequest {
    with_headers(request("PUT", &format!("/v1/a/b/{key}")), &[("content-length", "5")])
}

const FINE: fn(usize) -> u16 = |_| 201;
const RULED: &[(&str, &str)] = &[(CONFIGURATION, RULES)];

#[tokio::test]
async fn an_intent_comes_before_the_write_and_the_event_behind_it() {
    let tried = try_with(put("in/k"), RULED, 201, FINE).await;
    assert_eq!(tried.status, 201);
    assert_eq!(
        tried.came,
        [
            "PUT /v1/.notifications new ObjectCreated:Put in/k intent",
            "PUT /v1/a/b/in/k",
            "PUT /v1/.notifications new ObjectCreated:Put in/k Some(5) Some(\"abc\")",
        ]
    );
    assert_eq!(tried.headers["/v1/a/b/in/k"][EVENT_MARK].len(), 32);
    // Both writes are of one entry.
    assert_eq!(tried.headers.len(), 2);
}

#[tokio::test]
async fn what_fits_no_rule_costs_no_request() {
    for (sysmeta, target) in [(RULED, "/v1/a/b/out/k"), (&[][..], "/v1/a/b/in/k"), (RULED, "/v1/a/b")] {
        let tried = try_with(request("PUT", target), sysmeta, 201, FINE).await;
        assert_eq!(tried.came, [format!("PUT {target}")]);
        assert!(!tried.headers[target].contains_key(EVENT_MARK));
    }
    let tried = try_with(request("POST", "/v1/a/b/in/k"), RULED, 202, FINE).await;
    assert_eq!(tried.came.len(), 1);
    let mut inner = put("in/k");
    inner.extensions.insert(WriteOrigin::Inner);
    assert_eq!(try_with(inner, RULED, 201, FINE).await.came.len(), 1);
}

/// The operator may have said so after the rule was set.
#[tokio::test]
async fn a_target_that_does_not_serve_the_account_gets_no_event() {
    let narrow = RULES.replace(":hook:", ":narrow:");
    let tried = try_with(put("in/k"), &[(CONFIGURATION, &narrow)], 201, FINE).await;
    assert_eq!(tried.came, ["PUT /v1/a/b/in/k"]);
    let tried = try_with(put("in/k.pdf"), &[(CONFIGURATION, &narrow)], 201, FINE).await;
    assert!(
        tried.came.len() == 3 && tried.came[0].contains(" two "),
        "{:?}",
        tried.came
    );
}

/// The manifest's own is none that any client sees.
#[tokio::test]
async fn a_large_object_of_swifts_has_the_tag_that_s3_shows() {
    let large = with_headers(
        put("in/k"),
        &[("x-static-large-object", "True"), (SIZE_AT, "7"), (ETAG_AT, "large")],
    );
    let tried = try_with(large, RULED, 201, FINE).await;
    assert!(tried.came[2].ends_with("Some(7) Some(\"large-N\")"), "{:?}", tried.came);
}

#[tokio::test]
async fn an_empty_tag_is_none() {
    let copy = with_headers(put("in/k"), &[(S3_ETAG, "")]);
    let tried = try_with(copy, RULED, 201, FINE).await;
    assert!(tried.came[2].ends_with("Some(\"abc\")"), "{:?}", tried.came);
}

#[tokio::test]
async fn every_target_has_an_entry_however_many_rules_fit() {
    let tried = try_with(put("in/k.pdf"), RULED, 201, FINE).await;
    let events: Vec<_> = tried.came.iter().filter(|line| line.contains("Some(5)")).collect();
    assert_eq!(events.len(), 2, "{:?}", tried.came);

    let rule =
        |number| format!(r#"{{"id":"{number}","to":"arn:martlet:sqs::hook:webhook","on":["s3:ObjectCreated:*"]}}"#);
    let rules: Vec<String> = (0..80).map(rule).collect();
    let many = format!("[{}]", rules.join(","));
    let tried = try_with(put("k"), &[(CONFIGURATION, &many)], 201, FINE).await;
    assert_eq!(
        tried.came,
        [
            "PUT /v1/.notifications 0 ObjectCreated:Put k intent",
            "PUT /v1/a/b/k",
            "PUT /v1/.notifications 0 ObjectCreated:Put k Some(5) Some(\"abc\")",
        ]
    );
}

#[tokio::test]
async fn without_the_queue_nothing_is_written() {
    let tried = try_with(put("in/k"), RULED, 201, |_| 503).await;
    assert_eq!(tried.status, 503);
    assert!(
        !tried.came.iter().any(|line| line == "PUT /v1/a/b/in/k"),
        "{:?}",
        tried.came
    );
    // Nor is a write acknowledged whose event could not be confirmed.
    let tried = try_with(put("in/k"), RULED, 201, |number| if number == 1 { 201 } else { 503 }).await;
    assert_eq!(tried.status, 503);
    assert!(tried.came.iter().any(|line| line == "PUT /v1/a/b/in/k"));
}

#[tokio::test]
async fn a_container_of_the_queue_is_made() {
    let tried = try_with(put("in/k"), RULED, 201, |number| if number == 1 { 404 } else { 201 }).await;
    assert_eq!((tried.status, tried.came.len()), (201, 5));
    assert_eq!(tried.came[1], "PUT /v1/.notifications");
}

#[tokio::test]
async fn what_was_not_written_leaves_an_intent_only_where_that_is_not_sure() {
    let tried = try_with(put("in/k"), RULED, 412, FINE).await;
    assert_eq!(tried.status, 412);
    assert_eq!(tried.came.last().unwrap(), "DELETE /v1/.notifications");
    let tried = try_with(put("in/k"), RULED, 503, FINE).await;
    assert_eq!((tried.status, tried.came.len()), (503, 2));
}

#[tokio::test]
async fn events_have_the_name_of_what_happens() {
    let versions: &[(&str, &str)] = &[(CONFIGURATION, RULES), (VERSIONS_ENABLED, "True")];
    let with = |origin: WriteOrigin| {
        let mut request = put("in/k");
        request.extensions.insert(origin);
        request
    };
    let large = with_headers(put("in/k"), &[("x-static-large-object", "True"), (SIZE_AT, "7")]);
    for (request, sysmeta, status, expected) in [
        (with(WriteOrigin::Copy), RULED, 201, "ObjectCreated:Copy in/k Some(5)"),
        (with(WriteOrigin::Post), RULED, 201, "ObjectCreated:Post in/k Some(5)"),
        (large, RULED, 201, "ObjectCreated:CompleteMultipartUpload in/k Some(7)"),
        (
            request("DELETE", "/v1/a/b/in/k"),
            RULED,
            204,
            "ObjectRemoved:Delete in/k",
        ),
        (
            request("DELETE", "/v1/a/b/in/k"),
            versions,
            204,
            "ObjectRemoved:DeleteMarkerCreated in/k",
        ),
        (
            request("DELETE", "/v1/a/b/in/k?version-id=1.0"),
            versions,
            204,
            "ObjectRemoved:Delete in/k",
        ),
    ] {
        let tried = try_with(request, sysmeta, status, FINE).await;
        assert!(tried.came[2].contains(expected), "{expected}: {:?}", tried.came);
    }
    // Nothing was there yet: a write under way that is older goes with this deletion.
    let tried = try_with(request("DELETE", "/v1/a/b/in/k"), RULED, 404, FINE).await;
    assert!(tried.came[2].contains("ObjectRemoved:Delete in/k"), "{:?}", tried.came);
    // A write that was refused is none.
    let tried = try_with(put("in/k"), RULED, 404, FINE).await;
    assert_eq!(tried.came.last().unwrap(), "DELETE /v1/.notifications");
}

#[tokio::test]
async fn who_may_not_write_leaves_nothing_in_the_queue() {
    struct Nobody;
    #[async_trait::async_trait]
    impl request_pipeline::Authorizer for Nobody {
        async fn authorize(
            &self,
            _request: &mut ClientRequest,
            _info: &dyn request_pipeline::InfoSource,
        ) -> Result<(), Response> {
            Err(reply::status(403))
        }
    }
    let mut request = put("in/k");
    request.authorizer = Some(Arc::new(Nobody));
    let tried = try_with(request, RULED, 201, FINE).await;
    assert_eq!((tried.status, tried.came.len()), (403, 0));
}
