//! What no comparison with OpenStack shows: reports to accounts, devices that go, rows in a crowd.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is test code")]

mod support;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Method};
use listing_server::{Kind, ListingServer, ListingServerOptions, Reserve};
use peer::message::header_names::X_MARTLET_DATABASE;
use peer::{Address, Body, Call, Peers, RawCall, Response, Service};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use support::{Asked, Both, ask, options};
use tokio::sync::watch;
use vocabulary::Timestamp;
use world::{BoxFuture, Clock, World};

fn t(n: u64) -> String {
    format!("{:010}.00000", 1_700_000_000 + n)
}

fn container(method: &str, path: &str, at: u64) -> Asked {
    Asked::new("container", method, path).with("X-Timestamp", &t(at))
}

fn row(path: &str, at: u64) -> Asked {
    container("PUT", path, at)
        .with("X-Size", "5")
        .with("X-Content-Type", "text/plain")
        .with("X-Etag", "d41d8cd98f00b204e9800998ecf8427e")
}

fn reporting_to(asked: Asked, hosts: &str, devices: &str) -> Asked {
    asked
        .with("X-Account-Host", hosts)
        .with("X-Account-Device", devices)
        .with("X-Account-Partition", "0")
}

async fn status(both: &Both, asked: &Asked) -> u64 {
    ask(both, asked).await["status"].as_u64().unwrap()
}

fn connected() -> Both {
    let both = Both::new();
    let mut peers = Peers::new(World::real());
    peers.register("127.0.0.1", 6202, both.account.clone());
    both.container.set_peers(Arc::new(peers));
    both
}

#[tokio::test(flavor = "multi_thread")]
async fn the_account_hears_of_its_containers() {
    let both = connected();
    let create = reporting_to(container("PUT", "/sda1/0/a/c", 1), "127.0.0.1:6202", "sda1");
    assert_eq!(status(&both, &create).await, 404, "there is no account yet");
    let account = Asked::new("account", "PUT", "/sda1/0/a").with("X-Timestamp", &t(1));
    assert_eq!(status(&both, &account).await, 201);
    let again = reporting_to(container("PUT", "/sda1/0/a/c", 2), "127.0.0.1:6202", "sda1");
    assert_eq!(
        status(&both, &again).await,
        202,
        "the container itself was made the first time"
    );
    let list = Asked::new("account", "GET", "/sda1/0/a?format=json");
    let listed = ask(&both, &list).await["body"].as_str().unwrap().to_owned();
    assert!(listed.contains("\"name\": \"c\", \"count\": 0"), "{listed}");
    let delete = reporting_to(container("DELETE", "/sda1/0/a/c", 3), "127.0.0.1:6202", "sda1");
    assert_eq!(status(&both, &delete).await, 204);
    assert_eq!(ask(&both, &list).await["body"], "[]");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_server_that_is_away_costs_nothing_but_the_news() {
    let both = connected();
    let create = reporting_to(
        container("PUT", "/sda1/0/a/c", 1),
        "127.0.0.1:1,127.0.0.1:6202",
        "sda1,sda1",
    );
    assert_eq!(
        status(&both, &create).await,
        201,
        "one of two does not answer, the other says 404"
    );
}

/// An account server that can be stopped, as SIGSTOP does it.
struct Stoppable {
    is_stopped: watch::Sender<bool>,
    asked: AtomicUsize,
}

#[async_trait::async_trait]
impl Service for Stoppable {
    async fn call(&self, _: Call) -> Response {
        self.asked.fetch_add(1, SeqCst);
        let mut is_stopped = self.is_stopped.subscribe();
        is_stopped.wait_for(|is_stopped| !is_stopped).await.unwrap();
        Response::new(Body::empty())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_server_that_hangs_is_waited_for_once() {
    let mut both = Both::new();
    both.container = server_with(&both, |options| {
        options.node_timeout = Duration::from_secs(3600);
        options.silence_timeout = Duration::from_millis(100);
    });
    let account = Arc::new(Stoppable {
        is_stopped: watch::Sender::new(true),
        asked: AtomicUsize::new(0),
    });
    let mut peers = Peers::new(World::real());
    peers.register("127.0.0.1", 6202, account.clone());
    both.container.set_peers(Arc::new(peers));
    let asked = || account.asked.load(SeqCst);
    for number in 1..10 {
        let path = format!("/sda1/0/a/c{number}");
        let create = reporting_to(container("PUT", &path, 1), "127.0.0.1:6202", "sda1");
        assert_eq!(status(&both, &create).await, 201);
        assert!(
            asked() <= 2,
            "the first, and one that finds out whether it answers again"
        );
    }
    assert_eq!(both.container.silence().silent(), 1);
    while asked() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    account.is_stopped.send_replace(false);
    while both.container.silence().silent() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let create = reporting_to(container("PUT", "/sda1/0/a/c", 1), "127.0.0.1:6202", "sda1");
    assert_eq!((status(&both, &create).await, asked()), (201, 3));
}

/// Files below a folder that this process has open.
fn open_below(folder: &Path) -> Vec<PathBuf> {
    let open = fs::read_dir("/proc/self/fd").unwrap();
    let files = open.filter_map(|descriptor| fs::read_link(descriptor.unwrap().path()).ok());
    files.filter(|file| file.starts_with(folder)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_goes_is_507_and_may_come_back() {
    let both = Both::new();
    assert_eq!(status(&both, &container("PUT", "/sda1/0/a/c", 1)).await, 201);
    let (device, away) = (both.devices.path().join("sda1"), both.devices.path().join("away"));
    fs::rename(&device, &away).unwrap();
    for asked in [
        row("/sda1/0/a/c/o", 2),
        container("HEAD", "/sda1/0/a/c", 2),
        container("PUT", "/sda1/0/a/d", 2),
    ] {
        assert_eq!(status(&both, &asked).await, 507, "{asked:?}");
    }
    assert!(!device.exists(), "nothing is written below a mount point");
    // Nothing is left open on it: a drive that is unmounted lazily could not be formatted.
    assert_eq!(open_below(&away), Vec::<PathBuf>::new());
    fs::rename(&away, &device).unwrap();
    assert_eq!(status(&both, &row("/sda1/0/a/c/o", 2)).await, 201);
}

fn server_with(both: &Both, change: impl FnOnce(&mut ListingServerOptions)) -> Arc<ListingServer> {
    let mut options = options(both.devices.path());
    change(&mut options);
    ListingServer::new(World::real(), Kind::Container, options).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_remembered_of_devices_that_are_not_there() {
    let both = Both::new();
    let options = options(both.devices.path());
    let drives = options.drives.clone();
    let server = ListingServer::new(World::real(), Kind::Account, options).unwrap();
    let both = Both {
        account: server,
        ..both
    };
    for number in 0..10 {
        let unknown = Asked::new("account", "HEAD", &format!("/unknown-{number}/0/a"));
        assert_eq!(status(&both, &unknown).await, 507);
    }
    assert_eq!(format!("{drives:?}"), "{}");
    let known = Asked::new("account", "HEAD", "/sda1/0/a");
    assert_eq!(status(&both, &known).await, 404);
    assert_eq!(drives.all().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn unmounted_and_full_devices_are_507() {
    let mut both = Both::new();
    both.container = server_with(&both, |options| options.mount_check = true);
    assert_eq!(status(&both, &container("PUT", "/sda1/0/a/c", 1)).await, 507);
    both.container = server_with(&both, |options| options.fallocate_reserve = Reserve::Percent(100.0));
    assert_eq!(status(&both, &container("PUT", "/sda1/0/a/c", 1)).await, 507);
    assert_eq!(fs::read_dir(both.devices.path().join("sda1")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_database_is_an_error_once_and_absent_then() {
    let both = Both::new();
    assert_eq!(status(&both, &container("PUT", "/sda1/0/a/c", 1)).await, 201);
    let database = walk(&both.devices.path().join("sda1/containers"));
    fs::write(&database, b"rubbish".repeat(1_000)).unwrap();
    let head = container("HEAD", "/sda1/0/a/c", 1);
    assert_eq!(status(&both, &head).await, 500);
    assert_eq!(status(&both, &head).await, 404);
    assert!(walk(&both.devices.path().join("sda1/quarantined")).exists());
    assert_eq!(status(&both, &container("PUT", "/sda1/0/a/c", 2)).await, 201);
}

/// The first `.db` file below `directory`.
fn walk(directory: &Path) -> PathBuf {
    let mut entries: Vec<_> = fs::read_dir(directory).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    let found = entries.iter().find(|path| path.extension().is_some_and(|e| e == "db"));
    found.cloned().unwrap_or_else(|| walk(&entries[0]))
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_sense_are_refused() {
    let both = Both::new();
    for server in ["account", "container"] {
        assert_eq!(
            status(&both, &Asked::new(server, "REPLICATE", "/sda1/0/abc")).await,
            400
        );
        let options = ask(&both, &Asked::new(server, "OPTIONS", "/sda1/0/a/c")).await;
        assert!(options["headers"]["allow"].as_str().unwrap().contains("REPLICATE"));
    }
    let rubbish = Asked {
        body: "rubbish".into(),
        ..container("UPDATE", "/sda1/0/a/c", 1)
    };
    assert_eq!(status(&both, &rubbish).await, 400);
}

/// A row of a queue names an object with all its path; so it may have what is reserved in the middle.
/// Read as JSON, each of these bodies takes a hundred times as much memory as on the wire.
#[tokio::test(flavor = "multi_thread")]
async fn lists_that_would_take_all_memory_are_refused() {
    let both = Both::new();
    let bomb = format!("[\"merge_items\",[{}]]", vec!["{\"\":0}"; 1_000_000].join(","));
    let hash = "0".repeat(32);
    for (server, method, path) in [
        ("container", "REPLICATE", format!("/sda1/0/{hash}")),
        ("account", "REPLICATE", format!("/sda1/0/{hash}")),
        ("container", "UPDATE", "/sda1/0/a/c".to_owned()),
    ] {
        let mut asked = Asked::new(server, method, &path).with("X-Timestamp", &t(1));
        asked.body = bomb.clone();
        assert_eq!(status(&both, &asked).await, 413, "{server} {method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_of_swifts_own_hold_reserved_names() {
    let both = Both::new();
    for (account, put, deleted) in [(".misplaced_objects", 201, 204), ("a", 400, 400)] {
        let queue = format!("/sda1/0/{account}/1795208400");
        let name = format!("{queue}/1:%2FAUTH_a%2F%00c%2F%00o");
        assert_eq!(status(&both, &container("PUT", &queue, 1)).await, 201);
        assert_eq!(status(&both, &row(&name, 2)).await, put, "{account}");
        assert_eq!(
            status(&both, &container("DELETE", &name, 3)).await,
            deleted,
            "{account}"
        );
    }
}

/// Every acknowledged row is listed, and a crowd of them shares syncs. The bound is loose, and the best
/// of a few crowds counts: it catches one sync per row, not a slow machine.
#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_rows_is_stored_and_seen() {
    const CLIENTS: usize = 32;
    const ROWS: usize = 60;
    const CROWDS: usize = 4;
    let both = Arc::new(Both::new());
    assert_eq!(status(&both, &container("PUT", "/sda1/0/a/c", 1)).await, 201);
    let mut rate = 0.0;
    for crowd in 1..=CROWDS {
        let began = Instant::now();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let both = both.clone();
                tokio::spawn(async move {
                    for i in 0..ROWS {
                        let asked = row(&format!("/sda1/0/a/c/{crowd}/{client:02}/{i:04}"), 2);
                        assert_eq!(status(&both, &asked).await, 201);
                    }
                })
            })
            .collect();
        for client in clients {
            client.await.unwrap();
        }
        rate = (CLIENTS * ROWS) as f64 / began.elapsed().as_secs_f64();
        println!("{rate:.0} rows per second into one container");
        let head = ask(&both, &container("HEAD", "/sda1/0/a/c", 1)).await;
        assert_eq!(
            head["headers"]["x-container-object-count"],
            (crowd * CLIENTS * ROWS).to_string()
        );
        if rate > 100.0 {
            break;
        }
    }
    assert!(rate > 100.0, "{rate} rows per second");
}

/// What OpenStack's replicators say of a database in which one row is odd: its columns as they stand.
#[tokio::test(flavor = "multi_thread")]
async fn an_odd_row_of_a_peer_keeps_no_other_from_coming() {
    let both = Both::new();
    assert_eq!(status(&both, &container("PUT", "/sda1/0/a/c", 1)).await, 201);
    let database = walk(&both.devices.path().join("sda1/containers"));
    let hash = database.file_stem().unwrap().to_str().unwrap().to_owned();
    let item = |id: u64, name: &str| {
        json!({"ROWID": id, "name": name, "created_at": t(5), "size": 5, "content_type": "t/p", "etag": "e", "deleted": 0,
               "storage_policy_index": 0})
    };
    let odd = [
        ("name", json!(null)),
        ("created_at", json!("yesterday")),
        ("storage_policy_index", json!(-1)),
        ("size", json!("many")),
        ("size", json!(5.5)),
        ("etag", json!(null)),
    ];
    let mut items = vec![item(1, "first")];
    for (id, (column, value)) in (2..).zip(odd) {
        let mut odd = item(id, &format!("odd-{id}"));
        odd[column] = value;
        items.push(odd);
    }
    items.push(item(9, "last"));
    let mut merge = Asked::new("container", "REPLICATE", &format!("/sda1/0/{hash}"));
    merge.body = json!(["merge_items", items, "other"]).to_string();
    assert_eq!(status(&both, &merge).await, 202);
    let list = ask(&both, &container("GET", "/sda1/0/a/c", 1)).await;
    assert_eq!(list["body"], "first\nlast\nodd-5\nodd-6\nodd-7\n");
    merge.body = json!(["merge_items", [{"name": "no row at all"}], "other"]).to_string();
    assert_eq!(status(&both, &merge).await, 500);
    for body in [
        json!(["merge_items", [item(10, "late")], "other", "a replica that was here"]),
        json!(["merge_syncs", [{"remote_id": "third", "sync_point": 9}], "a replica that was here"]),
    ] {
        merge.body = body.to_string();
        assert_eq!(status(&both, &merge).await, 503, "{body}");
    }
    let list = ask(&both, &container("GET", "/sda1/0/a/c", 1)).await;
    assert!(!list["body"].as_str().unwrap().contains("late"), "{list}");
}

/// Tokio's time, which stands still while there is work.
struct TokioClock(tokio::time::Instant);

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_seconds(1_700_000_000)
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// What a replicator sends may take long while it keeps a rate, and only then.
#[tokio::test(start_paused = true)]
async fn a_replicator_has_as_much_time_as_its_rate_is_worth() {
    let mut both = Both::new();
    assert_eq!(status(&both, &container("PUT", "/sda1/0/a/c", 1)).await, 201);
    let database = walk(&both.devices.path().join("sda1/containers"));
    let hash = database.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut options = options(both.devices.path());
    options.min_transfer_rate = 1_000;
    let world = World {
        clock: Arc::new(TokioClock(tokio::time::Instant::now())),
        ..World::real()
    };
    both.container = ListingServer::new(world, Kind::Container, options).unwrap();
    let rows = format!("[\"merge_items\", [], \"other\"{}]", " ".repeat(300_000));
    let database = "x".repeat(2 << 20);
    for (name, body, rate, expected) in [
        (None, &rows, 1_100, 202),
        (None, &rows, 900, 408),
        (Some("a-copy"), &database, 1_100, 201),
        (Some("a-copy"), &database, 900, 408),
    ] {
        let mut headers = HeaderMap::new();
        if let Some(name) = name {
            headers.insert(X_MARTLET_DATABASE, HeaderValue::from_static(name));
        }
        let second = move |body: Bytes| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            (!body.is_empty()).then(|| {
                (
                    Ok(body.slice(..rate.min(body.len()))),
                    body.slice(rate.min(body.len())..),
                )
            })
        };
        let method = Method::from_bytes(b"REPLICATE").unwrap();
        let call = RawCall {
            address: Address::parse(&method, &format!("/sda1/0/{hash}")).unwrap(),
            method,
            query: String::new(),
            headers,
            body: Body::stream(stream::unfold(Bytes::from(body.clone()), second), None),
            interim: None,
        };
        let answer = both.container.call(call.into()).await;
        assert_eq!(answer.status().as_u16(), expected, "{name:?} at {rate} bytes a second");
    }
}

/// OpenStack's containers can come to a count below zero, and tell their account so.
#[tokio::test(flavor = "multi_thread")]
async fn less_than_nothing_in_a_container_is_nothing_to_the_account() {
    let both = Both::new();
    let account = Asked::new("account", "PUT", "/sda1/0/a").with("X-Timestamp", &t(1));
    assert_eq!(status(&both, &account).await, 201);
    let report = |count: &str| {
        Asked::new("account", "PUT", "/sda1/0/a/c")
            .with("X-Put-Timestamp", &t(2))
            .with("X-Delete-Timestamp", "0")
            .with("X-Object-Count", count)
            .with("X-Bytes-Used", "-70")
    };
    assert_eq!(status(&both, &report("-3")).await, 201);
    assert_eq!(status(&both, &report("some")).await, 400);
    let list = ask(&both, &Asked::new("account", "GET", "/sda1/0/a?format=json")).await;
    let listed = list["body"].as_str().unwrap();
    assert!(
        listed.contains("\"name\": \"c\", \"count\": 0, \"bytes\": 0"),
        "{listed}"
    );
}

/// Gateways of ours send a write again that came too late by a wrong clock; OpenStack's servers name no time.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_something_newer_outlives_is_answered_with_its_time() {
    let both = Both::new();
    let account = |method: &str, at| Asked::new("account", method, "/sda1/0/a").with("X-Timestamp", &t(at));
    let container = |method: &str, at| container(method, "/sda1/0/a/c", at);
    let colour = |asked: Asked| {
        let name = match asked.server == "account" {
            true => "X-Account-Meta-Colour",
            false => "X-Container-Meta-Colour",
        };
        asked.with(name, "red")
    };
    let other = |asked: Asked| asked.with("X-Container-Meta-Shape", "round");
    for (asked, status, newer) in [
        (colour(container("PUT", 5)), 201, None),
        (colour(container("PUT", 6)), 202, None),
        (colour(container("PUT", 4)), 202, Some(6)),
        (colour(container("POST", 4)), 204, Some(6)),
        (other(container("POST", 4)), 204, None),
        (container("DELETE", 4), 409, Some(6)),
        (container("DELETE", 9), 204, None),
        (container("PUT", 8), 409, Some(9)),
        (colour(account("PUT", 5)), 201, None),
        (colour(account("POST", 7)), 204, None),
        (colour(account("POST", 6)), 204, Some(7)),
        (colour(account("PUT", 6)), 202, Some(7)),
        (account("DELETE", 4), 204, Some(6)),
    ] {
        let answer = ask(&both, &asked).await;
        let given = answer["headers"]["x-backend-timestamp"].as_str().map(str::to_owned);
        assert_eq!(
            (answer["status"].as_u64(), given),
            (Some(status), newer.map(t)),
            "{asked:?}: {answer}"
        );
    }
}
