//! Add values: `[r<region>]z<zone>-<ip>:<port>[R<ip>:<port>]/<device>_<remark>`.
//!
//! Always holds: what is read is what OpenStack's program reads, and no text panics.

use crate::address::ip;
use crate::device_options::{as_place, as_port, device_name};
use crate::number::whole;
use placement::Device;
use vocabulary::Fault;

/// The region of devices whose value names none.
const DEFAULT_REGION: u32 = 1;

/// A device to be added.
#[derive(Debug, Clone, PartialEq)]
pub struct Added {
    /// The device; its id and weight come from elsewhere.
    pub device: Device,
    /// Whether the region was left out, which deserves a warning.
    pub no_region: bool,
}

impl Added {
    /// Reads an add value.
    pub fn read(value: &str) -> Result<Added, Fault> {
        let invalid = || Fault::caller(format!("Invalid add value: {value}"));
        let (region, rest) = match value.strip_prefix('r') {
            Some(rest) => digits(rest).map(|(number, rest)| (Some(number), rest))?,
            None => (None, value),
        };
        let (zone, rest) = digits(rest.strip_prefix('z').ok_or_else(invalid)?)?;
        let rest = rest.strip_prefix('-').ok_or_else(invalid)?;
        let (addresses, names) = rest.split_once('/').ok_or_else(invalid)?;
        let (main, replication) = match addresses.split_once('R') {
            Some((main, replication)) => (main, Some(replication)),
            None => (addresses, None),
        };
        let (main_ip, port) = address_and_port(main)?;
        let (replication_ip, replication_port) = match replication {
            Some(text) => address_and_port(text)?,
            None => (main_ip.clone(), port),
        };
        let (name, meta) = names.split_once('_').unwrap_or((names, ""));
        Ok(Added {
            no_region: region.is_none(),
            device: Device {
                region: region.map_or(Ok(DEFAULT_REGION), |it| as_place(it, "region"))?,
                zone: as_place(zone, "zone")?,
                ip: main_ip,
                port,
                replication_ip,
                replication_port,
                device: device_name(name)?,
                meta: meta.to_owned(),
                ..Device::default()
            },
        })
    }
}

fn digits(text: &str) -> Result<(i64, &str), Fault> {
    let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    Ok((whole(number)?, rest))
}

/// The port stands after the last colon, so that IPv6 needs no brackets.
fn address_and_port(text: &str) -> Result<(String, u16), Fault> {
    let Some((address, port)) = text.rsplit_once(':') else {
        return Err(Fault::caller("Invalid port in add value"));
    };
    let number = whole(port).ok().filter(|_| port.bytes().all(|it| it.is_ascii_digit()));
    let number = number.ok_or_else(|| Fault::caller(format!("Invalid port :{port} in add value")))?;
    let bare = address.strip_prefix('[').unwrap_or(address);
    let bare = bare.strip_suffix(']').unwrap_or(bare);
    Ok((ip(bare)?, as_port(number, "port")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_parts_are_read() {
        let added = Added::read("r2z03-2001:0:1234::C1C0:ABCD:876:6200R[2::10]:7000/sda3_some_meta data").unwrap();
        let device = added.device;
        assert_eq!(
            (device.region, device.zone, device.port, device.replication_port),
            (2, 3, 6200, 7000)
        );
        assert_eq!(
            (&*device.ip, &*device.replication_ip),
            ("2001:0:1234::c1c0:abcd:876", "2::10")
        );
        assert_eq!((&*device.device, &*device.meta), ("sda3", "some_meta data"));
        assert!(!added.no_region);
        let added = Added::read("z2-10.0.0.2:6200/sdb").unwrap();
        assert!(added.no_region);
        assert_eq!((added.device.region, &*added.device.replication_ip), (1, "10.0.0.2"));
    }

    #[test]
    fn errors_have_openstacks_words() {
        for (value, why) in [
            ("xyz", "Invalid add value: xyz"),
            ("", "Invalid add value: "),
            ("d9r1z1-127.0.0.1:1/sdz", "Invalid add value: d9r1z1-127.0.0.1:1/sdz"),
            ("r1z1:1/sda", "Invalid add value: r1z1:1/sda"),
            ("r1z1-127.0.0.1:1", "Invalid add value: r1z1-127.0.0.1:1"),
            ("r1z-127.0.0.1:1/sda", "invalid literal for int() with base 10: ''"),
            ("r1z1-127.0.0.1/sda", "Invalid port in add value"),
            ("r1z1-127.0.0.1:1R/sda", "Invalid port in add value"),
            ("r1z1-127.0.0.1:x/sda", "Invalid port :x in add value"),
            ("r1z1-127.0.0.1:/sda", "Invalid port : in add value"),
            ("r1z1-:1/sda", "Invalid ip "),
            ("r1z1-host.example.com:1/sda", "Invalid ip host.example.com"),
            ("r1z1-127.0.0.1:1/", "Invalid device name"),
            ("r1z1-127.0.0.1:1/ sda", "Invalid device name"),
        ] {
            assert_eq!(Added::read(value).unwrap_err().what, why);
        }
        assert!(
            Added::read("r1z1-127.0.0.1:99999/sda")
                .unwrap_err()
                .what
                .contains("99999")
        );
    }

    proptest! {
        #[test]
        fn nothing_panics(value in "[rz0-9\\[\\]:./_R x-]{0,30}|.*") {
            let _ = Added::read(&value);
        }
    }
}
