//! `/recon/…`: what `swift-recon` and other monitors ask a server about itself, its machine and its daemons.
//!
//! | question | file |
//! |---|---|
//! | figures that daemons have left in `recon_cache_path` | `figures.rs` |
//! | load, memory, sockets, mounts | `machine.rs` |
//! | devices, their room, what is quarantined | `devices.rs` |
//! | checksums of the rings and of `swift.conf` | here |
//!
//! Always holds: every question is answered as OpenStack Swift 2.38 answers it, whatever the verb; nothing is
//! written; files are read by threads of its own, so that a hung drive costs monitors their answers and no other
//! client.
//! Deliberately absent: who writes the figures (`upkeep`).
//! Tests: `tests/interop/test_recon.py`, which asks OpenStack's filter the same.

mod devices;
mod figures;
mod machine;

use crate::monitoring::swift_info::VERSION;
use http::header::HeaderValue;
use md5::{Digest, Md5};
use request_pipeline::{ClientRequest, Feature, Next, Response, reply};
use serde_json::{Map, Value, json};
use settings::gateway_filters::ReconSettings;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vocabulary::Policies;
use vocabulary::names::quote;
use world::files::{Purpose, read_full_at};
use world::{Workers, World};

/// Two, so that one question that hangs on a drive leaves room for others.
const THREADS: usize = 2;
/// Questions that may wait.
const QUEUE: usize = 64;
/// Bytes of a file hashed at a time.
const PIECE: usize = 64 << 10;

/// What [`Recon::answer`] is for.
const ROOT: &str = "/recon/";

/// Swift's `recon`.
pub struct Recon {
    desk: Arc<Desk>,
    workers: Workers,
}

/// Where answers are looked up.
struct Desk {
    world: World,
    settings: ReconSettings,
    rings: Vec<PathBuf>,
}

impl Recon {
    /// As configured; an error when the system has no threads left.
    pub fn new(world: &World, settings: ReconSettings, policies: &Policies) -> io::Result<Self> {
        let objects = policies.iter().map(|policy| policy.index.ring_name());
        let names = ["account".to_owned(), "container".to_owned()]
            .into_iter()
            .chain(objects);
        let rings = names
            .map(|name| settings.swift_dir.join(format!("{name}.ring.gz")))
            .collect();
        Ok(Self {
            workers: world.workers("recon", THREADS, QUEUE)?,
            desk: Arc::new(Desk {
                world: world.clone(),
                settings,
                rings,
            }),
        })
    }

    /// Whether it answers this path.
    pub fn is_for(path: &str) -> bool {
        path.starts_with(ROOT)
    }

    /// The answer to a path of [`Recon::is_for`], decoded.
    pub async fn answer(&self, path: &str) -> Response {
        let mut words = path.strip_prefix(ROOT).unwrap_or_default().splitn(2, '/');
        let (what, of) = (
            words.next().unwrap_or_default().to_owned(),
            words.next().map(str::to_owned),
        );
        let desk = self.desk.clone();
        let gathered = self.workers.run(move || desk.tell(&what, of.as_deref())).await;
        match gathered {
            Ok(Ok(Some(value))) => reply::with_body(200, JSON, pythonic::json(&value)),
            Ok(Ok(None)) => reply::plain(404, format!("Invalid path: {}", quote(path))),
            Ok(Err(error)) => unanswered(path, &error.to_string()),
            Err(error) => unanswered(path, &error.to_string()),
        }
    }
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");

fn unanswered(path: &str, why: &str) -> Response {
    tracing::error!("recon: {path}: {why}");
    reply::plain(500, "Internal server error.")
}

impl Desk {
    /// `None` for what is unknown.
    fn tell(&self, what: &str, of: Option<&str>) -> io::Result<Option<Value>> {
        let files = &*self.world.files;
        let root = &self.settings.devices;
        Ok(Some(match what {
            "load" => machine::load(files)?,
            "mem" => machine::memory(files)?,
            "mounted" => machine::mounts(files)?,
            "sockstat" => machine::sockets(files)?,
            "devices" => devices::names(files, root),
            "unmounted" => devices::unmounted(files, root)?,
            "diskusage" => devices::usage(files, root)?,
            "quarantined" => devices::quarantined(files, root)?,
            "ringmd5" => self.rings(),
            "swiftconfmd5" => self.swift_conf(),
            "version" => json!({ "version": VERSION }),
            "time" => json!(self.world.clock.now().as_f64()),
            _ => return Ok(figures::tell(files, &self.settings.recon_cache_path, what, of)),
        }))
    }

    /// Of the rings that are there.
    fn rings(&self) -> Value {
        let there = self.rings.iter().filter(|ring| self.world.files.info(ring).is_ok());
        there
            .map(|ring| (name_of(ring), self.checksum(ring)))
            .collect::<Map<_, _>>()
            .into()
    }

    fn swift_conf(&self) -> Value {
        let file = self.settings.swift_dir.join("swift.conf");
        json!({ name_of(&file): self.checksum(&file) })
    }

    /// Null for what cannot be read.
    fn checksum(&self, path: &Path) -> Value {
        match self.md5(path) {
            Ok(sum) => Value::String(sum),
            Err(error) => {
                tracing::error!("recon: {}: {error}", path.display());
                Value::Null
            }
        }
    }

    fn md5(&self, path: &Path) -> io::Result<String> {
        let file = self.world.files.open(path, Purpose::Read)?;
        let (mut sum, mut piece, mut offset) = (Md5::new(), vec![0; PIECE], 0);
        loop {
            let read = read_full_at(&*file, &mut piece, offset)?;
            if read == 0 {
                break;
            }
            sum.update(piece.get(..read).unwrap_or_default());
            offset += read as u64;
        }
        Ok(vocabulary::hex::encode(sum.finalize()))
    }
}

fn name_of(path: &Path) -> String {
    path.display().to_string()
}

#[async_trait::async_trait]
impl Feature for Recon {
    fn name(&self) -> &'static str {
        "recon"
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        Self::is_for(&request.path)
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        match Self::is_for(&request.path) {
            true => self.answer(&request.path).await,
            false => next.run(request).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn recon(root: &Path) -> Recon {
        let settings = ReconSettings {
            recon_cache_path: root.join("run"),
            devices: root.join("srv"),
            swift_dir: root.to_owned(),
        };
        let gold = vocabulary::Policy::replication(0, "gold");
        let policies = Policies::new(vec![gold], None).unwrap();
        Recon::new(&World::real(), settings, &policies).unwrap()
    }

    async fn ask(recon: &Recon, path: &str) -> (u16, String) {
        let response = recon.answer(path).await;
        let status = response.status().as_u16();
        let body = response.into_body().collect(1 << 20).await.unwrap();
        (status, String::from_utf8_lossy(&body).into_owned())
    }

    #[tokio::test]
    async fn checksums_and_what_is_not_there() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("swift.conf"), "x").unwrap();
        std::fs::write(root.path().join("account.ring.gz"), "y").unwrap();
        let recon = recon(root.path());
        let place = root.path().display();
        assert_eq!(
            ask(&recon, "/recon/swiftconfmd5").await,
            (
                200,
                format!(r#"{{"{place}/swift.conf": "9dd4e461268c8034f5c8564e155c67a6"}}"#)
            )
        );
        assert_eq!(
            ask(&recon, "/recon/ringmd5").await.1,
            format!(r#"{{"{place}/account.ring.gz": "415290769594460e2e485922904f345d"}}"#)
        );
        assert_eq!(
            ask(&recon, "/recon/unmounted").await,
            (500, "Internal server error.".into())
        );
        assert_eq!(
            ask(&recon, "/recon/devices").await.1,
            format!(r#"{{"{place}/srv": null}}"#)
        );
        assert_eq!(
            ask(&recon, "/recon/no such").await,
            (404, "Invalid path: /recon/no%20such".into())
        );
        assert_eq!(ask(&recon, "/recon/").await.0, 404);
    }

    proptest! {
        #[test]
        fn any_path_is_answered(path in "/recon/\\PC{0,30}") {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let recon = recon(Path::new("/nowhere"));
            let (status, _) = runtime.block_on(ask(&recon, &path));
            prop_assert!(matches!(status, 200 | 404 | 500));
        }
    }
}
