//! A cache that several gateways share: memcached, or nothing.
//!
//! Always holds: a cache that is away only costs time; no feature is wrong without it.

use serde_json::Value;
use std::time::Duration;

/// memcached, as far as features and the gateway need it. Keys and values are OpenStack's.
#[async_trait::async_trait]
pub trait SharedCache: Send + Sync {
    /// What is stored under `key`; `None` also when the cache is away or answers rubbish.
    async fn get(&self, key: &str) -> Option<Value>;
    /// Stores, if it can.
    async fn set(&self, key: &str, value: &Value, keep: Duration);
    /// Forgets, if it can.
    async fn delete(&self, key: &str);
    /// Adds to a counter, never below zero, making it with that value if there is none; what it is then.
    async fn increment(&self, key: &str, by: i64, keep: Duration) -> Option<u64>;
}
