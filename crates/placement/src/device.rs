//! [`Device`]: one disk of the ring, as rings list it.
//!
//! Fields that this version does not know are kept and written back.

use std::fmt::Formatter;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
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

/// A device as a file lists it: what older builders left out is optional.
///
/// Read field by field rather than by `derive`: with `flatten` for the unknown ones, that would keep every field of
/// every device a while before it knew which is which, and a large ring would take twice as long to load.
pub(crate) struct Listed(pub(crate) Box<Device>);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    Id,
    Region,
    Zone,
    Weight,
    Ip,
    Port,
    ReplicationIp,
    ReplicationPort,
    Device,
    Meta,
    Other(String),
}

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Listed, D::Error> {
        from.deserialize_map(DeviceVisitor)
    }
}

struct DeviceVisitor;

impl<'de> Visitor<'de> for DeviceVisitor {
    type Value = Listed;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a device")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Listed, A::Error> {
        let mut found = Box::<Device>::default();
        let (mut id, mut zone, mut weight, mut ip, mut port, mut device) = (None, None, None, None, None, None);
        let (mut region, mut replication_ip, mut replication_port) = (None, None, None);
        while let Some(field) = map.next_key()? {
            match field {
                Field::Id => id = Some(map.next_value()?),
                Field::Region => region = map.next_value()?,
                Field::Zone => zone = Some(map.next_value()?),
                Field::Weight => weight = Some(map.next_value()?),
                Field::Ip => ip = Some(map.next_value::<String>()?),
                Field::Port => port = Some(map.next_value()?),
                Field::ReplicationIp => replication_ip = map.next_value()?,
                Field::ReplicationPort => replication_port = map.next_value()?,
                Field::Device => device = Some(map.next_value()?),
                Field::Meta => found.meta = map.next_value()?,
                Field::Other(name) => {
                    found.extra.insert(name, map.next_value()?);
                }
            }
        }
        found.id = id.ok_or_else(|| A::Error::missing_field("id"))?;
        found.region = region.unwrap_or(1);
        found.zone = zone.ok_or_else(|| A::Error::missing_field("zone"))?;
        found.weight = weight.ok_or_else(|| A::Error::missing_field("weight"))?;
        found.ip = ip.ok_or_else(|| A::Error::missing_field("ip"))?;
        found.port = port.ok_or_else(|| A::Error::missing_field("port"))?;
        found.replication_ip = replication_ip.unwrap_or_else(|| found.ip.clone());
        found.replication_port = replication_port.unwrap_or(found.port);
        found.device = device.ok_or_else(|| A::Error::missing_field("device"))?;
        Ok(Listed(found))
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
