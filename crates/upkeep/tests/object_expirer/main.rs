//! The expirer over a queue that a gateway of this test lists, and container servers that record what
//! they are sent.
//!
//! What is expected here was seen with OpenStack Swift 2.38.3's expirer, given the same queue and answers,
//! but for the rows: they are taken out with one UPDATE for each container.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod agreement;
#[path = "../common/mod.rs"]
mod common;
mod failing_policies;
mod lasting_tombstones;
mod site;

use arc_swap::ArcSwap;
use common::{Log, pass, ring_client};
use parking_lot::Mutex;
use peer::Peers;
use peer::deletes::{CheckedDelete, decode, encode_checked, encode_statuses};
use placement::{Device, Ring, RingBuilder};
use site::{Servers, Site, ago, site, with_servers};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use upkeep::{ObjectServers, UpkeepJob};
use vocabulary::{PolicyIndex, Timestamp};
use world::World;

#[tokio::test]
async fn what_is_due_goes_and_then_its_row() {
    let due = ago(100);
    let rows = [
        (format!("{due}-a/c/o"), "text/plain"),
        (format!("{due}-a/c/async"), "application/async-deleted"),
        (format!("{}-a/c/later", ago(0) + 1000), "text/plain"),
        ("no task".to_owned(), "text/plain"),
    ];
    let mut site = site(&rows, &[], |_| {});
    assert_eq!(pass(&mut site.expirer).await, (2, 0));
    let time = format!("{due}.00000");
    let mut deleted = site.cluster.deleted.lock().clone();
    deleted.sort();
    assert_eq!(
        deleted,
        [
            format!("/v1/a/c/async {time} - -"),
            format!("/v1/a/c/o {time} {time} no")
        ]
    );
    let lines = site.fake.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with("UPDATE /sd") && line.ends_with("/.expiring_objects/0000086400"))
    );
    assert_eq!(site.expirer.oldest(), None);
}

#[tokio::test]
async fn a_time_with_a_zero_too_many_hides_no_task_behind_it() {
    let due = ago(100);
    let rows = [
        ("09999999999-a/c/far".to_owned(), "text/plain"),
        (format!("{due}-a/c/o"), "text/plain"),
    ];
    let mut site = site(&rows, &[], |_| {});
    assert_eq!(pass(&mut site.expirer).await, (1, 0));
    assert!(site.cluster.deleted.lock()[0].starts_with("/v1/a/c/o "));
}

#[tokio::test]
async fn what_cannot_be_found_is_looked_for_until_it_is_too_old() {
    for (status, seconds, done) in [
        (404, 100, false),
        (412, 100, false),
        (409, 100, true),
        (403, 100, false),
        (404, 700_000, true),
        (412, 700_000, true),
        (500, 700_000, false),
    ] {
        let due = ago(seconds);
        let mut site = site(
            &[(format!("{due}-a/c/o"), "text/plain")],
            &[("/v1/a/c/o", status)],
            |_| {},
        );
        let expected = if done { (1, 0) } else { (0, 1) };
        assert_eq!(pass(&mut site.expirer).await, expected, "{status} {seconds}");
        assert_eq!(site.fake.lines().len(), if done { 3 } else { 0 }, "{status} {seconds}");
        let oldest = (!done).then(|| Timestamp::from_seconds(due));
        assert_eq!(site.expirer.oldest(), oldest, "{status} {seconds}");
    }
    let due = ago(100);
    let mut site = site(
        &[(format!("{due}-a/c/o"), "application/async-deleted")],
        &[("/v1/a/c/o", 404)],
        |_| {},
    );
    assert_eq!(pass(&mut site.expirer).await, (1, 0));
}

/// What expires at the same time is in many containers of the queue.
#[tokio::test]
async fn containers_of_the_queue_are_gone_through_side_by_side() {
    let due = ago(100);
    let mut site = site(&[], &[], |options| options.listing_limit = 3);
    let rows = (0..20).map(|number| {
        let queue = format!("000008640{}", number % 2);
        (queue, format!("{due}-a/c/{number:02}"), "text/plain")
    });
    site.cluster.queue.lock().extend(rows);
    pass(&mut site.expirer).await;
    let [one, other] = ["0000086400", "0000086401"];
    // All names of containers, and then pages of three: the fourth has but one row.
    let mut expected = vec!["", ""];
    expected.extend([one, other].repeat(4));
    assert_eq!(*site.cluster.listed.lock(), expected);
    let mut deleted: Vec<String> = site.cluster.deleted.lock().clone();
    deleted.sort();
    let objects = deleted.iter().map(|line| line.split(' ').next().unwrap());
    assert!(
        objects.eq((0..20).map(|number| format!("/v1/a/c/{number:02}"))),
        "{deleted:?}"
    );
    assert_eq!(site.expirer.oldest(), None);
}

#[tokio::test]
async fn rows_that_no_server_takes_are_left() {
    let mut site = site(&[(format!("{}-a/c/o", ago(100)), "text/plain")], &[], |_| {});
    let refusal = || (503, None);
    site.fake
        .refusing
        .lock()
        .extend([("sd0".into(), refusal()), ("sd1".into(), refusal())]);
    assert_eq!(pass(&mut site.expirer).await, (1, 0));
    site.fake.refusing.lock().insert("sd2".into(), refusal());
    assert_eq!(pass(&mut site.expirer).await, (0, 1));
}

#[tokio::test]
async fn delayed_objects_stay_and_shares_are_kept_apart() {
    let due = ago(100);
    let rows = [
        (format!("{due}-a/c/o"), "text/plain"),
        (format!("{due}-a/c/async"), "application/async-deleted"),
        (format!("{due}-a/d/o"), "text/plain"),
    ];
    let mut site = site(&rows, &[], |options| {
        options.delays.add("a", "600").unwrap();
        options.delays.add("a/d", "50").unwrap();
    });
    assert_eq!(pass(&mut site.expirer).await, (2, 0));
    let names: Vec<(String, &str)> = (0..30)
        .map(|number| (format!("{due}-a/c/{number}"), "text/plain"))
        .collect();
    let mut sum = 0;
    for process in 0..3 {
        let mut site = self::site(&names, &[], |options| {
            (options.processes, options.process) = (3, process)
        });
        let (done, failed) = pass(&mut site.expirer).await;
        assert!(failed == 0 && done > 0 && done < 30);
        sum += done;
    }
    assert_eq!(sum, 30);
    let mut site = self::site(&names, &[], |options| options.idle = true);
    assert_eq!(pass(&mut site.expirer).await, (0, 0));
}

#[tokio::test]
async fn what_all_servers_take_in_batches_does_not_go_through_the_gateway() {
    let due = ago(100);
    let rows: Vec<(String, &str)> = (0..150)
        .map(|number| (format!("{due}-a/c/{number:03}"), "text/plain"))
        .collect();
    let servers = Arc::new(Servers::default());
    let mut site = with_servers(site(&rows, &[], |_| {}), &servers);
    assert_eq!(pass(&mut site.expirer).await, (150, 0));
    assert!(site.cluster.deleted.lock().is_empty());
    assert_eq!(site.fake.lines().len(), 3);
    let received = std::mem::take(&mut *servers.received.lock());
    let mut asked: Vec<(&str, String)> = vec![];
    for (device, batch) in &received {
        assert!(batch.len() <= 128);
        asked.extend(batch.iter().map(|one| (device.as_str(), one.path.path())));
    }
    asked.sort();
    asked.dedup();
    assert_eq!((asked.len(), received.len()), (450, 6));
    let headers: BTreeMap<&str, &str> = received[0].1[0].headers.iter().map(|(k, v)| (&**k, &**v)).collect();
    let time = format!("{due}.00000");
    for (name, value) in [
        ("x-timestamp", time.as_str()),
        ("x-if-delete-at", &time),
        ("x-backend-clean-expiring-object-queue", "no"),
        ("x-container-host", "127.0.0.2:6299"),
    ] {
        assert_eq!(headers[name], value);
    }
    assert!(headers["x-container-device"].starts_with("sd") && headers.contains_key("x-container-partition"));
}

/// A server whose clock says that nothing has expired is right until the clocks have been compared.
#[tokio::test]
async fn what_a_servers_clock_says_is_early_is_left_with_one_warning_for_the_server() {
    // So long ago that an object that is not there any more would be given up.
    let rows: Vec<(String, &str)> = (0..3)
        .map(|number| (format!("{}-a/c/{number}", ago(700_000)), "text/plain"))
        .collect();
    let early = |servers: &[&'static str]| {
        let answers = ["0", "1", "2"]
            .into_iter()
            .flat_map(|name| servers.iter().map(move |sd| ((name, *sd), 425)));
        Arc::new(Servers {
            answers: answers.collect(),
            ..Servers::default()
        })
    };
    let (log, _listening) = Log::listen();
    let mut site = with_servers(site(&rows, &[], |_| {}), &early(&["sd0", "sd1"]));
    assert_eq!(pass(&mut site.expirer).await, (0, 3));
    assert!(site.cluster.deleted.lock().is_empty() && site.fake.lines().is_empty());
    let lines = log.lines("clock");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("127.0.0.2:6299") && lines[0].contains("6 times"),
        "{lines:?}"
    );
    // What most servers have done is done, as long as tombstones last.
    let young: Vec<(String, &str)> = (0..3)
        .map(|number| (format!("{}-a/c/{number}", ago(100)), "text/plain"))
        .collect();
    let mut site = with_servers(self::site(&young, &[], |_| {}), &early(&["sd0"]));
    assert_eq!(pass(&mut site.expirer).await, (3, 0));
    assert_eq!(log.lines("clock").len(), 1);
    // Through a gateway.
    let mut site = self::site(&rows[..1], &[("/v1/a/c/0", 425)], |_| {});
    assert_eq!(pass(&mut site.expirer).await, (0, 1));
    assert!(site.fake.lines().is_empty());
    assert_eq!(log.lines("clock").len(), 1);
}

/// The gateway is asked as if no batch had been sent, and its word counts.
#[tokio::test]
async fn what_is_not_as_usual_is_left_to_the_gateway() {
    let due = ago(100);
    let rows: Vec<(String, &str)> = ["c/good", "c/most", "c/few", "c/changed", "far/o", "lost/o"]
        .iter()
        .map(|name| (format!("{due}-a/{name}"), "text/plain"))
        .collect();
    let servers = |are_foreign| {
        let answers = [("most", 1, 507), ("few", 2, 507), ("changed", 3, 412)];
        let answers = answers.into_iter().flat_map(|(name, count, status)| {
            let devices = ["sd0", "sd1", "sd2"].into_iter().take(count);
            devices.map(move |device| ((name, device), status))
        });
        Arc::new(Servers {
            answers: answers.collect(),
            are_foreign,
            ..Servers::default()
        })
    };
    let through_the_gateway = |site: &Site| -> Vec<String> {
        let deleted = site.cluster.deleted.lock();
        let mut paths: Vec<_> = deleted
            .iter()
            .map(|line| line.split(' ').next().unwrap().to_owned())
            .collect();
        paths.sort();
        paths
    };
    let answers = [("/v1/a/c/changed", 412), ("/v1/a/lost/o", 404)];
    let mut some = with_servers(site(&rows, &answers, |_| {}), &servers(false));
    assert_eq!(pass(&mut some.expirer).await, (4, 2));
    assert_eq!(
        through_the_gateway(&some),
        ["/v1/a/c/changed", "/v1/a/c/few", "/v1/a/far/o", "/v1/a/lost/o"]
    );
    let foreign = servers(true);
    let mut all = with_servers(site(&rows, &answers, |_| {}), &foreign);
    assert_eq!(pass(&mut all.expirer).await, (4, 2));
    assert_eq!(through_the_gateway(&all).len(), 6);
    assert!(foreign.received.lock().is_empty());
}

/// The whole body of the next request on a connection; `None` when there is no more.
async fn next_body(connection: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        connection.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
        if line == "\r\n" {
            break;
        }
        let line = line.to_lowercase();
        length = line
            .strip_prefix("content-length:")
            .map_or(length, |value| value.trim().parse().unwrap());
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await.ok()?;
    Some(body)
}

/// An object server that hangs up on the first batch that deletes something; how many deletions each that came had.
async fn hangs_up_once(listener: TcpListener, came: Arc<Mutex<Vec<usize>>>) {
    let has_hung_up = Arc::new(AtomicBool::default());
    loop {
        let mut connection = BufReader::new(listener.accept().await.unwrap().0);
        let (came, has_hung_up) = (came.clone(), has_hung_up.clone());
        tokio::spawn(async move {
            while let Some(body) = next_body(&mut connection).await {
                let list = decode(&body).unwrap();
                let asked = list.requests.len();
                came.lock().push(asked);
                if !list.only_checks && !has_hung_up.swap(true, Ordering::SeqCst) {
                    return;
                }
                let (status, tombstone) = (204, None);
                let body = match list.only_checks {
                    true => encode_checked(&vec![CheckedDelete { status, tombstone }; asked]),
                    false => encode_statuses(&vec![status; asked]),
                };
                let body = String::from_utf8(body).unwrap();
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                connection.write_all(answer.as_bytes()).await.unwrap();
            }
        });
    }
}

#[tokio::test]
async fn a_batch_is_sent_again_when_its_connection_is_hung_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut builder = RingBuilder::new(4, 1.0, 1).unwrap();
    let device = Device {
        weight: 1.0,
        replication_ip: "127.0.0.1".into(),
        replication_port: listener.local_addr().unwrap().port(),
        device: "sda".into(),
        ..Device::default()
    };
    builder.add(device).unwrap();
    builder.rebalance(1, 0).unwrap();
    let came = Arc::new(Mutex::default());
    tokio::spawn(hangs_up_once(listener, came.clone()));
    let rows = ["o", "p"].map(|name| (format!("{}-a/c/{name}", ago(100)), "text/plain"));
    let mut site = site(&rows, &[], |_| {});
    let containers = ring_client(&site.fake);
    site.expirer = site.expirer.in_batches(ObjectServers {
        rings: BTreeMap::from([(
            PolicyIndex(7),
            Arc::new(ArcSwap::from_pointee(Ring::new(builder.to_ring().unwrap()))),
        )]),
        containers: containers.ring,
        hash: containers.hash,
        peers: Arc::new(Peers::new(World::real())),
        timeouts: containers.timeouts,
    });
    assert_eq!(pass(&mut site.expirer).await, (2, 0));
    // The question, the check, the deletion twice.
    assert_eq!(*came.lock(), [0, 2, 2, 2]);
    assert!(site.cluster.deleted.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn servers_that_stall_in_their_answer_are_given_up() {
    let servers = Arc::new(Servers {
        stall: true,
        ..Servers::default()
    });
    let rows = [(format!("{}-a/c/o", ago(100)), "text/plain")];
    let mut site = with_servers(site(&rows, &[], |_| {}), &servers);
    let (began, patience) = (tokio::time::Instant::now(), ring_client(&site.fake).timeouts.response);
    assert_eq!(pass(&mut site.expirer).await, (1, 0));
    assert!((patience..patience * 2).contains(&began.elapsed()));
    // The gateway did it.
    assert!(!servers.checks.lock().is_empty() && servers.received.lock().is_empty());
    assert_eq!(site.cluster.deleted.lock().len(), 1);
}
