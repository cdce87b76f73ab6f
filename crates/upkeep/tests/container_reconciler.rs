//! The reconciler over a queue that a gateway of this test lists. Containers have policy 0, as their servers say
//! nothing else.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod common;

use common::{Fake, pass, ring_client};
use http::{Method, Request};
use parking_lot::Mutex;
use peer::{Body, HttpService, Response};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use upkeep::{ContainerReconciler, InternalClient, ReconcilerOptions};
use vocabulary::{Policies, Policy, PolicyIndex, Timestamp};
use world::World;

const QUEUE: &str = "/v1/.misplaced_objects";

/// A gateway to objects in policies 1, 2 and so on.
#[derive(Default)]
struct Gateway {
    /// Rows of the queue.
    rows: Vec<String>,
    /// When they were written.
    at: Timestamp,
    /// The policy whose servers are down.
    down: Option<&'static str>,
    /// When objects expire, in seconds.
    delete_at: Option<u64>,
    asked: Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl HttpService for Gateway {
    async fn serve(&self, request: Request<Body>, _: SocketAddr) -> Response {
        let path = request.uri().path();
        if path.starts_with(QUEUE) {
            return Response::new(Body::whole(self.list(path, request.uri().query().unwrap_or_default())));
        }
        let header = |name: &str| request.headers().get(name).map_or("", |value| value.to_str().unwrap());
        let policy = header("x-backend-storage-policy-index");
        let line = format!("{} {path} {policy}", request.method());
        let timed = match *request.method() {
            Method::DELETE => format!("{line} {}", header("x-timestamp")),
            _ => line,
        };
        self.asked.lock().push(timed);
        if self.down == Some(policy) {
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        let has_expired = self
            .delete_at
            .is_some_and(|due| due <= World::real().clock.now().seconds());
        let opens = header("x-backend-open-expired") == "true";
        let (status, body) = match (request.method(), policy) {
            (_, policy) if self.down == Some(policy) => (503, ""),
            (&Method::HEAD, _) => (404, ""),
            (&Method::GET, _) if has_expired && !opens => (404, ""),
            (&Method::GET, _) => (200, "body"),
            (&Method::PUT, _) => (201, ""),
            _ => (204, ""),
        };
        let mut response = Response::new(Body::whole(body));
        *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
        if status == 200 {
            let headers = response.headers_mut();
            headers.insert("x-backend-timestamp", self.at.internal().parse().unwrap());
            if let Some(due) = self.delete_at {
                headers.insert("x-delete-at", due.into());
            }
        }
        response
    }
}

impl Gateway {
    fn list(&self, path: &str, query: &str) -> String {
        let container = (self.at.seconds() / 3600 * 3600).to_string();
        let rows = match path.strip_prefix(QUEUE).unwrap().strip_prefix('/') {
            _ if !query.ends_with("marker=") => vec![],
            None => vec![serde_json::json!({"name": container})],
            Some(name) if name == container => self.rows.iter().map(|name| self.row(name)).collect(),
            Some(_) => vec![],
        };
        serde_json::Value::Array(rows).to_string()
    }

    fn row(&self, name: &str) -> serde_json::Value {
        serde_json::json!({"name": name, "content_type": "application/x-put", "hash": self.at.internal(),
            "last_modified": "2026-11-20T19:04:43.750000"})
    }

    /// How often something was asked about a policy.
    fn about(&self, policy: &str) -> usize {
        let asked = self.asked.lock();
        let policy = |line: &&String| line.split(' ').nth(2) == Some(policy);
        asked.iter().filter(policy).count()
    }
}

fn reconciler(gateway: &Arc<Gateway>, reclaim_age: u64) -> (ContainerReconciler, Arc<Fake>) {
    let fake = Arc::new(Fake::default());
    let policy = |index| Policy::replication(index, &format!("policy-{index}"));
    let options = ReconcilerOptions {
        account: ".misplaced_objects".into(),
        reclaim_age: Duration::from_secs(reclaim_age),
        concurrency: 1,
        processes: 0,
        process: 0,
        policies: Policies::new((0..3).map(policy).collect(), Some(PolicyIndex(0))).unwrap(),
    };
    let client = InternalClient::new(World::real(), gateway.clone(), "test", 3);
    (
        ContainerReconciler::new(World::real(), client, ring_client(&fake), options),
        fake,
    )
}

fn ago(seconds: u64) -> Timestamp {
    Timestamp::from_seconds(World::real().clock.now().seconds() - seconds)
}

#[tokio::test(start_paused = true)]
async fn a_policy_whose_servers_are_down_holds_up_no_other() {
    let rows = (0..50).flat_map(|number| [format!("1:/a/c/{number:02}"), format!("2:/a/c/{number:02}")]);
    let gateway = Arc::new(Gateway {
        rows: rows.collect(),
        at: ago(100),
        down: Some("1"),
        ..Gateway::default()
    });
    let (mut reconciler, _fake) = reconciler(&gateway, 604_800);
    let began = tokio::time::Instant::now();
    assert_eq!(pass(&mut reconciler).await, (50, 50));
    assert_eq!(gateway.about("1"), 5);
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    pass(&mut reconciler).await;
    assert_eq!(gateway.about("1"), 10);
}

/// The expirer looks for it in the right policy only.
#[tokio::test]
async fn what_has_expired_before_it_was_moved_is_removed_from_the_wrong_policy() {
    for (delete_at, reclaim_age, moved) in [(50, 604_800, false), (50, 10, false), (0, 604_800, true)] {
        let gateway = Arc::new(Gateway {
            rows: vec!["1:/a/c/o".into()],
            at: ago(100),
            delete_at: Some(ago(0).seconds() + 1000 - delete_at * 21),
            ..Gateway::default()
        });
        let (mut reconciler, fake) = reconciler(&gateway, reclaim_age);
        assert_eq!(pass(&mut reconciler).await, (1, 0));
        let asked = gateway.asked.lock().clone();
        assert_eq!(
            asked.iter().any(|line| line.starts_with("PUT /v1/a/c/o 0")),
            moved,
            "{asked:?}"
        );
        let removal = format!("DELETE /v1/a/c/o 1 {}_0000000000000001", gateway.at.normal());
        assert_eq!(asked.last(), Some(&removal), "{asked:?}");
        // The row is out of the queue.
        let rows = fake.lines().into_iter().filter(|line| line.starts_with("DELETE"));
        assert_eq!(rows.count(), 3);
    }
}
