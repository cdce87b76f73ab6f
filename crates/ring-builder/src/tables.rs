//! The tables: devices of a builder, devices found, partitions found. Pure text.

use crate::address::before_port;
use crate::number::fixed;
use placement::{Device, RingBuilder};

/// A device as tables show it.
struct DeviceRow<'b> {
    device: &'b Device,
    parts: u64,
    balance: f64,
    removed: bool,
}

/// The balance of a device that should hold nothing and does.
const HOLDS_TOO_MUCH: f64 = 999.99;

/// Makes rows: what a weight asks for is the same for all of them.
struct Rows<'b> {
    builder: &'b RingBuilder,
    /// Nothing when no device has weight: nothing is out of balance then.
    parts_per_weight: Option<f64>,
}

impl<'b> Rows<'b> {
    fn of(builder: &'b RingBuilder) -> Rows<'b> {
        Rows {
            builder,
            parts_per_weight: builder.weight_of_one_part().ok(),
        }
    }

    fn row(&self, device: &'b Device) -> DeviceRow<'b> {
        let parts = self.builder.parts_of(device.id).unwrap_or(0);
        let balance = match self.parts_per_weight {
            None => 0.0,
            Some(_) if device.weight == 0.0 && parts == 0 => 0.0,
            Some(_) if device.weight == 0.0 => HOLDS_TOO_MUCH,
            Some(per_weight) => 100.0 * parts as f64 / (device.weight * per_weight) - 100.0,
        };
        DeviceRow {
            device,
            parts,
            balance,
            removed: self.builder.is_removed(device.id),
        }
    }
}

impl DeviceRow<'_> {
    fn weight(&self) -> String {
        fixed(self.device.weight, 2)
    }
}

/// One of the two columns of address and port, as wide as what stands in it.
struct Addresses {
    address: usize,
    port: usize,
}

impl Addresses {
    fn of<'d>(title: &str, cells: impl Iterator<Item = (&'d str, u16)> + Clone) -> Addresses {
        let longest = cells.clone().map(|(address, _)| address.len()).max().unwrap_or(0);
        let brackets = if cells.clone().any(|(address, _)| address.contains(':')) {
            2
        } else {
            0
        };
        let port = cells.map(|(_, port)| port.to_string().len()).max().unwrap_or(0);
        Addresses {
            address: longest.max(title.len()) + brackets,
            port: port.max("port".len()),
        }
    }

    fn cell(&self, address: &str, port: &str) -> String {
        format!("{address:>0$}:{port:<1$}", self.address, self.port)
    }
}

/// All devices of a builder, by where they are.
pub fn devices(builder: &RingBuilder) -> String {
    let all = Rows::of(builder);
    let mut rows: Vec<DeviceRow<'_>> = builder.devices().map(|device| all.row(device)).collect();
    rows.sort_by(|left, right| {
        let key = |row: &DeviceRow<'_>| (row.device.region, row.device.zone);
        let names = |row: &DeviceRow<'_>| (row.device.ip.clone(), row.device.device.clone());
        key(left).cmp(&key(right)).then_with(|| names(left).cmp(&names(right)))
    });
    let main = Addresses::of("ip address", rows.iter().map(|row| (&*row.device.ip, row.device.port)));
    let replication = rows
        .iter()
        .map(|row| (&*row.device.replication_ip, row.device.replication_port));
    let replication = Addresses::of("replication ip", replication);
    let weight = rows
        .iter()
        .map(|row| row.weight().len())
        .max()
        .unwrap_or(0)
        .max("weight".len());
    let mut out = format!(
        "Devices:{:>5} {:>6} {:>4} {} {} {:>5} {:>weight$} {:>10} {:>7} {:>5} meta\n",
        "id",
        "region",
        "zone",
        main.cell("ip address", "port"),
        replication.cell("replication ip", "port"),
        "name",
        "weight",
        "partitions",
        "balance",
        "flags",
    );
    for row in rows {
        let device = row.device;
        out.push_str(&format!(
            "{:>13} {:>6} {:>4} {} {} {:>5} {:>weight$} {:>10} {:>7} {:>5} {}\n",
            device.id,
            device.region,
            device.zone,
            main.cell(&before_port(&device.ip), &device.port.to_string()),
            replication.cell(
                &before_port(&device.replication_ip),
                &device.replication_port.to_string()
            ),
            device.device,
            row.weight(),
            row.parts,
            fixed(row.balance, 2),
            if row.removed { "DEL" } else { "" },
            device.meta,
        ));
    }
    out
}

/// The devices that a search found.
pub fn found(builder: &RingBuilder, devices: &[Device]) -> String {
    let mut out = format!(
        "Devices:{:>6} {:>7} {:>5} {:>15} {:>5} {:>15} {:>17} {:>9} {:>6} {:>10} {:>7} meta\n",
        "id",
        "region",
        "zone",
        "ip address",
        "port",
        "replication ip",
        "replication port",
        "name",
        "weight",
        "partitions",
        "balance",
    );
    let all = Rows::of(builder);
    for device in devices {
        let row = all.row(device);
        out.push_str(&format!(
            "{:>14} {:>7} {:>5} {:>15} {:>5} {:>15} {:>17} {:>9} {:>6} {:>10} {:>7} {}\n",
            device.id,
            device.region,
            device.zone,
            device.ip,
            device.port,
            device.replication_ip,
            device.replication_port,
            device.device,
            row.weight(),
            row.parts,
            fixed(row.balance, 2),
            device.meta,
        ));
    }
    out
}

/// Partitions and how many of the devices asked about hold them.
pub fn partitions(parts: &[(u32, u32)]) -> String {
    let mut out = String::from("Partition   Matches\n");
    for (partition, matches) in parts {
        out.push_str(&format!("{partition:>9}   {matches:>7}\n"));
    }
    out
}
