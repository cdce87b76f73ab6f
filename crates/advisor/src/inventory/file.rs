//! The form of an inventory: what serde reads, before its numbers are looked at.

use serde::Deserialize;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InventoryFile {
    #[serde(default = "no_currency")]
    pub currency: String,
    pub server: Vec<FileServer>,
    pub drive: Vec<FileDrive>,
    #[serde(default)]
    pub balancer: Vec<FileBalancer>,
    #[serde(default)]
    pub protection: Vec<FileProtection>,
    #[serde(default = "three")]
    pub listing_replicas: u32,
    pub workload: FileWorkload,
    #[serde(default)]
    pub constraints: FileConstraints,
    pub design: Option<FileDesign>,
}

fn no_currency() -> String {
    "units of money".to_owned()
}

fn three() -> u32 {
    3
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileRole {
    Gateway,
    Storage,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileServer {
    pub name: String,
    pub roles: Vec<FileRole>,
    pub price: f64,
    pub cores: f64,
    pub memory: String,
    pub network: String,
    #[serde(default)]
    pub bays: u32,
    #[serde(default)]
    pub power: f64,
    #[serde(default)]
    pub rack_units: f64,
    pub most: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileDriveKind {
    Rotating,
    Flash,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileDrive {
    pub name: String,
    pub kind: FileDriveKind,
    pub price: f64,
    pub size: String,
    pub transfer: String,
    pub operations: f64,
    pub failures_a_year: f64,
    #[serde(default)]
    pub power: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileBalancer {
    pub name: String,
    pub price: f64,
    pub throughput: String,
    #[serde(default)]
    pub power: f64,
    #[serde(default)]
    pub rack_units: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileProtection {
    pub replicas: Option<u32>,
    pub data: Option<u32>,
    pub parity: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileWorkload {
    pub reads: f64,
    pub writes: f64,
    #[serde(default)]
    pub deletes: f64,
    pub objects: f64,
    pub containers: f64,
    pub sizes: Vec<FileSize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSize {
    pub size: String,
    pub share: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileConstraints {
    pub capacity: Option<String>,
    pub throughput: Option<String>,
    pub budget: Option<f64>,
    pub p99: Option<String>,
    pub zones: Option<u32>,
    pub racks: Option<u32>,
    pub units_per_rack: Option<f64>,
    pub power_per_rack: Option<f64>,
    pub growth_a_year: Option<f64>,
    pub years: Option<f64>,
    pub fill: Option<f64>,
    pub utilisation: Option<f64>,
    pub balancer_utilisation: Option<f64>,
    pub rebuild_share: Option<f64>,
    pub years_to_loss: Option<f64>,
    pub gateways: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileDesign {
    pub gateway: String,
    pub gateways: u32,
    pub storage: String,
    pub storage_nodes: u32,
    pub drive: String,
    pub drives: u32,
    pub listing_drive: Option<String>,
    pub listing_drives: Option<u32>,
    #[serde(default)]
    pub index_on_flash: bool,
    pub balancer: Option<String>,
    pub balancers: Option<u32>,
    pub uplink: Option<String>,
    pub replicas: Option<u32>,
    pub data: Option<u32>,
    pub parity: Option<u32>,
    pub part_power: Option<u32>,
    #[serde(default)]
    pub mixed_nodes: u32,
    pub mixed_weight: Option<f64>,
}
