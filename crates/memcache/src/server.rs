//! One memcached server: its connections and its errors.
//!
//! A server whose exchanges keep taking longer than half of their time (`io_timeout`) has as many errors as such times
//! have passed, though what they brought is used: others wait for their connections meanwhile.
//! Always holds: at most `max_connections` exchanges at a time; a connection goes back to the pool
//! only after an exchange that ended well, so one that was cancelled or went wrong is closed.

use crate::protocol::{Connection, ProtocolError};
use crate::{MemcacheAddressError, MemcacheOptions};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use world::World;

const DEFAULT_PORT: &str = "11211";

pub(crate) struct MemcacheServer {
    name: String,
    host: String,
    port: u16,
    permits: Semaphore,
    idle: Mutex<Vec<Connection>>,
    errors: Mutex<Errors>,
    failures: AtomicU64,
}

#[derive(Default)]
struct Errors {
    /// When the latest errors happened, oldest first.
    recent: VecDeque<Duration>,
    /// When a slow exchange counted last.
    slow: Option<Duration>,
    limited_until: Option<Duration>,
}

impl MemcacheServer {
    pub(crate) fn new(name: &str, options: &MemcacheOptions) -> Result<Self, MemcacheAddressError> {
        let (host, port) = address(name).ok_or_else(|| MemcacheAddressError(name.into()))?;
        Ok(Self {
            name: name.into(),
            host,
            port,
            permits: Semaphore::new(options.max_connections.clamp(1, Semaphore::MAX_PERMITS)),
            idle: Mutex::default(),
            errors: Mutex::default(),
            failures: AtomicU64::new(0),
        })
    }

    /// Its name, and how many calls to it failed so far.
    pub(crate) fn failures(&self) -> (&str, u64) {
        (&self.name, self.failures.load(Ordering::Relaxed))
    }

    /// Whether it had too many errors and is left alone for now.
    pub(crate) fn is_limited(&self, world: &World) -> bool {
        let until = self.errors.lock().limited_until;
        until.is_some_and(|until| world.clock.elapsed() < until)
    }

    /// A connection for one exchange; nothing when there is none to be had in time.
    pub(crate) async fn session<'a>(&'a self, world: &'a World, options: &'a MemcacheOptions) -> Option<Session<'a>> {
        let permit = match world.timeout(options.pool_timeout, self.permits.acquire()).await {
            Ok(permit) => permit.ok()?,
            // Too many of us at once is no fault of the server's, so it does not count as one; slow exchanges do.
            Err(_) => return None,
        };
        let idle = self.idle.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => match self.connect(world, options).await {
                Ok(connection) => connection,
                Err(fault) => {
                    self.failed(world, options, &fault);
                    return None;
                }
            },
        };
        Some(Session {
            server: self,
            world,
            options,
            connection: Some(connection),
            _permit: permit,
        })
    }

    async fn connect(&self, world: &World, options: &MemcacheOptions) -> Result<Connection, ProtocolError> {
        let connecting = world.network.connect(self.host.clone(), self.port);
        let connected = world.timeout(options.connect_timeout, connecting).await;
        Ok(Connection::new(connected.map_err(|_| ProtocolError::Timeout)??))
    }

    /// Notes a slow exchange; whether it counts. Those that one pause has made slow, which may have been this process's
    /// own, count once.
    fn is_slow_again(&self, now: Duration, pause: Duration) -> bool {
        let mut errors = self.errors.lock();
        let counts = errors.slow.is_none_or(|last| now.saturating_sub(last) >= pause);
        if counts {
            errors.slow = Some(now);
        }
        counts
    }

    fn failed(&self, world: &World, options: &MemcacheOptions, fault: &ProtocolError) {
        tracing::debug!(server = self.name, "memcached: {fault}");
        self.failures.fetch_add(1, Ordering::Relaxed);
        if options.error_interval.is_zero() {
            return;
        }
        let now = world.clock.elapsed();
        let mut errors = self.errors.lock();
        errors.recent.push_back(now);
        let oldest = now.saturating_sub(options.error_interval);
        while errors.recent.front().is_some_and(|at| *at < oldest) {
            errors.recent.pop_front();
        }
        if errors.recent.len() > options.error_limit {
            errors.recent.clear();
            errors.limited_until = Some(now + options.error_interval);
            // What is pooled was made before the trouble.
            self.idle.lock().clear();
            tracing::error!(
                server = self.name,
                "memcached is left alone for {} s after {} errors, the last: {fault}",
                options.error_interval.as_secs(),
                options.error_limit + 1,
            );
        }
    }
}

/// One exchange with a server.
pub(crate) struct Session<'a> {
    server: &'a MemcacheServer,
    world: &'a World,
    options: &'a MemcacheOptions,
    connection: Option<Connection>,
    _permit: SemaphorePermit<'a>,
}

impl Session<'_> {
    /// Runs the exchange within the time for one, and keeps the connection if it ends well.
    pub(crate) async fn within<T>(
        &mut self,
        exchange: impl AsyncFnOnce(&mut Connection) -> Result<T, ProtocolError>,
    ) -> Result<T, ProtocolError> {
        let mut connection = self.connection.take().ok_or(ProtocolError::Timeout)?;
        let began = self.world.clock.elapsed();
        let done = self
            .world
            .timeout(self.options.io_timeout, exchange(&mut connection))
            .await;
        match done.unwrap_or(Err(ProtocolError::Timeout)) {
            Ok(value) => {
                let slow = self.options.io_timeout / 2;
                let now = self.world.clock.elapsed();
                if now.saturating_sub(began) > slow && self.server.is_slow_again(now, slow) {
                    self.server.failed(self.world, self.options, &ProtocolError::Slow);
                }
                self.server.idle.lock().push(connection);
                Ok(value)
            }
            Err(fault) => {
                self.server.failed(self.world, self.options, &fault);
                Err(fault)
            }
        }
    }
}

/// `host`, `host:port`, `[address]` or `[address]:port`.
fn address(name: &str) -> Option<(String, u16)> {
    let (host, port) = match name.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (
                host,
                port.strip_prefix(':').or(port.is_empty().then_some(DEFAULT_PORT))?,
            )
        }
        None if name.matches(':').count() > 1 => return None,
        None => name.split_once(':').unwrap_or((name, DEFAULT_PORT)),
    };
    (!host.is_empty()).then_some((host.to_owned(), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let pair = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(address("1.2.3.4:5"), pair("1.2.3.4", 5));
        assert_eq!(address("cache"), pair("cache", 11211));
        assert_eq!(address("[::1]"), pair("::1", 11211));
        assert_eq!(address("[::1]:7"), pair("::1", 7));
        for bad in ["", "::1", "a:x", "a:", "[::1", "[::1]7", ":5", "a:99999"] {
            assert_eq!(address(bad), None, "{bad}");
        }
    }
}
