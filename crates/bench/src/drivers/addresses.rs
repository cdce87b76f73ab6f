//! Which drivers a run has, as the command line or a file names them.
//!
//! Always holds: no name and no address is there twice; a work that is pinned to a driver names one of them.

use crate::workload::Workload;
use std::net::Ipv6Addr;
use vocabulary::Fault;

/// Drivers of one run.
const MOST_DRIVERS: usize = 1000;

/// A driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverAddress {
    /// As works that are pinned call it: `driver1` and so on unless it was given a name.
    pub name: String,
    /// A name or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl std::fmt::Display for DriverAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name, authority(&self.host, self.port))
    }
}

fn authority(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

/// Host and port of `HOST:PORT`; an address of version 6 stands in brackets.
pub fn host_and_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let host = match host.strip_prefix('[').map(|rest| rest.strip_suffix(']')) {
        Some(inside) => inside.filter(|inside| inside.parse::<Ipv6Addr>().is_ok())?,
        None if host.contains(':') => return None,
        None => host,
    };
    let is_name = !host.is_empty() && !host.contains(|sign: char| sign.is_whitespace() || sign == '/');
    is_name.then_some((host.to_owned(), port.parse().ok()?))
}

/// Drivers of a list: `HOST:PORT` or `NAME=HOST:PORT` each.
pub fn drivers<'a>(listed: impl IntoIterator<Item = &'a str>) -> Result<Vec<DriverAddress>, Fault> {
    let mut drivers: Vec<DriverAddress> = vec![];
    for text in listed.into_iter().map(str::trim).filter(|text| !text.is_empty()) {
        let (name, address) = match text.split_once('=') {
            Some((name, address)) => (name.trim().to_owned(), address.trim()),
            None => (format!("driver{}", drivers.len() + 1), text),
        };
        let parsed = host_and_port(address).filter(|_| !name.is_empty());
        let (host, port) = parsed
            .filter(|(_, port)| *port > 0)
            .ok_or_else(|| Fault::caller(format!("driver {text}: expected HOST:PORT or NAME=HOST:PORT")))?;
        let is_same = |known: &&DriverAddress| known.name == name || (&known.host, known.port) == (&host, port);
        if let Some(known) = drivers.iter().find(is_same) {
            return Err(Fault::caller(format!("driver {text}: {known} is there already")));
        }
        drivers.push(DriverAddress { name, host, port });
    }
    match drivers.len() {
        0 => Err(Fault::caller(
            "no driver is named: expected HOST:PORT or NAME=HOST:PORT",
        )),
        many if many > MOST_DRIVERS => Err(Fault::caller(format!(
            "{many} drivers: expected {MOST_DRIVERS} at most"
        ))),
        _ => Ok(drivers),
    }
}

/// Drivers of a file: one a line; what stands behind `#` is ignored.
pub fn drivers_of_file(text: &str) -> Result<Vec<DriverAddress>, Fault> {
    drivers(text.lines().map(|line| line.split('#').next().unwrap_or_default()))
}

/// The driver that a work is pinned to, by its name or its address.
pub fn pinned_to(drivers: &[DriverAddress], name: &str) -> Option<usize> {
    drivers
        .iter()
        .position(|driver| driver.name == name || authority(&driver.host, driver.port) == name)
}

/// Refuses a workload with a work that is pinned to none of the drivers.
pub fn check_pins(drivers: &[DriverAddress], workload: &Workload) -> Result<(), Fault> {
    for stage in &workload.stages {
        for work in &stage.works {
            if let Some(name) = &work.driver
                && pinned_to(drivers, name).is_none()
            {
                let names: Vec<&str> = drivers.iter().map(|driver| driver.name.as_str()).collect();
                return Err(Fault::caller(format!(
                    "<work name=\"{}\">: driver=\"{name}\": expected {}",
                    work.name,
                    names.join(", ")
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{drivers, drivers_of_file, host_and_port, pinned_to};

    #[test]
    fn drivers_have_names_and_addresses() {
        let read = drivers(["a:1", " fast = b.example:2", "[::1]:3"]).unwrap();
        let named: Vec<String> = read.iter().map(ToString::to_string).collect();
        assert_eq!(named, ["driver1 (a:1)", "fast (b.example:2)", "driver3 ([::1]:3)"]);
        assert_eq!(
            drivers_of_file("# drivers\na:1\n\nfast=b.example:2 # rack 2\n[::1]:3\n").unwrap(),
            read
        );
        assert_eq!(
            (
                pinned_to(&read, "fast"),
                pinned_to(&read, "[::1]:3"),
                pinned_to(&read, "b")
            ),
            (Some(1), Some(2), None)
        );
    }

    #[test]
    fn what_is_no_driver_is_named() {
        for (listed, complaint) in [
            (vec!["a"], "driver a: expected HOST:PORT"),
            (vec!["a:0"], "driver a:0: expected HOST:PORT"),
            (vec!["a:70000"], "driver a:70000: expected HOST:PORT"),
            (vec!["::1:3"], "driver ::1:3: expected HOST:PORT"),
            (vec!["=a:1"], "driver =a:1: expected HOST:PORT"),
            (vec!["a:1", "x=a:1"], "driver x=a:1: driver1 (a:1) is there already"),
            (vec!["x=a:1", "x=b:1"], "driver x=b:1: x (a:1) is there already"),
            (vec![" "], "no driver is named"),
        ] {
            let refused = drivers(listed).unwrap_err().to_string();
            assert!(refused.contains(complaint), "{refused}");
        }
        assert_eq!(host_and_port("0.0.0.0:0"), Some(("0.0.0.0".to_owned(), 0)));
    }
}
