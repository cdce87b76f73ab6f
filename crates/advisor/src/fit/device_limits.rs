//! Limits of drives, networks and a balancer of a measured cluster, as they stand beside its manifest.
//!
//! Always holds: a number is above 0; what is not there has no limit.

use serde::{Deserialize, Serialize};
use vocabulary::Fault;

/// `[limits]` beside a manifest: of one of each. What is not there has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceLimits {
    /// Limited drives of a storage node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drives: Option<u32>,
    /// Bytes a second of a drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive_transfer: Option<f64>,
    /// Operations a second of a drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive_operations: Option<f64>,
    /// Bytes a second of a gateway's network in each direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_network: Option<f64>,
    /// Bytes a second of a storage node's network in each direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_network: Option<f64>,
    /// Bytes of bodies a second of the balancer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balancer: Option<f64>,
}

impl DeviceLimits {
    fn numbers(&self) -> [(&'static str, Option<f64>); 6] {
        [
            ("drives", self.drives.map(f64::from)),
            ("drive_transfer", self.drive_transfer),
            ("drive_operations", self.drive_operations),
            ("gateway_network", self.gateway_network),
            ("storage_network", self.storage_network),
            ("balancer", self.balancer),
        ]
    }

    /// Lines of a file; none where nothing is limited.
    pub fn text(&self) -> String {
        let all = self.numbers();
        let there = all.iter().filter_map(|(key, value)| Some((key, (*value)?)));
        // Rust and TOML write numbers alike.
        let line = |(key, value): (&&str, f64)| match *key {
            "drives" => format!("{key} = {value:.0}\n"),
            _ => format!("{key} = {value:?}\n"),
        };
        there.map(line).collect()
    }

    /// An error for what is no limit.
    pub fn check(&self) -> Result<(), Fault> {
        for (key, value) in self.numbers() {
            if let Some(value) = value.filter(|value| !(value.is_finite() && *value > 0.0)) {
                return Err(Fault::caller(format!(
                    "limits: {key} = {value}: expected a number above 0"
                )));
            }
        }
        let of_drives = [self.drive_transfer, self.drive_operations];
        match of_drives.iter().any(Option::is_some) && self.drives.is_none() {
            true => Err(Fault::caller(
                "limits: drives is missing: how many one storage node has",
            )),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::DeviceLimits;

    pub const ALL: DeviceLimits = DeviceLimits {
        drives: Some(12),
        drive_transfer: Some(5e6),
        drive_operations: Some(100.0),
        gateway_network: Some(3e6),
        storage_network: Some(2e6),
        balancer: Some(4e6),
    };

    #[test]
    fn what_is_written_is_read_and_mistakes_are_named() {
        let read = |text: &str| toml::from_str::<DeviceLimits>(text).unwrap();
        assert_eq!(read(&ALL.text()), ALL);
        assert_eq!(DeviceLimits::default().text(), "");
        assert!(ALL.check().is_ok());
        let why = |text: &str| read(text).check().unwrap_err().what;
        assert!(why("balancer = -1.0").contains("balancer = -1: expected a number above 0"));
        assert!(why("drive_transfer = 1.0").contains("drives is missing"));
    }
}
