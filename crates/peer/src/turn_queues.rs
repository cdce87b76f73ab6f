//! Requests that wait for something of which there is little (a seat, a place), in a queue for each address or whatever
//! else takes turns.
//!
//! Always holds: no queue is empty; the queues take turns, in the order in which they began.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use tokio::sync::oneshot;

/// See the module's header.
pub(crate) struct TurnQueues<K, T> {
    queues: HashMap<K, VecDeque<QueuedRequest<T>>>,
    /// The keys of the queues, that of the next request first.
    order: VecDeque<K>,
    next_id: u64,
}

/// A request that waits.
pub(crate) struct QueuedRequest<T> {
    id: u64,
    pub(crate) awaited: oneshot::Sender<T>,
}

/// Where a request waits.
#[derive(Debug, Clone)]
pub(crate) struct QueuePlace<K> {
    queue: K,
    id: u64,
}

impl<K, T> Default for TurnQueues<K, T> {
    fn default() -> Self {
        Self {
            queues: HashMap::new(),
            order: VecDeque::new(),
            next_id: 0,
        }
    }
}

impl<K: Clone + Eq + Hash, T> TurnQueues<K, T> {
    /// Behind the other requests of its queue.
    pub(crate) fn add(&mut self, queue: K, awaited: oneshot::Sender<T>) -> QueuePlace<K> {
        let id = self.next_id;
        self.next_id += 1;
        let requests = self.queues.entry(queue.clone()).or_default();
        if requests.is_empty() {
            self.order.push_back(queue.clone());
        }
        requests.push_back(QueuedRequest { id, awaited });
        QueuePlace { queue, id }
    }

    /// Takes the request whose turn it is.
    pub(crate) fn next(&mut self) -> Option<QueuedRequest<T>> {
        let queue = self.order.pop_front()?;
        let requests = self.queues.get_mut(&queue)?;
        let request = requests.pop_front();
        match requests.is_empty() {
            true => drop(self.queues.remove(&queue)),
            false => self.order.push_back(queue),
        }
        request
    }

    /// Takes the newest request of the longest queue, if that is longer than the queue of this key would become.
    pub(crate) fn take_from_longest(&mut self, queue: &K) -> Option<QueuedRequest<T>> {
        let own = self.queues.get(queue).map_or(0, VecDeque::len);
        let longest = self.queues.values_mut().max_by_key(|requests| requests.len())?;
        // It keeps one at least.
        (longest.len() > own + 1).then(|| longest.pop_back()).flatten()
    }

    /// Removes a request that waits no longer; whether it was still there.
    pub(crate) fn remove(&mut self, place: &QueuePlace<K>) -> bool {
        let Some(requests) = self.queues.get_mut(&place.queue) else {
            return false;
        };
        let Ok(at) = requests.binary_search_by_key(&place.id, |request| request.id) else {
            return false;
        };
        requests.remove(at);
        if requests.is_empty() {
            self.queues.remove(&place.queue);
            self.order.retain(|other| *other != place.queue);
        }
        true
    }

    #[cfg(test)]
    pub(crate) fn are_empty(&self) -> bool {
        self.queues.is_empty() && self.order.is_empty()
    }
}

/// The queue of a client's address: itself; for IPv6 its first 64 bits, as one host may use all addresses of such a
/// network (RFC 4291 §2.5.1).
pub fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}
