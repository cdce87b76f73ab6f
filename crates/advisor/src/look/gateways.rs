//! Gateways: whether they answer, what their metrics say in two looks, and what their configuration says of memcached.
//!
//! Always holds: counters count for what they grew by between the two looks, and, without growth, for what they say in
//! all; memcached is asked for a connection, and no word is reported to it.

use super::arguments::LookArguments;
use super::clocks::{ClockOffset, narrowed};
use super::exposition;
use super::inquiry::{APART, Inquiry, ServerAnswer, place};
use serde_json::Value;
use settings::Document;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// memcached servers of a configuration that are asked.
const MOST_CACHES: usize = 256;

/// One gateway.
pub(super) struct GatewaySight {
    pub place: String,
    /// Why it did not answer `/healthcheck`.
    pub silence: Option<String>,
    /// Its metrics, in two looks. OpenStack's have none, and Martlet's show them to few.
    pub pages: Option<(String, String)>,
    /// It says that it is another make than Martlet.
    pub is_others: bool,
    /// How far its clock is from this machine's.
    pub clock: Option<ClockOffset>,
    /// Its address; nothing of what is a configuration only.
    pub host: String,
    /// Of the configuration of a gateway, not of one that is asked.
    pub conf: Option<GatewayConf>,
}

/// What a configuration says.
pub(super) struct GatewayConf {
    pub path: PathBuf,
    /// The pipeline has the filter `cache`.
    pub has_cache: bool,
    /// Each memcached server, and why nothing listens there.
    pub caches: Vec<(String, Option<String>)>,
}

/// All gateways that are named, the configuration that is there, and why one that is there could not be read.
pub(super) async fn look(inquiry: &Inquiry<'_>, arguments: &LookArguments) -> (Vec<GatewaySight>, Option<String>) {
    let talk = |(host, port): (String, u16)| async move { talk(inquiry, &host, port).await };
    let asked = inquiry.each(arguments.gateway.clone(), talk);
    let (mut all, conf) = futures_util::join!(asked, conf(inquiry, arguments));
    let unread = match conf {
        Ok(None) => None,
        Ok(Some(conf)) => {
            all.push(GatewaySight {
                place: conf.path.display().to_string(),
                silence: None,
                pages: None,
                is_others: false,
                clock: None,
                host: String::new(),
                conf: Some(conf),
            });
            None
        }
        Err(why) => Some(format!("memcached: {why}")),
    };
    (all, unread)
}

async fn talk(inquiry: &Inquiry<'_>, host: &str, port: u16) -> GatewaySight {
    let healthy = inquiry.get(host, port, "/healthcheck").await;
    let mut sight = GatewaySight {
        place: place(host, port),
        silence: healthy.as_ref().err().map(|why| format!("/healthcheck: {}", why.why())),
        pages: None,
        is_others: false,
        clock: healthy.ok().and_then(|answer| answer.clock()),
        host: host.to_owned(),
        conf: None,
    };
    let page = || async move {
        let answer = inquiry.get(host, port, "/metrics").await.ok()?;
        let text = String::from_utf8(answer.body.clone()).ok()?;
        text.contains("martlet_").then(|| (clock(&answer, &text), text))
    };
    if let Some((clock, first)) = page().await {
        // A port of metrics has no healthcheck.
        sight.silence = None;
        sight.clock = narrowed(sight.clock, clock);
        inquiry.pause(APART).await;
        let second = page().await.map_or_else(|| first.clone(), |(_, second)| second);
        sight.pages = Some((first, second));
    } else if sight.silence.is_none() {
        let about = inquiry.get(host, port, "/info").await;
        let about: Option<Value> = about.ok().and_then(|answer| serde_json::from_slice(&answer.body).ok());
        sight.is_others = about.is_some_and(|about| is_others_version(&about["swift"]["version"]));
    }
    sight
}

/// A version that is not Martlet's.
pub(super) fn is_others_version(version: &Value) -> bool {
    version.as_str().is_some_and(|version| !version.contains("martlet"))
}

/// By what its metrics say, or by the date of the answer.
fn clock(answer: &ServerAnswer, page: &str) -> Option<ClockOffset> {
    let reported = exposition::sum(page, "martlet_clock_seconds", "");
    let exact = reported.and_then(|reported| answer.clock_by(reported, 0.0));
    exact.or_else(|| answer.clock())
}

/// Nothing where none was named and there is none: this is no gateway.
async fn conf(inquiry: &Inquiry<'_>, arguments: &LookArguments) -> Result<Option<GatewayConf>, String> {
    let path = arguments
        .proxy_conf
        .clone()
        .unwrap_or_else(|| arguments.swift_dir.join("proxy-server.conf"));
    let is_away = || matches!(inquiry.world().files.info(&path), Err(error) if error.kind() == ErrorKind::NotFound);
    if arguments.proxy_conf.is_none() && is_away() {
        return Ok(None);
    }
    let document = Document::load(&path).map_err(|error| error.to_string())?;
    let Some(option) = document.lookup("pipeline:main", "pipeline") else {
        return Err(format!("{}: there is no pipeline in [pipeline:main]", path.display()));
    };
    let pipeline = option.value.clone();
    // By the name of its section, or by what that section uses.
    let is_cache = |word: &&str| {
        let used = document.lookup(&format!("filter:{word}"), "use");
        used.is_some_and(|used| used.value.trim().ends_with("#memcache"))
    };
    let section = pipeline
        .split_whitespace()
        .find(is_cache)
        .map(|word| format!("filter:{word}"));
    let named = section.as_deref().map(|section| servers(&document, section, &path));
    let asked = inquiry.each(named.unwrap_or_default(), |server| async move {
        let why = match server
            .rsplit_once(':')
            .and_then(|(host, port)| Some((host, port.parse().ok()?)))
        {
            Some((host, port)) => inquiry.connects(host.trim_matches(['[', ']']), port).await.err(),
            None => Some("expected HOST:PORT".to_owned()),
        };
        (server, why)
    });
    Ok(Some(GatewayConf {
        has_cache: section.is_some(),
        caches: asked.await,
        path,
    }))
}

/// As the filter finds them: its own option, `memcache.conf` beside, the default.
fn servers(document: &Document, section: &str, path: &Path) -> Vec<String> {
    let split = |text: &str| -> Vec<String> {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        words.take(MOST_CACHES).map(str::to_owned).collect()
    };
    if let Some(option) = document.lookup(section, "memcache_servers") {
        return split(&option.value);
    }
    let beside = Document::load(&path.with_file_name("memcache.conf")).ok();
    let option = beside
        .as_ref()
        .and_then(|beside| beside.lookup("memcache", "memcache_servers"));
    option.map_or_else(|| vec!["127.0.0.1:11211".to_owned()], |option| split(&option.value))
}
