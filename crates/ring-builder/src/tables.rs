//! The tables: devices of a builder, devices found, partitions found. Pure text.

use crate::address::before_port;
use crate::number::fixed;
use placement::{Device, RingBuilder};

/// A device as tables show it.
struct Row<'b> {
    device: &'b Device,
    parts: u64,
    balance: f64,
    removed: bool,
}

impl<'b> Row<'b> {
    fn new(builder: &'b RingBuilder, device: &'b Device) -> Row<'b> {
        Row {
            device,
            parts: builder.parts_of(device.id).unwrap_or(0),
            // No weight at all: nothing is out of balance then.
            balance: builder.balance_of(device.id).unwrap_or(0.0),
            removed: builder.is_removed(device.id),
        }
    }

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
    let mut rows: Vec<Row<'_>> = builder.devices().map(|device| Row::new(builder, device)).collect();
    rows.sort_by(|left, right| {
        let key = |row: &Row<'_>| (row.device.region, row.device.zone);
        let names = |row: &Row<'_>| (row.device.ip.clone(), row.device.device.clone());
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
    for device in devices {
        let row = Row::new(builder, device);
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
