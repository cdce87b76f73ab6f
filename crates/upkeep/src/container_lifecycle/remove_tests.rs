//! Times of deletions, and what is asked of the gateway.

use super::super::remover::{HeldKeyLock, KeyLockRefusal, KeyLocks};
use super::*;
use crate::internal_client::InternalClient;
use crate::peer_failures::PeerFailures;
use http::{Request, StatusCode};
use lifecycle::{DayLength, KeyHistory, LifecycleRules, ListedVersion};
use peer::{Body, HttpService, Response};
use std::net::SocketAddr;
use std::sync::Arc;
use vocabulary::PolicyIndex;
use world::World;

#[test]
fn deletions_are_recent_and_older_than_what_comes_after() {
    let at = Timestamp::from_seconds;
    assert_eq!(deletion_time(at(5), at(100_000)), at(96_400));
    assert_eq!(deletion_time(at(99_999), at(100_000)), at(99_999).next_tick());
    assert_eq!(deletion_time(at(5), at(6)), at(5).next_tick());
}

/// A gateway whose client has just made this version the current one.
struct MadeCurrent;

#[async_trait::async_trait]
impl HttpService for MadeCurrent {
    async fn serve(&self, request: Request<Body>, _: SocketAddr) -> Response {
        assert_eq!(
            (request.method(), request.uri().to_string().as_str()),
            (&Method::DELETE, "/v1/a/c/k?version-id=0000000005.00000")
        );
        let is_asked = request.headers().contains_key(X_UNLESS_CURRENT);
        let mut response = Response::new(Body::empty());
        *response.status_mut() = match is_asked {
            true => StatusCode::CONFLICT,
            false => StatusCode::NO_CONTENT,
        };
        response
    }
}

struct NoLocks;

#[async_trait::async_trait]
impl KeyLocks for NoLocks {
    async fn take(&self, _: EntityPath, _: PolicyIndex) -> Result<Box<dyn HeldKeyLock>, KeyLockRefusal> {
        Err(KeyLockRefusal::Unknown)
    }
}

#[tokio::test]
async fn an_older_version_goes_unless_it_is_current() {
    let world = World::real();
    let remover = Remover {
        client: InternalClient::new(world.clone(), Arc::new(MadeCurrent), "test", 1),
        world,
        locks: Arc::new(NoLocks),
        concurrency: 1,
        page: 1,
        failures: Arc::new(PeerFailures::new("test")),
    };
    let bucket = RuledBucket {
        path: EntityPath::account("a").with_container("c"),
        rules: LifecycleRules::default(),
        stored: String::new(),
        keeps_versions: true,
        policy: PolicyIndex::LEGACY,
        now: 100,
        day: DayLength::Calendar,
    };
    let due = |fate| DueObject {
        placed: KeyHistory::default().place(ListedVersion {
            key: "k".into(),
            is_latest: fate == VersionFate::GoesIfLast,
            is_marker: fate == VersionFate::GoesIfLast,
            size: 1,
            changed: Timestamp::from_seconds(5),
            became: Timestamp::from_seconds(5),
        }),
        version_id: "0000000005.00000".into(),
        is_large: false,
        fate,
        newest: Arc::default(),
    };
    let figures = remover.attend(&bucket, due(VersionFate::Goes)).await;
    assert_eq!((figures.changed, figures.versions), (1, 0));
    // The marker that hides a key is current, as it were.
    let figures = remover.attend(&bucket, due(VersionFate::GoesIfLast)).await;
    assert_eq!((figures.changed, figures.markers), (0, 1));
}
