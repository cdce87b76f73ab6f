//! How a device is named in a sentence: `d0r1z1-10.0.0.1:6200R10.0.0.1:6200/sda_"remark"`.

use crate::address::before_port;
use placement::Device;

/// The device in one word, which can be used as a search value.
pub fn describe(device: &Device) -> String {
    format!(
        "d{}r{}z{}-{}:{}R{}:{}/{}_\"{}\"",
        device.id,
        device.region,
        device.zone,
        before_port(&device.ip),
        device.port,
        before_port(&device.replication_ip),
        device.replication_port,
        device.device,
        device.meta
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search_value::DeviceSearch;

    #[test]
    fn the_word_finds_the_device() {
        let device = Device {
            id: 3,
            region: 2,
            zone: 1,
            ip: "2001:db8::1".to_owned(),
            port: 6200,
            replication_ip: "10.0.0.2".to_owned(),
            replication_port: 6300,
            device: "sdc".to_owned(),
            ..Device::default()
        };
        let word = describe(&device);
        assert_eq!(word, "d3r2z1-[2001:db8::1]:6200R10.0.0.2:6300/sdc_\"\"");
        let wanted = DeviceSearch::read(word.trim_end_matches("\"\"")).unwrap();
        assert!(wanted.matches(&device));
    }
}
