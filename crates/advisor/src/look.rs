//! `martlet advise look`: reads a live cluster of either make, and says what to change first.
//!
//! Comes in: the rings, `swift.conf` and the gateways' configuration of a directory, what servers answer to `/recon`
//! and `/metrics`, access logs, a dispersion report, an earlier look. Goes out: causes, ranked by what is gained for
//! the work and the moving that they cost; when capacity ends; the steps in which new devices come in.
//! Always holds: nothing is changed anywhere; a server that refuses, hangs or answers nonsense costs a line that names
//! it and a bounded time; answers are bounded in size; each figure says where it was read.
//! Deliberately absent: load of its own; requests on behalf of an account.
//!
//! | question | file |
//! |---|---|
//! | what is asked for | `look/arguments.rs` |
//! | how servers are asked, pages of metrics | `look/inquiry.rs`, `look/exposition.rs` |
//! | what was seen of rings | `look/rings.rs` |
//! | … of storage servers | `look/servers.rs` |
//! | … of clocks | `look/clocks.rs` |
//! | … of workers of OpenStack's servers | `look/worker_confs.rs` |
//! | … of gateways, their configuration and memcached | `look/gateways.rs` |
//! | … of logs, the dispersion report, an earlier look | `look/access_log.rs`, `look/papers.rs` |
//! | which causes there are, how they are ranked | `look/causes.rs`, `look/causes/` |
//! | when capacity ends, how devices come in | `look/capacity.rs`, `look/ramp.rs` |
//! | how it is shown | `look/report.rs` |
//!
//! Tests: `tests/advise/test_look.py`, on clusters of both makes that are mistuned on purpose.

mod access_log;
mod arguments;
mod capacity;
mod causes;
mod clocks;
mod exposition;
mod gateways;
mod inquiry;
mod papers;
mod ramp;
mod report;
mod rings;
mod servers;
mod worker_confs;

pub use arguments::LookArguments;

use access_log::LogSight;
use gateways::GatewaySight;
use inquiry::Inquiry;
use operator_tools::{Console, ToolStatus};
use papers::{DispersionSight, EarlierLook};
use peer::Peers;
use report::LookReport;
use rings::RingSight;
use servers::ServerSight;
use settings::SwiftConf;
use std::io;
use std::net::IpAddr;
use vocabulary::Fault;
use worker_confs::WorkerConf;

/// Everything that was seen of a cluster.
#[derive(Default)]
struct ClusterSight {
    /// When, in seconds since 1970.
    at: f64,
    rings: Vec<RingSight>,
    servers: Vec<ServerSight>,
    gateways: Vec<GatewaySight>,
    log: Option<LogSight>,
    dispersion: Vec<DispersionSight>,
    earlier: Option<EarlierLook>,
    /// Of the servers whose configurations are here, and this machine's processors.
    worker_confs: Vec<WorkerConf>,
    processors: Option<u64>,
    /// Of this machine.
    own_addresses: Vec<IpAddr>,
    /// MD5 of the files here: rings by their file names, and `swift.conf`.
    own_sums: Vec<(String, String)>,
    /// What could not be read, and why.
    unseen: Vec<String>,
}

impl ClusterSight {
    /// A gateway whose process is an object server too is `martlet up`: its storage servers are functions of that
    /// process, and nothing listens where the rings say.
    fn is_one_process(&self) -> bool {
        let is_server = |gateway: &GatewaySight| {
            let page = gateway.pages.as_ref().map(|pages| &pages.1);
            page.is_some_and(|page| {
                exposition::sum(page, "martlet_requests_under_way", "role=\"object-server\"").is_some()
            })
        };
        self.gateways.iter().any(is_server) && self.servers.iter().all(|server| !server.has_answered)
    }
}

/// Looks from a machine with these addresses, and says what came of it. The status is 1 when nothing could be looked
/// at.
pub async fn run(
    arguments: &LookArguments,
    peers: &Peers,
    own_addresses: Vec<IpAddr>,
    console: &mut Console<'_>,
) -> io::Result<ToolStatus> {
    let begun = peers.world().clock.elapsed();
    let sight = match see(arguments, peers).await {
        Ok(sight) => ClusterSight { own_addresses, ..sight },
        Err(fault) => return console.complain(fault).map(|()| ToolStatus::FAILURE),
    };
    let causes = causes::ranked(&sight, arguments);
    let seconds = (peers.world().clock.elapsed().saturating_sub(begun)).as_secs_f64();
    let report = LookReport::of(&sight, causes, arguments, peers.world(), seconds);
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&report).map(|text| text + "\n"),
        false => Ok(report.text(arguments.explain)),
    };
    match text {
        Ok(text) => console.out.write_all(text.as_bytes())?,
        Err(error) => {
            return console
                .complain(format_args!("JSON: {error}"))
                .map(|()| ToolStatus::FAILURE);
        }
    }
    Ok(ToolStatus::SUCCESS)
}

async fn see(arguments: &LookArguments, peers: &Peers) -> Result<ClusterSight, Fault> {
    let world = peers.world();
    let conf = SwiftConf::load_from_dir(&arguments.swift_dir).map_err(|error| {
        Fault::caller(format!(
            "{error}: look on a node of the cluster, or name a folder with its swift.conf and rings by --swift-dir"
        ))
    })?;
    let mut sight = ClusterSight {
        at: world.clock.now().as_f64(),
        ..ClusterSight::default()
    };
    sight.rings = rings::read(world, &arguments.swift_dir, &conf, &mut sight.unseen)?;
    sight.own_sums = rings::sums(world, &arguments.swift_dir, &sight.rings);
    sight.worker_confs = worker_confs::read(&arguments.swift_dir, arguments.proxy_conf.as_deref());
    sight.processors = worker_confs::processors(world);
    sight.earlier = arguments
        .before
        .as_deref()
        .map(|path| EarlierLook::read(world, path))
        .transpose()?;
    if let Some(path) = &arguments.dispersion {
        sight.dispersion = papers::dispersion(world, path)?;
    }
    if !arguments.access_log.is_empty() {
        sight.log = Some(LogSight::read(world, &arguments.access_log)?);
    }
    let inquiry = Inquiry::new(peers, arguments.patience());
    let (servers, (gateways, unread)) = futures_util::join!(
        servers::look(&inquiry, &sight.rings),
        gateways::look(&inquiry, arguments)
    );
    sight.servers = servers;
    sight.gateways = gateways;
    sight.unseen.extend(unread);
    if let Some(log) = &mut sight.log {
        log.ask_for_rows(&inquiry, &conf, &sight.rings).await;
    }
    Ok(sight)
}
