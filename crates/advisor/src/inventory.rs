//! What can be bought and what is wanted, from a TOML file.
//!
//! Comes in: the text of an inventory. Goes out: an [`PurchaseInventory`] whose every number lies in its range.
//! Always holds: an error names the section, the key and what is allowed; prices are the user's, those of the starter
//! catalogue are placeholders and say so.
//!
//! | question | file |
//! |---|---|
//! | the file's form | `inventory/file.rs` |
//! | ranges, units, references | `inventory/check.rs` |
//! | the starter catalogue | `inventory/starter.toml` |

pub(crate) mod check;
mod file;

use crate::model::cluster::DrivePower;
use crate::model::workload::{Protection, RequestMix};
use serde::Serialize;
use vocabulary::Fault;

/// The starter catalogue.
pub const STARTER: &str = include_str!("inventory/starter.toml");

/// Racks that an inventory may have.
pub const MOST_RACKS: u32 = 100_000;
/// Height that one may have.
pub const MOST_UNITS_PER_RACK: f64 = 100.0;
/// Watts that one may have.
pub const MOST_POWER_PER_RACK: f64 = 1e6;

/// A kind of server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CatalogueServer {
    /// Its name.
    pub name: String,
    /// It may be a gateway.
    pub is_gateway: bool,
    /// It may be a storage node.
    pub is_storage: bool,
    /// Without drives.
    pub price: f64,
    /// Processors; a share of one is what a limited container has.
    pub cores: f64,
    /// Bytes.
    pub memory: f64,
    /// Bytes a second in each direction.
    pub network: f64,
    /// Drives that fit.
    pub bays: u32,
    /// Watts, without drives.
    pub power: f64,
    /// Height.
    pub rack_units: f64,
    /// As many can be had.
    pub most: u32,
}

/// A kind of drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriveKind {
    /// Its name.
    pub name: String,
    /// Flash rather than a rotating disk.
    pub is_flash: bool,
    /// Of one.
    pub price: f64,
    /// Bytes.
    pub size: f64,
    /// Transfer and operations.
    #[serde(flatten)]
    pub bears: DrivePower,
    /// Share of drives that fail in a year, from 0 to 1.
    pub failures_a_year: f64,
    /// Watts.
    pub power: f64,
}

/// A kind of balancer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BalancerKind {
    /// Its name.
    pub name: String,
    /// Of one.
    pub price: f64,
    /// Bytes a second that it passes on.
    pub throughput: f64,
    /// Watts.
    pub power: f64,
    /// Height.
    pub rack_units: f64,
}

/// What is wanted. What is none does not matter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Wanted {
    /// Bytes of objects.
    pub capacity: Option<f64>,
    /// Bytes of bodies a second.
    pub throughput: Option<f64>,
    /// In the currency of the prices.
    pub budget: Option<f64>,
    /// Seconds.
    pub p99: Option<f64>,
    /// Racks; none where there may be as many as are needed.
    pub racks: Option<u32>,
    /// Height of one rack.
    pub units_per_rack: Option<f64>,
    /// Watts of one rack.
    pub power_per_rack: Option<f64>,
    /// Years until some object is lost, on average.
    pub years_to_loss: Option<f64>,
    /// Places that fail by themselves.
    pub zones: u32,
    /// By how much what is stored grows in a year: 0.2 is a fifth.
    pub growth_a_year: f64,
    /// For how many years it must suffice.
    pub years: f64,
    /// The share of drives that may be filled.
    pub fill: f64,
    /// How busy a resource may be at most.
    pub utilisation: f64,
    /// How busy balancers may be at most.
    pub balancer_utilisation: f64,
    /// The share of a drive's transfer that rebuilding may take.
    pub rebuild_share: f64,
    /// Gateways that there must be.
    pub gateways: u32,
}

/// The hardware that is there or planned, by kinds of the catalogue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedDesign {
    /// A kind of server.
    pub gateway: usize,
    /// How many.
    pub gateways: u32,
    /// A kind of server.
    pub storage: usize,
    /// How many.
    pub storage_nodes: u32,
    /// A kind of drive.
    pub drive: usize,
    /// In each node.
    pub drives: u32,
    /// A kind of drive for listings and how many are in each node.
    pub listing_drive: Option<(usize, u32)>,
    /// Metadata of objects lies on a drive for listings too.
    pub index_on_flash: bool,
    /// A kind of balancer and how many.
    pub balancer: Option<(usize, u32)>,
    /// Bytes a second that all gateways share.
    pub uplink: Option<f64>,
    /// Which of the protections.
    pub protection: usize,
    /// 2 to this power partitions; the plan of rings says it where it is not given.
    pub part_power: Option<u32>,
    /// How many of the storage nodes are gateways as well.
    pub mixed_nodes: u32,
    /// Their weight relative to the others'.
    pub mixed_weight: f64,
}

/// A catalogue and what is wanted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PurchaseInventory {
    /// Of the prices.
    pub currency: String,
    /// Kinds of server.
    pub servers: Vec<CatalogueServer>,
    /// Kinds of drive.
    pub drives: Vec<DriveKind>,
    /// Kinds of balancer; none where clients reach gateways directly.
    pub balancers: Vec<BalancerKind>,
    /// Ways to protect objects that may be chosen from.
    pub protections: Vec<Protection>,
    /// Copies of each listing.
    pub listing_replicas: u32,
    /// What is asked for.
    pub mix: RequestMix,
    /// What is wanted.
    pub wanted: Wanted,
    /// What is there or planned, for `predict`.
    pub design: Option<PlannedDesign>,
}

impl PurchaseInventory {
    /// Reads a file's text.
    pub fn read(text: &str) -> Result<Self, Fault> {
        let file: file::InventoryFile = toml::from_str(text).map_err(|error| Fault::caller(explained(&error)))?;
        check::checked(file)
    }
}

/// Why a text is no inventory, with what to write.
fn explained(error: &toml::de::Error) -> String {
    let why = error.to_string();
    let why = why.trim_end();
    let sections = [
        ("server", "[[server]]"),
        ("drive", "[[drive]]"),
        ("workload", "[workload]"),
    ];
    if let Some((_, section)) = sections
        .iter()
        .find(|(key, _)| error.message() == format!("missing field `{key}`"))
    {
        return format!("there is no section {section}: `martlet advise catalogue` prints an inventory that has all");
    }
    match error.message().ends_with("expected a string") {
        true => {
            format!("{why}: write quantities with their unit and in quotation marks, such as \"500TB\" or \"200ms\"")
        }
        false => why.to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{PurchaseInventory, STARTER};

    pub(crate) fn starter() -> PurchaseInventory {
        PurchaseInventory::read(STARTER).unwrap()
    }

    #[test]
    fn the_starter_catalogue_is_right() {
        let inventory = starter();
        assert!(inventory.servers.len() >= 3 && inventory.drives.len() >= 3);
        assert!((inventory.mix.mean_size() - 1.0).abs() > 0.0);
        assert!(STARTER.contains("placeholder"));
    }

    #[test]
    fn a_mistake_names_section_key_and_what_is_allowed() {
        let wrong = |from: &str, to: &str| {
            assert!(STARTER.contains(from), "{from}");
            PurchaseInventory::read(&STARTER.replacen(from, to, 1))
                .unwrap_err()
                .what
        };
        for (from, to, parts) in [
            (
                "cores = 16",
                "cores = 0",
                ["server \"gateway-16\": cores = 0", "expected 0.01 to 4096"],
            ),
            (
                "network = \"25Gbit/s\"",
                "network = \"25Gb/s\"",
                ["network = \"25Gb/s\"", "25Gbit/s"],
            ),
            (
                "size = \"16TB\"",
                "size = \"16 cows\"",
                ["drive \"disk-16t\": size", "no size"],
            ),
            (
                "size = \"16TB\"",
                "size = \"16Tb\"",
                ["drive \"disk-16t\": size = \"16Tb\"", "may mean bits: write 16TB"],
            ),
            (
                "size = \"16TB\"",
                "size = \"16tb\"",
                ["drive \"disk-16t\": size = \"16tb\"", "may mean bits: write 16TB"],
            ),
            (
                "memory = \"64GiB\"",
                "memory = \"64gb\"",
                ["server \"gateway-16\": memory = \"64gb\"", "may mean bits: write 64GB"],
            ),
            (
                "objects = 200e6",
                "objects = 900e6",
                ["workload: objects = 900000000", "capacity is 500 TB: expected 349"],
            ),
            ("reads = 0.8", "reads = 0.9", ["workload", "add up to 1.1"]),
            ("roles = [\"gateway\"]", "roles = [\"gate\"]", ["gate", "storage"]),
            ("fill = 0.8", "fill = 1.5", ["constraints: fill = 1.5", "0.01 to 1"]),
            ("zones = 4", "zons = 4", ["zons", "zones"]),
            ("p99 = \"1s\"", "p99 = 1", ["p99 = 1", "such as \"500TB\" or \"200ms\""]),
            (
                "capacity = \"500TB\"",
                "capacity = \"500\"",
                ["capacity = \"500\" is 500 bytes", "without a unit"],
            ),
            ("racks = 4\n", "racks = 0\n", ["constraints: racks = 0", "1 to 100000"]),
            (
                "growth_a_year = 0.2",
                "growth_a_year = 20.0",
                ["growth_a_year = 20", "(0.2 is 20 %)"],
            ),
            (
                "failures_a_year = 0.015",
                "failures_a_year = 1.5",
                ["failures_a_year = 1.5", "(0.015 is 1.5 %)"],
            ),
            (
                "size = \"10MB\"",
                "size = \"10GB\"",
                ["size = \"10GB\"", "expected 1 byte to 5 GiB"],
            ),
            (
                "memory = \"64GiB\"",
                "memory = \"64\"",
                ["memory = \"64\"", "without a unit"],
            ),
            (
                "size = \"16TB\"",
                "size = \"16\"",
                ["drive \"disk-16t\": size = \"16\"", "without a unit"],
            ),
            ("racks = 4\n", "", ["units_per_rack", "without racks"]),
            (
                "power_per_rack = 8000",
                "power_per_rack = 0",
                ["power_per_rack = 0", "1 to 1000000"],
            ),
            (
                "failures_a_year = 0.015",
                "failures_a_year = -1.0",
                ["failures_a_year = -1", "expected 0 to 1"],
            ),
        ] {
            let why = wrong(from, to);
            for part in parts {
                assert!(why.contains(part), "{why}");
            }
        }
    }

    #[test]
    fn a_section_that_is_missing_is_named() {
        for (text, section) in [
            ("drive = []\n", "[[server]]"),
            ("server = []\ndrive = []\n", "[workload]"),
        ] {
            let why = PurchaseInventory::read(text).unwrap_err().what;
            assert!(
                why.contains(&format!("there is no section {section}: `martlet advise catalogue`")),
                "{why}"
            );
        }
    }

    #[test]
    fn names_tell_kinds_apart() {
        for (to, part) in [
            ("disk-16t", "there are two"),
            (" ", "expected a name"),
            ("a\\n\\u009b31mb", "without control characters"),
        ] {
            let text = STARTER.replacen("name = \"disk-22t\"", &format!("name = \"{to}\""), 1);
            let why = PurchaseInventory::read(&text).unwrap_err().what;
            assert!(why.starts_with("drive") && why.contains(part), "{why}");
        }
    }

    #[test]
    fn a_design_that_cannot_be_built_is_refused() {
        let read = |change: &[(&str, &str)]| {
            let mut design = String::from(
                "\n[design]\ngateway = \"gateway-16\"\ngateways = 2\nstorage = \"storage-12\"\nstorage_nodes = 6\n\
                 drive = \"disk-16t\"\ndrives = 12\nreplicas = 2\n",
            );
            for (from, to) in change {
                assert!(design.contains(from), "{from}");
                design = design.replacen(from, to, 1);
            }
            PurchaseInventory::read(&format!("{STARTER}{design}"))
        };
        let on_flash = "listing_drive = \"flash-4t\"\nlisting_drives = 2\nindex_on_flash = true\nreplicas = 2";
        assert!(read(&[]).is_ok() && read(&[("replicas = 2", on_flash)]).is_ok());
        for (from, to, part) in [
            (
                "\"gateway-16\"",
                "\"storage-12\"",
                "roles do not have \"gateway\": expected one of gateway-16, gateway-32",
            ),
            ("\"storage-12\"", "\"gateway-32\"", "roles do not have \"storage\""),
            ("drives = 12", "drives = 15", "\"storage-12\" has 14 bays"),
            ("replicas = 2", "index_on_flash = true", "of kind flash"),
            (
                "replicas = 2",
                "listing_drive = \"disk-16t\"\nindex_on_flash = true",
                "of kind flash",
            ),
            ("replicas = 2", "listing_drives = 2", "without listing_drive"),
            ("replicas = 2", "balancers = 2", "without balancer"),
            ("replicas = 2", "mixed_weight = 2.0", "without mixed_nodes"),
            (
                "replicas = 2",
                "mixed_nodes = 2",
                "roles of \"storage-12\" do not have \"gateway\"",
            ),
            ("replicas = 2", "parity = 2", "either replicas, or data and parity"),
            (
                "storage_nodes = 6\ndrive = \"disk-16t\"\ndrives = 12",
                "storage_nodes = 1\ndrive = \"disk-16t\"\ndrives = 1",
                "2 pieces",
            ),
        ] {
            let why = read(&[(from, to)]).unwrap_err().what;
            assert!(why.starts_with("design: ") && why.contains(part), "{why}");
        }
    }

    #[test]
    fn a_currency_is_no_command_of_a_terminal() {
        let text = STARTER.replacen("\"EUR\"", "\"\\u001b[31mX\"", 1);
        let why = PurchaseInventory::read(&text).unwrap_err().what;
        assert!(
            why.starts_with("currency = ") && why.ends_with("without control characters"),
            "{why}"
        );
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(text in ".*", number in proptest::num::f64::ANY) {
            let _ = PurchaseInventory::read(&text);
            let _ = PurchaseInventory::read(&STARTER.replace("price = 5000", &format!("price = {number}")));
        }
    }
}
