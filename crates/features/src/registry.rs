//! Which filter name means which feature, and the pipeline they make.
//!
//! Comes in: `[pipeline:main]` with its options. Goes out: features, outermost first, for the gateway.
//! [`FEATURES`] is the one list. Filters that OpenStack Swift requires stand in the pipeline whether or
//! not the operator names them, where OpenStack would put them.
//! Always holds: `catch_errors`, `gatekeeper` and `listing_formats` are there; `/info` is answered last.
//! Deliberately absent: filters that are not served (`settings` says so at start), the memcached
//! client, which the gateway uses itself.

use crate::account_quotas::AccountQuotas;
use crate::auth::Auth;
use crate::authtoken::AuthToken;
use crate::bulk::Bulk;
use crate::catch_errors::CatchErrors;
use crate::cname_lookup::CnameLookup;
use crate::container_quotas::ContainerQuotas;
use crate::container_sync::ContainerSync;
use crate::copy::Copy;
use crate::crossdomain::Crossdomain;
use crate::dlo::DynamicLargeObjects;
use crate::domain_remap::DomainRemap;
use crate::encryption::Encryption;
use crate::etag_quoter::EtagQuoter;
use crate::formpost::FormPost;
use crate::gatekeeper::Gatekeeper;
use crate::healthcheck::Healthcheck;
use crate::keymaster::Keymaster;
use crate::keystoneauth::KeystoneAuth;
use crate::list_endpoints::ListEndpoints;
use crate::listing_formats::ListingFormats;
use crate::name_check::NameCheck;
use crate::proxy_logging::ProxyLogging;
use crate::ratelimit::Ratelimit;
use crate::read_only::ReadOnly;
use crate::recon::Recon;
use crate::slo::StaticLargeObjects;
use crate::staticweb::Staticweb;
use crate::swift_info::{Capabilities, SwiftInfo};
use crate::symlink::Symlink;
use crate::tempurl::TempUrl;
use crate::versioned_writes::{LegacyVersions, ObjectVersioning};
use identity::{TempAuth, TokenCache};
use request_pipeline::{Feature, SharedCache};
use serde_json::Value;
use settings::VersionedWritesSettings;
use settings::declare::{Options, Scope};
use settings::gateway_filters::RatelimitSettings;
use settings::{
    FilterSpec, KeymasterSettings, KeystoneAuthSettings, ProxyConf, SettingsError, SwiftConf, TempAuthSettings,
};
use std::sync::Arc;
use std::time::Duration;
use telemetry::Statsd;
use world::World;

/// Makes a feature of what is configured.
type Make = fn(&Parts<'_>, &Scope) -> Result<Arc<dyn Feature>, SettingsError>;

/// Every feature, by the filter's entry point (`egg:swift#…`), in alphabetical order. A filter that is made of
/// several features has a row for each, outermost first.
pub const FEATURES: &[(&str, Make)] = &[
    ("account_quotas", |parts, _| {
        Ok(Arc::new(AccountQuotas::new(&parts.swift.policies)))
    }),
    ("authtoken", |parts, options| {
        Ok(Arc::new(AuthToken::new(parts, options)?))
    }),
    ("bulk", |parts, options| {
        let settings = Options::read(options)?;
        let most = parts.swift.limits.max_file_size;
        Ok(Arc::new(Bulk::new(settings, most, parts.world.clock.clone())))
    }),
    ("catch_errors", |_, _| Ok(Arc::new(CatchErrors))),
    ("cname_lookup", |parts, options| {
        Ok(Arc::new(CnameLookup::read(parts, options)?))
    }),
    ("container_quotas", |_, _| Ok(Arc::new(ContainerQuotas))),
    ("container_sync", |parts, options| {
        let swift_dir = &parts.conf.common.swift_dir;
        Ok(Arc::new(ContainerSync::new(
            &Options::read(options)?,
            swift_dir,
            parts.world.clone(),
        )))
    }),
    ("copy", |parts, options| {
        let (settings, limits) = (Options::read(options)?, &parts.swift.limits);
        let clock = parts.world.clock.clone();
        Ok(Arc::new(Copy::new(&settings, limits.max_file_size, clock)))
    }),
    ("crossdomain", |_, options| {
        Ok(Arc::new(Crossdomain::new(&Options::read(options)?)))
    }),
    ("dlo", |parts, options| {
        let page = parts.swift.limits.container_listing_limit;
        let settings = Options::read(options)?;
        Ok(Arc::new(DynamicLargeObjects::new(settings, parts.world.clone(), page)))
    }),
    ("domain_remap", |_, options| {
        Ok(Arc::new(DomainRemap::new(Options::read(options)?)))
    }),
    ("encryption", |parts, options| {
        let (limits, random) = (parts.swift.limits.clone(), parts.world.random.clone());
        Ok(Arc::new(Encryption::new(&Options::read(options)?, limits, random)))
    }),
    ("etag_quoter", |_, options| {
        Ok(Arc::new(EtagQuoter::new(Options::read(options)?)))
    }),
    ("formpost", |parts, options| {
        let settings = Options::read(options)?;
        let feature = FormPost::new(settings, parts.world.clock.clone());
        Ok(Arc::new(feature.counting(parts.statsd(options, "proxy-server")?)))
    }),
    ("gatekeeper", |_, options| {
        Ok(Arc::new(Gatekeeper::new(Options::read(options)?)))
    }),
    ("healthcheck", |parts, options| {
        let files = parts.world.files.clone();
        Ok(Arc::new(Healthcheck::new(Options::read(options)?, files)))
    }),
    ("keymaster", |_, options| {
        Ok(Arc::new(Keymaster::new(KeymasterSettings::read(options)?)))
    }),
    ("keystoneauth", |_, options| {
        Ok(Arc::new(KeystoneAuth::new(KeystoneAuthSettings::read(options)?)))
    }),
    ("list_endpoints", |_, options| {
        Ok(Arc::new(ListEndpoints::new(&Options::read(options)?)))
    }),
    ("listing_formats", |parts, _| {
        let versions = parts.swift.limits.valid_api_versions.clone();
        Ok(Arc::new(ListingFormats::new(versions, parts.keeps_versions()?)))
    }),
    ("name_check", |_, options| Ok(Arc::new(NameCheck::read(options)?))),
    ("proxy_logging", |parts, options| {
        let settings = Options::read(options)?;
        let versions = parts.swift.limits.valid_api_versions.clone();
        let statsd = Statsd::of_access_log(&settings, Options::read(options)?, parts.world);
        let made = ProxyLogging::new(&settings, statsd, versions, parts.world);
        Ok(Arc::new(
            made.map_err(|(option, expected)| options.wrong(option, &expected))?,
        ))
    }),
    ("ratelimit", |parts, options| {
        let versions = parts.swift.limits.valid_api_versions.clone();
        let settings = RatelimitSettings::read(options)?;
        Ok(Arc::new(Ratelimit::new(
            settings,
            versions,
            parts.cache.clone(),
            parts.world.clone(),
        )))
    }),
    ("read_only", |parts, options| {
        let versions = parts.swift.limits.valid_api_versions.clone();
        Ok(Arc::new(ReadOnly::new(Options::read(options)?, versions)))
    }),
    ("recon", |parts, options| {
        let made = Recon::new(parts.world, Options::read(options)?, &parts.swift.policies);
        Ok(Arc::new(made.map_err(|error| {
            options.wrong("use", &format!("a system with threads to spare ({error})"))
        })?))
    }),
    ("slo", |parts, options| {
        let (settings, world) = (Options::read(options)?, parts.world.clone());
        let (hash, hidden) = (parts.swift.hash.clone(), parts.swift.auto_create_account_prefix.clone());
        let patience = parts.conf.proxy.client_timeout;
        Ok(Arc::new(StaticLargeObjects::new(
            settings, world, hash, hidden, patience,
        )))
    }),
    ("staticweb", |_, options| {
        Ok(Arc::new(Staticweb::new(&Options::read(options)?)))
    }),
    ("symlink", |_, options| {
        Ok(Arc::new(Symlink::new(&Options::read(options)?)))
    }),
    ("tempauth", |parts, options| {
        let settings = TempAuthSettings::read(options)?;
        let authenticator = Arc::new(TempAuth::new(&settings, parts.tokens()));
        let allows = settings.options.allow_overrides;
        let auth = Auth::new("tempauth", authenticator, parts.world.clone()).allowing_overrides(allows);
        let prefix = settings.prefixes.first().map_or("", |first| first.prefix.as_str());
        let prefix = if prefix.is_empty() { "NONE" } else { prefix };
        Ok(Arc::new(
            auth.counting(parts.statsd(options, &format!("tempauth.{prefix}"))?),
        ))
    }),
    ("tempurl", |parts, options| {
        let settings = Options::read(options)?;
        let feature = TempUrl::new(settings, parts.world.clock.clone());
        Ok(Arc::new(feature.counting(parts.statsd(options, "proxy-server")?)))
    }),
    ("versioned_writes", |parts, options| {
        let (settings, limits) = (Options::read(options)?, &parts.swift.limits);
        let clock = parts.world.clock.clone();
        Ok(Arc::new(LegacyVersions::new(&settings, limits.max_file_size, clock)))
    }),
    ("versioned_writes", |parts, options| {
        let settings: VersionedWritesSettings = Options::read(options)?;
        Ok(Arc::new(ObjectVersioning::new(
            settings.allow_object_versioning,
            parts.swift.policies.clone(),
            &parts.swift.limits,
            parts.world.clock.clone(),
        )))
    }),
];

/// What features are made of, besides the options of their own section.
pub struct Parts<'a> {
    /// `proxy-server.conf`.
    pub conf: &'a ProxyConf,
    /// `swift.conf`.
    pub swift: &'a SwiftConf,
    /// Clock, randomness, files, network, tasks.
    pub world: &'a World,
    /// The cache that gateways share, if one is configured.
    pub cache: Option<Arc<dyn SharedCache>>,
}

impl Parts<'_> {
    /// Whether containers may have versions of their objects.
    fn keeps_versions(&self) -> Result<bool, SettingsError> {
        let Some(filter) = self.conf.pipeline.filter("versioned_writes") else {
            return Ok(false);
        };
        let settings = VersionedWritesSettings::read(&filter.options)?;
        if settings.allow_object_versioning && !self.conf.pipeline.has("symlink") {
            return Err(filter.options.wrong(
                "allow_object_versioning",
                "symlink in the pipeline behind versioned_writes, which follows the links to versions",
            ));
        }
        Ok(settings.allow_object_versioning)
    }

    /// Where a filter's metrics go, as its section says.
    fn statsd(&self, options: &Scope, tail: &str) -> Result<Statsd, SettingsError> {
        Ok(Statsd::open(&Options::read(options)?, tail, self.world))
    }

    fn tokens(&self) -> Option<Arc<dyn TokenCache>> {
        let cache = self.cache.clone()?;
        Some(Arc::new(SharedTokens(cache)))
    }
}

/// Tokens in the shared cache.
struct SharedTokens(Arc<dyn SharedCache>);

#[async_trait::async_trait]
impl TokenCache for SharedTokens {
    async fn get(&self, key: &str) -> Option<Value> {
        self.0.get(key).await
    }

    async fn set(&self, key: &str, value: &Value, ttl: Duration) {
        self.0.set(key, value, ttl).await;
    }
}

/// A required filter goes right behind the last of these, counting only their first appearance.
struct Required {
    filter: &'static str,
    behind: &'static [&'static [&'static str]],
    /// Only behind one that stands at the very front; else to the front itself.
    near_front: bool,
}

/// What stands around authentication, for filters that come behind it.
const AROUND_AUTH: &[&str] = &[
    "staticweb",
    "tempauth",
    "keystoneauth",
    "catch_errors",
    "gatekeeper",
    "proxy_logging",
];

/// The last is looked at first.
const REQUIRED: [Required; 6] = [
    Required {
        filter: "catch_errors",
        behind: &[&[]],
        near_front: true,
    },
    Required {
        filter: "gatekeeper",
        behind: &[&["catch_errors"]],
        near_front: true,
    },
    Required {
        filter: "listing_formats",
        behind: &[&["catch_errors", "gatekeeper", "proxy_logging", "memcache"]],
        near_front: false,
    },
    Required {
        filter: "copy",
        behind: &[AROUND_AUTH],
        near_front: false,
    },
    Required {
        filter: "dlo",
        behind: &[&["copy"], AROUND_AUTH],
        near_front: false,
    },
    Required {
        filter: "versioned_writes",
        behind: &[&["slo", "dlo", "copy"], AROUND_AUTH],
        near_front: false,
    },
];

/// The features of a gateway, outermost first.
pub fn build(parts: &Parts<'_>) -> Result<Vec<Arc<dyn Feature>>, SettingsError> {
    let named = named(parts);
    let before = named.len();
    let pipeline = with_required(named);
    if pipeline.len() != before {
        let names: Vec<&str> = pipeline.iter().map(|stage| stage.egg).collect();
        tracing::info!("required filters were added, the pipeline is {}", names.join(" "));
    }
    make(parts, &pipeline)
}

/// The features of a gateway that no client reaches, outermost first: those that are named and no others, the
/// gatekeeper above all.
pub fn build_internal(parts: &Parts<'_>) -> Result<Vec<Arc<dyn Feature>>, SettingsError> {
    make(parts, &named(parts))
}

fn named<'a>(parts: &Parts<'a>) -> Vec<Stage<'a>> {
    let stage = |filter: &'a FilterSpec| Stage {
        egg: &filter.egg,
        options: filter.options.clone(),
    };
    parts.conf.pipeline.filters.iter().map(stage).collect()
}

fn make(parts: &Parts<'_>, pipeline: &[Stage<'_>]) -> Result<Vec<Arc<dyn Feature>>, SettingsError> {
    let mut features: Vec<Arc<dyn Feature>> = Vec::with_capacity(pipeline.len() + 1);
    for stage in pipeline {
        for (_, make) in FEATURES.iter().filter(|(name, _)| *name == stage.egg) {
            features.push(make(parts, &stage.options)?);
        }
    }
    let info = info(parts, &features);
    features.push(Arc::new(info));
    Ok(features)
}

fn info(parts: &Parts<'_>, features: &[Arc<dyn Feature>]) -> SwiftInfo {
    let (proxy, swift) = (&parts.conf.proxy, parts.swift);
    let hidden = &swift.auto_create_account_prefix;
    let mut capabilities = Capabilities::of_core(proxy, &swift.limits, &swift.policies, hidden);
    for (name, section) in features.iter().flat_map(|feature| feature.info()) {
        capabilities.add(name, section);
    }
    for (name, section) in features.iter().flat_map(|feature| feature.info_for_administrators()) {
        capabilities.add_for_administrators(name, section);
    }
    SwiftInfo::new(proxy, &capabilities, parts.world.clock.clone())
}

/// A filter in the pipeline.
struct Stage<'a> {
    egg: &'a str,
    options: Scope,
}

/// The filters with those that are required.
fn with_required(mut pipeline: Vec<Stage<'_>>) -> Vec<Stage<'_>> {
    for required in REQUIRED.iter().rev() {
        if pipeline.iter().any(|stage| stage.egg == required.filter) {
            continue;
        }
        let first = |name: &&str| pipeline.iter().position(|stage| stage.egg == *name);
        let last = required.behind.iter().copied().flatten().filter_map(first).max();
        let at = match last {
            Some(last) if !required.near_front || last == 0 => last + 1,
            _ => 0,
        };
        let stage = Stage {
            egg: required.filter,
            options: Scope::empty(),
        };
        pipeline.insert(at, stage);
    }
    pipeline
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answer, request};
    use request_pipeline::Pipeline;
    use request_pipeline::{Response, reply};
    use settings::Document;
    use std::path::Path;

    /// The first of each pair was given to OpenStack Swift 2.38.3, the second is what it made of it.
    #[test]
    fn required_filters_go_where_openstack_puts_them() {
        for (named, expected) in [
            ("", "catch_errors gatekeeper listing_formats copy dlo versioned_writes"),
            (
                "tempauth",
                "catch_errors gatekeeper listing_formats tempauth copy dlo versioned_writes",
            ),
            (
                "healthcheck",
                "catch_errors gatekeeper listing_formats copy dlo versioned_writes healthcheck",
            ),
            (
                "proxy_logging healthcheck tempauth",
                "catch_errors gatekeeper proxy_logging listing_formats healthcheck tempauth copy dlo versioned_writes",
            ),
            (
                "healthcheck catch_errors tempauth",
                "gatekeeper healthcheck catch_errors listing_formats tempauth copy dlo versioned_writes",
            ),
            (
                "healthcheck gatekeeper tempauth",
                "catch_errors healthcheck gatekeeper listing_formats tempauth copy dlo versioned_writes",
            ),
            (
                "catch_errors gatekeeper healthcheck proxy_logging memcache tempauth proxy_logging",
                "catch_errors gatekeeper healthcheck proxy_logging memcache listing_formats tempauth copy dlo versioned_writes proxy_logging",
            ),
            (
                "catch_errors gatekeeper memcache tempauth slo proxy_logging",
                "catch_errors gatekeeper memcache tempauth slo proxy_logging listing_formats copy dlo versioned_writes",
            ),
            (
                "memcache tempauth proxy_logging catch_errors",
                "gatekeeper memcache tempauth proxy_logging catch_errors listing_formats copy dlo versioned_writes",
            ),
            (
                "proxy_logging proxy_logging tempauth",
                "catch_errors gatekeeper proxy_logging listing_formats proxy_logging tempauth copy dlo versioned_writes",
            ),
            (
                "listing_formats memcache tempauth",
                "catch_errors gatekeeper listing_formats memcache tempauth copy dlo versioned_writes",
            ),
            (
                "catch_errors healthcheck memcache",
                "catch_errors gatekeeper copy dlo versioned_writes healthcheck memcache listing_formats",
            ),
            (
                "catch_errors gatekeeper proxy_logging memcache staticweb tempauth copy proxy_logging",
                "catch_errors gatekeeper proxy_logging memcache listing_formats staticweb tempauth copy dlo versioned_writes proxy_logging",
            ),
            (
                "catch_errors gatekeeper proxy_logging memcache tempauth container_quotas slo proxy_logging",
                "catch_errors gatekeeper proxy_logging memcache listing_formats tempauth copy dlo container_quotas slo versioned_writes proxy_logging",
            ),
            (
                "catch_errors gatekeeper proxy_logging memcache tempauth slo dlo proxy_logging",
                "catch_errors gatekeeper proxy_logging memcache listing_formats tempauth copy slo dlo versioned_writes proxy_logging",
            ),
            (
                "catch_errors gatekeeper proxy_logging memcache tempauth staticweb slo versioned_writes symlink proxy_logging",
                "catch_errors gatekeeper proxy_logging memcache listing_formats tempauth staticweb copy dlo slo versioned_writes symlink proxy_logging",
            ),
            (
                "catch_errors gatekeeper proxy_logging memcache tempauth symlink proxy_logging",
                "catch_errors gatekeeper proxy_logging memcache listing_formats tempauth copy dlo versioned_writes symlink proxy_logging",
            ),
            (
                "catch_errors gatekeeper proxy_logging memcache dlo tempauth proxy_logging",
                "catch_errors gatekeeper proxy_logging memcache listing_formats dlo tempauth copy versioned_writes proxy_logging",
            ),
            (
                "slo copy tempauth",
                "catch_errors gatekeeper listing_formats slo copy tempauth dlo versioned_writes",
            ),
            (
                "copy dlo",
                "catch_errors gatekeeper listing_formats copy dlo versioned_writes",
            ),
            (
                "versioned_writes",
                "catch_errors gatekeeper listing_formats copy dlo versioned_writes",
            ),
            (
                "bulk ratelimit tempauth staticweb container_quotas account_quotas slo",
                "catch_errors gatekeeper listing_formats bulk ratelimit tempauth staticweb copy dlo container_quotas account_quotas slo versioned_writes",
            ),
            (
                "catch_errors gatekeeper proxy_logging memcache bulk tempauth slo symlink",
                "catch_errors gatekeeper proxy_logging memcache listing_formats bulk tempauth copy dlo slo versioned_writes symlink",
            ),
        ] {
            let named: Vec<&str> = named.split_whitespace().collect();
            assert_eq!(required(&named).join(" "), expected, "{named:?}");
        }
    }

    fn required<'a>(named: &[&'a str]) -> Vec<&'a str> {
        let stage = |egg: &&'a str| Stage {
            egg,
            options: Scope::empty(),
        };
        let pipeline = with_required(named.iter().map(stage).collect());
        pipeline.iter().map(|stage| stage.egg).collect()
    }

    #[test]
    fn what_settings_call_served_is_here() {
        use settings::filters::{FILTERS, Support};
        for filter in FILTERS {
            let here = filter.egg == "memcache" || FEATURES.iter().any(|(feature, _)| *feature == filter.egg);
            assert_eq!(here, filter.support == Support::Served, "{}", filter.egg);
        }
    }

    fn gateway(pipeline: &str) -> Pipeline {
        let mut text = format!(
            "[DEFAULT]\nbind_port = 1\n[pipeline:main]\npipeline = {pipeline} proxy-server\n[app:proxy-server]\nuse = egg:swift#proxy\n"
        );
        for filter in ["healthcheck", "proxy_logging", "memcache", "slo", "tempauth"] {
            text.push_str(&format!("[filter:{filter}]\nuse = egg:swift#{filter}\n"));
        }
        text.push_str("user_test_tester = testing .admin\n");
        let conf = ProxyConf::from_documents(&Document::parse(Path::new("p.conf"), &text).unwrap(), None).unwrap();
        let hash = Document::parse(Path::new("swift.conf"), "[swift-hash]\nswift_hash_path_suffix = s\n").unwrap();
        let swift = SwiftConf::from_document(&hash).unwrap();
        let world = World::real();
        let parts = Parts {
            conf: &conf,
            swift: &swift,
            world: &world,
            cache: None,
        };
        let features = build(&parts).unwrap();
        Pipeline::new(features, Arc::new(Answer::new(|_| reply::status(404))))
    }

    #[tokio::test]
    async fn a_whole_pipeline() {
        let pipeline = gateway("healthcheck proxy_logging memcache tempauth slo proxy_logging");
        let names: Vec<_> = pipeline.names().collect();
        assert_eq!(
            names.join(" "),
            "catch_errors gatekeeper healthcheck proxy_logging listing_formats tempauth copy dlo slo versioned_writes object_versioning proxy_logging info"
        );
        let told = |response: Response| String::from_utf8_lossy(&response.body().as_whole().unwrap()).into_owned();
        let info = pipeline.run(request("GET", "/info")).await;
        assert_eq!(info.headers()["x-trans-id"], "tx1");
        assert!(told(info).contains("\"tempauth\": {\"account_acls\": true}"));
        assert_eq!(told(pipeline.run(request("GET", "/healthcheck")).await), "OK");
    }
}
