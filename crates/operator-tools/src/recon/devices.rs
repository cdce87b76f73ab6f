//! Devices: which are not mounted, and how full they are.

use super::Checks;
use super::summary::size;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;

/// Stars in the longest bar.
const BAR: usize = 69;

/// How full a device is.
struct Fill {
    host: String,
    device: String,
    /// In per cent.
    percent: f64,
}

/// All devices together.
#[derive(Default)]
struct Fills {
    all: Vec<Fill>,
    /// Per cent without what is behind the point → how many devices.
    spread: BTreeMap<u64, usize>,
    used: u128,
    available: u128,
}

impl Checks<'_, '_, '_> {
    pub(super) async fn unmounted(&mut self) -> io::Result<()> {
        let hosts = self.scout.hosts.len();
        self.begin("unmounted", &format!("Getting unmounted drives from {hosts} hosts..."))?;
        for (host, body) in self.responses("unmounted").await? {
            for entry in body.as_array().into_iter().flatten() {
                let device = text(entry, "device");
                let what = match entry.get("mounted") {
                    Some(Value::String(_)) => "Device errors",
                    _ => "Not mounted",
                };
                self.writer.line(format_args!("{what}: {device} on {}", host.name()))?;
            }
        }
        self.writer.rule()
    }

    pub(super) async fn disk_usage(&mut self) -> io::Result<()> {
        self.begin("diskusage", "Checking disk usage now")?;
        let mut fills = Fills::default();
        for (host, body) in self.responses("diskusage").await? {
            let url = format!("http://{}/recon/diskusage", host.name());
            let entries = body.as_array().map(Vec::as_slice).unwrap_or_default();
            let mut mounted = 0;
            for entry in entries {
                match entry.get("mounted") {
                    Some(Value::Bool(true)) => {
                        mounted += 1;
                        fills.add(&host.ip, entry);
                    }
                    Some(Value::String(why)) => {
                        let device = text(entry, "device");
                        self.writer.line(format_args!("-> {url}/{device}: Error: {why}"))?;
                    }
                    _ => {}
                }
            }
            if mounted == 0 {
                self.writer
                    .line(format_args!("-> {url}: Error. No drive info available."))?;
            }
        }
        match fills.all.is_empty() {
            true => self.writer.line("No hosts returned valid data.")?,
            false => self.tell(&fills)?,
        }
        self.writer.rule()?;
        self.ranks(fills.all)
    }

    fn tell(&mut self, fills: &Fills) -> io::Result<()> {
        let lowest = fills.all.iter().map(|fill| fill.percent).fold(f64::INFINITY, f64::min);
        let highest = fills.all.iter().map(|fill| fill.percent).fold(0.0, f64::max);
        // What the file system keeps for root is neither used nor free.
        let total = fills.used + fills.available;
        let average = match total {
            0 => 0.0,
            total => fills.used as f64 / total as f64 * 100.0,
        };
        let Fills { used, available, .. } = fills;
        self.writer.summary(
            "diskusage",
            json!({
                "used": *used as u64, "available": *available as u64, "total": total as u64,
                "lowest": lowest, "highest": highest, "average": average,
            }),
        );
        self.writer.line("Distribution Graph:")?;
        let most = fills.spread.values().copied().max().unwrap_or(1).max(1);
        for (percent, count) in &fills.spread {
            let bar = "*".repeat((*count as f64 * BAR as f64 / most as f64) as usize);
            self.writer.line(format_args!(" {percent:2}% {count:4} {bar}"))?;
        }
        let body = |bytes: u128| match self.arguments.human_readable {
            true => size(bytes),
            false => bytes.to_string(),
        };
        let (used, available, total) = (body(*used), body(*available), body(total));
        self.writer
            .line(format_args!("Disk usage: space used: {used} of {total}"))?;
        self.writer
            .line(format_args!("Disk usage: space free: {available} of {total}"))?;
        let shown = |percent: f64| pythonic::float(pythonic::round(percent, 2));
        let (lowest, highest) = (shown(lowest), shown(highest));
        let average = pythonic::float(average);
        self.writer.line(format_args!(
            "Disk usage: lowest: {lowest}%, highest: {highest}%, avg: {average}%"
        ))
    }

    /// The fullest and the emptiest.
    fn ranks(&mut self, mut fills: Vec<Fill>) -> io::Result<()> {
        let count = |asked: i64| usize::try_from(asked).unwrap_or(0);
        let (top, lowest) = (count(self.arguments.top), count(self.arguments.lowest));
        if top > 0 {
            self.writer.line(format_args!("TOP {top}"))?;
            fills.sort_by(|one, other| other.percent.total_cmp(&one.percent));
            // Empty ones are not among the fullest, nor full ones among the emptiest, however few there are.
            self.rank("top", fills.iter().filter(|fill| fill.percent > 0.0).take(top))?;
        }
        if lowest > 0 {
            self.writer.line(format_args!("LOWEST {lowest}"))?;
            fills.sort_by(|one, other| one.percent.total_cmp(&other.percent));
            self.rank("lowest", fills.iter().filter(|fill| fill.percent < 100.0).take(lowest))?;
        }
        Ok(())
    }

    fn rank<'f>(&mut self, name: &str, fills: impl Iterator<Item = &'f Fill>) -> io::Result<()> {
        let mut reported = vec![];
        for Fill { host, device, percent } in fills {
            reported.push(json!({ "host": host, "device": device, "percent": percent }));
            self.writer.line(format_args!("{percent:.2}%  {host:<15} {device}"))?;
        }
        self.writer.summary(name, Value::Array(reported));
        Ok(())
    }
}

impl Fills {
    fn add(&mut self, host: &str, entry: &Value) {
        let number = |name: &str| entry.get(name).and_then(Value::as_u64);
        let (Some(size @ 1..), Some(used), Some(available)) = (number("size"), number("used"), number("avail")) else {
            return;
        };
        let percent = used as f64 / size as f64 * 100.0;
        // OpenStack's bars are of the two decimals that it prints.
        let printed = pythonic::round(percent, 2);
        *self.spread.entry(printed as u64).or_default() += 1;
        self.used += u128::from(used);
        self.available += u128::from(available);
        self.all.push(Fill {
            host: host.to_owned(),
            device: text(entry, "device"),
            percent,
        });
    }
}

fn text(entry: &Value, name: &str) -> String {
    entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}
