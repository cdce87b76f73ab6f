//! What a server answers for a database that it cannot look at: never that there is none.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod support;
#[path = "../../listing-engine/tests/support/unlistable.rs"]
mod unlistable;

use http::header::RETRY_AFTER;
use listing_server::{Kind, ListingServer};
use std::sync::Arc;
use support::{Asked, Both, options, send};
use unlistable::Unlistable;
use world::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_cannot_be_looked_at_is_not_absent() {
    let mut both = Both::new();
    let put = |server, path| Asked::new(server, "PUT", path).with("X-Timestamp", "1700000001.00000");
    assert_eq!(send(&both, &put("account", "/sda1/0/a")).await.status(), 201);
    assert_eq!(send(&both, &put("container", "/sda1/0/a/c")).await.status(), 201);
    let files = Unlistable::default();
    let world = World {
        files: Arc::new(files.clone()),
        ..World::real()
    };
    let start = |kind| ListingServer::new(world.clone(), kind, options(both.devices.path())).unwrap();
    (both.account, both.container) = (start(Kind::Account), start(Kind::Container));
    // EMFILE; EACCES, EIO; EROFS.
    for (number, expected) in [(24, 503), (13, 500), (5, 500), (30, 507)] {
        for (server, path) in [("account", "/sda1/0/a"), ("container", "/sda1/0/a/c")] {
            for asked in [
                Asked::new(server, "HEAD", path),
                Asked::new(server, "GET", path),
                put(server, path),
            ] {
                files.fail(number, true);
                let answer = send(&both, &asked).await;
                assert_eq!(answer.status(), expected, "{number}: {asked:?}");
                assert_eq!(answer.headers().contains_key(RETRY_AFTER), expected == 503, "{asked:?}");
                files.heal();
            }
            assert_eq!(send(&both, &Asked::new(server, "HEAD", path)).await.status(), 204);
        }
    }
    let elsewhere = Asked::new("account", "HEAD", "/sda1/0/b");
    assert_eq!(send(&both, &elsewhere).await.status(), 404);
}
