//! The configuration files that `martlet up` makes: ones an operator would recognise, and could start
//! as separate services, Martlet's or OpenStack's.
//!
//! Comes in: [`NewCluster`]. Goes out: file names with their text. Writing them is the caller's.
//! Always holds: what is written here, `load.rs` and `swift_conf.rs` read back without a warning.

use crate::filters::full_pipeline;
use crate::tempauth::TempAuthUser;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::path::Path;

/// What the files of a new cluster are made from.
#[derive(Debug, Clone)]
pub struct NewCluster<'a> {
    /// Directory of the files themselves: `swift_dir`.
    pub swift_dir: &'a Path,
    /// Directory of the devices.
    pub devices: &'a Path,
    /// Directory of the figures that upkeep writes.
    pub recon: &'a Path,
    /// Address of the proxy.
    pub bind_ip: &'a str,
    /// Address of the storage servers, as in the rings.
    pub storage_ip: &'a str,
    /// Port of the proxy.
    pub proxy_port: u16,
    /// Ports of the object, container and account servers when started on their own.
    pub object_port: u16,
    /// See `object_port`.
    pub container_port: u16,
    /// See `object_port`.
    pub account_port: u16,
    /// Secret of placement, letters and digits.
    pub hash_prefix: &'a str,
    /// Secret of placement, letters and digits.
    pub hash_suffix: &'a str,
    /// The users of TempAuth.
    pub users: &'a [TempAuthUser],
    /// Servers of memcached; none leaves the cache in the process.
    pub memcache_servers: &'a [String],
    /// Certificate and key of the proxy; none serves without TLS.
    pub tls: Option<(&'a Path, &'a Path)>,
}

/// The accounts of Swift's own test configuration, as `martlet up` makes them on a loopback address.
pub fn test_users() -> Vec<TempAuthUser> {
    let row = |account: &str, user: &str, key: &str, groups: &[&str]| TempAuthUser {
        account: account.into(),
        user: user.into(),
        key: key.into(),
        groups: groups.iter().map(|g| (*g).to_owned()).collect(),
        storage_url: None,
    };
    vec![
        row("test", "tester", "testing", &[".admin"]),
        row("test", "tester2", "testing2", &[".admin"]),
        row("test", "tester3", "testing3", &[]),
        row("test2", "tester2", "testing2", &[".admin"]),
        row("test5", "tester5", "testing5", &["service"]),
        row("test", "tester6", "testing6", &[".reseller_admin"]),
        row("admin", "admin", "admin", &[".admin", ".reseller_admin"]),
    ]
}

/// The gateway that upkeep has for itself where no file describes one, as in OpenStack.
pub const INTERNAL_CLIENT: &str = "[DEFAULT]

[pipeline:main]
pipeline = catch_errors proxy-logging cache symlink proxy-server

[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true

[filter:symlink]
use = egg:swift#symlink

[filter:cache]
use = egg:swift#memcache

[filter:proxy-logging]
use = egg:swift#proxy_logging

[filter:catch_errors]
use = egg:swift#catch_errors
";

/// What a gateway of upkeep has besides that deletes what clients see, innermost.
pub(crate) const VERSIONS_AND_LINKS: &str = "[pipeline:main]
pipeline = versioned_writes symlink proxy-server

[app:proxy-server]
use = egg:swift#proxy

[filter:versioned_writes]
use = egg:swift#versioned_writes
allow_object_versioning = true

[filter:symlink]
use = egg:swift#symlink
";

/// Every file: its name below `swift_dir`, and its text.
pub fn files(cluster: &NewCluster) -> Vec<(&'static str, String)> {
    let storage = |name, egg, port| storage_conf(cluster, name, egg, port);
    vec![
        ("swift.conf", swift_conf(cluster)),
        ("proxy-server.conf", proxy_conf(cluster)),
        (
            "object-server.conf",
            storage("object-server", "object", cluster.object_port),
        ),
        (
            "container-server.conf",
            storage("container-server", "container", cluster.container_port),
        ),
        (
            "account-server.conf",
            storage("account-server", "account", cluster.account_port),
        ),
        ("internal-client.conf", internal_conf(cluster, None, &["symlink"])),
        (
            "object-expirer.conf",
            internal_conf(cluster, Some("object-expirer"), &[]),
        ),
        (
            "container-reconciler.conf",
            internal_conf(cluster, Some("container-reconciler"), &[]),
        ),
    ]
}

/// A gateway for upkeep, which logs no requests, and the daemon that has it for itself.
fn internal_conf(cluster: &NewCluster, daemon: Option<&str>, filters: &[&str]) -> String {
    let cache: &[&str] = if cluster.memcache_servers.is_empty() {
        &[]
    } else {
        &["cache"]
    };
    let names = [&["catch_errors"], cache, filters, &["proxy-server"]].concat();
    let mut ini = Ini::default()
        .section("DEFAULT")
        .set("swift_dir", cluster.swift_dir.display());
    if let Some(daemon) = daemon {
        ini = ini.section(daemon).set("recon_cache_path", cluster.recon.display());
    }
    ini = ini
        .section("pipeline:main")
        .set("pipeline", names.join(" "))
        .section("app:proxy-server")
        .set("use", "egg:swift#proxy")
        .set("account_autocreate", "true")
        .filter("catch_errors", "catch_errors");
    if !cache.is_empty() {
        ini = filter_options(ini.filter("cache", "memcache"), cluster, "memcache");
    }
    filters.iter().fold(ini, |ini, name| ini.filter(name, name)).0
}

/// Text of a configuration file under construction.
#[derive(Debug, Default)]
struct Ini(String);

impl Ini {
    fn comment(mut self, text: &str) -> Self {
        self.0.push_str(&format!("# {text}\n"));
        self
    }

    fn section(mut self, name: &str) -> Self {
        let gap = if self.0.is_empty() { "" } else { "\n" };
        self.0.push_str(&format!("{gap}[{name}]\n"));
        self
    }

    fn set(mut self, name: &str, value: impl ToString) -> Self {
        self.0.push_str(&format!("{name} = {}\n", escape(&value.to_string())));
        self
    }

    fn filter(self, name: &str, egg: &str) -> Self {
        self.section(&format!("filter:{name}"))
            .set("use", format!("egg:swift#{egg}"))
    }
}

/// A value as it must be spelled: on one line, and without accidental interpolation.
fn escape(value: &str) -> String {
    let line = value.replace(['\n', '\r'], " ");
    match line.contains("%(") {
        true => line.replace('%', "%%"),
        false => line,
    }
}

fn swift_conf(cluster: &NewCluster) -> String {
    let ini = Ini::default()
        .comment("What every node of this cluster must agree on.")
        .comment("The two secrets decide where data lies: keep them secret, and never change them.")
        .section("swift-hash")
        .set("swift_hash_path_prefix", cluster.hash_prefix)
        .set("swift_hash_path_suffix", cluster.hash_suffix)
        .section("storage-policy:0")
        .set("name", "Policy-0")
        .set("default", "yes");
    ini.0
}

fn proxy_conf(cluster: &NewCluster) -> String {
    let has_cache = !cluster.memcache_servers.is_empty();
    let filters: Vec<_> = full_pipeline()
        .filter(|(_, filter)| has_cache || filter.egg != "memcache")
        .collect();
    let names: Vec<&str> = filters.iter().map(|(name, _)| *name).collect();
    let mut ini = Ini::default()
        .section("DEFAULT")
        .set("bind_ip", cluster.bind_ip)
        .set("bind_port", cluster.proxy_port)
        .set("swift_dir", cluster.swift_dir.display());
    if let Some((certificate, key)) = cluster.tls {
        ini = ini
            .set("cert_file", certificate.display())
            .set("key_file", key.display());
    }
    let mut ini = ini
        .section("pipeline:main")
        .set("pipeline", format!("{} proxy-server", names.join(" ")))
        .section("app:proxy-server")
        .set("use", "egg:swift#proxy")
        .set("account_autocreate", "true")
        .set("allow_account_management", "true");
    let mut written: Vec<&str> = Vec::new();
    for (name, filter) in filters {
        // proxy-logging stands in it twice.
        if !written.contains(&name) {
            written.push(name);
            ini = filter_options(ini.filter(name, filter.egg), cluster, filter.egg);
        }
    }
    ini.0
}

/// Parts of an upload of S3, which become segments of an object. Source: AWS, "Amazon S3 multipart upload limits".
const MOST_PARTS: u32 = 10_000;

/// What a new cluster sets for a filter; the rest has its defaults.
fn filter_options(ini: Ini, cluster: &NewCluster, egg: &str) -> Ini {
    match egg {
        "memcache" => ini.set("memcache_servers", cluster.memcache_servers.join(",")),
        "tempauth" => {
            let prefixes = ini
                .set("reseller_prefix", "AUTH, SERVICE")
                .set("SERVICE_require_group", "service");
            let set = |ini: Ini, user: &TempAuthUser| ini.set(&user_option(user), user_value(user));
            cluster.users.iter().fold(prefixes, set)
        }
        // Names that Swift allows are allowed, until the operator says otherwise.
        "name_check" => ini
            .set("forbidden_chars", "")
            .set("maximum_length", 4096)
            .set("forbidden_regexp", ""),
        // A page needs a key to send anything, and the container's leave to read the answer. An upload may have as many
        // parts as clients of S3 expect: with Swift's default of 1000, boto3 fails at 8 GiB.
        "s3api" => ini
            .set("cors_preflight_allow_origin", "*")
            .set("access_keys", "true")
            .set("max_upload_part_num", MOST_PARTS),
        "slo" => ini.set("max_manifest_segments", MOST_PARTS),
        "domain_remap" => ini.set("storage_domain", "example.com"),
        "versioned_writes" => ini
            .set("allow_versioned_writes", "true")
            .set("allow_object_versioning", "true"),
        _ => ini,
    }
}

fn storage_conf(cluster: &NewCluster, name: &str, egg: &str, port: u16) -> String {
    let ini = Ini::default()
        .section("DEFAULT")
        .set("bind_ip", cluster.storage_ip)
        .set("bind_port", port)
        .set("swift_dir", cluster.swift_dir.display())
        .set("devices", cluster.devices.display())
        .comment("The devices are directories of one file system, not mount points.")
        .set("mount_check", "false")
        .set("recon_cache_path", cluster.recon.display())
        .section("pipeline:main")
        .set("pipeline", format!("healthcheck recon {name}"))
        .section(&format!("app:{name}"))
        .set("use", format!("egg:swift#{egg}"))
        .filter("healthcheck", "healthcheck")
        .filter("recon", "recon");
    ini.0
}

fn user_option(user: &TempAuthUser) -> String {
    let plain = |name: &str| {
        name.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.')
    };
    if plain(&user.account) && plain(&user.user) {
        return format!("user_{}_{}", user.account, user.user);
    }
    let encode = |name: &str| STANDARD_NO_PAD.encode(name);
    format!("user64_{}_{}", encode(&user.account), encode(&user.user))
}

fn user_value(user: &TempAuthUser) -> String {
    let words = std::iter::once(user.key.as_str()).chain(user.groups.iter().map(String::as_str));
    let words: Vec<&str> = words.chain(user.storage_url.as_deref()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ini::Document;
    use crate::load::{AccountConf, ContainerConf, ObjectConf, ProxyConf};
    use crate::swift_conf::SwiftConf;

    fn cluster<'a>(users: &'a [TempAuthUser], memcache_servers: &'a [String]) -> NewCluster<'a> {
        NewCluster {
            swift_dir: Path::new("/data/100%(etc"),
            devices: Path::new("/data/srv"),
            recon: Path::new("/data/recon"),
            bind_ip: "127.0.0.1",
            storage_ip: "127.0.0.1",
            proxy_port: 8080,
            object_port: 6200,
            container_port: 6201,
            account_port: 6202,
            hash_prefix: "abc",
            hash_suffix: "def",
            users,
            memcache_servers,
            tls: Some((Path::new("/etc/100%(cert.pem"), Path::new("/etc/key.pem"))),
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut users = test_users();
        users[2].account = "a_b".into();
        let servers = ["127.0.0.1:11211".to_owned()];
        let files = files(&cluster(&users, &servers));
        let document = |name: &str| {
            let (_, text) = files.iter().find(|(n, _)| *n == name).unwrap();
            Document::parse(Path::new(name), text).unwrap()
        };
        assert!(
            SwiftConf::from_document(&document("swift.conf"))
                .unwrap()
                .warnings
                .is_empty()
        );
        let proxy = ProxyConf::from_documents(&document("proxy-server.conf"), None).unwrap();
        assert_eq!(proxy.warnings, []);
        assert_eq!(proxy.common.swift_dir, Path::new("/data/100%(etc"));
        assert_eq!(proxy.cache.unwrap().memcache_servers, servers);
        assert_eq!(proxy.common.cert_file.unwrap(), Path::new("/etc/100%(cert.pem"));
        assert!(proxy.proxy.account_autocreate);
        let mut read = proxy.tempauth.unwrap().users;
        read.sort_by_key(|u| users.iter().position(|w| w == u));
        assert_eq!(read, users);
        let object = ObjectConf::from_document(&document("object-server.conf")).unwrap();
        assert_eq!((object.warnings, object.common.bind_port), (vec![], 6200));
        let container = ContainerConf::from_document(&document("container-server.conf")).unwrap();
        assert_eq!((container.warnings, container.storage.mount_check), (vec![], false));
        let account = AccountConf::from_document(&document("account-server.conf")).unwrap();
        assert_eq!((account.warnings, account.common.bind_port), (vec![], 6202));
    }

    #[test]
    fn no_memcached_no_cache_filter() {
        let users = test_users();
        let files = files(&cluster(&users, &[]));
        assert!(!files[1].1.contains("memcache"));
        assert!(files.iter().all(|(_, text)| !text.contains("egg:swift#memcache")));
    }

    #[test]
    fn upkeeps_gateways_are_read_back() {
        let (users, servers) = (test_users(), ["127.0.0.1:11211".to_owned()]);
        let directory = tempfile::tempdir().unwrap();
        let read = |name: &str| {
            let conf = ProxyConf::load_internal(&directory.path().join(name)).unwrap();
            assert_eq!(conf.warnings, [], "{name}");
            let names: Vec<String> = conf.pipeline.filters.iter().map(|filter| filter.egg.clone()).collect();
            names.join(" ")
        };
        assert_eq!(
            read("internal-client.conf"),
            "catch_errors proxy_logging memcache symlink"
        );
        for (name, text) in files(&cluster(&users, &servers)) {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        assert_eq!(read("internal-client.conf"), "catch_errors memcache symlink");
        assert_eq!(read("object-expirer.conf"), "catch_errors memcache");
        assert_eq!(read("container-reconciler.conf"), "catch_errors memcache");
        std::fs::write(
            directory.path().join("no-pipeline.conf"),
            "[object-expirer]\ninterval = 3\n",
        )
        .unwrap();
        assert_eq!(read("no-pipeline.conf"), "catch_errors proxy_logging memcache symlink");
    }
}
