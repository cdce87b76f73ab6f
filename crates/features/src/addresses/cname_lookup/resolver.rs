//! Asking DNS for aliases.
//!
//! Comes in: a host name. Goes out: the name that it is an alias of, with how long that holds.
//! Always holds: an answer, or a failure, is there within [`PATIENCE`].
//! Deliberately absent: remembering answers (the feature does, where it can share them), addresses.

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use world::clock::{Clock, timeout};

/// How long a client waits for DNS, with all servers and repetitions.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// How long one server may take.
const ONE_SERVER: Duration = Duration::from_secs(2);

/// What a name is an alias of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// The name behind it, without a dot at its end.
    pub to: String,
    /// How long it may be remembered.
    pub ttl: Duration,
}

/// Why nothing is known about a name.
#[derive(Debug, thiserror::Error)]
pub enum LookupFailure {
    /// Not one that can be asked about.
    #[error("this is no host name")]
    NoName,
    /// No server answered in time.
    #[error("no answer within {PATIENCE:?}")]
    TooLate,
    /// What the resolver says.
    #[error("{0}")]
    Dns(#[from] NetError),
}

/// Knows aliases.
#[async_trait::async_trait]
pub trait Resolver: Send + Sync {
    /// What `name` is an alias of; `None` when it is known to be none.
    async fn alias(&self, name: &str) -> Result<Option<Alias>, LookupFailure>;
}

/// DNS.
pub struct Dns {
    resolver: TokioResolver,
    clock: Arc<dyn Clock>,
}

impl Dns {
    /// Asks these servers, or the machine's when there are none.
    pub fn new(servers: &[SocketAddr], clock: Arc<dyn Clock>) -> Result<Self, LookupFailure> {
        let mut builder = if servers.is_empty() {
            TokioResolver::builder_tokio()?
        } else {
            let servers = servers.iter().map(server).collect();
            let config = ResolverConfig::from_parts(None, Vec::new(), servers);
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        };
        let options = builder.options_mut();
        options.timeout = ONE_SERVER;
        options.attempts = 1;
        options.cache_size = 0;
        options.use_hosts_file = ResolveHosts::Never;
        let resolver = builder.build()?;
        Ok(Self { resolver, clock })
    }
}

fn server(address: &SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    let to_port = |connection: &mut ConnectionConfig| connection.port = address.port();
    server.connections.iter_mut().for_each(to_port);
    server
}

#[async_trait::async_trait]
impl Resolver for Dns {
    async fn alias(&self, name: &str) -> Result<Option<Alias>, LookupFailure> {
        let mut name = Name::from_utf8(name).map_err(|_| LookupFailure::NoName)?;
        // As a whole name, so that no search list of the machine is tried.
        name.set_fqdn(true);
        let asked = self.resolver.lookup(name, RecordType::CNAME);
        match timeout(&*self.clock, PATIENCE, asked).await {
            Err(_) => Err(LookupFailure::TooLate),
            Ok(Err(error)) if error.is_no_records_found() => Ok(None),
            Ok(Err(error)) => Err(error.into()),
            Ok(Ok(lookup)) => Ok(lookup.answers().iter().find_map(|record| match &record.data {
                RData::CNAME(alias) => Some(Alias {
                    to: alias.0.to_ascii().trim_end_matches('.').to_owned(),
                    ttl: Duration::from_secs(record.ttl.into()),
                }),
                _ => None,
            })),
        }
    }
}
