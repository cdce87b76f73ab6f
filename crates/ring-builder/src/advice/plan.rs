//! `plan`: part power, replicas and zones for a new ring, and why.
//!
//! The advice is that of OpenStack's guide: a hundred partitions for each drive the cluster will ever have, rounded
//! up to a power of two; three replicas; five zones or more.

use super::inventory::{Inventory, InventoryServer, bounded, drive_size, usual_port};
use super::planned_cluster::PlannedCluster;
use super::{plan_commands::commands, plan_picture, size};
use crate::command::{CommandResult, Desk};
use crate::options::{Declared, ParsedOptions, Takes, long};
use crate::terminal::{CommandStatus, Stop};
use placement::RingBuilder;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use vocabulary::Fault;

/// Partitions for each drive of the final cluster.
const PARTS_PER_DRIVE: f64 = 100.0;
/// Copies of everything, by default.
const USUAL_REPLICAS: f64 = 3.0;
/// So many zones leave enough of them when one is lost.
const GOOD_ZONES: u32 = 5;
/// Hours that a partition stays.
const USUAL_HOURS: u32 = 24;
/// How much a cluster grows when no growth is given.
const USUAL_GROWTH: u32 = 4;
/// How much more than its share a zone may have before it is worth a word.
const SLACK: f64 = 0.01;
/// The largest inventory.
const LARGEST_FILE: u64 = 16 << 20;

const DECLARED: [Declared; 12] = [
    long("drives", Takes::Whole, "drives the cluster begins with"),
    long("final-drives", Takes::Whole, "drives it will have in the end"),
    long("drive-size", Takes::Text, "what a drive holds (16TB)"),
    long("servers", Takes::Whole, "servers it begins with"),
    long(
        "zones",
        Takes::Whole,
        "zones: racks, rooms or power feeds that fail by themselves",
    ),
    long("regions", Takes::Whole, "regions: places far from each other"),
    long("replicas", Takes::Float, "copies of everything"),
    long(
        "min-part-hours",
        Takes::Whole,
        "how long a partition stays after it moved",
    ),
    long("inventory", Takes::Text, "a TOML file with the servers"),
    long("json", Takes::Nothing, "print JSON"),
    super::SVG,
    long("no-questions", Takes::Nothing, "assume what is not said"),
];

/// What is proposed, and why.
struct Proposal {
    part_power: u32,
    why: Vec<(&'static str, String)>,
    warnings: Vec<String>,
    commands: Vec<String>,
}

/// Proposes.
pub fn plan(desk: &mut Desk<'_, '_>, builder: Option<RingBuilder>) -> CommandResult {
    let options = desk.options(&DECLARED)?;
    let picture = options.text("svg");
    if picture.is_some() && options.text("inventory").is_none() {
        return Err(Stop::Refused("--svg draws the servers of an --inventory".to_owned()));
    }
    let cluster = cluster(desk, &options)?;
    let proposal = propose(desk, &cluster, builder.as_ref())?;
    if options.has("json") {
        desk.terminal.say(as_json(&cluster, &proposal));
    } else {
        tell(desk, &cluster, &proposal);
    }
    if let Some(path) = picture {
        plan_picture::save(desk, &cluster, proposal.part_power, path)?;
    }
    Ok(match proposal.warnings.is_empty() {
        true => CommandStatus::Success,
        false => CommandStatus::Warning,
    })
}

fn count(options: &ParsedOptions, name: &str) -> Result<Option<u32>, Fault> {
    let number = options.whole(name);
    let fits = |number: i64| u32::try_from(number).ok().filter(|it| *it > 0);
    let refuse = |number| Fault::caller(format!("--{name} {number}: choose 1 or more"));
    number
        .map(|number| fits(number).ok_or_else(|| refuse(number)))
        .transpose()
}

/// What the operator answers where options do not say it.
struct Questions<'q, 'd, 't> {
    desk: &'q mut Desk<'d, 't>,
    options: &'q ParsedOptions,
    may_ask: bool,
}

impl Questions<'_, '_, '_> {
    /// The number of an option, else the answer to a question; none where there is neither.
    fn number(&mut self, name: &str, question: &str) -> Result<Option<u32>, Stop> {
        let given = count(self.options, name)?;
        if given.is_some() || !self.may_ask {
            return Ok(given);
        }
        let answer = self.desk.terminal.answer(question);
        let number = answer.trim().parse().ok().filter(|it| *it > 0);
        match (answer.trim(), number) {
            ("", _) => Ok(None),
            (_, Some(number)) => Ok(Some(number)),
            (text, None) => Err(Stop::Refused(format!("'{text}' is no number of them"))),
        }
    }

    /// Drives at the beginning and in the end.
    fn drives(&mut self, inventory: &Inventory) -> Result<(u32, u32), Stop> {
        let listed = Some(inventory.drives()).filter(|drives| *drives > 0);
        let drives = match listed {
            Some(drives) => Some(drives),
            None => self.number("drives", "How many drives does the cluster begin with? ")?,
        };
        let missing = "say how many drives the cluster begins with: --drives or --inventory";
        let drives = drives.ok_or_else(|| Stop::Refused(missing.to_owned()))?;
        let question = "How many will it have in the end (Enter: four times as many)? ";
        let final_drives = match (inventory.final_drives, self.options.has("final-drives")) {
            (Some(drives), false) => Some(drives),
            _ => self.number("final-drives", question)?,
        };
        if let Some(fewer) = final_drives.filter(|it| *it < drives) {
            let why = format!("{fewer} drives in the end: the cluster begins with {drives}");
            return Err(Stop::Refused(why));
        }
        let final_drives = final_drives.unwrap_or_else(|| drives.saturating_mul(USUAL_GROWTH));
        Ok((bounded(drives)?, bounded(final_drives)?))
    }
}

/// From options, the inventory, answers and assumptions, in this order.
fn cluster(desk: &mut Desk<'_, '_>, options: &ParsedOptions) -> Result<PlannedCluster, Stop> {
    let file = options.text("inventory");
    let inventory = match file {
        Some(path) => read_inventory(desk, path)?,
        None => Inventory::default(),
    };
    let both = ["drives", "zones", "regions", "servers"]
        .into_iter()
        .find(|name| file.is_some() && options.has(name));
    if let Some(name) = both {
        return Err(Stop::Refused(format!("say --{name} or --inventory, not both")));
    }
    let may_ask = file.is_none() && !options.has("no-questions") && !options.has("json");
    let mut questions = Questions { desk, options, may_ask };
    let (drives, final_drives) = questions.drives(&inventory)?;
    let places = |key: fn(&InventoryServer) -> (u32, u32)| {
        let places: BTreeSet<_> = inventory.servers.iter().map(key).collect();
        (!places.is_empty()).then_some(places.len() as u32)
    };
    let question = "In how many zones (racks, rooms, power feeds) does it stand (Enter: 1)? ";
    let zones = match places(|server| (server.region, server.zone)) {
        Some(zones) => Some(zones),
        None => questions.number("zones", question)?,
    };
    let regions = match places(|server| (server.region, 0)) {
        Some(regions) => Some(regions),
        None => count(options, "regions")?,
    };
    Ok(PlannedCluster {
        drives,
        final_drives,
        zones: zones.unwrap_or(1),
        regions: regions.unwrap_or(1),
        servers: count(options, "servers")?
            .or((!inventory.servers.is_empty()).then_some(inventory.servers.len() as u32)),
        drive_size: options.text("drive-size").map(drive_size).transpose()?,
        replicas: options
            .float("replicas")
            .or(inventory.replicas)
            .unwrap_or(USUAL_REPLICAS),
        hours: count(options, "min-part-hours")?
            .or(inventory.min_part_hours)
            .unwrap_or(USUAL_HOURS),
        inventory,
    })
}

fn read_inventory(desk: &Desk<'_, '_>, path: &str) -> Result<Inventory, Stop> {
    let refuse = |why: Fault| why.within(format_args!("inventory {path}"));
    let bytes = desk
        .shelf
        .read_other(Path::new(path), LARGEST_FILE)
        .map_err(|error| refuse(Fault::caller(error.to_string())))?;
    let text = String::from_utf8(bytes).map_err(|_| refuse(Fault::caller("is no text")))?;
    Ok(Inventory::read(&text, usual_port(&desk.shelf.files().builder)).map_err(refuse)?)
}

fn propose(desk: &Desk<'_, '_>, cluster: &PlannedCluster, builder: Option<&RingBuilder>) -> Result<Proposal, Stop> {
    let PlannedCluster {
        drives,
        final_drives,
        zones,
        replicas,
        ..
    } = *cluster;
    if !(1.0..=1024.0).contains(&replicas) {
        return Err(Stop::Refused(format!(
            "{replicas} replicas: choose 1 or more (3 is usual)"
        )));
    }
    if f64::from(drives) < replicas.ceil() {
        return Err(Stop::Refused(format!(
            "{replicas} replicas need as many drives; the cluster has {drives}"
        )));
    }
    let wanted = f64::from(final_drives) * PARTS_PER_DRIVE;
    let part_power = wanted.log2().ceil().max(1.0) as u32;
    let partitions = 2f64.powi(part_power as i32);
    let per_drive = |drives: u32| partitions * replicas / f64::from(drives);
    let memory = partitions * replicas * 2.0;
    let why = vec![
        (
            "part power",
            format!(
                "{final_drives} drives in the end x {PARTS_PER_DRIVE:.0} = {wanted:.0}, and the next power of two is \
                 2^{part_power} = {partitions:.0}. A drive holds {:.0} replicas of partitions now and {:.0} in the end, so \
                 shares come out to within {:.1}%. The ring takes {} in every server's memory.",
                per_drive(drives),
                per_drive(final_drives),
                100.0 / per_drive(final_drives),
                size::shown(memory)
            ),
        ),
        ("replicas", why_replicas(replicas)),
        ("zones", why_zones(zones, replicas)),
        (
            "min_part_hours",
            format!(
                "{} h: longer than a pass of the replicators takes (see recon), so that of each partition only one replica \
                 is ever on its way.",
                cluster.hours
            ),
        ),
    ];
    Ok(Proposal {
        part_power,
        why,
        warnings: warnings(cluster, part_power, builder),
        commands: commands(desk, cluster, part_power),
    })
}

fn why_replicas(replicas: f64) -> String {
    let usual = match replicas {
        it if it < 2.0 => "one copy: any drive that fails takes data with it",
        it if it < 3.0 => {
            "two copies: one is left while a drive is replaced, and a write is acknowledged when one is stored"
        }
        it if it < 4.0 => {
            "three copies: two are left while one is repaired, two of three are a majority for writes; more copies cost \
             more than they save"
        }
        _ => "more than three copies: for several regions (two in each), or for reading much",
    };
    format!("{replicas}: {usual}.")
}

fn why_zones(zones: u32, replicas: f64) -> String {
    if f64::from(zones) < replicas.ceil() {
        return format!(
            "{zones}: replicas share zones, so that one failing zone takes more than one copy out of reach. {GOOD_ZONES} \
             are good."
        );
    }
    if zones < GOOD_ZONES {
        return format!(
            "{zones}: every copy in a zone of its own; while one is lost, what it held has to go to the other {}. \
             {GOOD_ZONES} are better: each can then be lost or serviced and the rest takes its share.",
            zones - 1
        );
    }
    format!("{zones}: every copy in a zone of its own, and zones to spare while one is lost or serviced.")
}

/// What an operator should know before it is too late.
fn warnings(cluster: &PlannedCluster, part_power: u32, builder: Option<&RingBuilder>) -> Vec<String> {
    let mut warnings = Vec::new();
    if f64::from(cluster.zones) < cluster.replicas.ceil() {
        warnings.push(format!(
            "{} zone(s) for {} replicas: replicas will share zones. If servers are all that fails by itself, make each \
             server a zone.",
            cluster.zones, cluster.replicas
        ));
    }
    let mut weights: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for server in &cluster.inventory.servers {
        let size = cluster.size_of_a_drive(server) * server.devices.len() as f64;
        *weights.entry((server.region, server.zone)).or_default() += size;
    }
    let total: f64 = weights.values().sum();
    for ((region, zone), weight) in weights {
        if weight / total > 1.0 / cluster.replicas + SLACK && f64::from(cluster.zones) >= cluster.replicas {
            warnings.push(format!(
                "zone {zone} of region {region} has {:.0}% of the room, more than one of {} replicas fills: an overload or \
                 more in the other zones is needed to keep replicas apart.",
                100.0 * weight / total,
                cluster.replicas
            ));
        }
    }
    if builder.is_some_and(|builder| builder.part_power() == part_power) {
        warnings.push("the builder exists: create would replace it by one without devices.".to_owned());
    }
    if let Some(builder) = builder
        && builder.part_power() != part_power
    {
        warnings.push(format!(
            "the builder exists and has part power {}: create would replace it by one without devices. The power grows \
             by one at a time with prepare_increase_partition_power, and never shrinks.",
            builder.part_power()
        ));
    }
    warnings
}

fn tell(desk: &mut Desk<'_, '_>, cluster: &PlannedCluster, proposal: &Proposal) {
    let file = desk.builder_name();
    let terminal = &mut *desk.terminal;
    let servers = cluster
        .servers
        .map_or_else(String::new, |servers| format!(" on {servers} servers"));
    terminal.say(format_args!(
        "Plan for {file}: {} drives{servers} in {} zone(s) of {} region(s), {} drives in the end\n",
        cluster.drives, cluster.zones, cluster.regions, cluster.final_drives
    ));
    for (name, why) in &proposal.why {
        terminal.say(super::paragraph(&format!("{name:<15}"), why));
    }
    for warning in &proposal.warnings {
        terminal.say(super::paragraph("WARNING        ", warning));
    }
    terminal.say("");
    for command in &proposal.commands {
        terminal.say(command);
    }
}

fn as_json(cluster: &PlannedCluster, proposal: &Proposal) -> String {
    let why: serde_json::Map<String, Value> = proposal
        .why
        .iter()
        .map(|(name, why)| (name.replace(' ', "_"), why.clone().into()))
        .collect();
    let value = json!({
        "part_power": proposal.part_power,
        "partitions": 1u64 << proposal.part_power,
        "replicas": cluster.replicas,
        "min_part_hours": cluster.hours,
        "zones": cluster.zones,
        "regions": cluster.regions,
        "drives": cluster.drives,
        "final_drives": cluster.final_drives,
        "why": why,
        "warnings": proposal.warnings,
        "commands": proposal.commands,
    });
    super::pretty(&value)
}
