//! A few places for which requests wait in turns, by their clients' addresses
//! ([`client_network`](crate::client_network)) or whatever else is to be fair: many of one key keep out no other's.
//!
//! Always holds: a free place goes to the next request that waits; keys take turns, and requests of one key come in
//! their order; a request that is cancelled leaves no place in a queue and holds none; where as many wait as may, the
//! newest of the key with most makes room for one of a key with fewer.

use crate::turn_queues::{QueuePlace, TurnQueues};
use parking_lot::Mutex;
use std::hash::Hash;
use std::sync::Arc;
use tokio::sync::oneshot;

/// See the module's header; clones share the places.
pub struct FairPlaces<K: Clone + Eq + Hash>(Arc<Mutex<State<K>>>);

struct State<K: Clone + Eq + Hash> {
    /// None is free while a request waits.
    free: usize,
    queues: TurnQueues<K, FairPlace<K>>,
    /// How many requests may be in `queues`.
    most: usize,
    /// How many there are.
    waiting: usize,
}

/// A place, until it is dropped.
pub struct FairPlace<K: Clone + Eq + Hash>(
    /// Nothing once another request has it.
    Option<FairPlaces<K>>,
);

impl<K: Clone + Eq + Hash> Clone for FairPlaces<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Clone + Eq + Hash> FairPlaces<K> {
    /// So many places, for which so many requests may wait.
    pub fn new(places: usize, most: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            free: places,
            queues: TurnQueues::default(),
            most,
            waiting: 0,
        })))
    }

    /// A place for a request of this key, in its turn; nothing where too many wait.
    pub async fn wait(&self, key: K) -> Option<FairPlace<K>> {
        let (awaited, given) = oneshot::channel();
        let (place, refused) = {
            let mut state = self.0.lock();
            if state.free > 0 {
                state.free -= 1;
                return Some(FairPlace(Some(self.clone())));
            }
            let is_full = state.waiting >= state.most;
            let refused = is_full.then(|| state.queues.take_from_longest(&key)).flatten();
            match (is_full, &refused) {
                (false, _) => state.waiting += 1,
                (true, Some(_)) => {}
                (true, None) => return None,
            }
            (state.queues.add(key, awaited), refused)
        };
        drop(refused);
        let _waiting = Waiting { turns: self, place };
        given.await.ok()
    }

    /// Places that are free.
    pub fn free(&self) -> usize {
        self.0.lock().free
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.0.lock().waiting
    }

    /// Gives a place to the request whose turn it is.
    fn pass_on(&self) {
        let mut turn = FairPlace(Some(self.clone()));
        loop {
            let next = {
                let mut state = self.0.lock();
                let next = state.queues.next();
                match next {
                    Some(_) => state.waiting -= 1,
                    None => state.free += 1,
                }
                next
            };
            let Some(request) = next else {
                turn.0 = None;
                return;
            };
            match request.awaited.send(turn) {
                Ok(()) => return,
                Err(unwanted) => turn = unwanted,
            }
        }
    }
}

impl<K: Clone + Eq + Hash> Drop for FairPlace<K> {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.pass_on();
        }
    }
}

/// A request that waits, until it is dropped.
struct Waiting<'a, K: Clone + Eq + Hash> {
    turns: &'a FairPlaces<K>,
    place: QueuePlace<K>,
}

impl<K: Clone + Eq + Hash> Drop for Waiting<'_, K> {
    fn drop(&mut self) {
        let mut state = self.turns.0.lock();
        if state.queues.remove(&self.place) {
            state.waiting -= 1;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;
    use std::net::IpAddr;

    fn waiting<'a>(turns: &'a FairPlaces<IpAddr>, address: &str) -> BoxFuture<'a, Option<FairPlace<IpAddr>>> {
        let mut waiting = turns.wait(address.parse().unwrap()).boxed();
        assert!(waiting.as_mut().now_or_never().is_none(), "it waits");
        waiting
    }

    #[tokio::test]
    async fn addresses_take_turns() {
        let turns = FairPlaces::new(2, 6);
        let mut held = vec![
            turns.wait([10, 0, 0, 1].into()).await,
            turns.wait([10, 0, 0, 1].into()).await,
        ];
        let addresses = ["10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.2"];
        let mut requests: Vec<_> = addresses.iter().map(|address| Some(waiting(&turns, address))).collect();
        let mut order = Vec::new();
        while order.len() < addresses.len() {
            held.remove(0);
            for (number, request) in requests.iter_mut().enumerate() {
                if let Some(turn) = request.as_mut().and_then(|request| request.now_or_never()) {
                    order.push(number);
                    held.push(turn);
                    *request = None;
                }
            }
        }
        assert_eq!(order, [0, 3, 4, 1, 5, 2]);
        held.clear();
        assert_eq!(turns.0.lock().free, 2);
    }

    #[tokio::test]
    async fn requests_that_are_cancelled_hold_no_place() {
        let turns = FairPlaces::new(1, 3);
        let held = turns.wait([10, 0, 0, 1].into()).await;
        let (early, given, last) = (
            waiting(&turns, "10.0.0.1"),
            waiting(&turns, "10.0.0.2"),
            waiting(&turns, "10.0.0.3"),
        );
        drop(early);
        // The place is given to a request that ends before it takes it.
        drop(held);
        drop(given);
        assert!(last.await.is_some());
        let state = turns.0.lock();
        assert!(state.free == 1 && state.waiting == 0 && state.queues.are_empty());
    }

    #[tokio::test]
    async fn an_address_with_many_makes_room_for_others() {
        let turns = FairPlaces::new(1, 3);
        let held = turns.wait([10, 0, 0, 1].into()).await;
        let mut one: Vec<_> = (0..3).map(|_| waiting(&turns, "10.0.0.1")).collect();
        assert!(turns.wait([10, 0, 0, 1].into()).await.is_none());
        let other = waiting(&turns, "10.0.0.2");
        assert!(one.pop().unwrap().await.is_none(), "the newest");
        assert!(
            turns.wait([10, 0, 0, 2].into()).await.is_none(),
            "its address has as many then"
        );
        drop(held);
        let turn = one.remove(0).await;
        assert!(turn.is_some());
        drop(turn);
        drop(other.await);
        assert!(one.remove(0).await.is_some());
        assert_eq!(turns.0.lock().waiting, 0);
    }
}
