//! Which filter name means which feature, and the pipeline they make.
//!
//! Comes in: `[pipeline:main]` with its options. Goes out: features, outermost first, for the gateway.
//! [`FEATURES`] is the one list. Filters that OpenStack Swift requires stand in the pipeline whether or
//! not the operator names them, where OpenStack would put them.
//! Always holds: `catch_errors`, `gatekeeper` and `listing_formats` are there; `/info` is answered last.
//! Deliberately absent: filters that are not served (`settings` says so at start), the memcached
//! client, which the gateway uses itself.

use crate::Feature;
use crate::catch_errors::CatchErrors;
use crate::gatekeeper::Gatekeeper;
use crate::healthcheck::Healthcheck;
use crate::listing_formats::ListingFormats;
use crate::proxy_logging::ProxyLogging;
use crate::swift_info::{Capabilities, SwiftInfo};
use crate::tempauth::Auth;
use identity::{Authenticator, TempAuth, TokenCache};
use settings::{ProxyConf, SwiftConf};
use std::sync::Arc;
use world::World;

/// Makes a feature of what is configured; `None` when its part of the configuration is missing.
type Make = fn(&Parts<'_>) -> Option<Arc<dyn Feature>>;

/// Every feature, by the filter's entry point (`egg:swift#…`).
pub const FEATURES: &[(&str, Make)] = &[
    ("catch_errors", |_| Some(Arc::new(CatchErrors))),
    ("gatekeeper", |parts| {
        Some(Arc::new(Gatekeeper::new(parts.conf.gatekeeper.clone())))
    }),
    ("healthcheck", |parts| {
        let settings = parts.conf.healthcheck.clone()?;
        Some(Arc::new(Healthcheck::new(settings, parts.world.files.clone())))
    }),
    ("proxy_logging", |parts| {
        let settings = parts.conf.proxy_logging.as_ref()?;
        Some(Arc::new(ProxyLogging::new(settings, parts.world.clock.clone())))
    }),
    ("listing_formats", |parts| {
        let versions = parts.swift.limits.valid_api_versions.clone();
        Some(Arc::new(ListingFormats::new(versions)))
    }),
    ("tempauth", |parts| {
        let authenticator = parts.tempauth.clone()?;
        Some(Arc::new(Auth::new("tempauth", authenticator, parts.world.clone())))
    }),
];

/// What features are made of.
pub struct Parts<'a> {
    conf: &'a ProxyConf,
    swift: &'a SwiftConf,
    world: &'a World,
    tempauth: Option<Arc<dyn Authenticator>>,
}

/// A required filter goes right behind the last of these, counting only their first appearance.
struct Required {
    filter: &'static str,
    behind: &'static [&'static str],
    /// Only behind one that stands at the very front; else to the front itself.
    near_front: bool,
}

const REQUIRED: [Required; 3] = [
    Required {
        filter: "catch_errors",
        behind: &[],
        near_front: true,
    },
    Required {
        filter: "gatekeeper",
        behind: &["catch_errors"],
        near_front: true,
    },
    Required {
        filter: "listing_formats",
        behind: &["catch_errors", "gatekeeper", "proxy_logging", "memcache"],
        near_front: false,
    },
];

/// The features of a gateway, outermost first. `tokens` is the cache that gateways share, if any.
pub fn build(
    conf: &ProxyConf,
    swift: &SwiftConf,
    world: &World,
    tokens: Option<Arc<dyn TokenCache>>,
) -> Vec<Arc<dyn Feature>> {
    let tempauth = conf.tempauth.as_ref();
    let tempauth = tempauth.map(|settings| Arc::new(TempAuth::new(settings, tokens)) as Arc<dyn Authenticator>);
    let parts = Parts {
        conf,
        swift,
        world,
        tempauth,
    };
    let named: Vec<&str> = conf.pipeline.filters.iter().map(|filter| filter.egg.as_str()).collect();
    let pipeline = with_required(&named);
    if pipeline.len() != named.len() {
        tracing::info!("required filters were added, the pipeline is {}", pipeline.join(" "));
    }
    let mut features: Vec<Arc<dyn Feature>> = pipeline.iter().filter_map(|filter| make(filter, &parts)).collect();
    features.push(Arc::new(info(&parts)));
    features
}

fn make(filter: &str, parts: &Parts<'_>) -> Option<Arc<dyn Feature>> {
    let (_, make) = FEATURES.iter().find(|(name, _)| *name == filter)?;
    make(parts)
}

fn info(parts: &Parts<'_>) -> SwiftInfo {
    let (proxy, swift) = (&parts.conf.proxy, parts.swift);
    let hidden = &swift.auto_create_account_prefix;
    let mut capabilities = Capabilities::of_core(proxy, &swift.limits, &swift.policies, hidden);
    if let Some(authenticator) = &parts.tempauth {
        let (name, section) = authenticator.info();
        capabilities.add(name, section);
    }
    SwiftInfo::new(proxy, &capabilities, parts.world.clock.clone())
}

/// The filters with those that are required.
fn with_required<'a>(named: &[&'a str]) -> Vec<&'a str> {
    let mut pipeline = named.to_vec();
    for required in &REQUIRED {
        if pipeline.contains(&required.filter) {
            continue;
        }
        let first = |name: &&str| pipeline.iter().position(|filter| filter == name);
        let last = required.behind.iter().filter_map(first).max();
        let at = match last {
            Some(last) if !required.near_front || last == 0 => last + 1,
            _ => 0,
        };
        pipeline.insert(at, required.filter);
    }
    pipeline
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Pipeline;
    use crate::testing::{Answer, request};
    use crate::{Response, reply};
    use settings::Document;
    use std::path::Path;

    /// The first of each pair was given to OpenStack Swift 2.38.3, the second is what it made of it
    /// (without `copy`, `dlo` and `versioned_writes`, which are not served).
    #[test]
    fn required_filters_go_where_openstack_puts_them() {
        for (named, expected) in [
            ("", "catch_errors gatekeeper listing_formats"),
            ("tempauth", "catch_errors gatekeeper listing_formats tempauth"),
            ("healthcheck", "catch_errors gatekeeper listing_formats healthcheck"),
            (
                "proxy_logging healthcheck tempauth",
                "catch_errors gatekeeper proxy_logging listing_formats healthcheck tempauth",
            ),
            (
                "healthcheck catch_errors tempauth",
                "gatekeeper healthcheck catch_errors listing_formats tempauth",
            ),
            (
                "healthcheck gatekeeper tempauth",
                "catch_errors healthcheck gatekeeper listing_formats tempauth",
            ),
            (
                "catch_errors gatekeeper healthcheck proxy_logging memcache tempauth proxy_logging",
                "catch_errors gatekeeper healthcheck proxy_logging memcache listing_formats tempauth proxy_logging",
            ),
            (
                "catch_errors gatekeeper memcache tempauth slo proxy_logging",
                "catch_errors gatekeeper memcache tempauth slo proxy_logging listing_formats",
            ),
            (
                "memcache tempauth proxy_logging catch_errors",
                "gatekeeper memcache tempauth proxy_logging catch_errors listing_formats",
            ),
            (
                "proxy_logging proxy_logging tempauth",
                "catch_errors gatekeeper proxy_logging listing_formats proxy_logging tempauth",
            ),
            (
                "listing_formats memcache tempauth",
                "catch_errors gatekeeper listing_formats memcache tempauth",
            ),
            (
                "catch_errors healthcheck memcache",
                "catch_errors gatekeeper healthcheck memcache listing_formats",
            ),
        ] {
            let named: Vec<&str> = named.split_whitespace().collect();
            assert_eq!(with_required(&named).join(" "), expected, "{named:?}");
        }
    }

    #[test]
    fn what_settings_call_served_is_here() {
        use settings::filters::{FILTERS, Support};
        for (name, support) in FILTERS {
            let here = *name == "memcache" || FEATURES.iter().any(|(feature, _)| feature == name);
            assert_eq!(here, *support == Support::Served, "{name}");
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
        let features = build(&conf, &swift, &World::real(), None);
        Pipeline::new(features, Arc::new(Answer::new(|_| reply::status(404))))
    }

    #[tokio::test]
    async fn a_whole_pipeline() {
        let pipeline = gateway("healthcheck proxy_logging memcache tempauth slo proxy_logging");
        let names: Vec<_> = pipeline.names().collect();
        assert_eq!(
            names.join(" "),
            "catch_errors gatekeeper healthcheck proxy_logging listing_formats tempauth proxy_logging info"
        );
        let told = |response: Response| String::from_utf8_lossy(&response.body().as_whole().unwrap()).into_owned();
        let info = pipeline.run(request("GET", "/info")).await;
        assert_eq!(info.headers()["x-trans-id"], "tx1");
        assert!(told(info).contains("\"tempauth\": {\"account_acls\": true}"));
        assert_eq!(told(pipeline.run(request("GET", "/healthcheck")).await), "OK");
    }
}
