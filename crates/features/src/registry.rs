//! Which filter name means which feature, and the pipeline they make.
//!
//! Comes in: `[pipeline:main]` with its options. Goes out: features, outermost first, for the gateway.
//! [`FEATURES`] is the one list. Filters that OpenStack Swift requires stand in the pipeline whether or
//! not the operator names them, where OpenStack would put them.
//! Always holds: `catch_errors`, `gatekeeper` and `listing_formats` are there; `/info` is answered last.
//! Deliberately absent: filters that are not served (`settings` says so at start), the memcached
//! client, which the gateway uses itself.

use crate::access::access_keys::{AccessKeys, AccessKeysApi, store_account};
use crate::access::authtoken::AuthToken;
use crate::access::container_sync::ContainerSync;
use crate::access::formpost::FormPost;
use crate::access::gatekeeper::Gatekeeper;
use crate::access::keystoneauth::KeystoneAuth;
use crate::access::read_only::ReadOnly;
use crate::access::s3token::S3Token;
use crate::access::tempauth::Auth;
use crate::access::tempurl::TempUrl;
use crate::addresses::cname_lookup::CnameLookup;
use crate::addresses::domain_remap::DomainRemap;
use crate::bulk::Bulk;
use crate::context::FeatureContext;
use crate::encryption::Encryption;
use crate::encryption::keymaster::Keymaster;
use crate::large_objects::dlo::DynamicLargeObjects;
use crate::large_objects::slo::StaticLargeObjects;
use crate::limits::account_quotas::AccountQuotas;
use crate::limits::container_quotas::ContainerQuotas;
use crate::limits::name_check::NameCheck;
use crate::limits::ratelimit::Ratelimit;
use crate::links::copy::Copy;
use crate::links::symlink::Symlink;
use crate::listings::listing_formats::ListingFormats;
use crate::monitoring::catch_errors::CatchErrors;
use crate::monitoring::healthcheck::Healthcheck;
use crate::monitoring::list_endpoints::ListEndpoints;
use crate::monitoring::proxy_logging::ProxyLogging;
use crate::monitoring::recon::Recon;
use crate::monitoring::swift_info::{Capabilities, SwiftInfo};
use crate::notification::{BucketNotifications, WatchedTargets};
use crate::versioning::{LegacyVersions, ObjectLockGuard, ObjectVersioning};
use crate::web::crossdomain::Crossdomain;
use crate::web::etag_quoter::EtagQuoter;
use crate::web::staticweb::Staticweb;
use identity::TempAuth;
use request_pipeline::Feature;
use s3::{S3Front, S3Operations};
use settings::VersionedWritesSettings;
use settings::declare::{Options, Scope};
use settings::gateway_filters::RatelimitSettings;
use settings::{FilterSpec, KeymasterSettings, KeystoneAuthSettings, S3ApiSettings, SettingsError, TempAuthSettings};
use std::sync::Arc;
use telemetry::Statsd;

/// Makes a feature of what is configured.
type Make = fn(&FeatureContext<'_>, &Scope) -> Result<Arc<dyn Feature>, SettingsError>;

/// Every feature, by the filter's entry point (`egg:swift#…`), in alphabetical order. A filter that is made of
/// several features has a row for each, outermost first.
pub const FEATURES: &[(&str, Make)] = &[
    (ACCESS_KEYS, |context, options| {
        let account = store_account(&context.swift.auto_create_account_prefix);
        let settings = Options::read(options)?;
        Ok(Arc::new(AccessKeys::new(&settings, account, context.world.clone())))
    }),
    (ACCESS_KEYS_API, |context, options| {
        let account = store_account(&context.swift.auto_create_account_prefix);
        let settings = Options::read(options)?;
        Ok(Arc::new(AccessKeysApi::new(&settings, account, context.world.clone())))
    }),
    ("account_quotas", |context, _| {
        Ok(Arc::new(AccountQuotas::new(&context.swift.policies)))
    }),
    ("authtoken", |context, options| {
        Ok(Arc::new(AuthToken::new(context, options)?))
    }),
    (NOTIFICATIONS, |context, _| {
        Ok(Arc::new(BucketNotifications::read(context)?))
    }),
    (LIFECYCLE_NOTIFICATIONS, |context, _| {
        Ok(Arc::new(BucketNotifications::read(context)?.of_lifecycle()))
    }),
    ("bulk", |context, options| {
        let settings = Options::read(options)?;
        let most = context.swift.limits.max_file_size;
        Ok(Arc::new(Bulk::new(settings, most, context.world.clock.clone())))
    }),
    ("catch_errors", |_, _| Ok(Arc::new(CatchErrors))),
    ("cname_lookup", |context, options| {
        Ok(Arc::new(CnameLookup::read(context, options)?))
    }),
    ("container_quotas", |_, _| Ok(Arc::new(ContainerQuotas))),
    ("container_sync", |context, options| {
        let swift_dir = &context.conf.common.swift_dir;
        Ok(Arc::new(ContainerSync::new(
            &Options::read(options)?,
            swift_dir,
            context.world.clone(),
        )))
    }),
    ("copy", |context, options| {
        let (settings, limits) = (Options::read(options)?, &context.swift.limits);
        let clock = context.world.clock.clone();
        Ok(Arc::new(Copy::new(&settings, limits.max_file_size, clock)))
    }),
    ("crossdomain", |_, options| {
        Ok(Arc::new(Crossdomain::new(&Options::read(options)?)))
    }),
    ("dlo", |context, options| {
        let page = context.swift.limits.container_listing_limit;
        let settings = Options::read(options)?;
        Ok(Arc::new(DynamicLargeObjects::new(
            settings,
            context.world.clone(),
            page,
        )))
    }),
    ("domain_remap", |_, options| {
        Ok(Arc::new(DomainRemap::new(Options::read(options)?)))
    }),
    ("encryption", |context, options| {
        let (limits, random) = (context.swift.limits.clone(), context.world.random.clone());
        Ok(Arc::new(Encryption::new(&Options::read(options)?, limits, random)))
    }),
    ("etag_quoter", |_, options| {
        Ok(Arc::new(EtagQuoter::new(Options::read(options)?)))
    }),
    ("formpost", |context, options| {
        let settings = Options::read(options)?;
        let feature = FormPost::new(settings, context.world.clock.clone());
        Ok(Arc::new(feature.counting(context.statsd(options, "proxy-server")?)))
    }),
    ("gatekeeper", |_, options| {
        Ok(Arc::new(Gatekeeper::new(Options::read(options)?)))
    }),
    ("healthcheck", |context, options| {
        let files = context.world.files.clone();
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
    ("listing_formats", |context, _| {
        let versions = context.swift.limits.valid_api_versions.clone();
        Ok(Arc::new(ListingFormats::new(versions, context.keeps_versions()?)))
    }),
    ("name_check", |_, options| Ok(Arc::new(NameCheck::read(options)?))),
    ("proxy_logging", |context, options| {
        let settings = Options::read(options)?;
        let versions = context.swift.limits.valid_api_versions.clone();
        let statsd = Statsd::of_access_log(&settings, Options::read(options)?, context.world);
        let made = ProxyLogging::new(&settings, statsd, versions, context.world);
        Ok(Arc::new(
            made.map_err(|(option, expected)| options.wrong(option, &expected))?,
        ))
    }),
    ("ratelimit", |context, options| {
        let versions = context.swift.limits.valid_api_versions.clone();
        let settings = RatelimitSettings::read(options)?;
        Ok(Arc::new(Ratelimit::new(
            settings,
            versions,
            context.cache.clone(),
            context.world.clone(),
        )))
    }),
    ("read_only", |context, options| {
        let versions = context.swift.limits.valid_api_versions.clone();
        Ok(Arc::new(ReadOnly::new(Options::read(options)?, versions)))
    }),
    ("recon", |context, options| {
        let made = Recon::new(context.world, Options::read(options)?, &context.swift.policies);
        Ok(Arc::new(made.map_err(|error| {
            options.wrong("use", &format!("a system with threads to spare ({error})"))
        })?))
    }),
    ("s3api", |context, options| {
        let settings: S3ApiSettings = Options::read(options)?;
        let (hidden, clock) = (&context.swift.auto_create_account_prefix, context.world.clock.clone());
        Ok(Arc::new(S3Front::new(Arc::new(settings), hidden, clock)))
    }),
    (S3_OPERATIONS, |context, options| {
        let (settings, limits) = (Arc::new(Options::read(options)?), context.swift.limits.clone());
        let cors = (&context.conf.proxy).into();
        let encrypts = context.encrypts_behind(&AUTHENTICATORS)?;
        let targets = WatchedTargets::new(&context.conf.common.swift_dir, context.world.clone());
        let (hidden, world) = (&context.swift.auto_create_account_prefix, context.world.clone());
        let operations = S3Operations::new(settings, limits, cors, encrypts, hidden, world);
        let operations = operations.reading_in(context.bodies.clone());
        Ok(Arc::new(operations.notifying(Arc::new(targets))))
    }),
    ("s3token", |context, options| {
        Ok(Arc::new(S3Token::new(context, options)?))
    }),
    ("slo", |context, options| {
        let (settings, world) = (Options::read(options)?, context.world.clone());
        let (hash, hidden) = (
            context.swift.hash.clone(),
            context.swift.auto_create_account_prefix.clone(),
        );
        let patience = context.conf.proxy.client_timeout;
        let slo = StaticLargeObjects::new(settings, world, hash, hidden, patience);
        Ok(Arc::new(slo.reading_in(context.bodies.clone())))
    }),
    ("staticweb", |_, options| {
        Ok(Arc::new(Staticweb::new(&Options::read(options)?)))
    }),
    ("symlink", |_, options| {
        Ok(Arc::new(Symlink::new(&Options::read(options)?)))
    }),
    ("tempauth", |context, options| {
        let settings = TempAuthSettings::read(options)?;
        let authenticator = Arc::new(TempAuth::new(&settings, context.tokens()));
        let allows = settings.options.allow_overrides;
        let auth = Auth::new("tempauth", authenticator, context.world.clone()).allowing_overrides(allows);
        let prefix = settings.prefixes.first().map_or("", |first| first.prefix.as_str());
        let prefix = if prefix.is_empty() { "NONE" } else { prefix };
        Ok(Arc::new(
            auth.counting(context.statsd(options, &format!("tempauth.{prefix}"))?),
        ))
    }),
    ("tempurl", |context, options| {
        let settings = Options::read(options)?;
        let feature = TempUrl::new(settings, context.world.clock.clone());
        Ok(Arc::new(feature.counting(context.statsd(options, "proxy-server")?)))
    }),
    ("versioned_writes", |context, options| {
        let (settings, limits) = (Options::read(options)?, &context.swift.limits);
        let clock = context.world.clock.clone();
        Ok(Arc::new(LegacyVersions::new(&settings, limits.max_file_size, clock)))
    }),
    ("versioned_writes", |context, options| {
        let settings: VersionedWritesSettings = Options::read(options)?;
        Ok(Arc::new(ObjectVersioning::new(
            settings.allow_object_versioning,
            context.swift.policies.clone(),
            &context.swift.limits,
            context.world.clone(),
        )))
    }),
    ("versioned_writes", |context, _| {
        Ok(Arc::new(ObjectLockGuard::new(context.world.clone())))
    }),
];

/// The half of `s3api` that stands behind authentication; it is no filter of its own.
const S3_OPERATIONS: &str = "s3api-operations";

/// Events of buckets, right in front of `versioned_writes`; it is no filter of its own, so that OpenStack Swift reads a
/// configuration with it.
const NOTIFICATIONS: &str = "bucket-notifications";

/// The same in gateways that no client reaches.
const LIFECYCLE_NOTIFICATIONS: &str = "lifecycle-notifications";

/// The half of the store of keys that stands right behind `s3api`; it is no filter of its own, so that OpenStack Swift
/// reads a configuration that has it.
const ACCESS_KEYS: &str = "s3api-access-keys";
/// The half behind authentication.
const ACCESS_KEYS_API: &str = "s3api-access-keys-api";

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
pub fn build(context: &FeatureContext<'_>) -> Result<Vec<Arc<dyn Feature>>, SettingsError> {
    let named = named(context);
    check_identity_headers(&named)?;
    let named = with_s3_operations(with_access_keys(named)?)?;
    let before = named.len();
    let pipeline = with_required(named);
    if pipeline.len() != before {
        let names: Vec<&str> = pipeline.iter().map(|stage| stage.egg).collect();
        tracing::info!("required filters were added, the pipeline is {}", names.join(" "));
    }
    make(context, &with_notifications(pipeline, NOTIFICATIONS))
}

/// The features of a gateway that no client reaches, outermost first: those that are named and no others, the
/// gatekeeper above all. Where versions are kept, what lifecycle rules delete is an event.
pub fn build_internal(context: &FeatureContext<'_>) -> Result<Vec<Arc<dyn Feature>>, SettingsError> {
    make(context, &with_notifications(named(context), LIFECYCLE_NOTIFICATIONS))
}

fn named<'a>(context: &FeatureContext<'a>) -> Vec<Stage<'a>> {
    let stage = |filter: &'a FilterSpec| Stage {
        egg: &filter.egg,
        options: filter.options.clone(),
    };
    context.conf.pipeline.filters.iter().map(stage).collect()
}

fn make(context: &FeatureContext<'_>, pipeline: &[Stage<'_>]) -> Result<Vec<Arc<dyn Feature>>, SettingsError> {
    let mut features: Vec<Arc<dyn Feature>> = Vec::with_capacity(pipeline.len() + 1);
    for stage in pipeline {
        for (_, make) in FEATURES.iter().filter(|(name, _)| *name == stage.egg) {
            features.push(make(context, &stage.options)?);
        }
    }
    let info = info(context, &features);
    features.push(Arc::new(info));
    Ok(features)
}

fn info(context: &FeatureContext<'_>, features: &[Arc<dyn Feature>]) -> SwiftInfo {
    let (proxy, swift) = (&context.conf.proxy, context.swift);
    let hidden = &swift.auto_create_account_prefix;
    let mut capabilities = Capabilities::of_core(proxy, &swift.limits, &swift.policies, hidden);
    for (name, section) in features.iter().flat_map(|feature| feature.info()) {
        capabilities.add(name, section);
    }
    for (name, section) in features.iter().flat_map(|feature| feature.info_for_administrators()) {
        capabilities.add_for_administrators(name, section);
    }
    SwiftInfo::new(proxy, &capabilities, context.world.clock.clone())
}

/// A filter in the pipeline.
struct Stage<'a> {
    egg: &'a str,
    options: Scope,
}

/// Filters that find out which user sends a request.
const AUTHENTICATORS: [&str; 2] = ["tempauth", "keystoneauth"];
/// Filters that verify signatures of S3.
const VERIFY_SIGNATURES: [&str; 2] = ["tempauth", "s3token"];

/// `s3token` and `keystoneauth` speak to each other in headers about the user, which only `authtoken` takes off
/// requests that are not signed: without it a client would say itself who it is.
fn check_identity_headers(pipeline: &[Stage<'_>]) -> Result<(), SettingsError> {
    let position = |egg| pipeline.iter().position(|stage| stage.egg == egg);
    let (Some(s3token), Some(keystoneauth)) = (position("s3token"), position("keystoneauth")) else {
        return Ok(());
    };
    match position("authtoken").is_some_and(|authtoken| authtoken < keystoneauth) {
        true => Ok(()),
        false => Err(pipeline[s3token].options.wrong(
            "use",
            "authtoken in front of s3token and keystoneauth: it takes off what clients say of themselves",
        )),
    }
}

/// With the second half of `s3api` right behind authentication, which has to stand behind the first.
fn with_s3_operations(mut pipeline: Vec<Stage<'_>>) -> Result<Vec<Stage<'_>>, SettingsError> {
    let Some(front) = pipeline.iter().position(|stage| stage.egg == "s3api") else {
        return Ok(pipeline);
    };
    let options = pipeline[front].options.clone();
    let last = pipeline.iter().rposition(|stage| AUTHENTICATORS.contains(&stage.egg));
    let verified = |last: &usize| {
        let between = pipeline.get(front..=*last).unwrap_or_default();
        let verifies = |egg: &str| VERIFY_SIGNATURES.contains(&egg) || egg == ACCESS_KEYS;
        between.iter().any(|stage| verifies(stage.egg))
    };
    let Some(last) = last.filter(verified) else {
        return Err(options.wrong(
            "use",
            "s3api in front of tempauth, or of s3token and keystoneauth, in the pipeline: they verify signatures",
        ));
    };
    let stage = Stage {
        egg: S3_OPERATIONS,
        options,
    };
    pipeline.insert(last + 1, stage);
    Ok(pipeline)
}

/// With the store of keys, where `s3api` has one: right behind it, in front of all that verifies signatures, and right
/// behind authentication.
fn with_access_keys(mut pipeline: Vec<Stage<'_>>) -> Result<Vec<Stage<'_>>, SettingsError> {
    let Some(front) = pipeline.iter().position(|stage| stage.egg == "s3api") else {
        return Ok(pipeline);
    };
    let options = pipeline[front].options.clone();
    let settings: S3ApiSettings = Options::read(&options)?;
    let last = pipeline.iter().rposition(|stage| AUTHENTICATORS.contains(&stage.egg));
    // An order that is wrong is reported by `with_s3_operations`.
    let Some(last) = last.filter(|last| settings.access_keys && *last > front) else {
        return Ok(pipeline);
    };
    let is_behind = |stage: &Stage<'_>| AUTHENTICATORS.contains(&stage.egg) || VERIFY_SIGNATURES.contains(&stage.egg);
    if pipeline[..front].iter().any(is_behind) {
        return Err(options.wrong("access_keys", "s3api in front of all that verifies signatures or users"));
    }
    for stage in pipeline.iter().filter(|stage| AUTHENTICATORS.contains(&stage.egg)) {
        let allows = match stage.egg {
            "tempauth" => TempAuthSettings::read(&stage.options)?.options.allow_overrides,
            _ => identity::keystone::KeystoneRules::new(KeystoneAuthSettings::read(&stage.options)?).allows_overrides(),
        };
        if !allows {
            return Err(stage
                .options
                .wrong("allow_overrides", "true: the store of access keys is read for no user"));
        }
    }
    let stage = |egg| Stage {
        egg,
        options: options.clone(),
    };
    pipeline.insert(last + 1, stage(ACCESS_KEYS_API));
    pipeline.insert(front + 1, stage(ACCESS_KEYS));
    Ok(pipeline)
}

/// With events of buckets, where the PUT or DELETE of an object comes by once, and before it becomes several.
fn with_notifications<'a>(mut pipeline: Vec<Stage<'a>>, egg: &'static str) -> Vec<Stage<'a>> {
    // Clients' gateways always have it.
    if let Some(versions) = pipeline.iter().position(|stage| stage.egg == "versioned_writes") {
        let options = Scope::empty();
        pipeline.insert(versions, Stage { egg, options });
    }
    pipeline
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
mod tests;
