//! A whole server configuration: one load per kind of server.
//!
//! Comes in: the path of `proxy-server.conf`, `object-server.conf`, … or of a `conf.d` directory.
//! Goes out: [`ProxyConf`], [`ObjectConf`], [`ContainerConf`], [`AccountConf`]: typed settings, the
//! pipeline, and the warnings a start should print. A start must refuse when [`unsafe_to_start`]
//! finds something.
//! Deliberately absent: `swift.conf` (`swift_conf.rs`), which has its own place, `swift_dir`.

use crate::check;
use crate::declare::{OptionDecl, Options, Scope};
use crate::filters::{FILTERS, Filter, PipelineConf, Support};
use crate::gateway_filters::{
    CacheSettings, GatekeeperSettings, HealthcheckSettings, KeymasterSettings, KeystoneAuthSettings,
    ProxyLoggingSettings, RatelimitSettings, ReconSettings,
};
use crate::ini::{DEFAULT, Document};
use crate::openstack;
use crate::proxy::{PolicyRouting, ProxySettings, Routing};
use crate::report::{SettingsError, Severity, Warning};
use crate::server::{ServerCommon, StorageCommon};
use crate::statsd::StatsdSettings;
use crate::storage::{AccountServerSettings, ContainerServerSettings, ObjectServerSettings};
use crate::tempauth::TempAuthSettings;
use std::path::Path;
use vocabulary::PolicyIndex;

/// `proxy-server.conf`.
#[derive(Debug, Clone)]
pub struct ProxyConf {
    /// Where to listen, how to log.
    pub common: ServerCommon,
    /// Where metrics are sent.
    pub statsd: StatsdSettings,
    /// `[app:proxy-server]`.
    pub proxy: ProxySettings,
    /// How servers are chosen, per policy.
    pub routing: PolicyRouting,
    /// The filters in order.
    pub pipeline: PipelineConf,
    /// `[filter:tempauth]`, when it is in the pipeline.
    pub tempauth: Option<TempAuthSettings>,
    /// `[filter:cache]` over `memcache.conf`, when it is in the pipeline.
    pub cache: Option<CacheSettings>,
    /// `[filter:proxy-logging]`, when it is in the pipeline.
    pub proxy_logging: Option<ProxyLoggingSettings>,
    /// `[filter:healthcheck]`, when it is in the pipeline.
    pub healthcheck: Option<HealthcheckSettings>,
    /// `[filter:gatekeeper]`; in force even when the pipeline does not name it, as in OpenStack.
    pub gatekeeper: GatekeeperSettings,
    /// What a start should print.
    pub warnings: Vec<Warning>,
}

/// A storage server's configuration.
#[derive(Debug, Clone)]
pub struct StorageConf<S> {
    /// Where to listen, how to log.
    pub common: ServerCommon,
    /// Where metrics are sent.
    pub statsd: StatsdSettings,
    /// Where the devices are.
    pub storage: StorageCommon,
    /// The server's own options.
    pub settings: S,
    /// The filters in order.
    pub pipeline: PipelineConf,
    /// `[filter:healthcheck]`, when it is in the pipeline.
    pub healthcheck: Option<HealthcheckSettings>,
    /// `[filter:recon]`, when it is in the pipeline.
    pub recon: Option<ReconSettings>,
    /// What a start should print.
    pub warnings: Vec<Warning>,
}

/// `object-server.conf`.
pub type ObjectConf = StorageConf<ObjectServerSettings>;
/// `container-server.conf`.
pub type ContainerConf = StorageConf<ContainerServerSettings>;
/// `account-server.conf`.
pub type AccountConf = StorageConf<AccountServerSettings>;

/// The warnings that must keep a server from starting.
pub fn unsafe_to_start(warnings: &[Warning]) -> impl Iterator<Item = &Warning> {
    warnings.iter().filter(|w| w.severity == Severity::Unsafe)
}

impl ProxyConf {
    /// Reads a file or directory, and `memcache.conf` of its `swift_dir` if there is one.
    pub fn load(path: &Path) -> Result<Self, SettingsError> {
        let document = Document::load(path)?;
        let scope = Scope::plain(&document, DEFAULT)?;
        let swift_dir = ServerCommon::read(&scope)?.swift_dir;
        let memcache = swift_dir.join("memcache.conf");
        let memcache = match memcache.is_file() {
            true => Some(Document::load(&memcache)?),
            false => None,
        };
        Self::from_documents(&document, memcache.as_ref())
    }

    /// Makes sense of a document, and of `memcache.conf`.
    pub fn from_documents(document: &Document, memcache: Option<&Document>) -> Result<Self, SettingsError> {
        let server = Server::read(document, &["proxy"])?;
        let common = server.common()?;
        Self::of_server(document, memcache, server, common)
    }

    /// Reads the gateway that upkeep has for itself: `internal-client.conf`, or the pipeline in a daemon's own
    /// file. Where there is no file, or no pipeline in it, OpenStack's holds.
    pub fn load_internal(path: &Path) -> Result<Self, SettingsError> {
        let document = match path.exists() {
            true => Some(Document::load(path)?),
            false => None,
        };
        let document = match document.filter(|document| document.section("pipeline:main").is_some()) {
            Some(document) => document,
            None => Document::parse(path, crate::write::INTERNAL_CLIENT)?,
        };
        let common = ServerCommon::read(&Scope::plain(&document, DEFAULT)?)?;
        let memcache = common.swift_dir.join("memcache.conf");
        let memcache = match memcache.is_file() {
            true => Some(Document::load(&memcache)?),
            false => None,
        };
        Self::internal_from_documents(&document, memcache.as_ref())
    }

    /// The same for upkeep that deletes what clients see: versions and links are what they are to clients, whatever the
    /// file's pipeline has of that.
    pub fn load_internal_with_versions(path: &Path) -> Result<Self, SettingsError> {
        let mut conf = Self::load_internal(path)?;
        let document = Document::parse(path, crate::write::VERSIONS_AND_LINKS)?;
        let own = Server::read(&document, &["proxy"])?.pipeline.filters;
        let filters = &mut conf.pipeline.filters;
        filters.retain(|filter| own.iter().all(|own| own.egg != filter.egg));
        // In front of what encrypts, as the clients' gateways have them: a link's target is known by its own tag.
        let encrypts = |egg: &str| egg == "encryption" || egg.ends_with("keymaster");
        let first = filters.iter().position(|filter| encrypts(&filter.egg));
        let first = first.unwrap_or(filters.len());
        filters.splice(first..first, own);
        Ok(conf)
    }

    /// Makes sense of a document that describes such a gateway: it listens nowhere.
    pub fn internal_from_documents(document: &Document, memcache: Option<&Document>) -> Result<Self, SettingsError> {
        let server = Server::read(document, &["proxy"])?;
        let common = ServerCommon::read(&Scope::plain(document, DEFAULT)?)?;
        Self::of_server(document, memcache, server, common)
    }

    fn of_server(
        document: &Document,
        memcache: Option<&Document>,
        server: Server,
        common: ServerCommon,
    ) -> Result<Self, SettingsError> {
        let (scope, pipeline) = (&server.scope, &server.pipeline);
        let tempauth = pipeline.filter("tempauth").map(|f| TempAuthSettings::read(&f.options));
        let cache = pipeline.filter("memcache").map(|f| read_cache(&f.options, memcache));
        let mut warnings = server.warnings(document, PROXY_TABLES, PROXY_KNOWN);
        policy_warnings(document, &mut warnings);
        Ok(Self {
            common,
            statsd: StatsdSettings::read(scope)?,
            proxy: ProxySettings::read(scope)?,
            routing: read_routing(document, scope)?,
            tempauth: tempauth.transpose()?,
            cache: cache.transpose()?,
            proxy_logging: read_filter(pipeline, "proxy_logging")?,
            healthcheck: read_filter(pipeline, "healthcheck")?,
            gatekeeper: read_filter(pipeline, "gatekeeper")?.unwrap_or_default(),
            warnings,
            pipeline: server.pipeline,
        })
    }
}

/// What tells one storage server from another.
pub trait StorageKind: Options {
    /// Entry points of its app.
    const APPS: &'static [&'static str];
    /// Names OpenStack knows in its `[DEFAULT]` and app, besides the common ones.
    const KNOWN: &'static [&'static str];
}

impl StorageKind for ObjectServerSettings {
    const APPS: &'static [&'static str] = &["object", "mem_object"];
    const KNOWN: &'static [&'static str] = openstack::OBJECT;
}

impl StorageKind for ContainerServerSettings {
    const APPS: &'static [&'static str] = &["container"];
    const KNOWN: &'static [&'static str] = openstack::CONTAINER;
}

impl StorageKind for AccountServerSettings {
    const APPS: &'static [&'static str] = &["account"];
    const KNOWN: &'static [&'static str] = openstack::ACCOUNT;
}

impl<S: StorageKind> StorageConf<S> {
    /// Reads a file or directory.
    pub fn load(path: &Path) -> Result<Self, SettingsError> {
        Self::from_document(&Document::load(path)?)
    }

    /// Makes sense of a document.
    pub fn from_document(document: &Document) -> Result<Self, SettingsError> {
        let server = Server::read(document, S::APPS)?;
        let tables = &[
            ServerCommon::TABLE,
            StatsdSettings::TABLE,
            StorageCommon::TABLE,
            S::TABLE,
        ];
        let known = &[
            openstack::LOGGING,
            openstack::ANONYMIZATION,
            openstack::PROCESS,
            S::KNOWN,
        ];
        Ok(Self {
            common: server.common()?,
            statsd: StatsdSettings::read(&server.scope)?,
            storage: StorageCommon::read(&server.scope)?,
            settings: S::read(&server.scope)?,
            healthcheck: read_filter(&server.pipeline, "healthcheck")?,
            recon: read_filter(&server.pipeline, "recon")?,
            warnings: server.warnings(document, tables, known),
            pipeline: server.pipeline,
        })
    }
}

const PROXY_TABLES: &[&[OptionDecl]] = &[
    ServerCommon::TABLE,
    StatsdSettings::TABLE,
    ProxySettings::TABLE,
    Routing::TABLE,
];
const PROXY_KNOWN: &[&[&str]] = &[
    openstack::LOGGING,
    openstack::ANONYMIZATION,
    openstack::PROCESS,
    openstack::PROXY,
];

/// A name that ends in a colon stands for every section that begins so.
const KNOWN_SECTIONS: &[&str] = &[
    "DEFAULT",
    "pipeline:",
    "app:",
    "filter:",
    "proxy-server:policy:",
    "object-auditor:watcher:",
];

struct Server {
    scope: Scope,
    pipeline: PipelineConf,
}

impl Server {
    fn read(document: &Document, apps: &[&str]) -> Result<Self, SettingsError> {
        let pipeline = PipelineConf::read(document)?;
        if !apps.contains(&pipeline.app.as_str()) {
            return Err(SettingsError::Pipeline {
                file: document.path.clone(),
                message: format!(
                    "the pipeline ends in egg:swift#{}, but this server serves egg:swift#{}; \
                     start the server that belongs to this file",
                    pipeline.app, apps[0]
                ),
            });
        }
        let scope = Scope::paste(document, &format!("app:{}", pipeline.app_name))?;
        Ok(Self { scope, pipeline })
    }

    fn common(&self) -> Result<ServerCommon, SettingsError> {
        if self.scope.text("bind_port").is_none() {
            return Err(SettingsError::MissingOption {
                file: self.scope.file.clone(),
                section: DEFAULT.into(),
                option: "bind_port".into(),
                remedy: "set it to the port to listen on".into(),
            });
        }
        ServerCommon::read(&self.scope)
    }

    fn warnings(&self, document: &Document, tables: &[&[OptionDecl]], known: &[&[&str]]) -> Vec<Warning> {
        let mut warnings = self.pipeline.warnings(document);
        let mut supported: Vec<&str> = names(tables);
        supported.extend(["use", "paste.app_factory"]);
        let mut known: Vec<&str> = known.concat();
        if let Some(app) = document.section(&format!("app:{}", self.pipeline.app_name)) {
            check::options(document, app, &supported, &known, &mut warnings);
            check::overridden(document, app, &mut warnings);
        }
        for filter in self.pipeline.filters.iter().filter(|f| f.support == Support::Served) {
            filter_warnings(document, &filter.name, &filter.egg, &mut warnings);
        }
        if let Some(default) = document.section(DEFAULT) {
            // What other sections and daemons read may stand here without a word.
            supported.extend(openstack::DAEMONS);
            for filter in FILTERS {
                supported.extend(names(&[filter.table]));
                known.extend(filter.known);
            }
            if self.pipeline.filter("proxy_logging").is_none() {
                // Only the access log is made anonymous.
                supported.retain(|name| !openstack::ANONYMIZATION.contains(name));
            }
            check::options(document, default, &supported, &known, &mut warnings);
        }
        check::sections(
            document,
            &[KNOWN_SECTIONS, openstack::DAEMON_SECTIONS].concat(),
            &mut warnings,
        );
        warnings
    }
}

/// Options in `[DEFAULT]` that neither a server, nor a filter, nor a daemon (`own` are one's options) reads, and that
/// OpenStack's do not read either.
pub(crate) fn shared_slips(document: &Document, own: &[OptionDecl]) -> Vec<Warning> {
    let Some(default) = document.section(DEFAULT) else {
        return vec![];
    };
    let servers = [
        AccountServerSettings::TABLE,
        ContainerServerSettings::TABLE,
        ObjectServerSettings::TABLE,
        StorageCommon::TABLE,
        own,
    ];
    let mut supported = names(&[PROXY_TABLES, &servers].concat());
    supported.extend(openstack::DAEMONS);
    supported.extend(FILTERS.iter().flat_map(|filter| names(&[filter.table])));
    let kinds = [openstack::ACCOUNT, openstack::CONTAINER, openstack::OBJECT];
    let mut known = [PROXY_KNOWN, &kinds].concat().concat();
    known.extend(FILTERS.iter().flat_map(|filter| filter.known.iter().copied()));
    let mut warnings = vec![];
    check::options(document, default, &supported, &known, &mut warnings);
    warnings.retain(|warning| warning.severity == Severity::Unknown);
    warnings
}

fn names(tables: &[&[OptionDecl]]) -> Vec<&'static str> {
    tables.iter().flat_map(|t| t.iter().map(|o| o.name)).collect()
}

fn filter_warnings(document: &Document, name: &str, egg: &str, warnings: &mut Vec<Warning>) {
    let Some(section) = document.section(&format!("filter:{name}")) else {
        return;
    };
    if warnings.iter().any(|w| w.section == section.name) {
        // proxy-logging stands in most pipelines twice.
        return;
    }
    let (table, known) = Filter::of(egg).map_or((&[][..], &[][..]), |filter| (filter.table, filter.known));
    let mut supported = names(&[table, StatsdSettings::TABLE]);
    supported.extend(["use", "paste.filter_factory", "log_name", "log_level"]);
    // Filters log where their server does.
    supported.extend(["log_address", "log_facility", "log_udp_host", "log_udp_port"]);
    let is_free_form: Option<fn(&str) -> bool> = match egg {
        "keymaster" => Some(KeymasterSettings::is_free_form),
        "keystoneauth" => Some(KeystoneAuthSettings::is_free_form),
        "ratelimit" => Some(RatelimitSettings::is_free_form),
        "tempauth" => Some(TempAuthSettings::is_free_form),
        _ => None,
    };
    if let Some(is_free_form) = is_free_form {
        let own = section.options.iter().map(|o| o.name.as_str());
        supported.extend(own.filter(|name| is_free_form(name)));
    }
    check::options(
        document,
        section,
        &supported,
        &[known, openstack::LOGGING, openstack::ANONYMIZATION].concat(),
        warnings,
    );
    check::overridden(document, section, warnings);
}

fn policy_warnings(document: &Document, warnings: &mut Vec<Warning>) {
    for section in &document.sections {
        if policy_of(&section.name).is_some() {
            check::options(
                document,
                section,
                &names(&[Routing::TABLE]),
                openstack::POLICY,
                warnings,
            );
        }
    }
}

fn policy_of(section: &str) -> Option<&str> {
    section.strip_prefix("proxy-server:policy:")
}

fn read_filter<T: Options>(pipeline: &PipelineConf, egg: &str) -> Result<Option<T>, SettingsError> {
    pipeline.filter(egg).map(|f| T::read(&f.options)).transpose()
}

/// The filter's options win over `[memcache]` of `memcache.conf`, one by one.
fn read_cache(filter: &Scope, memcache: Option<&Document>) -> Result<CacheSettings, SettingsError> {
    let scope = match memcache {
        None => filter.clone(),
        Some(document) => filter.over(Scope::plain(document, "memcache")?),
    };
    let mut cache = CacheSettings::read(&scope)?;
    if cache.memcache_servers.is_empty() {
        cache.memcache_servers = CacheSettings::default().memcache_servers;
    }
    if scope.value::<bool>("tls_enabled", "no")? {
        return Err(scope.wrong("tls_enabled", "no: memcached over TLS is not served yet"));
    }
    Ok(cache)
}

fn read_routing(document: &Document, app: &Scope) -> Result<PolicyRouting, SettingsError> {
    let mut routing = PolicyRouting {
        common: Routing::read(app)?,
        overrides: Default::default(),
    };
    for section in &document.sections {
        let Some(number) = policy_of(&section.name) else {
            continue;
        };
        let index: u32 = number.trim().parse().map_err(|_| SettingsError::Pipeline {
            file: document.path.clone(),
            message: format!(
                "[{}]: expected the index of a storage policy after the last colon",
                section.name
            ),
        })?;
        let own = Routing::read(&app.with_section(document, &section.name)?)?;
        routing.overrides.insert(PolicyIndex(index), own);
    }
    Ok(routing)
}
