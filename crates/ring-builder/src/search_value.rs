//! Search values: `d74r4z1-1.2.3.4:5678R5.6.7.8:9012/sdb1_"snet: 5.6.7.8"`, any part left out.
//!
//! Always holds: what is read is what OpenStack's program reads, and no text panics. Host names stand in options
//! only, as with OpenStack's program: between letters and colons they could not be distinguished.

use crate::address::ip;
use crate::number::whole;
use placement::Device;
use pythonic::quoted;
use vocabulary::Fault;

/// What a device must be to be meant; everything left out is no matter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeviceSearch {
    /// Its number.
    pub id: Option<i64>,
    /// Its region.
    pub region: Option<i64>,
    /// Its zone.
    pub zone: Option<i64>,
    /// Its address.
    pub ip: Option<String>,
    /// Its port.
    pub port: Option<i64>,
    /// Its address for replication.
    pub replication_ip: Option<String>,
    /// Its port for replication.
    pub replication_port: Option<i64>,
    /// Its name.
    pub device: Option<String>,
    /// Part of the remark on it.
    pub meta: Option<String>,
    /// Its weight.
    pub weight: Option<f64>,
}

impl DeviceSearch {
    /// Reads a search value.
    pub fn read(value: &str) -> Result<DeviceSearch, Fault> {
        let mut rest = Rest(value);
        let mut wanted = DeviceSearch {
            id: rest.number_after('d')?,
            region: rest.number_after('r')?,
            zone: rest.number_after('z')?,
            ..DeviceSearch::default()
        };
        rest.skip('-');
        wanted.ip = rest.ip()?;
        wanted.port = rest.number_after(':')?;
        if rest.skip('R') {
            wanted.replication_ip = rest.ip()?;
            wanted.replication_port = rest.number_after(':')?;
        }
        wanted.device = rest.name();
        wanted.meta = rest.remark();
        if rest.0.is_empty() {
            return Ok(wanted);
        }
        Err(Fault::caller(format!("Invalid <search-value>: {}", quoted(value))))
    }

    /// Whether a device is meant.
    pub fn matches(&self, device: &Device) -> bool {
        fn same<T: PartialEq>(wanted: &Option<T>, found: T) -> bool {
            wanted.as_ref().is_none_or(|wanted| *wanted == found)
        }
        same(&self.id, i64::from(device.id))
            && same(&self.region, i64::from(device.region))
            && same(&self.zone, i64::from(device.zone))
            && same(&self.ip.as_deref(), &*device.ip)
            && same(&self.port, i64::from(device.port))
            && same(&self.replication_ip.as_deref(), &*device.replication_ip)
            && same(&self.replication_port, i64::from(device.replication_port))
            && same(&self.device.as_deref(), &*device.device)
            && same(&self.weight, device.weight)
            && self
                .meta
                .as_ref()
                .is_none_or(|part| device.meta.contains(part.as_str()))
    }
}

/// What of a value has not been read yet.
pub(crate) struct Rest<'v>(pub(crate) &'v str);

impl<'v> Rest<'v> {
    pub(crate) fn skip(&mut self, letter: char) -> bool {
        let after = self.0.strip_prefix(letter);
        self.0 = after.unwrap_or(self.0);
        after.is_some()
    }

    fn take_while(&mut self, inside: impl Fn(char) -> bool) -> &'v str {
        let end = self.0.find(|it| !inside(it)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken
    }

    /// A number, when the letter before it is there.
    pub(crate) fn number_after(&mut self, letter: char) -> Result<Option<i64>, Fault> {
        if !self.skip(letter) {
            return Ok(None);
        }
        let digits = self.take_while(|it| it.is_ascii_digit());
        match whole(digits) {
            // No device has a number so large.
            Err(_) if !digits.is_empty() => Ok(Some(i64::MAX)),
            other => other.map(Some),
        }
    }

    /// An address: IPv4, or anything in brackets.
    pub(crate) fn ip(&mut self) -> Result<Option<String>, Fault> {
        let text = if self.skip('[') {
            let inside = self.take_while(|it| it != ']');
            self.skip(']');
            inside
        } else {
            self.take_while(|it| it.is_ascii_digit() || it == '.')
        };
        if text.is_empty() {
            return Ok(None);
        }
        ip(text).map(Some)
    }

    /// A device's name, which ends before the remark.
    pub(crate) fn name(&mut self) -> Option<String> {
        self.skip('/').then(|| self.take_while(|it| it != '_').to_owned())
    }

    /// A remark, which goes to the end.
    pub(crate) fn remark(&mut self) -> Option<String> {
        self.skip('_').then(|| std::mem::take(&mut self.0).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn device() -> Device {
        Device {
            id: 74,
            region: 4,
            zone: 1,
            weight: 100.0,
            ip: "1.2.3.4".to_owned(),
            port: 5678,
            replication_ip: "2001:db8::2".to_owned(),
            replication_port: 9012,
            device: "sdb1".to_owned(),
            meta: "snet: 5.6.7.8".to_owned(),
            ..Device::default()
        }
    }

    #[test]
    fn every_form_finds_the_device() {
        for value in [
            "d74",
            "r4",
            "z1",
            "r4z1",
            "d74z1",
            "z1-1.2.3.4",
            "1.2.3.4",
            "-1.2.3.4",
            "[1.2.3.4]",
            "z1:5678",
            ":5678",
            "R[2001:DB8:0::2]",
            "R:9012",
            "1.2.3.4R[2001:db8::2]:9012",
            "/sdb1",
            "_snet",
            "_",
            "",
            "-",
            "R",
            "r4/sdb1_5.6",
            "d74r4z1-1.2.3.4:5678R[2001:db8::2]:9012/sdb1_snet: 5.6.7.8",
        ] {
            assert!(DeviceSearch::read(value).unwrap().matches(&device()), "{value}");
        }
        for value in [
            "d7",
            "d99999999999999999999",
            "r1",
            "z4",
            "1.2.3.5",
            ":1",
            "R:1",
            "/sdb",
            "/",
            "_x",
            "[::1",
        ] {
            assert!(!DeviceSearch::read(value).unwrap().matches(&device()), "{value}");
        }
    }

    #[test]
    fn errors_have_openstacks_words() {
        let why = |value| DeviceSearch::read(value).unwrap_err().what;
        assert_eq!(why("foo"), "Invalid <search-value>: 'foo'");
        assert_eq!(why("z1r1"), "Invalid <search-value>: 'z1r1'");
        assert_eq!(
            why("z3-node1.example.com"),
            "Invalid <search-value>: 'z3-node1.example.com'"
        );
        assert_eq!(why("2001:db8::1"), "Invalid ip 2001");
        assert_eq!(why("300.1.1.1"), "Invalid ip 300.1.1.1");
        assert_eq!(why("d"), "invalid literal for int() with base 10: ''");
        assert_eq!(why("127.0.0.1:"), "invalid literal for int() with base 10: ''");
    }

    proptest! {
        #[test]
        fn nothing_panics(value in "[drz0-9\\[\\]:./_R x-]{0,30}|.*") {
            if let Ok(wanted) = DeviceSearch::read(&value) {
                wanted.matches(&device());
            }
        }
    }
}
