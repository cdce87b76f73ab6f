//! What a cluster is or will be made of, from a TOML file or from what the operator says.
//!
//! Always holds: numbers are bounded before anything is allocated for them.

use super::size;
use serde::Deserialize;
use std::collections::HashSet;
use std::path::Path;
use vocabulary::Fault;

/// More drives than any cluster has.
const MOST_DRIVES: u32 = 1_000_000;
/// More servers than an inventory lists.
const MOST_SERVERS: usize = 100_000;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    final_drives: Option<u32>,
    replicas: Option<f64>,
    min_part_hours: Option<u32>,
    #[serde(default)]
    server: Vec<FileServer>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileServer {
    #[serde(default = "one")]
    region: u32,
    zone: u32,
    ip: String,
    port: Option<u16>,
    replication_ip: Option<String>,
    replication_port: Option<u16>,
    drives: Option<u32>,
    #[serde(default)]
    devices: Vec<String>,
    drive_size: Option<String>,
}

fn one() -> u32 {
    1
}

/// Where the servers of a builder's kind listen by default, as far as its file name says the kind.
pub fn usual_port(builder: &Path) -> u16 {
    let stem = builder
        .file_stem()
        .map(|stem| stem.to_string_lossy())
        .unwrap_or_default();
    match stem.split(['.', '-', '_']).next() {
        Some("account") => 6202,
        Some("container") => 6201,
        _ => 6200,
    }
}

/// A server and its drives.
#[derive(Debug, Clone, PartialEq)]
pub struct InventoryServer {
    /// Where it stands.
    pub region: u32,
    /// Where it stands within the region.
    pub zone: u32,
    /// How it is reached, as an add value says it: `10.0.0.1:6200R10.1.0.1:6200`.
    pub address: String,
    /// The names of its drives.
    pub devices: Vec<String>,
    /// What each holds, in bytes; none when not given.
    pub drive_size: Option<f64>,
}

/// A cluster.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Inventory {
    /// Its servers; none when only numbers are known.
    pub servers: Vec<InventoryServer>,
    /// Drives at its final size.
    pub final_drives: Option<u32>,
    /// Copies of everything.
    pub replicas: Option<f64>,
    /// How long a partition stays.
    pub min_part_hours: Option<u32>,
}

impl Inventory {
    /// Reads a TOML file's text; servers whose port it does not say listen on `usual_port`.
    pub fn read(text: &str, usual_port: u16) -> Result<Inventory, Fault> {
        let file: File = toml::from_str(text).map_err(|error| Fault::caller(error.to_string().trim_end()))?;
        if file.server.len() > MOST_SERVERS {
            return Err(Fault::caller(format!("more than {MOST_SERVERS} servers")));
        }
        let (mut drives, mut places) = (0u32, HashSet::new());
        let servers = file.server.into_iter().map(|server| {
            let named = server.devices.len() as u32;
            let count = server.drives.unwrap_or(named);
            if named > 0 && named != count {
                return Err(Fault::caller(format!(
                    "server {}: {count} drives, and {named} devices",
                    server.ip
                )));
            }
            drives = drives.saturating_add(count);
            if count == 0 || drives > MOST_DRIVES {
                return Err(Fault::caller(format!(
                    "server {}: say `drives` (up to {MOST_DRIVES} in all) or `devices`",
                    server.ip
                )));
            }
            server.known(usual_port)
        });
        let servers: Vec<InventoryServer> = servers.collect::<Result<_, _>>()?;
        for server in &servers {
            // A device is known by address and name; replicators' addresses may be shared.
            let place = server.address.split('R').next().unwrap_or_default();
            if let Some(twice) = server
                .devices
                .iter()
                .find(|name| !places.insert((place, name.as_str())))
            {
                return Err(Fault::caller(format!("server {place} has {twice} twice")));
            }
        }
        Ok(Inventory {
            servers,
            final_drives: file.final_drives.map(bounded).transpose()?,
            replicas: file.replicas,
            min_part_hours: file.min_part_hours,
        })
    }

    /// How many drives it has.
    pub fn drives(&self) -> u32 {
        self.servers.iter().map(|server| server.devices.len() as u32).sum()
    }
}

/// What a drive holds.
pub fn drive_size(text: &str) -> Result<f64, Fault> {
    match size::bytes(text)? {
        size if size > 0.0 => Ok(size),
        _ => Err(Fault::caller(format!("a drive of {text} holds nothing"))),
    }
}

/// A name that needs no quotation marks in a shell.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:+@".contains(&byte);
    !name.is_empty() && !name.starts_with('-') && name.bytes().all(plain)
}

/// A number of drives that some cluster has.
pub fn bounded(drives: u32) -> Result<u32, Fault> {
    match drives {
        1..=MOST_DRIVES => Ok(drives),
        _ => Err(Fault::caller(format!("{drives} drives: choose 1 to {MOST_DRIVES}"))),
    }
}

impl FileServer {
    fn known(self, usual_port: u16) -> Result<InventoryServer, Fault> {
        let show = |ip: &str| crate::address::address(ip).map(|ip| crate::address::before_port(&ip));
        let port = self.port.unwrap_or(usual_port);
        if port == 0 || self.replication_port == Some(0) {
            return Err(Fault::caller(format!(
                "server {}: port 0 cannot be connected to",
                self.ip
            )));
        }
        if let Some(name) = self.devices.iter().find(|name| !is_plain(name)) {
            let (ip, name) = (&self.ip, name.escape_debug());
            return Err(Fault::caller(format!(
                "server {ip}: device '{name}': choose letters, digits, and - _ . : + @"
            )));
        }
        let mut address = format!("{}:{}", show(&self.ip)?, port);
        if let Some(ip) = &self.replication_ip {
            let port = self.replication_port.unwrap_or(port);
            address.push_str(&format!("R{}:{port}", show(ip)?));
        }
        let devices = match self.devices.is_empty() {
            false => self.devices,
            true => (0..self.drives.unwrap_or(0))
                .map(|number| format!("d{}", number + 1))
                .collect(),
        };
        Ok(InventoryServer {
            region: self.region,
            zone: self.zone,
            address,
            devices,
            drive_size: self.drive_size.as_deref().map(drive_size).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_is_read() {
        let inventory = Inventory::read(
            "final_drives = 200\n[[server]]\nzone = 2\nip = \"10.0.2.1\"\ndrives = 3\ndrive_size = \"16TB\"\n\
             [[server]]\nregion = 2\nzone = 1\nip = \"::1\"\nport = 7\nreplication_ip = \"::2\"\ndevices = [\"sdb\"]\n",
            6201,
        )
        .unwrap();
        assert_eq!((inventory.drives(), inventory.final_drives), (4, Some(200)));
        assert_eq!(inventory.servers[0].devices, ["d1", "d2", "d3"]);
        assert_eq!(inventory.servers[0].address, "10.0.2.1:6201");
        assert_eq!(inventory.servers[1].address, "[::1]:7R[::2]:7");
    }

    #[test]
    fn a_builder_of_each_kind_has_its_port() {
        for (builder, port) in [
            ("account.builder", 6202),
            ("/etc/swift/container.builder", 6201),
            ("object.builder", 6200),
            ("object-1.builder", 6200),
            ("o.builder", 6200),
        ] {
            assert_eq!(usual_port(Path::new(builder)), port, "{builder}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for wrong in [
            "x",
            "servers = 3",
            "[[server]]\nzone = 1\nip = \"1.2.3.4\"",
            "[[server]]\nzone = 1\nip = \"$\"\ndrives = 1",
            "[[server]]\nzone = 1\nip = \"1.2.3.4\"\ndrives = 4000000000",
            "final_drives = 0",
            "[[server]]\nzone = 1\nip = \"1.2.3.4\"\ndrives = 2\ndevices = [\"a\"]",
            "[[server]]\nzone = 1\nip = \"1.2.3.4\"\ndevices = [\"a\", \"a\"]",
            "[[server]]\nzone = 1\nip = \"1.2.3.4\"\ndrives = 1\n[[server]]\nzone = 2\nip = \"1.2.3.4\"\ndrives = 1",
            "[[server]]\nzone = 1\nip = \"1.2.3.4\"\ndevices = [\"a b\"]",
            "[[server]]\nzone = 1\nip = \"1.2.3.4\"\ndevices = [\"$(x)\"]",
            "[[server]]\nzone = 1\nip = \"1.2.3.4\"\ndrives = 1\nport = 0",
            "[[server]]\nzone = 1\nip = \"1.2.3.4\"\ndrives = 1\ndrive_size = \"0TB\"",
        ] {
            assert!(Inventory::read(wrong, 6200).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in ".*") {
            let _ = Inventory::read(&text, 6200);
        }
    }
}
