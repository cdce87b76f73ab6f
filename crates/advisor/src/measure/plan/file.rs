//! The form of a plan: what serde reads, before its numbers are looked at; and what stands for a kind of node.
//!
//! Always holds: a figure that the plan says itself goes before that of the kind that it names; a kind without an
//! inventory, a figure that nothing says, and a key without effect are refused.

use super::{MeasuredPrices, NodeLimits};
use crate::inventory::check::speed;
use crate::inventory::{CatalogueServer, PurchaseInventory};
use crate::model::cluster::DrivePower;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use vocabulary::Fault;

/// Bytes and operations a second that a control group can be given.
const SPEEDS: (f64, f64) = (1e3, 1e12);

/// A file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    pub gateways: Vec<u32>,
    pub storage_nodes: Vec<u32>,
    pub sizes: Vec<u64>,
    pub workers: Vec<u32>,
    #[serde(default = "all")]
    pub reads: f64,
    #[serde(default = "two")]
    pub repeats: u32,
    #[serde(default = "ten")]
    pub seconds: u32,
    #[serde(default = "two")]
    pub warm_up: u32,
    #[serde(default = "forty")]
    pub objects: u32,
    #[serde(default = "three")]
    pub replicas: u32,
    #[serde(default = "three")]
    pub drives: u32,
    #[serde(default = "gigabyte")]
    pub drive_room: String,
    #[serde(default = "shared_memory")]
    pub folder: PathBuf,
    #[serde(default = "first_port")]
    pub first_port: u16,
    pub inventory: Option<PathBuf>,
    pub gateway: GatewaySection,
    pub storage: StorageSection,
    pub balancer: Option<BalancerSection>,
    pub prices: Option<PricesSection>,
}

/// `[gateway]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewaySection {
    kind: Option<String>,
    processors: Option<f64>,
    network: Option<String>,
}

/// `[storage]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageSection {
    kind: Option<String>,
    processors: Option<f64>,
    network: Option<String>,
    drive: Option<String>,
    transfer: Option<String>,
    operations: Option<f64>,
}

/// `[balancer]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BalancerSection {
    kind: Option<String>,
    throughput: Option<String>,
}

/// `[prices]`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PricesSection {
    gateway: f64,
    storage: f64,
    #[serde(default)]
    balancer: f64,
}

fn all() -> f64 {
    1.0
}

fn two() -> u32 {
    2
}

fn ten() -> u32 {
    10
}

fn three() -> u32 {
    3
}

fn forty() -> u32 {
    40
}

fn gigabyte() -> String {
    "1GB".to_owned()
}

fn shared_memory() -> PathBuf {
    Path::new("/dev/shm").to_owned()
}

fn first_port() -> u16 {
    26_200
}

/// Why a text is no plan, with what to write.
pub fn explained(text: &str, error: &toml::de::Error) -> String {
    let why = error.to_string();
    // Both have gateways, drives and balancers.
    let is_inventory = toml::from_str::<toml::Table>(text).is_ok_and(|table| table.contains_key("server"));
    match is_inventory {
        true => "this is an inventory, and a plan was expected, which names it by inventory = \"FILE\"".to_owned(),
        false => why.trim_end().to_owned(),
    }
}

/// A speed that can be limited.
pub fn limit(section: &str, key: &str, text: &str) -> Result<f64, Fault> {
    let wrong = |why: &dyn std::fmt::Display| Fault::caller(format!("{section}: {key} = {text:?}: {why}"));
    match speed(text) {
        Ok(value) if (SPEEDS.0..=SPEEDS.1).contains(&value) => Ok(value),
        Ok(_) => Err(wrong(&"expected 1kB/s to 1TB/s")),
        Err(fault) => Err(wrong(&fault)),
    }
}

/// What a plan's kinds are looked up in.
pub struct Kinds<'a>(pub Option<&'a PurchaseInventory>);

impl Kinds<'_> {
    fn find<T: Clone>(
        &self,
        (section, key, name): (&str, &str, &str),
        all: impl Fn(&PurchaseInventory) -> Vec<(String, T)>,
    ) -> Result<T, Fault> {
        let Some(inventory) = self.0 else {
            return Err(Fault::caller(format!(
                "{section}: {key} = {name:?}: the plan names no inventory that has it: write inventory = \"FILE\""
            )));
        };
        let known = all(inventory);
        let found = known.iter().find(|(known, _)| known == name);
        found.map(|(_, one)| one.clone()).ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
            Fault::caller(format!(
                "{section}: {key} = {name:?}: expected one of {}",
                names.join(", ")
            ))
        })
    }

    fn server(&self, section: &str, name: &str) -> Result<CatalogueServer, Fault> {
        let is_right = |one: &CatalogueServer| match section {
            "gateway" => one.is_gateway,
            _ => one.is_storage,
        };
        self.find((section, "kind", name), |inventory| {
            let right = inventory.servers.iter().filter(|one| is_right(one));
            right.map(|one| (one.name.clone(), one.clone())).collect()
        })
    }
}

/// A node's limits, and the price of its kind.
fn node(
    section: &str,
    kinds: &Kinds<'_>,
    (kind, processors, network): (Option<&str>, Option<f64>, Option<&str>),
) -> Result<(NodeLimits, Option<f64>), Fault> {
    let kind = kind.map(|name| kinds.server(section, name)).transpose()?;
    let processors = processors.or(kind.as_ref().map(|kind| kind.cores)).ok_or_else(|| {
        Fault::caller(format!(
            "{section}: expected processors, or the kind of a server in an inventory"
        ))
    })?;
    let network = match network {
        Some(text) => Some(limit(section, "network", text)?),
        None => kind.as_ref().map(|kind| kind.network),
    };
    let price = kind.map(|kind| kind.price);
    Ok((NodeLimits { processors, network }, price))
}

/// What one drive bears, and the price of its kind; nothing where drives are not limited.
fn drive(section: &StorageSection, kinds: &Kinds<'_>) -> Result<(Option<DrivePower>, f64), Fault> {
    let kind = section.drive.as_deref().map(|name| {
        kinds.find(("storage", "drive", name), |inventory| {
            let all = inventory.drives.iter();
            all.map(|one| (one.name.clone(), (one.bears, one.price))).collect()
        })
    });
    let kind = kind.transpose()?;
    let transfer = section.transfer.as_deref();
    let transfer = transfer.map(|text| limit("storage", "transfer", text)).transpose()?;
    if let Some(operations) = section.operations.filter(|one| !(1.0..=1e8).contains(one)) {
        let why = format!("storage: operations = {operations}: expected 1 to 100000000");
        return Err(Fault::caller(why));
    }
    let transfer = transfer.or(kind.map(|(bears, _)| bears.transfer));
    let operations = section.operations.or(kind.map(|(bears, _)| bears.operations));
    let price = kind.map_or(0.0, |(_, price)| price);
    match (transfer, operations) {
        (Some(transfer), Some(operations)) => Ok((Some(DrivePower { transfer, operations }), price)),
        (None, None) => Ok((None, price)),
        _ => Err(Fault::caller(
            "storage: expected both transfer and operations (of one drive), or neither",
        )),
    }
}

/// What the balancer passes on, and its price.
fn balancer(section: Option<&BalancerSection>, kinds: &Kinds<'_>) -> Result<Option<(f64, f64)>, Fault> {
    let known = |inventory: &PurchaseInventory| -> Vec<(String, (f64, f64))> {
        let all = inventory.balancers.iter();
        all.map(|one| (one.name.clone(), (one.throughput, one.price))).collect()
    };
    let Some(section) = section else {
        // Clients of such a cluster reach its gateways through one.
        return match kinds.0.map(known).as_deref() {
            None | Some([]) => Ok(None),
            Some([(_, only)]) => Ok(Some(*only)),
            Some(_) => Err(Fault::caller(
                "the inventory has several balancers: name one by [balancer] and kind",
            )),
        };
    };
    let kind = section.kind.as_deref();
    let kind = kind
        .map(|name| kinds.find(("balancer", "kind", name), known))
        .transpose()?;
    let own = section.throughput.as_deref();
    let own = own.map(|text| limit("balancer", "throughput", text)).transpose()?;
    let price = kind.map_or(0.0, |(_, price)| price);
    match own.or(kind.map(|(throughput, _)| throughput)) {
        Some(throughput) => Ok(Some((throughput, price))),
        None => Err(Fault::caller(
            "balancer: expected throughput, or the kind of a balancer in an inventory",
        )),
    }
}

/// No more servers of a kind than can be had of it, and no more drives in one than it has bays.
fn can_be_had(file: &PlanFile, kinds: &Kinds<'_>) -> Result<(), Fault> {
    for (section, key, name, counts) in [
        ("gateway", "gateways", &file.gateway.kind, &file.gateways),
        ("storage", "storage_nodes", &file.storage.kind, &file.storage_nodes),
    ] {
        let Some(name) = name else { continue };
        let kind = kinds.server(section, name)?;
        if let Some(count) = counts.iter().find(|count| **count > kind.most) {
            return Err(Fault::caller(format!(
                "{key}: {count}: the inventory has most = {} of {name:?}: expected {} or fewer, or another kind",
                kind.most, kind.most
            )));
        }
        if section == "storage" && file.drives > kind.bays {
            return Err(Fault::caller(format!(
                "drives = {}: {name:?} has {} bays: expected {} drives or fewer, or a kind with more bays",
                file.drives, kind.bays, kind.bays
            )));
        }
    }
    Ok(())
}

/// What the nodes of a plan stand for.
pub struct ResolvedNodes {
    pub gateway: NodeLimits,
    pub storage: NodeLimits,
    pub drive: Option<DrivePower>,
    pub balancer: Option<f64>,
    pub prices: Option<MeasuredPrices>,
}

impl ResolvedNodes {
    /// From the plan's sections and its inventory.
    pub fn of(file: &PlanFile, kinds: &Kinds<'_>) -> Result<Self, Fault> {
        can_be_had(file, kinds)?;
        let (one, other) = (&file.gateway, &file.storage);
        let of_gateway = (one.kind.as_deref(), one.processors, one.network.as_deref());
        let of_storage = (other.kind.as_deref(), other.processors, other.network.as_deref());
        let (gateway, gateway_price) = node("gateway", kinds, of_gateway)?;
        let (storage, storage_price) = node("storage", kinds, of_storage)?;
        let (drive, drive_price) = drive(other, kinds)?;
        let balancer = balancer(file.balancer.as_ref(), kinds)?;
        let currency = kinds
            .0
            .map_or("units of money", |inventory| inventory.currency.as_str());
        let prices = match (&file.prices, gateway_price, storage_price) {
            (Some(own), ..) => {
                let all = [own.gateway, own.storage, own.balancer];
                if all.iter().any(|price| !(0.0..=1e15).contains(price)) || all.iter().sum::<f64>() <= 0.0 {
                    let why = "prices: expected prices of 0 or more, and one above 0";
                    return Err(Fault::caller(why));
                }
                Some(all)
            }
            (None, Some(gateway), Some(storage)) => Some([
                gateway,
                storage + f64::from(file.drives) * drive_price,
                balancer.map_or(0.0, |(_, price)| price),
            ]),
            _ => None,
        };
        Ok(Self {
            gateway,
            storage,
            drive,
            balancer: balancer.map(|(throughput, _)| throughput),
            prices: prices.map(|[gateway, storage, balancer]| MeasuredPrices {
                gateway,
                storage,
                balancer,
                currency: currency.to_owned(),
            }),
        })
    }
}
