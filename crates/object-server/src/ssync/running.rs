//! Requests of an exchange that are being carried out while the next is read.
//!
//! A write waits for the drive most of its time, and many that wait together cost the drive hardly more than one.
//! Always holds: at most [`REPLICATION_THREADS`] works at a time, those for one object one after the other; each
//! request is counted once, as failed if it was lost; what is running goes on when the exchange ends.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::collections::HashSet;
use std::sync::Arc;
use storage_shell::REPLICATION_THREADS;
use tokio::sync::oneshot;
use vocabulary::EntityPath;
use world::{BoxFuture, World};

/// How many requests were done.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExchangeTally {
    pub(super) done: u64,
    pub(super) failed: u64,
}

/// Batches at a time: while one is being synced the next is written.
const BATCHES: usize = 2;

/// A work that has ended.
struct EndedRequests {
    objects: Vec<Arc<EntityPath>>,
    /// How many of its requests were done.
    done: usize,
    is_batch: bool,
}

/// The requests that are being carried out.
pub(super) struct RunningRequests {
    world: World,
    ends: FuturesUnordered<BoxFuture<'static, EndedRequests>>,
    objects: HashSet<Arc<EntityPath>>,
    batches: usize,
    tally: ExchangeTally,
}

impl RunningRequests {
    pub(super) fn new(world: &World) -> Self {
        Self {
            world: world.clone(),
            ends: FuturesUnordered::new(),
            objects: HashSet::new(),
            batches: 0,
            tally: ExchangeTally::default(),
        }
    }

    /// Waits until there is room for one more, and nothing is running for this object.
    pub(super) async fn room_for(&mut self, object: &EntityPath) {
        while self.ends.len() >= REPLICATION_THREADS || self.objects.contains(object) {
            self.one_ends().await;
        }
    }

    /// Waits until there is room for a batch.
    pub(super) async fn room_for_batch(&mut self) {
        while self.batches >= BATCHES || self.ends.len() >= REPLICATION_THREADS {
            self.one_ends().await;
        }
    }

    /// Begins the work of a request for this object, which says how many were done. There must be room.
    pub(super) fn begin(&mut self, object: Arc<EntityPath>, work: impl Future<Output = usize> + Send + 'static) {
        self.begin_all(vec![object], work, false);
    }

    /// Begins the work of a batch: a request for each of these objects. There must be room.
    pub(super) fn begin_batch(
        &mut self,
        objects: Vec<Arc<EntityPath>>,
        work: impl Future<Output = usize> + Send + 'static,
    ) {
        self.batches += 1;
        self.begin_all(objects, work, true);
    }

    fn begin_all(
        &mut self,
        objects: Vec<Arc<EntityPath>>,
        work: impl Future<Output = usize> + Send + 'static,
        is_batch: bool,
    ) {
        let (report, reported) = oneshot::channel();
        // The receiver is gone when the exchange has ended; the work is done nevertheless.
        self.world.spawn(async move {
            let _ = report.send(work.await);
        });
        self.objects.extend(objects.iter().cloned());
        self.ends.push(Box::pin(async move {
            EndedRequests {
                objects,
                done: reported.await.unwrap_or(0),
                is_batch,
            }
        }));
    }

    /// Waits for all.
    pub(super) async fn finish(&mut self) {
        while !self.ends.is_empty() {
            self.one_ends().await;
        }
    }

    /// What is known by now.
    pub(super) fn tally(&self) -> ExchangeTally {
        self.tally
    }

    async fn one_ends(&mut self) {
        if let Some(EndedRequests {
            objects,
            done,
            is_batch,
        }) = self.ends.next().await
        {
            self.batches -= usize::from(is_batch);
            for object in &objects {
                self.objects.remove(object);
            }
            self.tally.done += done as u64;
            self.tally.failed += (objects.len() - done.min(objects.len())) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    fn object(name: &str) -> Arc<EntityPath> {
        Arc::new(EntityPath::account("a").with_container("c").with_object(name))
    }

    #[tokio::test]
    async fn as_many_as_there_are_threads_and_one_object_in_order() {
        let world = World::real();
        let mut running = RunningRequests::new(&world);
        let order = Arc::new(Mutex::new(vec![]));
        let (release, mut hang) = tokio::sync::watch::channel(false);
        running.room_for(&object("slow")).await;
        let first = order.clone();
        running.begin(object("slow"), async move {
            drop(hang.wait_for(|released| *released).await);
            first.lock().push("put");
            1
        });
        for number in 1..REPLICATION_THREADS {
            let quick = object(&number.to_string());
            running.room_for(&quick).await;
            running.begin(quick, async move { usize::from(number % 2 == 0) });
        }
        assert_eq!(running.objects.len(), REPLICATION_THREADS);
        release.send(true).unwrap();
        running.room_for(&object("slow")).await;
        let second = order.clone();
        running.begin(object("slow"), async move {
            second.lock().push("post");
            panic!("planted")
        });
        running.finish().await;
        assert_eq!(*order.lock(), ["put", "post"]);
        let failed = REPLICATION_THREADS as u64 / 2 + 1;
        let done = REPLICATION_THREADS as u64 + 1 - failed;
        assert_eq!(running.tally(), ExchangeTally { done, failed });
    }

    #[tokio::test]
    async fn batches_are_bounded_by_themselves() {
        let world = World::real();
        let mut running = RunningRequests::new(&world);
        let (release, hang) = tokio::sync::watch::channel(0);
        for number in 0..BATCHES {
            running.room_for_batch().await;
            let mut hang = hang.clone();
            let objects = vec![object(&format!("{number}-a")), object(&format!("{number}-b"))];
            running.begin_batch(objects, async move {
                drop(hang.wait_for(|released| *released > number).await);
                2
            });
        }
        running.begin(object("alone"), async { 1 });
        // Only a batch makes room for a batch.
        let mut waiting = Box::pin(running.room_for_batch());
        let waited = tokio::time::timeout(std::time::Duration::from_millis(50), &mut waiting).await;
        assert!(waited.is_err());
        release.send(1).unwrap();
        waiting.await;
        assert_eq!(running.batches, BATCHES - 1);
        release.send(BATCHES).unwrap();
        running.finish().await;
        let done = 2 * BATCHES as u64 + 1;
        assert_eq!(running.tally(), ExchangeTally { done, failed: 0 });
    }
}
