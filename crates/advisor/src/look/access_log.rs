//! What access logs of gateways say: which containers are written to, how often, and how requests end.
//!
//! Always holds: memory is bounded, whatever the logs hold; containers past the bound are counted together. Names are
//! those of the log, percent-encoded.

use super::inquiry::Inquiry;
use super::rings::{RingSight, RingUse};
use bench::replay::line;
use http::{HeaderMap, Method};
use peer::message::header_names::X_SHARDING_STATE;
use settings::SwiftConf;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use vocabulary::Fault;
use vocabulary::names::{quote, unquote};
use world::World;

/// Of each log its end.
const LOG_BYTES: u64 = 64 << 20;
/// Of a compressed one as many lines and bytes, from its beginning.
const MOST_LINES: u64 = 1_000_000;
const MOST_TEXT: usize = 256 << 20;
/// Containers that are distinguished.
const MOST_CONTAINERS: usize = 50_000;
/// A longer name is cut: an account and a container have 256 bytes each, and three characters for a byte.
const LONGEST_NAME: usize = 1600;

/// What was done in a container.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ContainerUse {
    /// Objects written and deleted: each is a row.
    pub rows: u64,
    pub requests: u64,
}

/// What logs say.
#[derive(Debug, Default)]
pub(super) struct LogSight {
    pub names: Vec<String>,
    containers: HashMap<String, ContainerUse>,
    pub rows: u64,
    pub requests: u64,
    /// Answers with 503 and other 5xx.
    pub failed: u64,
    first: u64,
    last: u64,
    /// Rows that the hottest container has, and where that was read.
    pub hottest_holds: Option<(f64, String)>,
    /// It has shards.
    pub is_sharded: bool,
}

impl LogSight {
    /// Reads them.
    pub fn read(world: &World, logs: &[PathBuf]) -> Result<Self, Fault> {
        let mut sight = Self {
            names: logs.iter().map(|path| path.display().to_string()).collect(),
            ..Self::default()
        };
        for path in logs {
            let (mut lines, mut bytes, mut is_enough) = (0, 0, false);
            let read = bench::replay::read_lines(world, path, LOG_BYTES, |text| {
                lines += 1;
                bytes += text.len();
                is_enough = lines > MOST_LINES || bytes > MOST_TEXT;
                match is_enough {
                    true => Err(io::Error::from(io::ErrorKind::QuotaExceeded)),
                    false => {
                        sight.take(text);
                        Ok(())
                    }
                }
            });
            match read {
                Err(_) if is_enough => {}
                other => other.map_err(|error| super::arguments::unfit(path, error))?,
            }
        }
        match sight.requests {
            0 => Err(super::arguments::unfit(
                &logs[0],
                "no line of it is one of a gateway's access log in OpenStack's default form",
            )),
            _ => Ok(sight),
        }
    }

    fn take(&mut self, text: &str) {
        let text = line::message(text);
        let Some(request) = line::read(&text) else { return };
        if request.is_internal {
            return;
        }
        self.requests += 1;
        self.failed += u64::from(request.status >= 500);
        self.first = if self.first == 0 {
            request.start
        } else {
            self.first.min(request.start)
        };
        self.last = self.last.max(request.start);
        if request.account.is_empty() || request.container.is_empty() {
            return;
        }
        let mut name = format!("{}/{}", request.account, request.container);
        if name.len() > LONGEST_NAME
            || (self.containers.len() >= MOST_CONTAINERS && !self.containers.contains_key(&name))
        {
            name = String::new();
        }
        let writes = matches!(request.method, "PUT" | "DELETE") && !request.object.is_empty();
        let is_row = writes && (200..300).contains(&request.status);
        self.rows += u64::from(is_row);
        let known = self.containers.entry(name).or_default();
        known.requests += 1;
        known.rows += u64::from(is_row);
    }

    /// How long the logs last.
    pub fn seconds(&self) -> f64 {
        (self.last.saturating_sub(self.first) as f64 / 1e6).max(1.0)
    }

    /// The container that gets most rows.
    pub fn hottest(&self) -> Option<(&str, ContainerUse)> {
        let named = self.containers.iter().filter(|(name, _)| !name.is_empty());
        // Of equal ones always the same.
        let most = named.max_by(|one, other| (one.1.rows, other.0).cmp(&(other.1.rows, one.0)))?;
        (most.1.rows > 0).then_some((most.0.as_str(), *most.1))
    }

    /// Containers that get rows.
    pub fn written_containers(&self) -> usize {
        self.containers.values().filter(|one| one.rows > 0).count()
    }

    /// Asks the servers of the hottest container how many rows it has.
    pub async fn ask_for_rows(&mut self, inquiry: &Inquiry<'_>, conf: &SwiftConf, rings: &[RingSight]) {
        let Some((name, _)) = self.hottest() else { return };
        let Some((account, container)) = name.split_once('/') else {
            return;
        };
        let (Ok(account), Ok(container)) = (unquote(account), unquote(container)) else {
            return;
        };
        let Some(ring) = rings.iter().find(|ring| ring.ring_use == RingUse::Container) else {
            return;
        };
        let partition = conf
            .hash
            .container(&account, &container)
            .partition(ring.ring.part_power());
        for device in ring.ring.primaries(partition) {
            let path = format!(
                "/{}/{}/{}/{}",
                device.device,
                partition.0,
                quote(&account),
                quote(&container)
            );
            let answer = inquiry
                .ask(Method::HEAD, &device.ip, device.port, &path, HeaderMap::new())
                .await;
            let Ok(answer) = answer else { continue };
            let text = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok());
            let count = text("x-container-object-count").and_then(|count| count.parse::<f64>().ok());
            let Some(count) = count.filter(|count| *count >= 0.0 && count.is_finite()) else {
                continue;
            };
            self.is_sharded = matches!(
                text(X_SHARDING_STATE.as_str()),
                Some("sharding" | "sharded" | "collapsed")
            );
            let url = format!("http://{}{path}", super::inquiry::place(&device.ip, device.port));
            self.hottest_holds = Some((count, url));
            return;
        }
    }
}
