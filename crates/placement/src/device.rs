//! [`Device`]: one disk of the ring, as rings list it.
//!
//! Fields that this version does not know are kept and written back.

use serde::Deserialize;
use serde_json::{Map, Value};

/// One device of the ring.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Device {
    /// Its number, which is its place in the ring's list.
    pub id: u32,
    /// The region it is in.
    pub region: u32,
    /// The zone within the region.
    pub zone: u32,
    /// How much it should hold compared with others.
    pub weight: f64,
    /// Address of its server: IPv4, IPv6 without brackets, or a host name.
    pub ip: String,
    /// Port of its server.
    pub port: u16,
    /// Address for replication.
    pub replication_ip: String,
    /// Port for replication.
    pub replication_port: u16,
    /// The directory name under the server's `devices`.
    pub device: String,
    /// The operator's remark.
    pub meta: String,
    /// Fields other tools added.
    pub extra: Map<String, Value>,
}

/// What stands in a file: what older builders left out is optional.
#[derive(Debug, Deserialize)]
pub(crate) struct RawDevice {
    id: u32,
    region: Option<u32>,
    zone: u32,
    weight: f64,
    ip: String,
    port: u16,
    replication_ip: Option<String>,
    replication_port: Option<u16>,
    device: String,
    #[serde(default)]
    meta: String,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl From<RawDevice> for Device {
    fn from(raw: RawDevice) -> Device {
        Device {
            id: raw.id,
            region: raw.region.unwrap_or(1),
            zone: raw.zone,
            weight: raw.weight,
            replication_ip: raw.replication_ip.unwrap_or_else(|| raw.ip.clone()),
            replication_port: raw.replication_port.unwrap_or(raw.port),
            ip: raw.ip,
            port: raw.port,
            device: raw.device,
            meta: raw.meta,
            extra: raw.extra,
        }
    }
}

impl Device {
    /// The device as ring files hold it.
    pub(crate) fn to_json(&self) -> Value {
        let mut fields = self.extra.clone();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("id", self.id.into());
        put("region", self.region.into());
        put("zone", self.zone.into());
        put("weight", self.weight.into());
        put("ip", self.ip.clone().into());
        put("port", self.port.into());
        put("replication_ip", self.replication_ip.clone().into());
        put("replication_port", self.replication_port.into());
        put("device", self.device.clone().into());
        put("meta", self.meta.clone().into());
        Value::Object(fields)
    }
}
