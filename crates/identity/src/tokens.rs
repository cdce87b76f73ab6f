//! Tokens: who has which, until when.
//!
//! Kept in the process first and in a shared [`TokenCache`] second, under OpenStack's keys
//! (`AUTH_/token/<token>` → `[expires, "group,group"]`, `AUTH_/user/<account:user>` → token), so that
//! both kinds of proxy honour each other's. Without a cache the process is the store.
//! Always holds: an expired token is never found; memory is bounded (a user has one token at a time,
//! and past [`MOST_HELD`] the oldest are forgotten, to be asked for again).

use crate::user::Identity;
use parking_lot::RwLock;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::Timestamp;

const MOST_HELD: usize = 65_536;

/// The shared cache, as far as tokens need it; losing anything in it is no error.
#[async_trait::async_trait]
pub trait TokenCache: Send + Sync {
    /// The value, if there is one.
    async fn get(&self, key: &str) -> Option<Value>;
    /// Stores a value for a time.
    async fn set(&self, key: &str, value: &Value, ttl: Duration);
}

/// A token that is good.
#[derive(Clone)]
pub(crate) struct HeldToken {
    pub(crate) identity: Arc<Identity>,
    /// Seconds since 1970.
    pub(crate) expires: f64,
}

/// The store.
pub(crate) struct Tokens {
    /// The first reseller prefix, part of every key.
    prefix: String,
    cache: Option<Arc<dyn TokenCache>>,
    by_token: RwLock<HashMap<String, HeldToken>>,
    by_user: RwLock<HashMap<String, String>>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({} held)", self.by_token.read().len())
    }
}

impl Tokens {
    pub(crate) fn new(prefix: &str, cache: Option<Arc<dyn TokenCache>>) -> Self {
        Self {
            prefix: prefix.into(),
            cache,
            by_token: RwLock::default(),
            by_user: RwLock::default(),
        }
    }

    /// Whose token it is, if it is good now.
    pub(crate) async fn find(&self, token: &str, now: Timestamp) -> Option<HeldToken> {
        let held = self.by_token.read().get(token).cloned();
        if let Some(held) = held {
            return (held.expires > now.as_f64()).then_some(held);
        }
        let value = self.cache.as_ref()?.get(&self.token_key(token)).await?;
        let held = read(&value).filter(|held| held.expires > now.as_f64())?;
        self.hold(token, held.clone(), now);
        Some(held)
    }

    /// The token a user has with just these groups, if it is good now.
    pub(crate) async fn of_user(&self, user: &str, groups: &[String], now: Timestamp) -> Option<(String, HeldToken)> {
        let token = match &self.cache {
            // The shared cache knows what other proxies granted; it comes first, so that all agree.
            Some(cache) => match cache.get(&self.user_key(user)).await {
                Some(Value::String(token)) => Some(token),
                _ => self.by_user.read().get(user).cloned(),
            },
            None => self.by_user.read().get(user).cloned(),
        }?;
        let held = self.find(&token, now).await?;
        same(held.identity.groups(), groups).then_some((token, held))
    }

    /// Remembers a new token.
    pub(crate) async fn store(
        &self,
        user: &str,
        token: &str,
        groups: Vec<String>,
        life: u64,
        now: Timestamp,
    ) -> HeldToken {
        let held = HeldToken {
            expires: now.as_f64() + life as f64,
            identity: Arc::new(Identity::new(groups)),
        };
        self.hold(token, held.clone(), now);
        let replaced = self.by_user.write().insert(user.into(), token.into());
        if let Some(old) = replaced {
            // Its groups have changed, or it would have been given out again.
            self.by_token.write().remove(&old);
        }
        if let Some(cache) = &self.cache {
            let ttl = Duration::from_secs(life);
            let value = json!([held.expires, held.identity.groups().join(",")]);
            cache.set(&self.token_key(token), &value, ttl).await;
            cache.set(&self.user_key(user), &Value::from(token), ttl).await;
        }
        held
    }

    fn hold(&self, token: &str, held: HeldToken, now: Timestamp) {
        let mut map = self.by_token.write();
        if map.len() >= MOST_HELD {
            map.retain(|_, h| h.expires > now.as_f64());
        }
        if map.len() >= MOST_HELD {
            let mut ends: Vec<f64> = map.values().map(|h| h.expires).collect();
            ends.sort_by(f64::total_cmp);
            let oldest = ends[ends.len() / 4];
            map.retain(|_, h| h.expires > oldest);
            self.by_user.write().retain(|_, t| map.contains_key(t));
        }
        map.insert(token.into(), held);
    }

    fn token_key(&self, token: &str) -> String {
        format!("{}/token/{token}", self.prefix)
    }

    fn user_key(&self, user: &str) -> String {
        format!("{}/user/{user}", self.prefix)
    }
}

/// `[expires, "group,group"]`.
fn read(value: &Value) -> Option<HeldToken> {
    let [expires, groups] = value.as_array()?.as_slice() else {
        return None;
    };
    let groups = groups.as_str().filter(|g| !g.is_empty())?;
    Some(HeldToken {
        expires: expires.as_f64()?,
        identity: Arc::new(Identity::new(groups.split(',').map(Into::into).collect())),
    })
}

fn same(a: &[String], b: &[String]) -> bool {
    let sorted = |groups: &[String]| {
        let mut groups = groups.to_vec();
        groups.sort();
        groups
    };
    sorted(a) == sorted(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(text: &str) -> Vec<String> {
        text.split(',').map(Into::into).collect()
    }

    #[tokio::test]
    async fn tokens_end() {
        let tokens = Tokens::new("AUTH_", None);
        let now = Timestamp::from_seconds(1000);
        tokens.store("a:b", "AUTH_tk1", groups("a,a:b"), 10, now).await;
        assert!(tokens.find("AUTH_tk1", now).await.is_some());
        assert!(tokens.of_user("a:b", &groups("a:b,a"), now).await.is_some());
        assert!(tokens.of_user("a:b", &groups("a,a:b,AUTH_a"), now).await.is_none());
        let later = Timestamp::from_seconds(1010);
        assert!(tokens.find("AUTH_tk1", later).await.is_none());
        assert!(tokens.of_user("a:b", &groups("a,a:b"), later).await.is_none());
    }

    #[tokio::test]
    async fn a_new_token_replaces_the_old() {
        let tokens = Tokens::new("AUTH_", None);
        let now = Timestamp::from_seconds(1000);
        tokens.store("a:b", "AUTH_tk1", groups("a,a:b"), 10, now).await;
        tokens.store("a:b", "AUTH_tk2", groups("a,a:b,x"), 10, now).await;
        assert!(tokens.find("AUTH_tk1", now).await.is_none());
        assert!(tokens.find("AUTH_tk2", now).await.is_some());
    }

    #[tokio::test]
    async fn memory_is_bounded() {
        let tokens = Tokens::new("AUTH_", None);
        for n in 0..MOST_HELD as u64 + 10 {
            let now = Timestamp::from_seconds(n);
            tokens
                .store(&format!("u:{n}"), &format!("AUTH_tk{n}"), groups("u"), 1 << 30, now)
                .await;
        }
        assert!(tokens.by_token.read().len() <= MOST_HELD);
        assert!(tokens.by_user.read().len() <= MOST_HELD);
        let now = Timestamp::from_seconds(MOST_HELD as u64);
        assert!(tokens.find(&format!("AUTH_tk{MOST_HELD}"), now).await.is_some());
    }

    #[test]
    fn rubbish_in_the_cache_is_no_token() {
        for value in [
            json!(null),
            json!([]),
            json!(["x", "a"]),
            json!([1, 2]),
            json!([1, ""]),
            json!({"a": 1}),
        ] {
            assert!(read(&value).is_none(), "{value}");
        }
    }
}
