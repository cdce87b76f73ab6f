//! The options that name a device, its weight or what is to be changed about it: the same for every command
//! that acts on devices.

use crate::address::address;
use crate::options::{Declared, OptionError, ParsedOptions, Takes, option};
use crate::search_value::DeviceSearch;
use placement::Device;
use placement::builder::Change;
use vocabulary::Fault;

/// All of them.
pub const DECLARED: [Declared; 17] = [
    option('u', "id", Takes::Whole, "Device ID"),
    option('r', "region", Takes::Whole, "Region"),
    option('z', "zone", Takes::Whole, "Zone"),
    option('i', "ip", Takes::Text, "IP address or host name"),
    option('p', "port", Takes::Whole, "Port number"),
    option(
        'j',
        "replication-ip",
        Takes::Text,
        "IP address or host name for replication",
    ),
    option('q', "replication-port", Takes::Whole, "Port number for replication"),
    option('d', "device", Takes::Text, "Device name (e.g. md0, sdb1)"),
    option('w', "weight", Takes::Float, "Device weight"),
    option('m', "meta", Takes::Text, "A remark on the device"),
    option('I', "change-ip", Takes::Text, "The IP address or host name it gets"),
    option('P', "change-port", Takes::Whole, "The port it gets"),
    option(
        'J',
        "change-replication-ip",
        Takes::Text,
        "The address for replication it gets",
    ),
    option(
        'Q',
        "change-replication-port",
        Takes::Whole,
        "The port for replication it gets",
    ),
    option('D', "change-device", Takes::Text, "The device name it gets"),
    option('M', "change-meta", Takes::Text, "The remark it gets"),
    option('y', "yes", Takes::Nothing, "Assume yes as the answer to all questions"),
];

/// Those that say which device is meant, in the order in which a new device must have them.
const NAMING: [&str; 10] = [
    "id",
    "region",
    "zone",
    "ip",
    "port",
    "replication-ip",
    "replication-port",
    "device",
    "weight",
    "meta",
];
const CHANGING: [&str; 6] = [
    "change-ip",
    "change-port",
    "change-replication-ip",
    "change-replication-port",
    "change-device",
    "change-meta",
];

/// A command line about devices: by options, or by search values among its words.
#[derive(Debug)]
pub struct DeviceLine {
    /// What was said.
    pub options: ParsedOptions,
    /// Whether options say which devices are meant.
    pub by_options: bool,
    /// Whether questions are answered already.
    pub yes: bool,
}

impl DeviceLine {
    /// Reads the words after the command.
    pub fn read(words: &[String]) -> Result<DeviceLine, OptionError> {
        let options = ParsedOptions::read(&DECLARED, words)?;
        // A place of no name is meant all the same (`--ip "$UNSET"`): no device is there.
        let given = |name: &&str| match options.text(name) {
            Some(text) => !text.is_empty() || name.ends_with("ip"),
            None => options.has(name),
        };
        Ok(DeviceLine {
            by_options: NAMING.iter().any(given),
            yes: options.has("yes"),
            options,
        })
    }

    /// The devices that the options describe.
    pub fn wanted(&self) -> Result<DeviceSearch, Fault> {
        let options = &self.options;
        let number = |name: &str| options.whole(name);
        let place = |name: &str| match options.text(name) {
            Some("") => Ok(Some(String::new())),
            text => text.map(address).transpose(),
        };
        Ok(DeviceSearch {
            id: number("id"),
            region: number("region"),
            zone: number("zone"),
            ip: place("ip")?,
            port: number("port"),
            replication_ip: place("replication-ip")?,
            replication_port: number("replication-port"),
            device: options.text("device").map(str::to_owned),
            meta: options.text("meta").map(str::to_owned),
            weight: options.float("weight"),
        })
    }

    /// Whether any option says what is to change.
    pub fn changes(&self) -> bool {
        CHANGING.iter().any(|name| self.options.has(name))
    }

    /// What the options change.
    pub fn change(&self) -> Result<Change, Fault> {
        let options = &self.options;
        // What is empty or nought is not changed, as with OpenStack's program.
        let port = |name: &str| {
            options
                .whole(name)
                .filter(|it| *it != 0)
                .map(|it| as_port(it, name))
                .transpose()
        };
        let text = |name: &str| options.text(name).filter(|it| !it.is_empty());
        Ok(Change {
            ip: text("change-ip").map(address).transpose()?,
            port: port("change-port")?,
            replication_ip: text("change-replication-ip").map(address).transpose()?,
            replication_port: port("change-replication-port")?,
            device: text("change-device").map(device_name).transpose()?,
            meta: text("change-meta").map(str::to_owned),
        })
    }

    /// The new device that the options describe.
    pub fn device(&self) -> Result<Device, Fault> {
        for (name, letter) in [
            ("region", 'r'),
            ("zone", 'z'),
            ("ip", 'i'),
            ("port", 'p'),
            ("device", 'd'),
            ("weight", 'w'),
        ] {
            if !self.options.has(name) {
                return Err(Fault::caller(format!(
                    "Required argument -{letter}/--{name} not specified."
                )));
            }
        }
        let options = &self.options;
        let ip = address(options.text("ip").unwrap_or_default())?;
        let port = as_port(options.whole("port").unwrap_or_default(), "port")?;
        let replication_ip = match options.text("replication-ip").filter(|it| !it.is_empty()) {
            Some(text) => address(text)?,
            None => ip.clone(),
        };
        let replication_port = match options.whole("replication-port") {
            Some(number) => as_port(number, "replication-port")?,
            None => port,
        };
        Ok(Device {
            region: as_place(options.whole("region").unwrap_or_default(), "region")?,
            zone: as_place(options.whole("zone").unwrap_or_default(), "zone")?,
            weight: options.float("weight").unwrap_or_default(),
            ip,
            port,
            replication_ip,
            replication_port,
            device: device_name(options.text("device").unwrap_or_default())?,
            meta: options.text("meta").unwrap_or_default().to_owned(),
            ..Device::default()
        })
    }
}

/// A port that can be connected to; OpenStack's program takes any number, and its servers fail later.
pub fn as_port(number: i64, name: &str) -> Result<u16, Fault> {
    u16::try_from(number).map_err(|_| Fault::caller(format!("Invalid {name} {number}: ports go from 0 to 65535")))
}

/// The number of a region or a zone.
pub fn as_place(number: i64, name: &str) -> Result<u32, Fault> {
    u32::try_from(number).map_err(|_| Fault::caller(format!("Invalid {name} {number}: choose 0 to {}", u32::MAX)))
}

/// The name of a device's directory.
pub fn device_name(text: &str) -> Result<String, Fault> {
    if text.is_empty() || text.trim() != text {
        return Err(Fault::caller("Invalid device name"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> DeviceLine {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        DeviceLine::read(&words).unwrap()
    }

    #[test]
    fn options_describe_a_device() {
        let device = line("-r 1 -z 2 -i FOO.Com -p 6200 -d sdb -w 5").device().unwrap();
        assert_eq!(
            (device.region, device.zone, device.port, device.replication_port),
            (1, 2, 6200, 6200)
        );
        assert_eq!((&*device.ip, &*device.replication_ip), ("foo.com", "foo.com"));
        let why = |text| line(text).device().unwrap_err().what;
        assert_eq!(why("--weight 3"), "Required argument -r/--region not specified.");
        assert_eq!(
            why("-r 1 -z 1 -i ::1 -p 1 -w 3"),
            "Required argument -d/--device not specified."
        );
        assert!(why("-r 1 -z 1 -i ::1 -p 66000 -d x -w 3").contains("66000"));
    }

    #[test]
    fn options_search() {
        assert!(line("--region 2 x").by_options && !line("d0 -y").by_options);
        assert!(!line("--change-ip 1.1.1.1").by_options && line("--change-ip 1.1.1.1").changes());
        let nowhere = DeviceLine::read(&["--ip".to_owned(), String::new()]).unwrap();
        assert!(nowhere.by_options && nowhere.wanted().unwrap().ip.as_deref() == Some(""));
        let wanted = line("--ip [2001:DB8:0::1] --weight 5").wanted().unwrap();
        assert_eq!((wanted.ip.as_deref(), wanted.weight), (Some("2001:db8::1"), Some(5.0)));
    }
}
