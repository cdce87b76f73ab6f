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

/// The objects of a work, and how many of its requests were done.
type Ended = (Vec<Arc<EntityPath>>, usize);

/// What is under way.
pub(super) struct UnderWay {
    world: World,
    ends: FuturesUnordered<BoxFuture<'static, Ended>>,
    objects: HashSet<Arc<EntityPath>>,
    tally: Tally,
}

impl UnderWay {
    pub(super) fn new(world: &World) -> Self {
        Self {
            world: world.clone(),
            ends: FuturesUnordered::new(),
            objects: HashSet::new(),
            tally: Tally::default(),
        }
    }

    /// Waits until there is room for one more, and nothing under way for this object.
    pub(super) async fn room_for(&mut self, object: &EntityPath) {
        while self.ends.len() >= REPLICATION_THREADS || self.objects.contains(object) {
            self.one_ends().await;
        }
    }

    /// Begins `work` with a request for each of these objects, which says how many were done. There must be room.
    pub(super) fn begin(&mut self, objects: Vec<Arc<EntityPath>>, work: impl Future<Output = usize> + Send + 'static) {
        let (tell, told) = oneshot::channel();
        // Nobody listens when the exchange has ended; the work is done nevertheless.
        self.world.spawn(async move {
            let _ = tell.send(work.await);
        });
        self.objects.extend(objects.iter().cloned());
        self.ends
            .push(Box::pin(async move { (objects, told.await.unwrap_or(0)) }));
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
        if let Some((objects, done)) = self.ends.next().await {
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
        under_way.begin(vec![object("slow")], async move {
            drop(hang.wait_for(|released| *released).await);
            first.lock().push("put");
            1
        });
        for number in 1..REPLICATION_THREADS {
            let quick = object(&number.to_string());
            under_way.room_for(&quick).await;
            under_way.begin(vec![quick], async move { usize::from(number % 2 == 0) });
        }
        assert_eq!(under_way.objects.len(), REPLICATION_THREADS);
        release.send(true).unwrap();
        under_way.room_for(&object("slow")).await;
        let second = said.clone();
        under_way.begin(vec![object("slow")], async move {
            second.lock().push("post");
            panic!("planted")
        });
        under_way.settle().await;
        assert_eq!(*said.lock(), ["put", "post"]);
        let failed = REPLICATION_THREADS as u64 / 2 + 1;
        let done = REPLICATION_THREADS as u64 + 1 - failed;
        assert_eq!(under_way.tally(), Tally { done, failed });
    }
}
