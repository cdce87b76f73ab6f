use super::*;
use crate::testing::{Answer, request};
use request_pipeline::{MemoryRoom, Pipeline};
use request_pipeline::{Response, reply};
use settings::{Document, ProxyConf, SwiftConf};
use std::path::Path;
use world::World;

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
fn s3_is_served_where_its_signatures_are_verified() {
    for (named, expected) in [
        ("s3api tempauth slo", Some("s3api tempauth s3api-operations slo")),
        (
            "authtoken s3api s3token keystoneauth slo",
            Some("authtoken s3api s3token keystoneauth s3api-operations slo"),
        ),
        ("authtoken s3api keystoneauth", None),
        ("s3api s3token", None),
        ("s3api keystoneauth s3token", None),
        ("s3token keystoneauth s3api", None),
        ("tempauth s3api", None),
    ] {
        let named = named.split_whitespace();
        let stages = named.map(|egg| Stage {
            egg,
            options: Scope::empty(),
        });
        let made = with_s3_operations(stages.collect()).ok();
        let names = made.map(|stages| stages.iter().map(|stage| stage.egg).collect::<Vec<_>>().join(" "));
        assert_eq!(names.as_deref(), expected);
    }
}

#[test]
fn keys_of_the_store_come_first() {
    let document = Document::parse(
        Path::new("p.conf"),
        "[filter:s3api]\nuse = egg:swift#s3api\naccess_keys = true\n[filter:tempauth]\nuse = egg:swift#tempauth\n\
         user_a_b = c\n[filter:keystoneauth]\nuse = egg:swift#keystoneauth\n[filter:strict]\n\
         use = egg:swift#tempauth\nuser_a_b = c\nallow_overrides = false\n",
    )
    .unwrap();
    for (named, expected) in [
        (
            "s3api tempauth slo",
            Some("s3api s3api-access-keys tempauth s3api-operations s3api-access-keys-api slo"),
        ),
        (
            "authtoken s3api s3token keystoneauth",
            Some("authtoken s3api s3api-access-keys s3token keystoneauth s3api-operations s3api-access-keys-api"),
        ),
        (
            "s3api keystoneauth",
            Some("s3api s3api-access-keys keystoneauth s3api-operations s3api-access-keys-api"),
        ),
        ("s3token s3api keystoneauth", None),
        ("tempauth s3api", None),
        ("s3api strict", None),
    ] {
        let stages = named.split_whitespace().map(|name| Stage {
            egg: if name == "strict" { "tempauth" } else { name },
            options: Scope::paste(&document, &format!("filter:{name}")).unwrap_or_else(|_| Scope::empty()),
        });
        let made = with_access_keys(stages.collect()).and_then(with_s3_operations).ok();
        let names = made.map(|stages| stages.iter().map(|stage| stage.egg).collect::<Vec<_>>().join(" "));
        assert_eq!(names.as_deref(), expected, "{named}");
    }
}

#[test]
fn clients_do_not_say_themselves_who_they_are() {
    for (named, is_taken) in [
        ("authtoken s3api s3token keystoneauth", true),
        ("s3api s3token authtoken keystoneauth", true),
        ("s3api s3token keystoneauth", false),
        ("s3api s3token keystoneauth authtoken", false),
        ("s3token keystoneauth", false),
        ("s3api tempauth", true),
    ] {
        let stages: Vec<Stage<'_>> = named
            .split_whitespace()
            .map(|egg| Stage {
                egg,
                options: Scope::empty(),
            })
            .collect();
        assert_eq!(check_identity_headers(&stages).is_ok(), is_taken, "{named}");
    }
}

#[test]
fn what_settings_call_served_is_here() {
    use settings::filters::{FILTERS, Support};
    for filter in FILTERS {
        let here = filter.egg == "memcache" || FEATURES.iter().any(|(feature, _)| *feature == filter.egg);
        assert_eq!(here, filter.support == Support::Served, "{}", filter.egg);
    }
}

/// S3 says that objects are encrypted where this is so.
#[test]
fn what_stands_behind_encrypts() {
    for (pipeline, options, expected) in [
        ("s3api tempauth keymaster encryption", "", true),
        (
            "s3api tempauth slo keymaster encryption",
            "disable_encryption = no\n",
            true,
        ),
        (
            "s3api tempauth keymaster encryption",
            "disable_encryption = yes\n",
            false,
        ),
        ("keymaster encryption s3api tempauth", "", false),
        ("s3api keymaster encryption tempauth", "", false),
        ("s3api tempauth slo", "", false),
    ] {
        let encrypts = with_context(
            pipeline,
            &["s3api", "tempauth", "slo", "keymaster", "encryption"],
            options,
            |context| context.encrypts_behind(&AUTHENTICATORS).unwrap(),
        );
        assert_eq!(encrypts, expected, "{pipeline} {options}");
    }
}

fn gateway(pipeline: &str) -> Pipeline {
    let filters = ["healthcheck", "proxy_logging", "memcache", "slo", "tempauth"];
    let features = with_context(pipeline, &filters, "user_test_tester = testing .admin\n", |context| {
        build(context).unwrap()
    });
    Pipeline::new(features, Arc::new(Answer::new(|_| reply::status(404))))
}

/// What `make` makes of a pipeline of these filters, the last of which has options.
fn with_context<T>(pipeline: &str, filters: &[&str], options: &str, make: impl FnOnce(&FeatureContext<'_>) -> T) -> T {
    let mut text = format!(
        "[DEFAULT]\nbind_port = 1\n[pipeline:main]\npipeline = {pipeline} proxy-server\n[app:proxy-server]\nuse = egg:swift#proxy\n"
    );
    for filter in filters {
        text.push_str(&format!("[filter:{filter}]\nuse = egg:swift#{filter}\n"));
    }
    text.push_str(options);
    let conf = ProxyConf::from_documents(&Document::parse(Path::new("p.conf"), &text).unwrap(), None).unwrap();
    let hash = Document::parse(Path::new("swift.conf"), "[swift-hash]\nswift_hash_path_suffix = s\n").unwrap();
    let swift = SwiftConf::from_document(&hash).unwrap();
    let world = World::real();
    let context = FeatureContext {
        conf: &conf,
        swift: &swift,
        world: &world,
        cache: None,
        bodies: MemoryRoom::default(),
    };
    make(&context)
}

#[tokio::test]
async fn a_whole_pipeline() {
    let pipeline = gateway("healthcheck proxy_logging memcache tempauth slo proxy_logging");
    let names: Vec<_> = pipeline.names().collect();
    assert_eq!(
        names.join(" "),
        "catch_errors gatekeeper healthcheck proxy_logging listing_formats tempauth copy dlo slo bucket_notifications versioned_writes object_versioning object_lock proxy_logging info"
    );
    let body_text = |response: Response| String::from_utf8_lossy(&response.body().as_whole().unwrap()).into_owned();
    let info = pipeline.run(request("GET", "/info")).await;
    assert_eq!(info.headers()["x-trans-id"], "tx1");
    assert!(body_text(info).contains("\"tempauth\": {\"account_acls\": true}"));
    assert_eq!(body_text(pipeline.run(request("GET", "/healthcheck")).await), "OK");
}
