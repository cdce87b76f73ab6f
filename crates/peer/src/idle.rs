//! Connections that no request uses, by server.
//!
//! Always holds: at most [`MAX_IDLE`] of one server and [`MAX_ALL`] of all, and no more servers are remembered than
//! that; the server that was asked longest ago gives its own up first. Requests name servers, and their owners may keep
//! every connection open: there is no other bound.
//! Deliberately absent: whether a connection still works, which its user finds out.

use lru::LruCache;
use std::hash::Hash;

/// Of one server.
pub(crate) const MAX_IDLE: usize = 64;
/// Of all servers: more than most clusters have servers for each device.
const MAX_ALL: usize = 8192;

/// The connections.
pub(crate) struct IdleConnections<S: Hash + Eq, C> {
    by_server: LruCache<S, Vec<C>>,
    count: usize,
}

impl<S: Hash + Eq, C> Default for IdleConnections<S, C> {
    fn default() -> Self {
        Self {
            by_server: LruCache::unbounded(),
            count: 0,
        }
    }
}

impl<S: Hash + Eq, C> IdleConnections<S, C> {
    /// The one of `server` that came last, of those that still work.
    pub(crate) fn take(&mut self, server: &S, works: impl Fn(&C) -> bool) -> Option<C> {
        let connections = self.by_server.get_mut(server)?;
        let before = connections.len();
        let found = std::iter::from_fn(|| connections.pop()).find(works);
        self.count -= before - connections.len();
        found
    }

    /// Keeps one, unless there are enough.
    pub(crate) fn put(&mut self, server: S, connection: C) {
        match self.by_server.get_mut(&server) {
            Some(connections) if connections.len() >= MAX_IDLE => return,
            Some(connections) => connections.push(connection),
            None => {
                self.by_server.put(server, vec![connection]);
            }
        }
        self.count += 1;
        while (self.count > MAX_ALL || self.by_server.len() > MAX_ALL)
            && let Some((_, connections)) = self.by_server.pop_lru()
        {
            self.count -= connections.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_servers_leaves_a_bounded_number_of_connections() {
        let mut idle = IdleConnections::default();
        for server in 0..3 * MAX_ALL {
            idle.put(server, ());
            assert!(idle.take(&usize::MAX, |()| true).is_none());
        }
        assert_eq!((idle.count, idle.by_server.len()), (MAX_ALL, MAX_ALL));
        // What is taken out leaves the server's entry behind, which counts no less.
        for server in 0..MAX_ALL {
            assert!(idle.take(&(2 * MAX_ALL + server), |()| true).is_some());
        }
        assert_eq!((idle.count, idle.by_server.len()), (0, MAX_ALL));
        for server in 0..3 * MAX_ALL / MAX_IDLE {
            for _ in 0..2 * MAX_IDLE {
                idle.put(server, ());
            }
            let held: usize = idle.by_server.iter().map(|(_, connections)| connections.len()).sum();
            assert!(held == idle.count && held <= MAX_ALL);
        }
        assert!(
            idle.by_server
                .iter()
                .all(|(_, connections)| connections.len() <= MAX_IDLE)
        );
    }

    #[test]
    fn those_that_broke_are_passed_over() {
        let mut idle = IdleConnections::default();
        for connection in 1..=4 {
            idle.put("a", connection);
        }
        assert_eq!(idle.take(&"a", |connection| *connection < 3), Some(2));
        assert_eq!((idle.count, idle.take(&"a", |_| true)), (1, Some(1)));
        assert_eq!((idle.count, idle.take(&"a", |_| true)), (0, None));
    }
}
