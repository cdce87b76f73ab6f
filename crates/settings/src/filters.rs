//! The filters of a pipeline: which exist, which Martlet serves, in which order they stand.
//!
//! Comes in: `[pipeline:main]` and the sections it names. Goes out: [`Pipeline`].
//! A filter that OpenStack Swift has and Martlet does not serve yet is a named warning, and an
//! [`Severity::Unsafe`] one where leaving it out would weaken what protects data or accounts; an
//! unknown filter is an error. Names of filters come from the entry points of OpenStack Swift 2.38.

use crate::declare::{OptionDecl, Options, Scope};
use crate::gateway_filters::{
    AUTHTOKEN_KNOWN, AuthTokenSettings, BulkSettings, CacheSettings, CnameLookupSettings, ContainerSyncSettings,
    CopySettings, CrossdomainSettings, DloSettings, DomainRemapSettings, EncryptionSettings, EtagQuoterSettings,
    FormPostSettings, GatekeeperSettings, HealthcheckSettings, KeymasterOptions, KeystoneAuthOptions,
    ListEndpointsSettings, NameCheckSettings, ProxyLoggingSettings, RatelimitOptions, ReadOnlySettings, ReconSettings,
    S3ApiSettings, S3TokenSettings, SloSettings, StaticwebSettings, SymlinkSettings, TempUrlSettings,
    VersionedWritesSettings,
};
use crate::ini::Document;
use crate::openstack;
use crate::report::{SettingsError, Severity, Warning};
use crate::tempauth::TempAuthOptions;

/// What becomes of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// Served.
    Served,
    /// Known, not served yet; requests that need it do not have it.
    NotYet,
    /// Known, not served; going without it would be unsafe, for this reason.
    Needed(&'static str),
}

/// A filter of Swift 2.38.
#[derive(Debug, Clone, Copy)]
pub struct Filter {
    /// Its entry point, `egg:swift#…`.
    pub egg: &'static str,
    /// What becomes of it here.
    pub support: Support,
    /// The options that are read.
    pub table: &'static [OptionDecl],
    /// Options that OpenStack knows besides, for warnings.
    pub known: &'static [&'static str],
}

impl Filter {
    const fn served(egg: &'static str, table: &'static [OptionDecl]) -> Self {
        Self {
            egg,
            support: Support::Served,
            table,
            known: &[],
        }
    }

    const fn not_yet(egg: &'static str) -> Self {
        Self {
            egg,
            support: Support::NotYet,
            table: &[],
            known: &[],
        }
    }

    const fn needed(egg: &'static str, reason: &'static str) -> Self {
        Self {
            egg,
            support: Support::Needed(reason),
            table: &[],
            known: &[],
        }
    }

    const fn knowing(self, known: &'static [&'static str]) -> Self {
        Self { known, ..self }
    }

    /// The filter of an entry point.
    pub fn of(egg: &str) -> Option<&'static Filter> {
        FILTERS.iter().find(|filter| filter.egg == egg)
    }
}

const NO_ENCRYPTION: &str = "without it objects would be stored in the clear and encrypted ones could not be read";

/// Every `egg:swift#…` of Swift 2.38, with what becomes of it here, in alphabetical order. A filter with
/// options of its own has their table in `gateway_filters/`.
pub const FILTERS: &[Filter] = &[
    Filter::served("account_quotas", &[]),
    Filter::served("authtoken", AuthTokenSettings::TABLE).knowing(AUTHTOKEN_KNOWN),
    Filter::not_yet("backend_ratelimit"),
    Filter::served("bulk", BulkSettings::TABLE),
    Filter::served("catch_errors", &[]),
    Filter::served("cname_lookup", CnameLookupSettings::TABLE),
    Filter::served("container_quotas", &[]),
    Filter::served("container_sync", ContainerSyncSettings::TABLE),
    Filter::served("copy", CopySettings::TABLE),
    Filter::served("crossdomain", CrossdomainSettings::TABLE),
    Filter::served("dlo", DloSettings::TABLE),
    Filter::served("domain_remap", DomainRemapSettings::TABLE),
    Filter::served("encryption", EncryptionSettings::TABLE),
    Filter::served("etag_quoter", EtagQuoterSettings::TABLE),
    Filter::served("formpost", FormPostSettings::TABLE),
    Filter::served("gatekeeper", GatekeeperSettings::TABLE),
    Filter::served("healthcheck", HealthcheckSettings::TABLE),
    Filter::served("keymaster", KeymasterOptions::TABLE),
    Filter::served("keystoneauth", KeystoneAuthOptions::TABLE).knowing(&["is_admin"]),
    Filter::needed("kmip_keymaster", NO_ENCRYPTION),
    Filter::needed("kms_keymaster", NO_ENCRYPTION),
    Filter::served("list_endpoints", ListEndpointsSettings::TABLE),
    Filter::served("listing_formats", &[]),
    Filter::served("memcache", CacheSettings::TABLE).knowing(openstack::CACHE),
    Filter::served("name_check", NameCheckSettings::TABLE),
    Filter::served("proxy_logging", ProxyLoggingSettings::TABLE).knowing(openstack::PROXY_LOGGING),
    Filter::served("ratelimit", RatelimitOptions::TABLE),
    Filter::served("read_only", ReadOnlySettings::TABLE),
    Filter::served("recon", ReconSettings::TABLE),
    Filter::served("s3api", S3ApiSettings::TABLE).knowing(openstack::S3API),
    Filter::served("s3token", S3TokenSettings::TABLE).knowing(openstack::S3TOKEN),
    Filter::served("slo", SloSettings::TABLE),
    Filter::served("staticweb", StaticwebSettings::TABLE),
    Filter::served("symlink", SymlinkSettings::TABLE),
    Filter::served("tempauth", TempAuthOptions::TABLE),
    Filter::served("tempurl", TempUrlSettings::TABLE),
    Filter::served("versioned_writes", VersionedWritesSettings::TABLE),
    Filter::not_yet("xprofile"),
];

/// The filters of a gateway that has all that needs nothing from elsewhere, in Swift's order: the name in the
/// pipeline, and the entry point. What is left out, and why: `authtoken` and `keystoneauth` (a Keystone),
/// `keymaster` and `encryption` (a secret that must not be lost), `cname_lookup` (would ask DNS about
/// every host name it does not know), `list-endpoints` (shows every client where objects are stored), `name_check`
/// (would refuse names with quotes).
pub const FULL_PIPELINE: &[(&str, &str)] = &[
    ("catch_errors", "catch_errors"),
    ("gatekeeper", "gatekeeper"),
    ("healthcheck", "healthcheck"),
    ("proxy-logging", "proxy_logging"),
    ("cache", "memcache"),
    ("etag-quoter", "etag_quoter"),
    // In front of listing_formats, or remapped listings would always be JSON.
    ("domain_remap", "domain_remap"),
    ("listing_formats", "listing_formats"),
    ("crossdomain", "crossdomain"),
    ("container_sync", "container_sync"),
    ("bulk", "bulk"),
    ("tempurl", "tempurl"),
    ("formpost", "formpost"),
    ("ratelimit", "ratelimit"),
    ("s3api", "s3api"),
    ("tempauth", "tempauth"),
    // Behind s3api and tempauth, where requests of S3 are requests of Swift.
    ("read_only", "read_only"),
    ("staticweb", "staticweb"),
    ("copy", "copy"),
    ("container-quotas", "container_quotas"),
    ("account-quotas", "account_quotas"),
    ("slo", "slo"),
    ("dlo", "dlo"),
    ("versioned_writes", "versioned_writes"),
    ("symlink", "symlink"),
    ("proxy-logging", "proxy_logging"),
];

/// [`FULL_PIPELINE`], as far as it is served.
pub fn full_pipeline() -> impl Iterator<Item = (&'static str, &'static Filter)> {
    let served = |(name, egg): &(&'static str, &str)| {
        let filter = Filter::of(egg)?;
        (filter.support == Support::Served).then_some((*name, filter))
    };
    FULL_PIPELINE.iter().filter_map(served)
}

/// The apps at the end of a pipeline.
pub const APPS: &[&str] = &["proxy", "account", "container", "object", "mem_object"];

/// One filter of a pipeline.
#[derive(Debug, Clone)]
pub struct FilterSpec {
    /// As the pipeline calls it: `proxy-logging`.
    pub name: String,
    /// The entry point: `proxy_logging`.
    pub egg: String,
    /// What becomes of it.
    pub support: Support,
    /// Its options, `[DEFAULT]` included.
    pub options: Scope,
}

/// `[pipeline:main]`: filters in the order a request meets them, and the app behind them.
#[derive(Debug, Clone)]
pub struct PipelineConf {
    /// In order.
    pub filters: Vec<FilterSpec>,
    /// As the pipeline calls it: `proxy-server`.
    pub app_name: String,
    /// The entry point: `proxy`.
    pub app: String,
}

impl PipelineConf {
    /// Reads the pipeline of a server's configuration.
    pub fn read(document: &Document) -> Result<Self, SettingsError> {
        let main = document
            .section("pipeline:main")
            .ok_or_else(|| SettingsError::MissingSection {
                file: document.path.clone(),
                section: "pipeline:main".into(),
                remedy: "add it with a line like `pipeline = catch_errors cache tempauth proxy-server`".into(),
            })?;
        let scope = Scope::plain(document, &main.name)?;
        let mut names: Vec<&str> = scope.text("pipeline").unwrap_or_default().split_whitespace().collect();
        let Some(app_name) = names.pop() else {
            return Err(SettingsError::MissingOption {
                file: document.path.clone(),
                section: "pipeline:main".into(),
                option: "pipeline".into(),
                remedy: "list the filters and, last, the app".into(),
            });
        };
        Ok(Self {
            filters: names
                .iter()
                .map(|name| filter(document, name))
                .collect::<Result<_, _>>()?,
            app: app(document, app_name)?,
            app_name: app_name.into(),
        })
    }

    /// The first filter of that entry point.
    pub fn filter(&self, egg: &str) -> Option<&FilterSpec> {
        self.filters.iter().find(|f| f.egg == egg)
    }

    /// Whether the pipeline has a filter of that entry point.
    pub fn has(&self, egg: &str) -> bool {
        self.filter(egg).is_some()
    }

    /// One warning per filter that is not served.
    pub fn warnings(&self, document: &Document) -> Vec<Warning> {
        let mut warnings: Vec<Warning> = Vec::new();
        for filter in &self.filters {
            let file = document.path.display();
            let (severity, message) = match filter.support {
                Support::Served => continue,
                Support::NotYet => (
                    Severity::Ignored,
                    format!(
                        "filter {} ({}) in the pipeline of {file} is not served yet; requests that need it will not have it",
                        filter.name, filter.egg
                    ),
                ),
                Support::Needed(reason) => (
                    Severity::Unsafe,
                    format!(
                        "filter {} ({}) in the pipeline of {file} is not served yet; {reason}; \
                         take it out of the pipeline only if that is what you want",
                        filter.name, filter.egg
                    ),
                ),
            };
            if warnings.iter().all(|w| w.subject != filter.name) {
                warnings.push(Warning {
                    file: document.path.clone(),
                    section: "pipeline:main".into(),
                    subject: filter.name.clone(),
                    severity,
                    message,
                });
            }
        }
        warnings
    }
}

fn filter(document: &Document, name: &str) -> Result<FilterSpec, SettingsError> {
    let section = format!("filter:{name}");
    let egg = entry_point(document, name, &section)?;
    let support = Filter::of(&egg).map(|filter| filter.support);
    let support = support.ok_or_else(|| {
        let known = FILTERS.iter().map(|filter| filter.egg);
        let hint = crate::check::nearest(&egg, known).map_or_else(String::new, |n| format!(" (did you mean {n}?)"));
        pipeline_error(
            document,
            format!(
                "filter {name} in the pipeline uses {egg:?}, which is no filter of OpenStack Swift 2.38{hint}; \
                 correct `use` in [{section}], or take {name} out of the pipeline"
            ),
        )
    })?;
    Ok(FilterSpec {
        name: name.into(),
        egg,
        support,
        options: Scope::paste(document, &section)?,
    })
}

fn app(document: &Document, name: &str) -> Result<String, SettingsError> {
    let section = format!("app:{name}");
    let egg = entry_point(document, name, &section)?;
    if APPS.contains(&egg.as_str()) {
        return Ok(egg);
    }
    Err(pipeline_error(
        document,
        format!(
            "the pipeline ends in {name}, whose {egg:?} is no server of OpenStack Swift 2.38; use one of {}",
            APPS.join(", ")
        ),
    ))
}

/// The name after `egg:swift#` in `use`, or of a filter from elsewhere that Martlet knows.
fn entry_point(document: &Document, name: &str, section: &str) -> Result<String, SettingsError> {
    let Some(declared) = document.section(section) else {
        return Err(SettingsError::MissingSection {
            file: document.path.clone(),
            section: section.into(),
            remedy: format!("the pipeline names {name}: add the section, or take {name} out of the pipeline"),
        });
    };
    if let Some(factory) = ["paste.filter_factory", "paste.app_factory"]
        .iter()
        .find_map(|n| declared.get(n))
    {
        if factory.value.starts_with("keystonemiddleware.auth_token") {
            return Ok("authtoken".into());
        }
        return Ok(factory.value.clone());
    }
    let Some(found) = declared.get("use") else {
        return Err(SettingsError::MissingOption {
            file: document.path.clone(),
            section: section.into(),
            option: "use".into(),
            remedy: "add a line like `use = egg:swift#healthcheck`".into(),
        });
    };
    match found.value.strip_prefix("egg:swift#") {
        Some(egg) => Ok(egg.trim().into()),
        None if found.value == "egg:keystonemiddleware#auth_token" => Ok("authtoken".into()),
        None => Ok(found.value.clone()),
    }
}

fn pipeline_error(document: &Document, message: String) -> SettingsError {
    SettingsError::Pipeline {
        file: document.path.clone(),
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn read(text: &str) -> (Document, Result<PipelineConf, SettingsError>) {
        let document = Document::parse(Path::new("p.conf"), text).unwrap();
        let pipeline = PipelineConf::read(&document);
        (document, pipeline)
    }

    const APP: &str = "\n[app:p]\nuse = egg:swift#proxy\n";

    #[test]
    fn each_filter_has_one_row() {
        assert!(FILTERS.windows(2).all(|pair| pair[0].egg < pair[1].egg));
    }

    #[test]
    fn order_and_options() {
        let (document, pipeline) = read(&format!(
            "[pipeline:main]\npipeline = a\n  xprofile enc p\n[filter:a]\nuse = egg:swift#proxy_logging\nx = 1\n\
             [filter:xprofile]\nuse = egg:swift#xprofile\n[filter:enc]\nuse=egg:swift#kms_keymaster{APP}"
        ));
        let pipeline = pipeline.unwrap();
        let eggs: Vec<_> = pipeline.filters.iter().map(|f| f.egg.as_str()).collect();
        assert_eq!(eggs, ["proxy_logging", "xprofile", "kms_keymaster"]);
        assert_eq!(pipeline.filters[0].options.text("x"), Some("1"));
        assert_eq!((pipeline.app.as_str(), pipeline.app_name.as_str()), ("proxy", "p"));
        let warnings = pipeline.warnings(&document);
        assert_eq!(warnings.len(), 2);
        assert_eq!(warnings[0].severity, Severity::Ignored);
        assert_eq!(warnings[1].severity, Severity::Unsafe);
    }

    #[test]
    fn refusals_name_the_filter() {
        for (text, expected) in [
            ("[a]\n".to_owned(), "no section [pipeline:main]"),
            ("[pipeline:main]\n".to_owned(), "[pipeline:main] does not set pipeline"),
            (format!("[pipeline:main]\npipeline = a p{APP}"), "no section [filter:a]"),
            (
                format!("[pipeline:main]\npipeline = a p\n[filter:a]{APP}"),
                "[filter:a] does not set use",
            ),
            (
                format!("[pipeline:main]\npipeline = a p\n[filter:a]\nuse = egg:swift#healthchek{APP}"),
                "filter a in the pipeline uses \"healthchek\", which is no filter of OpenStack Swift 2.38 (did you mean healthcheck?)",
            ),
            (
                "[pipeline:main]\npipeline = p\n[app:p]\nuse = egg:swift#nonsense".into(),
                "no server of OpenStack",
            ),
        ] {
            let message = read(&text).1.unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
