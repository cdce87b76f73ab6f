//! A few places for which requests wait in turns: one that many ask for from one address keeps out no other address's.
//!
//! Always holds: a free place goes to the next request that waits; addresses take turns, and requests of one address
//! come in their order; a request that is cancelled leaves no place in a queue and holds none.

use crate::address_queues::{AddressQueues, QueuePlace};
use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::oneshot;

/// See the module's header; clones share the places.
#[derive(Clone)]
pub struct AddressTurns(Arc<Mutex<State>>);

struct State {
    /// None is free while a request waits.
    free: usize,
    queues: AddressQueues<AddressTurn>,
}

/// A place, until it is dropped.
pub struct AddressTurn(
    /// Nothing once another request has it.
    Option<AddressTurns>,
);

impl AddressTurns {
    /// So many places.
    pub fn new(places: usize) -> Self {
        let queues = AddressQueues::default();
        Self(Arc::new(Mutex::new(State { free: places, queues })))
    }

    /// A place for a request from this address, in its turn.
    pub async fn wait(&self, address: IpAddr) -> AddressTurn {
        loop {
            let (awaited, given) = oneshot::channel();
            let place = {
                let mut state = self.0.lock();
                if state.free > 0 {
                    state.free -= 1;
                    return AddressTurn(Some(self.clone()));
                }
                state.queues.add(address, awaited)
            };
            let _waiting = Waiting { turns: self, place };
            // The queue drops no request without a place.
            if let Ok(turn) = given.await {
                return turn;
            }
        }
    }

    /// Gives a place to the request whose turn it is.
    fn pass_on(&self) {
        let mut turn = AddressTurn(Some(self.clone()));
        loop {
            let next = {
                let mut state = self.0.lock();
                let next = state.queues.next();
                if next.is_none() {
                    state.free += 1;
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

impl Drop for AddressTurn {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.pass_on();
        }
    }
}

/// A request that waits, until it is dropped.
struct Waiting<'a> {
    turns: &'a AddressTurns,
    place: QueuePlace,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.turns.0.lock().queues.remove(self.place);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;

    fn waiting<'a>(turns: &'a AddressTurns, address: &str) -> BoxFuture<'a, AddressTurn> {
        let mut waiting = turns.wait(address.parse().unwrap()).boxed();
        assert!(waiting.as_mut().now_or_never().is_none(), "it waits");
        waiting
    }

    #[tokio::test]
    async fn addresses_take_turns() {
        let turns = AddressTurns::new(2);
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
        let turns = AddressTurns::new(1);
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
        drop(last.await);
        let state = turns.0.lock();
        assert!(state.free == 1 && state.queues.are_empty());
    }
}
