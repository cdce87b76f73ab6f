//! Tokens that Keystone has confirmed: in the process, and in the cache that gateways share. Those it has refused: in
//! the process, for [`REFUSED_FOR`], in a place of their own.
//!
//! The shared cache holds them as keystonemiddleware leaves them: `tokens/<SHA-256>` with Keystone's description, but
//! without the token itself, which it does not read there.
//! Always holds: memory is bounded; refused tokens do not crowd out confirmed ones; tokens are held by their digest;
//! none is believed for longer than `token_cache_time` after Keystone was asked, give or take [`FROM_ELSEWHERE`] for
//! those others asked about. That time is measured by a clock that does not jump: `now` is of that, here.

use http::{HeaderName, HeaderValue};
use identity::keystone::{Token, Whose};
use lru::LruCache;
use parking_lot::Mutex;
use request_pipeline::SharedCache;
use sha2::{Digest, Sha256};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// Tokens held in the process, of some 2 KiB each.
const MOST_HELD: NonZeroUsize = NonZeroUsize::new(8192).expect("not zero");

/// Time until the shared cache is asked again about a token found there: it does not say when it was stored.
const FROM_ELSEWHERE: Duration = Duration::from_secs(5);

/// Refused tokens held in the process.
const MOST_REFUSED: NonZeroUsize = NonZeroUsize::new(4096).expect("not zero");

/// Time for which Keystone is not asked again about a token it has refused.
const REFUSED_FOR: Duration = Duration::from_secs(10);

type Headers = Vec<(HeaderName, HeaderValue)>;

/// A token Keystone has confirmed.
pub(super) struct Confirmed {
    pub(super) token: Token,
    user: Headers,
    service: Headers,
}

impl Confirmed {
    fn new(token: Token) -> Self {
        Self {
            user: token.headers(Whose::User),
            service: token.headers(Whose::Service),
            token: token.without_description(),
        }
    }

    /// The headers when it is the caller's own.
    pub(super) fn user(&self) -> &[(HeaderName, HeaderValue)] {
        &self.user
    }

    /// The headers when a service sends it along.
    pub(super) fn service(&self) -> &[(HeaderName, HeaderValue)] {
        &self.service
    }
}

struct Held {
    confirmed: Arc<Confirmed>,
    until: Duration,
}

/// All that are known.
pub(super) struct KnownToken {
    shared: Option<Arc<dyn SharedCache>>,
    /// Negative for never.
    life: i64,
    held: Mutex<LruCache<[u8; 32], Held>>,
    /// Until when, of tokens that may have expired and of those that may not.
    refused: Mutex<LruCache<([u8; 32], bool), Duration>>,
}

impl KnownToken {
    pub(super) fn new(shared: Option<Arc<dyn SharedCache>>, life: i64) -> Self {
        Self {
            shared,
            life,
            held: Mutex::new(LruCache::new(MOST_HELD)),
            refused: Mutex::new(LruCache::new(MOST_REFUSED)),
        }
    }

    /// What is known of a token; it may have expired meanwhile.
    pub(super) async fn find(&self, secret: &str, now: Duration) -> Option<Arc<Confirmed>> {
        if self.life < 0 {
            return None;
        }
        let digest: [u8; 32] = Sha256::digest(secret).into();
        let held = self
            .held
            .lock()
            .get(&digest)
            .filter(|held| held.until > now)
            .map(|held| held.confirmed.clone());
        if held.is_some() {
            return held;
        }
        let value = self.shared.as_ref()?.get(&key(&digest)).await?;
        let confirmed = Arc::new(Confirmed::new(Token::from_cache(&value, secret)?));
        self.hold(digest, &confirmed, now + FROM_ELSEWHERE);
        Some(confirmed)
    }

    /// Remembers what Keystone said just now, `wall` by the clock that its tokens expire by.
    pub(super) async fn remember(&self, secret: &str, token: Token, wall: f64, now: Duration) -> Arc<Confirmed> {
        if self.life < 0 {
            return Arc::new(Confirmed::new(token));
        }
        let digest: [u8; 32] = Sha256::digest(secret).into();
        let left = (token.expires - wall).max(1.0);
        let life = if self.life == 0 {
            left
        } else {
            left.min(self.life as f64)
        };
        let life = Duration::from_secs_f64(life);
        if let Some(shared) = &self.shared {
            let value = token.to_cache();
            shared.set(&key(&digest), &value, life).await;
        }
        let confirmed = Arc::new(Confirmed::new(token));
        self.hold(digest, &confirmed, now + life);
        confirmed
    }

    /// Whether Keystone has refused the token just now; with `allow_expired` it was asked for expired ones, too.
    pub(super) fn is_refused(&self, secret: &str, allow_expired: bool, now: Duration) -> bool {
        let question = (Sha256::digest(secret).into(), allow_expired);
        self.refused.lock().get(&question).is_some_and(|until| *until > now)
    }

    /// Remembers that Keystone has refused it.
    pub(super) fn refuse(&self, secret: &str, allow_expired: bool, now: Duration) {
        let question = (Sha256::digest(secret).into(), allow_expired);
        self.refused.lock().put(question, now + REFUSED_FOR);
    }

    fn hold(&self, digest: [u8; 32], confirmed: &Arc<Confirmed>, until: Duration) {
        let held = Held {
            confirmed: confirmed.clone(),
            until,
        };
        self.held.lock().put(digest, held);
    }
}

fn key(digest: &[u8; 32]) -> String {
    let mut key = String::from("tokens/");
    vocabulary::hex::push(&mut key, digest);
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn token(expires: &str) -> Token {
        Token::parse(&json!({"token": {"user": {"id": "u", "name": "n"}, "expires_at": expires}})).unwrap()
    }

    #[tokio::test]
    async fn for_a_time() {
        let known = KnownToken::new(None, 300);
        known
            .remember("a", token("1970-01-01T01:00:00Z"), 1000.0, at(2000))
            .await;
        assert!(known.find("a", at(2299)).await.is_some());
        assert!(known.find("a", at(2301)).await.is_none());
        assert!(known.find("b", at(2000)).await.is_none());
        let never = KnownToken::new(None, -1);
        never
            .remember("a", token("1970-01-01T01:00:00Z"), 1000.0, at(2000))
            .await;
        assert!(never.find("a", at(2000)).await.is_none());
    }

    #[tokio::test]
    async fn in_bounded_memory() {
        let known = KnownToken::new(None, 300);
        for number in 0..MOST_HELD.get() + 5 {
            known
                .remember(&number.to_string(), token("1970-01-01T01:00:00Z"), 0.0, at(0))
                .await;
        }
        for number in 0..MOST_REFUSED.get() + 5 {
            known.refuse(&number.to_string(), false, at(0));
        }
        assert_eq!(known.held.lock().len(), MOST_HELD.get());
        assert_eq!(known.refused.lock().len(), MOST_REFUSED.get());
    }

    #[test]
    fn refused_for_a_moment() {
        let known = KnownToken::new(None, 300);
        known.refuse("a", false, at(1000));
        assert!(known.is_refused("a", false, at(1009)) && !known.is_refused("a", false, at(1011)));
        assert!(
            !known.is_refused("a", true, at(1000)),
            "Keystone may know it as an expired one"
        );
        assert!(!known.is_refused("b", false, at(1000)));
    }
}
