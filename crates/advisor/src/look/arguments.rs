//! The command line of `martlet advise look`.

use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use vocabulary::Fault;

/// What to look at.
#[derive(Debug, Clone, Args)]
pub struct LookArguments {
    /// Where the rings, their builders, swift.conf and, on a gateway, proxy-server.conf are.
    #[arg(long, value_name = "DIR", default_value = "/etc/swift")]
    pub swift_dir: PathBuf,
    /// A gateway, which no ring names: HOST:PORT of its clients, or of its metrics_port. May be said several times.
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    pub gateway: Vec<(String, u16)>,
    /// Another configuration of a gateway than proxy-server.conf in --swift-dir.
    #[arg(long, value_name = "FILE")]
    pub proxy_conf: Option<PathBuf>,
    /// An access log of a gateway, also with gzip; of its end the last 64 MiB are read. May be said several times.
    #[arg(long, value_name = "FILE")]
    pub access_log: Vec<PathBuf>,
    /// What `martlet dispersion-report --dump-json` (or OpenStack's) has printed.
    #[arg(long, value_name = "FILE")]
    pub dispersion: Option<PathBuf>,
    /// An earlier look's --json: growth, and what has piled up since then, are said.
    #[arg(long, value_name = "FILE")]
    pub before: Option<PathBuf>,
    /// Bytes that the devices of objects fill up with in a day (50GB), instead of what --before says.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub growth: Option<f64>,
    /// How full devices may become, as a share.
    #[arg(long, value_name = "SHARE", default_value_t = 0.8, value_parser = share)]
    pub fill: f64,
    /// What a device that comes in may receive in an hour; the steps of its weight are made so.
    #[arg(long, value_name = "SIZE", default_value = "100GB", value_parser = size)]
    pub max_move: f64,
    /// How long one answer may take, in seconds. All of them have 7 seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    pub timeout: f64,
    /// Speak to servers as the cluster_tls options of this server's configuration say.
    #[arg(long, value_name = "CONF")]
    pub cluster_tls: Option<PathBuf>,
    /// How many causes are shown.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=50))]
    pub top: u8,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Say how gain, cost and rank come about, and which rules found nothing.
    #[arg(long, conflicts_with = "json")]
    pub explain: bool,
}

impl LookArguments {
    pub(super) fn patience(&self) -> Duration {
        Duration::from_secs_f64(self.timeout)
    }
}

fn host_and_port(text: &str) -> Result<(String, u16), String> {
    let wrong = || format!("{text:?}: expected HOST:PORT, as in 10.0.0.2:8080 or [2001:db8::1]:8080");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
    match bare.is_empty() || bare.contains('/') {
        true => Err(wrong()),
        false => Ok((bare.to_owned(), port)),
    }
}

fn size(text: &str) -> Result<f64, String> {
    let read = ring_builder::size::bytes(text).map_err(|error| error.what)?;
    match read > 0.0 && read.is_finite() {
        true => Ok(read),
        false => Err(format!("{text:?}: expected a size above 0, such as 50GB or 1.5TB")),
    }
}

fn share(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| (0.01..=1.0).contains(value));
    value.ok_or_else(|| format!("{text:?}: expected a share from 0.01 to 1"))
}

fn seconds(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| (0.1..=5.0).contains(value));
    value.ok_or_else(|| format!("{text:?}: expected 0.1 to 5 seconds"))
}

/// A figure of a file that is not what it should be.
pub(super) fn unfit(path: &std::path::Path, why: impl std::fmt::Display) -> Fault {
    Fault::caller(format!("{}: {why}", path.display()))
}
