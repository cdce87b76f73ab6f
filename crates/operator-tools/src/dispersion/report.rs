//! `dispersion-report`: how many copies of what `dispersion-populate` made are where the rings say.
//!
//! Always holds: no more than `concurrency` requests are under way, each for one copy; a server or device that does not
//! answer is named and asked no more after a few rounds (`silent.rs`), and its copies count as missing.

use super::account::{Account, pause};
use super::progress::Progress;
use super::silent::{self, AskedPlace, SilentPlaces};
use super::{ANEW, Common, Ground, shortly};
use crate::OURS;
use crate::console::{Console, ToolStatus, ToolStop};
use crate::words::path;
use clap::Args;
use futures_util::StreamExt;
use http::{HeaderMap, HeaderValue, Method};
use peer::message::header_names::X_POLICY_INDEX;
use peer::{PeerError, Peers, RawCall, Target, Timeouts};
use placement::{Device, Ring};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use vocabulary::{EntityPath, Partition};

/// As OpenStack's direct client waits.
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    response: Duration::from_secs(15),
};

/// The command line.
#[derive(Debug, Clone, Args)]
#[command(args_override_self = true)]
pub struct ReportArguments {
    #[command(flatten)]
    common: Common,
    /// The report as JSON.
    #[arg(short = 'j', long)]
    dump_json: bool,
    /// Say on standard error which servers answer that they have no copy.
    #[arg(short, long)]
    debug: bool,
    /// Say on standard error which partitions have fewer copies than they should.
    #[arg(short, long)]
    partitions: bool,
    /// Speak to storage servers as the cluster_tls options of this server's configuration say.
    #[arg(long, value_name = "CONF", help_heading = OURS, value_parser = path())]
    pub cluster_tls: Option<PathBuf>,
}

/// Asks, and says what is wanting.
pub async fn run(arguments: &ReportArguments, peers: &Peers, console: &mut Console<'_>) -> io::Result<ToolStatus> {
    match report(arguments, peers, console).await {
        Ok(()) => Ok(ToolStatus::SUCCESS),
        Err(unfit) => unfit.end(console),
    }
}

async fn report(arguments: &ReportArguments, peers: &Peers, console: &mut Console<'_>) -> Result<(), ToolStop> {
    let world = peers.world();
    let common = &arguments.common;
    let ground = Ground::read(world, common)?;
    let json = arguments.dump_json || ground.settings.dump_json;
    if !json {
        console.say(format_args!("Using storage policy: {} ", ground.policy.name))?;
    }
    let containers = ground.settings.container_report && !common.object_only;
    let objects = ground.settings.object_report && !common.container_only;
    if !containers && !objects {
        return Err(ToolStop::caller("Neither container or object report is set to run"));
    }
    let account = ground.account().await?;
    let reporting = Reporting {
        ground: &ground,
        account: &account,
        peers,
        arguments,
        json,
        retried: AtomicU64::new(0),
        reported: Mutex::default(),
        silent: SilentPlaces::default(),
    };
    let mut reported = Map::new();
    if containers {
        reported.insert("container".into(), reporting.containers(console).await?);
    }
    if objects {
        reported.insert("object".into(), reporting.objects(console).await?);
    }
    if json {
        console.say(dumps(&reported))?;
    }
    Ok(())
}

/// As Python's `json.dumps` spaces it.
fn dumps(reported: &Map<String, Value>) -> String {
    let value = |value: &Value| match value.as_f64() {
        Some(real) if value.is_f64() => pythonic::float(real),
        _ => value.to_string(),
    };
    let part = |part: &Value| match part.as_object() {
        None => "null".to_owned(),
        Some(fields) => {
            let fields = fields
                .iter()
                .map(|(name, field)| format!("\"{name}\": {}", value(field)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
    };
    let parts = reported
        .iter()
        .map(|(name, fields)| format!("\"{name}\": {}", part(fields)));
    format!("{{{}}}", parts.collect::<Vec<_>>().join(", "))
}

struct Reporting<'a> {
    ground: &'a Ground<'a>,
    account: &'a Account,
    peers: &'a Peers,
    arguments: &'a ReportArguments,
    json: bool,
    retried: AtomicU64,
    /// What has been complained of: of one server once.
    reported: Mutex<HashSet<String>>,
    silent: SilentPlaces,
}

/// One thing whose copies are counted.
struct ProbedItem {
    partition: Partition,
    path: Arc<EntityPath>,
}

/// What came of it.
struct Copies {
    partition: Partition,
    expected: usize,
    found: usize,
    /// Copies that are still asked for.
    open: usize,
    /// By the copy's number.
    complaints: BTreeMap<usize, String>,
}

impl Copies {
    fn of(partition: Partition, expected: usize) -> Self {
        let (found, open, complaints) = (0, expected, BTreeMap::new());
        Self {
            partition,
            expected,
            found,
            open,
            complaints,
        }
    }

    /// What came of one copy; true when it was the last one.
    fn note(&mut self, copy: usize, answer: Result<(), Option<String>>) -> bool {
        match answer {
            Ok(()) => self.found += 1,
            Err(complaint) => self.complaints.extend(complaint.map(|why| (copy, why))),
        }
        self.open -= 1;
        self.open == 0
    }
}

impl Reporting<'_> {
    async fn containers(&self, console: &mut Console<'_>) -> Result<Value, ToolStop> {
        let (ground, account) = (self.ground, &self.account.name);
        let names = self.account.names("", &ground.container_prefix()).await?;
        let item = |name: String| ProbedItem {
            partition: ground.partition_of_container(account, &name),
            path: Arc::new(EntityPath::account(account).with_container(name)),
        };
        let items = names.into_iter().map(item).collect();
        self.copies("container", &ground.containers, items, console).await
    }

    async fn objects(&self, console: &mut Console<'_>) -> Result<Value, ToolStop> {
        let (ground, account) = (self.ground, &self.account.name);
        let container = ground.objects_container();
        let names = self.account.names(&format!("/{container}"), "dispersion_").await?;
        let within = EntityPath::account(account).with_container(container);
        let item = |name: String| ProbedItem {
            partition: ground.partition_of_object(account, &name),
            path: Arc::new(within.with_object(name)),
        };
        let items = names.into_iter().map(item).collect();
        self.copies("object", &ground.objects, items, console).await
    }

    async fn copies(
        &self,
        kind: &str,
        ring: &Ring,
        things: Vec<ProbedItem>,
        console: &mut Console<'_>,
    ) -> Result<Value, ToolStop> {
        let listed = things.len();
        let mut seen = HashSet::new();
        let things: Vec<ProbedItem> = things
            .into_iter()
            .filter(|thing| seen.insert(thing.partition))
            .collect();
        if things.is_empty() {
            console.complain(format_args!(
                "No {kind}s to query. Has swift-dispersion-populate been run?"
            ))?;
            return Ok(Value::Null);
        }
        let clock = &self.ground.world.clock;
        let (began, before) = (clock.elapsed(), self.retried.load(Ordering::Relaxed));
        let counted = self.count(kind, ring, &things, console).await?;
        let mut sum = CopySum {
            kind,
            objects: kind == "object",
            listed,
            overlapping: listed - things.len(),
            retries: self.retried.load(Ordering::Relaxed) - before,
            seconds: clock.elapsed().saturating_sub(began).as_secs_f64(),
            partitions: ring.partition_count(),
            replicas: ring.replica_count(),
            ..CopySum::default()
        };
        for copies in counted {
            for complaint in copies.complaints.into_values() {
                if self.first_time(&complaint) {
                    console.complain(complaint)?;
                }
            }
            let missing = copies.expected - copies.found;
            sum.add(copies.expected, copies.found);
            if missing > 0 && self.arguments.partitions {
                let (mut first, partition) = (kind.to_owned(), copies.partition);
                first[..1].make_ascii_uppercase();
                let plural = if missing == 1 { "copy" } else { "copies" };
                write!(console.out, "{ANEW}")?;
                console.complain(format_args!(
                    "# {first} partition {partition} missing {missing} {plural}"
                ))?;
            }
        }
        match self.json {
            true => {}
            false => sum.tell(console)?,
        }
        Ok(sum.json())
    }

    /// Asks every primary of all things.
    async fn count(
        &self,
        kind: &str,
        ring: &Ring,
        things: &[ProbedItem],
        console: &mut Console<'_>,
    ) -> io::Result<Vec<Copies>> {
        let primaries: Vec<Vec<&Device>> = things.iter().map(|thing| ring.primaries(thing.partition)).collect();
        let copies = things.iter().zip(&primaries);
        let mut counted: Vec<Copies> = copies
            .map(|(thing, devices)| Copies::of(thing.partition, devices.len()))
            .collect();
        let asking = primaries.iter().enumerate().flat_map(|(item, devices)| {
            let thing = &things[item];
            let copies = devices.iter().enumerate();
            copies.map(move |(copy, device)| async move { (item, copy, self.ask(device, thing).await) })
        });
        let at_once = self.ground.settings.concurrency.max(1);
        let mut answers = futures_util::stream::iter(asking).buffer_unordered(at_once);
        let (clock, before) = (&self.ground.world.clock, self.retried.load(Ordering::Relaxed));
        let doing = format!("Querying {kind}s");
        let mut progress = Progress::new(&doing, things.len(), clock.elapsed());
        while let Some((item, copy, answer)) = answers.next().await {
            if counted[item].note(copy, answer) && !self.json {
                let retried = self.retried.load(Ordering::Relaxed) - before;
                progress.step(retried, clock.elapsed(), console)?;
            }
        }
        Ok(counted)
    }

    fn first_time(&self, complaint: &str) -> bool {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        reported.insert(complaint.to_owned())
    }

    /// Whether a device has it; else what there is to say of that.
    async fn ask(&self, device: &Device, thing: &ProbedItem) -> Result<(), Option<String>> {
        let ip = if device.ip.contains(':') {
            format!("[{}]", device.ip)
        } else {
            device.ip.clone()
        };
        let server = format!("{ip}:{}", device.port);
        let place = format!("{server}/{}", device.device);
        let (asked_place, clock) = (
            AskedPlace {
                server: &server,
                device: &place,
            },
            &self.ground.world.clock,
        );
        let mut attempt = 0;
        loop {
            if let Some(silent) = self.silent.set_aside(asked_place) {
                return Err(Some(set_aside(silent)));
            }
            let mut headers = HeaderMap::new();
            headers.insert(X_POLICY_INDEX, HeaderValue::from(self.ground.policy.index.0));
            let target = Target {
                device: device.device.as_str().into(),
                partition: thing.partition,
                path: thing.path.clone(),
            };
            let call = RawCall::new(Method::HEAD, target, headers);
            let asked = clock.elapsed();
            let answer = self.peers.send(&device.ip, device.port, call, TIMEOUTS).await;
            let is_last = attempt >= self.ground.settings.retries;
            match &answer {
                Ok(_) => self.silent.answered(asked_place),
                // Of what fails at once, the repetitions are one round: they are pauses apart.
                Err(error) => {
                    let is_timeout = matches!(error, PeerError::ResponseTimeout | PeerError::ConnectTimeout);
                    if is_timeout || is_last {
                        self.silent.unanswered(asked_place, asked, clock.elapsed());
                    }
                }
            }
            let why = match answer {
                Ok(response) => match response.status().as_u16() {
                    200..=299 => return Ok(()),
                    404 => {
                        return Err(self.arguments.debug.then(|| format!("ERROR: {place} returned a 404")));
                    }
                    507 => {
                        return Err(Some(format!(
                            "ERROR: {place} is unmounted -- This will cause replicas designated for that device to be \
                             considered missing until resolved or the ring is updated."
                        )));
                    }
                    // Asked again, it would say the same.
                    status @ ..500 => return Err(Some(format!("ERROR: {place}: answered {status}"))),
                    status => format!("answered {status}"),
                },
                Err(error) => error.to_string(),
            };
            if is_last {
                return Err(Some(format!("ERROR: {place}: {why}")));
            }
            self.retried.fetch_add(1, Ordering::Relaxed);
            pause(self.ground.world, attempt).await;
            attempt += 1;
        }
    }
}

/// What there is to say of a server or device whose copies are not asked for any more.
fn set_aside(name: &str) -> String {
    format!(
        "ERROR: {name} has not answered, {} times in a row -- It is not asked again, and copies there are \
         considered missing.",
        silent::MOST
    )
}

/// All copies of one kind of thing.
#[derive(Default)]
struct CopySum<'k> {
    kind: &'k str,
    objects: bool,
    listed: usize,
    overlapping: usize,
    retries: u64,
    seconds: f64,
    partitions: u32,
    replicas: usize,
    expected: usize,
    found: usize,
    /// Copies that are missing → of how many partitions.
    missing: BTreeMap<usize, usize>,
}

impl CopySum<'_> {
    fn add(&mut self, expected: usize, found: usize) {
        self.expected += expected;
        self.found += found;
        let missing = expected - found;
        // OpenStack's counts whole objects among those with something missing, and whole containers not.
        if missing > 0 || self.objects {
            *self.missing.entry(missing).or_default() += 1;
        }
    }

    fn percent(&self) -> f64 {
        100.0 * self.found as f64 / self.expected as f64
    }

    fn json(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("retries".into(), json!(self.retries));
        fields.insert("overlapping".into(), json!(self.overlapping));
        fields.insert("pct_found".into(), json!(self.percent()));
        fields.insert("copies_found".into(), json!(self.found));
        fields.insert("copies_expected".into(), json!(self.expected));
        for (missing, count) in &self.missing {
            fields.insert(format!("missing_{missing}"), json!(count));
        }
        Value::Object(fields)
    }

    fn tell(&self, console: &mut Console<'_>) -> io::Result<()> {
        let (kind, listed, retries) = (self.kind, self.listed, self.retries);
        let took = shortly(self.seconds);
        console.say(format_args!(
            "{ANEW}Queried {listed} {kind}s for dispersion reporting, {took}, {retries} retries"
        ))?;
        if self.overlapping > 0 {
            console.say(format_args!("There were {} overlapping partitions", self.overlapping))?;
        }
        for (missing, count) in &self.missing {
            console.say(self.wanting(*missing, *count))?;
        }
        let (percent, found, expected) = (self.percent(), self.found, self.expected);
        console.say(format_args!(
            "{percent:.2}% of {kind} copies found ({found} of {expected})"
        ))?;
        let sample = (listed - self.overlapping) as f64 / f64::from(self.partitions) * 100.0;
        console.say(format_args!(
            "Sample represents {sample:.2}% of the {kind} partition space"
        ))
    }

    /// As OpenStack's says it, except that of a ring with one replica "all copy" is wanting there.
    fn wanting(&self, missing: usize, count: usize) -> String {
        let (were, partitions) = match count {
            1 => ("was", "partition"),
            _ => ("were", "partitions"),
        };
        let (mark, wanting) = match missing {
            0 => ("", "0 copies".to_owned()),
            missing if missing == self.replicas => ("!!! ", "all copies".to_owned()),
            missing => {
                let copies = if missing == 1 { "copy" } else { "copies" };
                let mark = if missing + 1 == self.replicas { "! " } else { "" };
                (mark, format!("{missing} {copies}"))
            }
        };
        format!("{mark}There {were} {count} {partitions} missing {wanting}.")
    }
}

#[cfg(test)]
mod tests {
    use super::CopySum;

    #[test]
    fn how_bad_it_is_stands_first_and_one_is_no_plural() {
        for (replicas, missing, count, reported) in [
            (3, 0, 5, "There were 5 partitions missing 0 copies."),
            (3, 1, 1, "There was 1 partition missing 1 copy."),
            (3, 1, 2, "There were 2 partitions missing 1 copy."),
            (3, 2, 1, "! There was 1 partition missing 2 copies."),
            (3, 3, 1, "!!! There was 1 partition missing all copies."),
            (2, 1, 7, "! There were 7 partitions missing 1 copy."),
            (1, 0, 7, "There were 7 partitions missing 0 copies."),
            (1, 1, 7, "!!! There were 7 partitions missing all copies."),
        ] {
            let sum = CopySum {
                replicas,
                ..CopySum::default()
            };
            assert_eq!(sum.wanting(missing, count), reported);
        }
    }
}
