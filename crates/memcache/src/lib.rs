//! The shared cache: memcached, with the keys, values and consistent hashing of OpenStack's proxies.
//!
//! Comes in: text keys with JSON values. Goes out: what some proxy, ours or OpenStack's, stored last.
//! Always holds: no call fails or waits long, whatever the servers do. A server that is away, slow,
//! or answers rubbish is a miss, its connection is dropped, and after ten such errors in a minute it
//! is left alone for a minute. Memory per reply is bounded.
//! Deliberately absent: what is cached and for how long; the cache in the process.
//!
//! | question | file |
//! |---|---|
//! | the calls, which servers are tried | `lib.rs` |
//! | which server has a key | `ring.rs` |
//! | connections and the errors of one server | `server.rs` |
//! | bytes on the wire | `protocol.rs` |
//!
//! Formats, as OpenStack's client leaves them (observed): the key is the MD5 of the text in
//! hexadecimal; flags are 2 for JSON and 0 for counters; 1 is a pickle, which no current client reads.
//! Tests: `tests/` against a real memcached, a server that sends malformed replies, and OpenStack's own client.

mod protocol;
mod ring;
mod server;

use md5::{Digest, Md5};
use protocol::{JSON_FLAG, KeyHash, ProtocolError, StoreReply};
use ring::ServerRing;
use serde_json::Value;
use server::MemcacheServer;
use std::time::Duration;
use world::World;

/// Which servers, and how patient to be. Defaults as OpenStack's.
#[derive(Debug, Clone)]
pub struct MemcacheOptions {
    /// `host:port`, `host` or `[address]:port`; the text is what keys are hashed with.
    pub servers: Vec<String>,
    /// For connecting.
    pub connect_timeout: Duration,
    /// For a reply.
    pub io_timeout: Duration,
    /// For a free connection.
    pub pool_timeout: Duration,
    /// How many servers one call asks at most.
    pub tries: usize,
    /// Connections to each server.
    pub max_connections: usize,
    /// Errors a server may have per interval.
    pub error_limit: usize,
    /// Over how long errors count, and how long a server is then left alone; zero never does.
    pub error_interval: Duration,
}

impl Default for MemcacheOptions {
    fn default() -> Self {
        Self {
            servers: vec!["127.0.0.1:11211".into()],
            connect_timeout: Duration::from_millis(300),
            io_timeout: Duration::from_secs(2),
            pool_timeout: Duration::from_secs(1),
            tries: 3,
            max_connections: 2,
            error_limit: 10,
            error_interval: Duration::from_secs(60),
        }
    }
}

/// A server's address that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("memcache_servers: {0:?} is not an address; expected host:port or [IPv6 address]:port")]
pub struct MemcacheAddressError(pub String);

/// memcached counts longer lives than this from 1970.
const LONGEST_RELATIVE: u64 = 30 * 24 * 3600;

/// The client; share it.
pub struct Memcache {
    world: World,
    options: MemcacheOptions,
    ring: ServerRing,
    servers: Vec<MemcacheServer>,
}

impl Memcache {
    /// Opens no connection yet.
    pub fn new(world: World, options: MemcacheOptions) -> Result<Self, MemcacheAddressError> {
        let servers = options.servers.iter().map(|name| MemcacheServer::new(name, &options));
        Ok(Self {
            servers: servers.collect::<Result<_, _>>()?,
            ring: ServerRing::new(&options.servers),
            options,
            world,
        })
    }

    /// Each server, and how many calls to it failed so far.
    pub fn failures(&self) -> impl Iterator<Item = (&str, u64)> {
        self.servers.iter().map(MemcacheServer::failures)
    }

    /// The value, if some server has one that is JSON.
    pub async fn get_json(&self, key: &str) -> Option<Value> {
        self.get_multi(&[key], key).await.pop().flatten()
    }

    /// Stores a value for `ttl`, forever when it is zero; says whether a server took it.
    pub async fn set_json(&self, key: &str, value: &Value, ttl: Duration) -> bool {
        self.set_multi(&[(key, value)], key, ttl).await
    }

    /// The values of several keys that were stored under one `server_key`, in order.
    pub async fn get_multi(&self, keys: &[&str], server_key: &str) -> Vec<Option<Value>> {
        let hashed: Vec<KeyHash> = keys.iter().map(|key| hash(key)).collect();
        for server in self.candidates(server_key) {
            let Some(mut session) = server.session(&self.world, &self.options).await else {
                continue;
            };
            let got = session.within(async |c| c.get(&hashed).await).await;
            if let Ok(items) = got {
                return items.into_iter().map(|item| item.and_then(json)).collect();
            }
        }
        vec![None; keys.len()]
    }

    /// Stores several values on the server of `server_key`; says whether it took all.
    pub async fn set_multi(&self, pairs: &[(&str, &Value)], server_key: &str, ttl: Duration) -> bool {
        let exptime = self.exptime(ttl);
        let items: Vec<(KeyHash, Vec<u8>)> = pairs
            .iter()
            .map(|(k, v)| (hash(k), v.to_string().into_bytes()))
            .collect();
        for server in self.candidates(server_key) {
            let Some(mut session) = server.session(&self.world, &self.options).await else {
                continue;
            };
            let stored = session.within(async |c| c.set_all(&items, exptime).await).await;
            if let Ok(stored) = stored {
                return stored;
            }
        }
        false
    }

    /// Removes a value; says whether a server answered.
    pub async fn delete(&self, key: &str) -> bool {
        self.delete_from(key, key).await
    }

    /// Removes a value that was stored under `server_key`.
    pub async fn delete_from(&self, key: &str, server_key: &str) -> bool {
        let hashed = hash(key);
        for server in self.candidates(server_key) {
            let Some(mut session) = server.session(&self.world, &self.options).await else {
                continue;
            };
            if session.within(async |c| c.delete(&hashed).await).await.is_ok() {
                return true;
            }
        }
        false
    }

    /// Adds to a counter (never below zero), making it with that value and `ttl` if there is none.
    /// Nothing when no server answers.
    pub async fn incr(&self, key: &str, delta: i64, ttl: Duration) -> Option<u64> {
        let (hashed, exptime) = (hash(key), self.exptime(ttl));
        for server in self.candidates(key) {
            let Some(mut session) = server.session(&self.world, &self.options).await else {
                continue;
            };
            let counted = session.within(async |c| count(c, &hashed, delta, exptime).await).await;
            if let Ok(count) = counted {
                return Some(count);
            }
        }
        None
    }

    /// The servers of a key in the order OpenStack tries them, without those left alone.
    fn candidates(&self, key: &str) -> impl Iterator<Item = &MemcacheServer> {
        let order = self.ring.order(&hash(key));
        let servers = order.into_iter().map(|index| &self.servers[index]);
        servers
            .filter(|s| !s.is_limited(&self.world))
            .take(self.options.tries.max(1))
    }

    fn exptime(&self, ttl: Duration) -> u64 {
        // A life of part of a second must not become "forever".
        let seconds = if ttl.is_zero() { 0 } else { ttl.as_secs().max(1) };
        match seconds > LONGEST_RELATIVE {
            true => self.world.clock.now().seconds().saturating_add(seconds),
            false => seconds,
        }
    }
}

async fn count(c: &mut protocol::Connection, key: &KeyHash, delta: i64, exptime: u64) -> Result<u64, ProtocolError> {
    let first = u64::try_from(delta).unwrap_or(0);
    for _ in 0..2 {
        if let Some(count) = c.count(key, delta).await? {
            return Ok(count);
        }
        if c.add(key, first, exptime).await? == StoreReply::Yes {
            return Ok(first);
        }
        // Another client made the counter in between: count again.
    }
    Err(ProtocolError::Rubbish("a counter that is there and is not"))
}

/// What a server that sends `reply` says of two keys: for tests of the reader.
pub async fn read_reply(reply: Box<dyn world::Stream>, keys: [&str; 2]) -> Option<[Option<Value>; 2]> {
    let mut connection = protocol::Connection::new(reply);
    let items = connection.get(&keys.map(hash)).await.ok()?;
    let values: Vec<Option<Value>> = items.into_iter().map(|item| item.and_then(json)).collect();
    values.try_into().ok()
}

fn json(item: protocol::Item) -> Option<Value> {
    match item.flags & JSON_FLAG {
        0 => None,
        _ => serde_json::from_slice(&item.data).ok(),
    }
}

fn hash(key: &str) -> KeyHash {
    vocabulary::hex::digits(Md5::digest(key.as_bytes()).into())
}
