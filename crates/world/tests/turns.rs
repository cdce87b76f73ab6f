//! Short jobs come before those of long transfers, and neither kind holds up or crowds out the other.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

use parking_lot::Mutex;
use std::sync::{Arc, mpsc};
use tokio::task::JoinHandle;
use world::{WorkerError, Workers};

/// One thread that is held up until `go` is sent, so that what waits can be counted.
struct Held {
    workers: Arc<Workers>,
    go: mpsc::Sender<()>,
    order: Arc<Mutex<Vec<&'static str>>>,
}

async fn held(queue: usize) -> Held {
    let workers = Arc::new(Workers::start("sda", 1, queue).unwrap());
    let (go, wait) = mpsc::channel::<()>();
    let (began, begun) = tokio::sync::oneshot::channel();
    let its = workers.clone();
    tokio::spawn(async move {
        its.run(move || {
            began.send(()).unwrap();
            wait.recv().unwrap();
        })
        .await
    });
    begun.await.unwrap();
    let order = Arc::default();
    Held { workers, go, order }
}

impl Held {
    /// Submits a job and returns when it waits.
    async fn submit(&self, name: &'static str, is_behind: bool) -> JoinHandle<Result<(), WorkerError>> {
        let waiting = self.workers.waiting();
        let (workers, order) = (self.workers.clone(), self.order.clone());
        let job = tokio::spawn(async move {
            let job = move || order.lock().push(name);
            match is_behind {
                true => workers.run_behind(job).await,
                false => workers.run(job).await,
            }
        });
        while self.workers.waiting() == waiting {
            tokio::task::yield_now().await;
        }
        job
    }
}

#[tokio::test]
async fn short_jobs_come_first_and_long_ones_get_a_turn() {
    let held = held(10).await;
    let mut jobs = vec![];
    for _ in 0..3 {
        jobs.push(held.submit("long", true).await);
    }
    for _ in 0..6 {
        jobs.push(held.submit("short", false).await);
    }
    held.go.send(()).unwrap();
    for job in jobs {
        job.await.unwrap().unwrap();
    }
    let order = held.order.lock().clone();
    assert_eq!(order.iter().filter(|name| **name == "long").count(), 3);
    assert_eq!(order[0], "short");
    assert_eq!(order[8], "long");
    let first_long = order.iter().position(|name| *name == "long").unwrap();
    assert!((1..=3).contains(&first_long), "{order:?}");
}

#[tokio::test]
async fn long_jobs_take_no_room_from_short_ones() {
    let held = held(2).await;
    let mut jobs = vec![held.submit("long", true).await, held.submit("long", true).await];
    assert_eq!(held.workers.run_behind(|| ()).await, Err(WorkerError::Busy));
    jobs.push(held.submit("short", false).await);
    jobs.push(held.submit("short", false).await);
    assert_eq!(held.workers.run(|| ()).await, Err(WorkerError::Busy));
    held.go.send(()).unwrap();
    for job in jobs {
        job.await.unwrap().unwrap();
    }
}
