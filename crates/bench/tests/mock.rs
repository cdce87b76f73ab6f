//! Whole works on a store whose behaviour is known.
#![allow(clippy::unwrap_used)]

use bench::content::Contents;
use bench::load::{LoadOptions, LoadWatch, WorkResult, run};
use bench::store::auth::{Trust, open};
use bench::workload::{Work, WorkEnd, own_format};
use std::sync::Arc;
use std::time::Duration;
use world::World;

fn work(text: &str) -> Arc<Work> {
    Arc::new(own_format::parse(text).unwrap().stages[0].works[0].clone())
}

/// Runs a work; `watch` may stop it.
async fn result(work: &Arc<Work>, watch: Arc<LoadWatch>) -> WorkResult {
    let world = World::real();
    let store = open(&world, &work.auth, &work.storage, &Trust::default())
        .await
        .unwrap();
    let options = LoadOptions {
        threads: 2,
        seed: 1,
        verifies: false,
    };
    run(&world, work, store, Arc::new(Contents::new()), watch, &options)
        .await
        .unwrap()
}

fn stalling(rate: &str) -> Arc<Work> {
    work(&format!(
        "[storage]\ntype = 'mock'\ndelay = 1\nstall = '1:1'\n[[stage]]\nworkers = 4\nruntime = '3s'\n{rate}\n\
         operations = [{{ type = 'read', containers = 'c(1)', objects = 'u(1,10)' }}]"
    ))
}

/// Of three seconds the store serves nothing for one: a third of the users wait, half a second on average. A closed
/// loop asks four times meanwhile.
#[tokio::test]
async fn a_stall_is_seen_by_an_open_loop_and_hidden_by_a_closed_one() {
    let (closed, open) = (stalling(""), stalling("rate = 200"));
    let (closed, open) = futures_util::join!(result(&closed, Arc::default()), result(&open, Arc::default()));
    let (closed, open) = (closed.figures.total().latency, open.figures.total().latency);
    assert!(closed.longest() > Duration::from_millis(900) && open.longest() > Duration::from_millis(900));
    let (hidden, seen) = (closed.percentile(90.0), open.percentile(90.0));
    assert!(
        hidden < Duration::from_millis(300) && seen > Duration::from_millis(500),
        "{hidden:?} {seen:?}"
    );
    assert!((500..=600).contains(&open.count()), "{} of 600 requests", open.count());
}

#[tokio::test]
async fn works_end_with_their_operations_or_their_bytes() {
    for (end, expected) in [("total_operations = 500", 500), ("total_bytes = 100000", 100)] {
        let work = work(&format!(
            "[storage]\ntype = 'mock'\ndelay = 0\nerrors = 7\n[[stage]]\nworkers = 1\n{end}\noperations = [\
             {{ type = 'write', containers = 'c(1)', objects = 'u(1,10)', sizes = 'c(1)KB' }}]"
        ));
        let total = result(&work, Arc::default()).await.figures.total();
        let failed = total.failed();
        let all = if matches!(work.end, WorkEnd::Operations(_)) {
            total.succeeded + failed
        } else {
            total.succeeded
        };
        assert_eq!((all, failed), (expected, 7), "{end}");
    }
}

#[tokio::test]
async fn a_load_that_is_asked_to_stop_keeps_what_it_has() {
    let work = work(
        "[storage]\ntype = 'mock'\ndelay = 1\n[[stage]]\nworkers = 4\nruntime = '1h'\n\
         operations = [{ type = 'read', containers = 'c(1)', objects = 'u(1,10)' }]",
    );
    let watch = Arc::new(LoadWatch::default());
    let stopping = async {
        while watch.so_far().0 < 50 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        watch.stop();
    };
    let (result, ()) = futures_util::join!(result(&work, watch.clone()), stopping);
    assert!(result.figures.total().succeeded >= 50);
    assert!(result.lasted < Duration::from_secs(60));
}
