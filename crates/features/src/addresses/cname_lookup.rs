//! Hosts that are aliases of the cluster's: `photos.org`, which DNS says is `c.AUTH_a.example.com`.
//!
//! Swift's `cname_lookup`. A `Host` outside the storage domains is looked up in DNS, and replaced by the name
//! in a storage domain that it stands for, for `domain_remap` to read. Always holds: redirects lead to the host
//! that the client used; a host that stands for nothing here is refused; an IP address is never looked up.
//! Every answer of DNS is remembered under the name it is about, so `lookup_depth` holds for each request alike.

mod resolver;

use self::resolver::Dns;
pub use self::resolver::{Alias, LookupFailure, Resolver};
use crate::context::FeatureContext;
use http::HeaderMap;
use http::header::{HOST, HeaderValue, LOCATION};
use lru::LruCache;
use parking_lot::Mutex;
use request_pipeline::{ClientRequest, Feature, Next, Response, SharedCache, reply};
use serde_json::{Value, json};
use settings::SettingsError;
use settings::declare::{Options, Scope};
use settings::gateway_filters::CnameLookupSettings;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use world::clock::Clock;

/// How many names are remembered in this process.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(4096).expect("is not zero");
/// How long it is remembered that a name is no alias.
const NO_ALIAS: Duration = Duration::from_secs(60);
/// How long something of the shared cache, which does not say when it ends, is remembered here too.
const FROM_SHARED: Duration = Duration::from_secs(1);
/// The longest time that memcached understands as one.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);
/// The longest name that DNS has.
const LONGEST_NAME: usize = 253;

/// Swift's `cname_lookup`.
pub struct CnameLookup {
    /// Each with a dot in front.
    domains: Vec<String>,
    depth: usize,
    resolver: Arc<dyn Resolver>,
    shared: Option<Arc<dyn SharedCache>>,
    known: Mutex<LruCache<String, Known>>,
    clock: Arc<dyn Clock>,
}

/// What is remembered of a name.
struct Known {
    alias: Option<String>,
    until: Duration,
}

/// A host that stands for nothing here.
#[derive(Debug, PartialEq)]
enum Refused {
    /// There is no further alias.
    NoDomain,
    /// There are more aliases than may be followed.
    TooDeep,
}

impl CnameLookup {
    /// With its configuration, asking DNS.
    pub fn read(context: &FeatureContext<'_>, options: &Scope) -> Result<Self, SettingsError> {
        let settings = CnameLookupSettings::read(options)?;
        let clock = context.world.clock.clone();
        let dns = Dns::new(&settings.nameservers.0, clock.clone()).map_err(|error| {
            tracing::error!("cname_lookup cannot ask DNS: {error}");
            options.wrong("nameservers", "name servers, here or in /etc/resolv.conf")
        })?;
        Ok(Self::new(&settings, Arc::new(dns), context.cache.clone(), clock))
    }

    /// With a resolver.
    pub fn new(
        settings: &CnameLookupSettings,
        resolver: Arc<dyn Resolver>,
        shared: Option<Arc<dyn SharedCache>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let dotted = |domain: &String| match domain.starts_with('.') {
            true => domain.clone(),
            false => format!(".{domain}"),
        };
        Self {
            domains: settings.storage_domain.iter().map(dotted).collect(),
            depth: settings.lookup_depth.0,
            resolver,
            shared,
            known: Mutex::new(LruCache::new(REMEMBERED)),
            clock,
        }
    }

    /// Whether a name is a storage domain or in one.
    fn is_ours(&self, name: &str) -> bool {
        self.domains.iter().any(|domain| {
            name.strip_suffix(&domain[1..])
                .is_some_and(|front| front.is_empty() || front.ends_with('.'))
        })
    }

    /// Whether a host need not be looked up.
    fn passes(&self, host: &str) -> bool {
        let (name, _) = split(host);
        let bare = host.trim_start_matches('[').split(']').next().unwrap_or_default();
        self.domains.is_empty() || self.is_ours(name) || [name, bare].iter().any(|text| text.parse::<IpAddr>().is_ok())
    }

    /// The name in a storage domain that `name` stands for.
    async fn resolve(&self, name: &str) -> Result<String, Refused> {
        let mut asked = name.to_owned();
        for _ in 0..self.depth {
            let alias = self.alias(&asked).await.filter(|alias| *alias != asked);
            let alias = alias.ok_or(Refused::NoDomain)?;
            if self.is_ours(&alias) {
                tracing::info!("Mapped {name:?} to {alias:?}");
                return Ok(alias);
            }
            asked = alias;
        }
        Err(Refused::TooDeep)
    }

    /// What a name is an alias of, as far as anybody knows.
    async fn alias(&self, name: &str) -> Option<String> {
        if name.is_empty() || name.len() > LONGEST_NAME {
            return None;
        }
        if let Some(known) = self.known(name) {
            return known;
        }
        let key = format!("cname-{name}");
        if let Some(shared) = &self.shared
            && let Some(value) = shared.get(&key).await
            && let Some(alias) = of_shared(value)
        {
            self.remember(name, alias.clone(), FROM_SHARED);
            return alias;
        }
        let answer = self.resolver.alias(name).await;
        let (alias, keep) = match answer {
            Ok(Some(alias)) => (Some(alias.to), alias.ttl.min(LONGEST)),
            Ok(None) => (None, NO_ALIAS),
            Err(error) => {
                tracing::warn!("DNS could not be asked what {name:?} is an alias of: {error}");
                return None;
            }
        };
        if !keep.is_zero() {
            self.remember(name, alias.clone(), keep);
            if let Some(shared) = &self.shared {
                let value = alias.as_deref().map_or(Value::Bool(false), Value::from);
                shared.set(&key, &value, keep).await;
            }
        }
        alias
    }

    fn known(&self, name: &str) -> Option<Option<String>> {
        let mut all = self.known.lock();
        let known = all.get(name).filter(|known| self.clock.elapsed() < known.until)?;
        Some(known.alias.clone())
    }

    fn remember(&self, name: &str, alias: Option<String>, keep: Duration) {
        let until = self.clock.elapsed().saturating_add(keep);
        self.known.lock().put(name.to_owned(), Known { alias, until });
    }
}

/// Text is an alias, `false` that there is none; anything else is not OpenStack's or ours.
fn of_shared(value: Value) -> Option<Option<String>> {
    match value {
        Value::String(alias) => Some(Some(alias)),
        Value::Bool(false) => Some(None),
        _ => None,
    }
}

/// Name and port of a host.
fn split(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (host, None),
    }
}

/// Leads a redirect to `found` to the host that the client used instead.
fn lead_back(headers: &mut HeaderMap, found: &str, used: &str) {
    let Some(location) = headers.get(LOCATION).and_then(|location| location.to_str().ok()) else {
        return;
    };
    let rest = |scheme: &str| location.strip_prefix(scheme)?.strip_prefix(found);
    let led = ["http://", "https://"].iter().find_map(|scheme| {
        let rest = rest(scheme).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
        HeaderValue::from_str(&format!("{scheme}{used}{rest}")).ok()
    });
    if let Some(led) = led {
        headers.insert(LOCATION, led);
    }
}

#[async_trait::async_trait]
impl Feature for CnameLookup {
    fn name(&self) -> &'static str {
        "cname_lookup"
    }

    fn info(&self) -> Vec<(&'static str, Value)> {
        vec![("cname_lookup", json!({"lookup_depth": self.depth}))]
    }

    async fn handle(&self, mut request: ClientRequest, next: Next) -> Response {
        let host = request.headers.get(HOST);
        let host = host.map(|host| String::from_utf8_lossy(host.as_bytes()));
        let Some(used) = host.filter(|host| !self.passes(host)).map(|host| host.into_owned()) else {
            return next.run(request).await;
        };
        let (name, port) = split(&used);
        let resolved = self.resolve(name).await.and_then(|found| {
            let host = match port {
                Some(port) if !port.is_empty() => format!("{found}:{port}"),
                _ => found,
            };
            let value = HeaderValue::from_str(&host).map_err(|_| Refused::NoDomain)?;
            Ok((host, value))
        });
        let (found, value) = match resolved {
            Ok(found) => found,
            Err(refused) => return self.refusal(&refused),
        };
        request.headers.insert(HOST, value);
        let mut response = next.run(request).await;
        lead_back(response.headers_mut(), &found, &used);
        response
    }
}

impl CnameLookup {
    fn refusal(&self, refused: &Refused) -> Response {
        let text = match refused {
            Refused::NoDomain => "CNAME lookup failed to resolve to a valid domain".to_owned(),
            Refused::TooDeep => format!("CNAME lookup failed after {} tries", self.depth),
        };
        reply::plain(400, text)
    }
}

#[cfg(test)]
mod tests;
