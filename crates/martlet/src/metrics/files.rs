//! Files of the node that monitors compare or watch: the rings' checksums, the ends of certificates.
//!
//! Always holds: a file is read again only when it has changed; one that cannot be read any more, or is no certificate,
//! is reported as it was last; no private key is kept.

use md5::{Digest, Md5};
use parking_lot::Mutex;
use settings::ClusterTlsMode;
use settings::server::ServerCommon;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use telemetry::metrics::catalogue::{CERTIFICATE_END, RING};
use telemetry::metrics::{MetricsPage, MetricsSource};
use world::World;
use x509_parser::pem::Pem;

/// How names of ring files end.
const RING_FILE: &str = ".ring.gz";
/// No ring is larger.
const LARGEST_RING: u64 = 1 << 30;
/// No bundle of certificates is larger.
const LARGEST_BUNDLE: u64 = 1 << 20;
/// More rings are not looked for.
const MOST_RINGS: usize = 256;

/// Rings and certificates of a server.
pub struct NodeFiles {
    world: World,
    swift_dir: PathBuf,
    /// What each is used for.
    certificates: Vec<(&'static str, PathBuf)>,
    rings: Mutex<BTreeMap<PathBuf, Seen<String>>>,
    ends: Mutex<BTreeMap<PathBuf, Seen<u64>>>,
}

/// A file's size and time of change, and what was found in it then.
struct Seen<T> {
    state: (u64, (i64, i64)),
    found: T,
}

impl NodeFiles {
    /// Those that `common` names. To be made before privileges are given up: certificates are read once here.
    pub fn of(world: &World, common: &ServerCommon) -> Self {
        let clients = common.cert_file.clone().map(|file| ("clients", file));
        let is_secured = common.cluster_tls != ClusterTlsMode::Off;
        let cluster = common.cluster_tls_cert_file.clone().filter(|_| is_secured);
        let files = Self {
            world: world.clone(),
            swift_dir: common.swift_dir.clone(),
            certificates: clients
                .into_iter()
                .chain(cluster.map(|file| ("cluster", file)))
                .collect(),
            rings: Mutex::default(),
            ends: Mutex::default(),
        };
        for (_, file) in &files.certificates {
            files.end(file);
        }
        files
    }

    fn end(&self, file: &Path) -> Option<u64> {
        look(&self.world, &self.ends, file, LARGEST_BUNDLE, first_end)
    }

    fn ring_files(&self) -> Vec<(String, PathBuf)> {
        let mut found = vec![];
        let directory = self.world.files.open_directory(&self.swift_dir);
        let listed = directory.and_then(|directory| {
            directory.list(&mut |name| {
                let ring = name.to_str().and_then(|name| name.strip_suffix(RING_FILE));
                if let Some(ring) = ring.filter(|_| found.len() < MOST_RINGS) {
                    found.push((ring.to_owned(), self.swift_dir.join(name)));
                }
            })
        });
        if listed.is_err() {
            found.clear();
        }
        found
    }
}

impl MetricsSource for NodeFiles {
    fn report(&self, page: &mut MetricsPage) {
        for (ring, file) in self.ring_files() {
            let sum = |bytes: &[u8]| Some(vocabulary::hex::encode(Md5::digest(bytes)));
            if let Some(sum) = look(&self.world, &self.rings, &file, LARGEST_RING, sum) {
                page.whole(&RING, &[&ring, &sum], 1);
            }
        }
        for (used_for, file) in &self.certificates {
            if let Some(end) = self.end(file) {
                page.whole(&CERTIFICATE_END, &[used_for], end);
            }
        }
    }
}

/// What `find` finds in a file, which is read when it has changed since.
fn look<T: Clone>(
    world: &World,
    known: &Mutex<BTreeMap<PathBuf, Seen<T>>>,
    file: &Path,
    limit: u64,
    find: impl Fn(&[u8]) -> Option<T>,
) -> Option<T> {
    let mut known = known.lock();
    let before = known.get(file).map(|seen| seen.found.clone());
    let Ok(info) = world.files.info(file) else {
        return before;
    };
    let state = (info.size, info.modified);
    if known.get(file).is_some_and(|seen| seen.state == state) {
        return before;
    }
    let read = world.files.read(file, limit).ok();
    let Some(found) = read.and_then(|bytes| find(&bytes)) else {
        return before;
    };
    let seen = Seen {
        state,
        found: found.clone(),
    };
    known.insert(file.to_owned(), seen);
    Some(found)
}

/// When the first of the certificates in PEM ends.
fn first_end(bundle: &[u8]) -> Option<u64> {
    let blocks = Pem::iter_from_buffer(bundle).filter_map(Result::ok);
    let certificates = blocks.filter(|block| block.label == "CERTIFICATE");
    let ends = certificates.filter_map(|block| {
        let certificate = block.parse_x509().ok()?;
        u64::try_from(certificate.validity().not_after.timestamp()).ok()
    });
    ends.min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn certificate(year: i32) -> String {
        let mut params = rcgen::CertificateParams::new(vec!["node".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().pem()
    }

    fn lines(files: &NodeFiles) -> Vec<String> {
        let mut page = MetricsPage::default();
        files.report(&mut page);
        let text = page.write();
        text.lines()
            .filter(|line| line.starts_with("martlet_"))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn rings_and_certificates_are_reported_and_reported_anew() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        std::fs::write(at("object-1.ring.gz"), "a ring").unwrap();
        std::fs::write(at("object.builder"), "no ring").unwrap();
        // The authority's ends first.
        std::fs::write(at("clients.pem"), certificate(2040) + &certificate(2035)).unwrap();
        std::fs::write(at("cluster.pem"), certificate(2031)).unwrap();
        let mut common = ServerCommon {
            swift_dir: root.path().to_owned(),
            cert_file: Some(at("clients.pem")),
            cluster_tls: ClusterTlsMode::Require,
            cluster_tls_cert_file: Some(at("cluster.pem")),
            ..ServerCommon::default()
        };
        let files = NodeFiles::of(&World::real(), &common);
        let ring = "martlet_ring{ring=\"object-1\",md5=\"3cf41e3b5956af172994ef725b422e82\"} 1";
        let clients = "martlet_certificate_not_after_seconds{use=\"clients\"} 2051222400";
        let cluster = "martlet_certificate_not_after_seconds{use=\"cluster\"} 1924992000";
        assert_eq!(lines(&files), [ring, clients, cluster]);
        // What is no certificate is not in force; one that is gone is reported as it was.
        std::fs::write(at("clients.pem"), "no certificate").unwrap();
        std::fs::remove_file(at("cluster.pem")).unwrap();
        std::fs::remove_file(at("object-1.ring.gz")).unwrap();
        assert_eq!(lines(&files), [clients, cluster]);
        std::fs::write(at("clients.pem"), certificate(2031)).unwrap();
        assert_eq!(lines(&files), [&clients.replace("2051222400", "1924992000"), cluster]);
        common.cluster_tls = ClusterTlsMode::Off;
        assert_eq!(lines(&NodeFiles::of(&World::real(), &common)).len(), 1);
    }

    proptest! {
        #[test]
        fn any_bundle_is_looked_at(text in "(-----BEGIN CERTIFICATE-----\n)?[A-Za-z0-9+/=\n]{0,80}(\n-----END CERTIFICATE-----)?") {
            first_end(text.as_bytes());
        }
    }
}
