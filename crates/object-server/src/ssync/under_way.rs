//! Requests of an exchange that are being carried out while the next is read.
//!
//! A write waits for the drive most of its time, and many that wait together cost the drive hardly more than one.
//! Always holds: at most [`REPLICATION_THREADS`] works at a time, those for one object one after the other; each request is
//! counted once, as failed if it was lost; what is under way goes on when the exchange ends.

use crate::devices::REPLICATION_THREADS;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::oneshot;
use vocabulary::EntityPath;
use world::{BoxFuture, World};

/// How it goes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) done: u64,
    pub(super) failed: u64,
}

/// Lots at a time: while one is being synced the next is written.
const LOTS: usize = 2;

/// A work that has ended.
struct Ended {
    objects: Vec<Arc<EntityPath>>,
    /// How many of its requests were done.
    done: usize,
    is_lot: bool,
}

/// What is under way.
pub(super) struct UnderWay {
    world: World,
    ends: FuturesUnordered<BoxFuture<'static, Ended>>,
    objects: HashSet<Arc<EntityPath>>,
    lots: usize,
    tally: Tally,
}

impl UnderWay {
    pub(super) fn new(world: &World) -> Self {
        Self {
            world: world.clone(),
            ends: FuturesUnordered::new(),
            objects: HashSet::new(),
            lots: 0,
            tally: Tally::default(),
        }
    }

    /// Waits until there is room for one more, and nothing under way for this object.
    pub(super) async fn room_for(&mut self, object: &EntityPath) {
        while self.ends.len() >= REPLICATION_THREADS || self.objects.contains(object) {
            self.one_ends().await;
        }
    }

    /// Waits until there is room for a lot.
    pub(super) async fn room_for_lot(&mut self) {
        while self.lots >= LOTS || self.ends.len() >= REPLICATION_THREADS {
            self.one_ends().await;
        }
    }

    /// Begins the work of a request for this object, which says how many were done. There must be room.
    pub(super) fn begin(&mut self, object: Arc<EntityPath>, work: impl Future<Output = usize> + Send + 'static) {
        self.begin_all(vec![object], work, false);
    }

    /// Begins the work of a lot: a request for each of these objects. There must be room.
    pub(super) fn begin_lot(
        &mut self,
        objects: Vec<Arc<EntityPath>>,
        work: impl Future<Output = usize> + Send + 'static,
    ) {
        self.lots += 1;
        self.begin_all(objects, work, true);
    }

    fn begin_all(
        &mut self,
        objects: Vec<Arc<EntityPath>>,
        work: impl Future<Output = usize> + Send + 'static,
        is_lot: bool,
    ) {
        let (tell, told) = oneshot::channel();
        // Nobody listens when the exchange has ended; the work is done nevertheless.
        self.world.spawn(async move {
            let _ = tell.send(work.await);
        });
        self.objects.extend(objects.iter().cloned());
        self.ends.push(Box::pin(async move {
            Ended {
                objects,
                done: told.await.unwrap_or(0),
                is_lot,
            }
        }));
    }

    /// Waits for all.
    pub(super) async fn settle(&mut self) {
        while !self.ends.is_empty() {
            self.one_ends().await;
        }
    }

    /// What is known by now.
    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    async fn one_ends(&mut self) {
        if let Some(Ended { objects, done, is_lot }) = self.ends.next().await {
            self.lots -= usize::from(is_lot);
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
        let mut under_way = UnderWay::new(&world);
        let said = Arc::new(Mutex::new(vec![]));
        let (release, mut hang) = tokio::sync::watch::channel(false);
        under_way.room_for(&object("slow")).await;
        let first = said.clone();
        under_way.begin(object("slow"), async move {
            drop(hang.wait_for(|released| *released).await);
            first.lock().push("put");
            1
        });
        for number in 1..REPLICATION_THREADS {
            let quick = object(&number.to_string());
            under_way.room_for(&quick).await;
            under_way.begin(quick, async move { usize::from(number % 2 == 0) });
        }
        assert_eq!(under_way.objects.len(), REPLICATION_THREADS);
        release.send(true).unwrap();
        under_way.room_for(&object("slow")).await;
        let second = said.clone();
        under_way.begin(object("slow"), async move {
            second.lock().push("post");
            panic!("planted")
        });
        under_way.settle().await;
        assert_eq!(*said.lock(), ["put", "post"]);
        let failed = REPLICATION_THREADS as u64 / 2 + 1;
        let done = REPLICATION_THREADS as u64 + 1 - failed;
        assert_eq!(under_way.tally(), Tally { done, failed });
    }

    #[tokio::test]
    async fn lots_are_bounded_by_themselves() {
        let world = World::real();
        let mut under_way = UnderWay::new(&world);
        let (release, hang) = tokio::sync::watch::channel(0);
        for number in 0..LOTS {
            under_way.room_for_lot().await;
            let mut hang = hang.clone();
            let objects = vec![object(&format!("{number}-a")), object(&format!("{number}-b"))];
            under_way.begin_lot(objects, async move {
                drop(hang.wait_for(|released| *released > number).await);
                2
            });
        }
        under_way.begin(object("alone"), async { 1 });
        // Only a lot makes room for a lot.
        let mut waiting = Box::pin(under_way.room_for_lot());
        let waited = tokio::time::timeout(std::time::Duration::from_millis(50), &mut waiting).await;
        assert!(waited.is_err());
        release.send(1).unwrap();
        waiting.await;
        assert_eq!(under_way.lots, LOTS - 1);
        release.send(LOTS).unwrap();
        under_way.settle().await;
        let done = 2 * LOTS as u64 + 1;
        assert_eq!(under_way.tally(), Tally { done, failed: 0 });
    }
}
