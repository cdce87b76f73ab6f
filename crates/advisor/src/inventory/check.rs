//! Ranges, units and references of an inventory.

use super::file::{
    FileBalancer, FileDesign, FileDrive, FileDriveKind, FileProtection, FileRole, FileServer, FileWorkload,
    InventoryFile,
};
use super::{BalancerKind, CatalogueServer, DriveKind, PlannedDesign, PurchaseInventory};
use crate::model::cluster::DrivePower;
use crate::model::estimate::readable;
use crate::model::workload::{Protection, RequestMix, SizeShare};
use ring_builder::size;
use std::collections::BTreeSet;
use vocabulary::Fault;

mod constraints;
mod planned;

/// Kinds of one sort that a catalogue has at most, so that every answer is found in seconds.
const MOST_KINDS: usize = 16;
/// Rows of the histogram of sizes.
const MOST_SIZES: usize = 100;
/// How far shares may be off 1.
const ROUNDING: f64 = 1e-6;
/// A histogram of sizes is known no better, as a share of what is stored.
const HISTOGRAM_ERROR: f64 = 0.05;
/// Bytes of an object at most, as Swift's `max_file_size` is: what is larger is stored in segments.
const LARGEST_OBJECT: f64 = 5_368_709_122.0;
/// Bytes of memory, and of a drive, at least: less is a number whose unit was forgotten.
const LEAST_ROOM: f64 = 16e6;
/// Bytes a second at least, for the same reason.
const LEAST_SPEED: f64 = 1e3;
/// Money, watts and counts beyond this are mistakes.
const HUGE: f64 = 1e15;

/// A section of the file, for messages.
struct Section(String);

impl Section {
    fn named(kind: &str, name: &str) -> Self {
        Self(format!("{kind} {name:?}"))
    }

    fn number(&self, key: &str, value: f64, (least, most): (f64, f64)) -> Result<f64, Fault> {
        match (least..=most).contains(&value) {
            true => Ok(value),
            false => Err(Fault::caller(format!(
                "{}: {key} = {value}: expected {least} to {most}",
                self.0
            ))),
        }
    }

    /// A share, which may have been written in percent.
    fn share(&self, key: &str, value: f64, (least, most): (f64, f64)) -> Result<f64, Fault> {
        self.number(key, value, (least, most)).map_err(|fault| {
            let percent = (value * 1e6).round() / 1e6;
            match value > most && value <= 100.0 * most {
                true => Fault::caller(format!(
                    "{} ({} is {percent} %)",
                    fault.what,
                    (value * 1e4).round() / 1e6
                )),
                false => fault,
            }
        })
    }

    fn count(&self, key: &str, value: u32, (least, most): (u32, u32)) -> Result<u32, Fault> {
        self.number(key, f64::from(value), (f64::from(least), f64::from(most)))?;
        Ok(value)
    }

    fn positive(&self, key: &str, text: &str, read: fn(&str) -> Result<f64, Fault>) -> Result<f64, Fault> {
        let wrong = |why: &dyn std::fmt::Display| Fault::caller(format!("{}: {key} = {text:?}: {why}", self.0));
        match read(text) {
            Ok(value) if value > 0.0 && value < 1e24 => Ok(value),
            Ok(value) if value > 0.0 => Err(wrong(&"there is not so much")),
            Ok(_) => Err(wrong(&"expected more than nothing")),
            Err(fault) => Err(wrong(&fault)),
        }
    }

    /// Bytes that a part has, whose unit was not forgotten.
    fn room(&self, key: &str, text: &str) -> Result<f64, Fault> {
        match self.positive(key, text, size::bytes)? {
            room if room >= LEAST_ROOM => Ok(room),
            room => Err(Fault::caller(format!(
                "{}: {key} = {text:?} is {room} bytes: expected {} or more; what stands without a unit is bytes",
                self.0,
                shown(LEAST_ROOM)
            ))),
        }
    }

    /// Bytes a second that a part bears, whose unit was not forgotten.
    fn speed(&self, key: &str, text: &str) -> Result<f64, Fault> {
        match self.positive(key, text, speed)? {
            bears if bears >= LEAST_SPEED => Ok(bears),
            bears => Err(Fault::caller(format!(
                "{}: {key} = {text:?} is {} bytes a second: expected 1kB/s or more, such as 25Gbit/s or 200MB/s",
                self.0,
                readable(bears)
            ))),
        }
    }

    fn unknown(&self, key: &str, name: &str, known: &[String]) -> Fault {
        let known = known.join(", ");
        Fault::caller(format!("{}: {key} = {name:?}: expected one of {known}", self.0))
    }
}

/// Bytes a second: `25Gbit/s` or `200MB/s`.
pub(crate) fn speed(text: &str) -> Result<f64, Fault> {
    let lower = text.trim().to_lowercase();
    if let Some(bits) = lower.strip_suffix("bit/s") {
        return Ok(size::bytes(bits.trim_end())? / 8.0);
    }
    // `Gb` may mean either.
    match text.contains("b/s") {
        true => Err(Fault::caller("write 25Gbit/s or 3.1GB/s")),
        false => size::speed(text),
    }
}

/// Seconds: `200ms`, `1.5s`.
fn seconds(text: &str) -> Result<f64, Fault> {
    let text = text.trim();
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (None, Some(number)) => (number, 1.0),
        (None, None) => (text, 0.0),
    };
    let number: Option<f64> = number.trim().parse().ok().filter(|_| unit > 0.0);
    let refuse = || Fault::caller(format!("'{text}' is no time: write 200ms or 1.5s"));
    number.map(|number| number * unit).ok_or_else(refuse)
}

fn few<T>(what: &str, all: &[T], least: usize, most: usize) -> Result<(), Fault> {
    match (least..=most).contains(&all.len()) {
        true => Ok(()),
        false => Err(Fault::caller(format!(
            "{} sections [[{what}]]: expected {least} to {most}",
            all.len()
        ))),
    }
}

fn server(file: FileServer) -> Result<CatalogueServer, Fault> {
    let section = Section::named("server", &file.name);
    if file.roles.is_empty() {
        let why = "roles = []: expected \"gateway\", \"storage\" or both";
        return Err(Fault::caller(format!("{}: {why}", section.0)));
    }
    Ok(CatalogueServer {
        is_gateway: file.roles.contains(&FileRole::Gateway),
        is_storage: file.roles.contains(&FileRole::Storage),
        price: section.number("price", file.price, (0.0, HUGE))?,
        cores: section.number("cores", file.cores, (0.01, 4096.0))?,
        memory: section.room("memory", &file.memory)?,
        network: section.speed("network", &file.network)?,
        bays: section.count("bays", file.bays, (0, 1000))?,
        power: section.number("power", file.power, (0.0, 1e6))?,
        rack_units: section.number("rack_units", file.rack_units, (0.0, 100.0))?,
        most: section.count("most", file.most.unwrap_or(10_000), (1, 10_000))?,
        name: file.name,
    })
}

fn drive(file: FileDrive) -> Result<DriveKind, Fault> {
    let section = Section::named("drive", &file.name);
    Ok(DriveKind {
        is_flash: file.kind == FileDriveKind::Flash,
        price: section.number("price", file.price, (0.0, HUGE))?,
        size: section.room("size", &file.size)?,
        bears: DrivePower {
            transfer: section.speed("transfer", &file.transfer)?,
            operations: section.number("operations", file.operations, (1.0, 1e8))?,
        },
        failures_a_year: section.share("failures_a_year", file.failures_a_year, (0.0, 1.0))?,
        power: section.number("power", file.power, (0.0, 1000.0))?,
        name: file.name,
    })
}

fn balancer(file: FileBalancer) -> Result<BalancerKind, Fault> {
    let section = Section::named("balancer", &file.name);
    Ok(BalancerKind {
        price: section.number("price", file.price, (0.0, HUGE))?,
        throughput: section.speed("throughput", &file.throughput)?,
        power: section.number("power", file.power, (0.0, 1e6))?,
        rack_units: section.number("rack_units", file.rack_units, (0.0, 100.0))?,
        name: file.name,
    })
}

fn protection(file: &FileProtection) -> Result<Protection, Fault> {
    let section = Section("protection".to_owned());
    match (file.replicas, file.data, file.parity) {
        (Some(replicas), None, None) => Ok(Protection::Replicas(section.count("replicas", replicas, (1, 10))?)),
        (None, Some(data), Some(parity)) => Ok(Protection::Erasure {
            data: section.count("data", data, (1, 28))?,
            parity: section.count("parity", parity, (1, 16))?,
        }),
        _ => Err(Fault::caller(
            "protection: expected either replicas, or data and parity",
        )),
    }
}

fn mix(file: FileWorkload) -> Result<RequestMix, Fault> {
    let section = Section("workload".to_owned());
    for (key, share) in [
        ("reads", file.reads),
        ("writes", file.writes),
        ("deletes", file.deletes),
    ] {
        section.share(key, share, (0.0, 1.0))?;
    }
    let all = file.reads + file.writes + file.deletes;
    if (all - 1.0).abs() > ROUNDING {
        return Err(Fault::caller(format!(
            "workload: reads, writes and deletes add up to {}: expected 1",
            (all * 1e6).round() / 1e6
        )));
    }
    few("workload.sizes", &file.sizes, 1, MOST_SIZES)?;
    let mut sizes = vec![];
    for one in &file.sizes {
        let section = Section::named("workload: size", &one.size);
        let size = section.positive("size", &one.size, size::bytes)?;
        if !(1.0..=LARGEST_OBJECT).contains(&size) {
            return Err(Fault::caller(format!(
                "workload: size = {:?}: expected 1 byte to 5 GiB; larger objects are stored in segments: say how large \
                 those are",
                one.size
            )));
        }
        sizes.push(SizeShare {
            size,
            share: section.share("share", one.share, (0.0, 1.0))?,
        });
    }
    let all: f64 = sizes.iter().map(|one| one.share).sum();
    if (all - 1.0).abs() > ROUNDING {
        return Err(Fault::caller(format!(
            "workload: shares of sizes add up to {}: expected 1",
            (all * 1e6).round() / 1e6
        )));
    }
    if file.reads + file.writes <= 0.0 {
        return Err(Fault::caller(
            "workload: reads and writes are both 0: expected one of them to be more",
        ));
    }
    Ok(RequestMix {
        reads: file.reads,
        writes: file.writes,
        deletes: file.deletes,
        sizes,
        objects: section.number("objects", file.objects, (0.0, HUGE))?,
        containers: section.number("containers", file.containers, (1.0, HUGE))?,
    })
}

/// Its place in the catalogue.
fn find<T>(section: &Section, key: &str, name: &str, all: &[T], name_of: fn(&T) -> &String) -> Result<usize, Fault> {
    let found = all.iter().position(|one| name_of(one) == name);
    let known = || all.iter().map(|one| name_of(one).clone()).collect::<Vec<_>>();
    found.ok_or_else(|| section.unknown(key, name, &known()))
}

fn design(file: &FileDesign, inventory: &mut PurchaseInventory) -> Result<PlannedDesign, Fault> {
    let section = Section("design".to_owned());
    let server = |key, name| find(&section, key, name, &inventory.servers, |one| &one.name);
    let drive = |key, name| find(&section, key, name, &inventory.drives, |one| &one.name);
    let listing_drive = match &file.listing_drive {
        Some(name) => {
            let count = section.count("listing_drives", file.listing_drives.unwrap_or(1), (1, 1000))?;
            Some((drive("listing_drive", name)?, count))
        }
        None => None,
    };
    let balancer = match &file.balancer {
        Some(name) => {
            let kind = find(&section, "balancer", name, &inventory.balancers, |one| &one.name)?;
            Some((
                kind,
                section.count("balancers", file.balancers.unwrap_or(1), (1, 1000))?,
            ))
        }
        None => None,
    };
    let storage_nodes = section.count("storage_nodes", file.storage_nodes, (1, 10_000))?;
    let planned = PlannedDesign {
        gateway: server("gateway", &file.gateway)?,
        gateways: section.count("gateways", file.gateways, (1, 10_000))?,
        storage: server("storage", &file.storage)?,
        storage_nodes,
        drive: drive("drive", &file.drive)?,
        drives: section.count("drives", file.drives, (1, 1000))?,
        listing_drive,
        index_on_flash: file.index_on_flash,
        balancer,
        uplink: file
            .uplink
            .as_deref()
            .map(|text| section.positive("uplink", text, speed))
            .transpose()?,
        protection: inventory.protections.len(),
        part_power: file
            .part_power
            .map(|power| section.count("part_power", power, (1, 32)))
            .transpose()?,
        mixed_nodes: section.count("mixed_nodes", file.mixed_nodes, (0, storage_nodes))?,
        mixed_weight: section.number("mixed_weight", file.mixed_weight.unwrap_or(1.0), (0.01, 100.0))?,
    };
    let own = FileProtection {
        replicas: file.replicas,
        data: file.data,
        parity: file.parity,
    };
    // Without a word of its own it has the first one.
    let planned = match (file.replicas, file.data, file.parity) {
        (None, None, None) => PlannedDesign {
            protection: 0,
            ..planned
        },
        _ => {
            let own = protection(&own).map_err(|fault| fault.within("design"))?;
            inventory.protections.push(own);
            planned
        }
    };
    planned::buildable(file, &planned, inventory)?;
    Ok(planned)
}

/// Each drive has room for the largest object, or for a fragment of it.
fn places_for_pieces(inventory: &PurchaseInventory) -> Result<(), Fault> {
    let largest = inventory.mix.sizes.iter().map(|one| one.size).fold(0.0, f64::max);
    let shares = inventory.protections.iter().map(|one| one.piece_share());
    let piece = largest * shares.fold(1.0, f64::min);
    match inventory.drives.iter().find(|drive| drive.size < piece) {
        Some(drive) => Err(Fault::caller(format!(
            "drive {:?}: size is {}, and objects of the workload have up to {}: expected a drive that one fits on, or \
             smaller objects",
            drive.name,
            shown(drive.size),
            shown(largest)
        ))),
        None => Ok(()),
    }
}

/// Bytes for people, in the units of a catalogue.
fn shown(bytes: f64) -> String {
    match bytes {
        size @ 1e12.. => format!("{} TB", readable(size / 1e12)),
        size @ 1e6.. => format!("{} MB", readable(size / 1e6)),
        size => format!("{} bytes", readable(size)),
    }
}

fn each<F, T>(files: Vec<F>, check: fn(F) -> Result<T, Fault>) -> Result<Vec<T>, Fault> {
    files.into_iter().map(check).collect()
}

/// Kinds of one sort have different names.
fn named_apart<'a>(kind: &str, names: impl Iterator<Item = &'a String>) -> Result<(), Fault> {
    let mut seen = BTreeSet::new();
    for name in names {
        if name.trim().is_empty() {
            return Err(Fault::caller(format!("{kind}: name = {name:?}: expected a name")));
        }
        // They would be written to a terminal.
        if name.chars().any(char::is_control) {
            let why = "expected a name without control characters";
            return Err(Fault::caller(format!("{kind}: name = {name:?}: {why}")));
        }
        if !seen.insert(name) {
            let why = "there are two of this name: expected a name of its own for each";
            return Err(Fault::caller(format!("{kind} {name:?}: {why}")));
        }
    }
    Ok(())
}

/// Every number in its range, every name known.
pub fn checked(file: InventoryFile) -> Result<PurchaseInventory, Fault> {
    few("server", &file.server, 1, MOST_KINDS)?;
    few("drive", &file.drive, 1, MOST_KINDS)?;
    few("balancer", &file.balancer, 0, MOST_KINDS)?;
    few("protection", &file.protection, 0, MOST_KINDS)?;
    named_apart("server", file.server.iter().map(|one| &one.name))?;
    named_apart("drive", file.drive.iter().map(|one| &one.name))?;
    named_apart("balancer", file.balancer.iter().map(|one| &one.name))?;
    // It would be written to a terminal.
    if file.currency.chars().any(char::is_control) {
        let why = "expected a name without control characters";
        return Err(Fault::caller(format!("currency = {:?}: {why}", file.currency)));
    }
    let whole = Section("inventory".to_owned());
    let mut protections: Vec<Protection> = file.protection.iter().map(protection).collect::<Result<_, _>>()?;
    if protections.is_empty() {
        protections.push(Protection::Replicas(3));
    }
    let mut inventory = PurchaseInventory {
        currency: file.currency,
        servers: each(file.server, server)?,
        drives: each(file.drive, drive)?,
        balancers: each(file.balancer, balancer)?,
        protections,
        listing_replicas: whole.count("listing_replicas", file.listing_replicas, (1, 10))?,
        mix: mix(file.workload)?,
        wanted: constraints::wanted(&file.constraints)?,
        design: None,
    };
    for (role, is_there) in [
        ("gateway", inventory.servers.iter().any(|one| one.is_gateway)),
        (
            "storage",
            inventory.servers.iter().any(|one| one.is_storage && one.bays > 0),
        ),
    ] {
        if !is_there {
            let why = format!("no server has the role {role:?}, and bays where it stores: expected one at least");
            return Err(Fault::caller(why));
        }
    }
    constraints::room_for_objects(&inventory)?;
    places_for_pieces(&inventory)?;
    if let Some(planned) = &file.design {
        inventory.design = Some(design(planned, &mut inventory)?);
    }
    Ok(inventory)
}
