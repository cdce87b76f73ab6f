//! Devices come, go and change. Nothing moves before the next rebalance.
//!
//! What raises the version is what OpenStack raises it for: a device added or removed, its weight,
//! region or zone set. A change of its address or name does not.

use crate::device::Device;
use crate::error::BuilderError;

use super::{Entry, RingBuilder};

/// The largest id of two bytes: 65535 means "none".
const MOST_OF_TWO_BYTES: u32 = 65534;

/// The largest id at all: beyond it, the list of devices alone would be gigabytes.
const MOST: u32 = (1 << 24) - 1;

/// New values for a device; what is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Address of its server.
    pub ip: Option<String>,
    /// Port of its server.
    pub port: Option<u16>,
    /// Address for replication.
    pub replication_ip: Option<String>,
    /// Port for replication.
    pub replication_port: Option<u16>,
    /// The directory name under the server's `devices`.
    pub device: Option<String>,
    /// The operator's remark.
    pub meta: Option<String>,
}

impl RingBuilder {
    /// Adds a device and returns its id, the lowest that is free; the one in `device` is not looked at.
    ///
    /// # Errors
    /// For an impossible weight, and for a device that is in the ring.
    pub fn add(&mut self, device: Device) -> Result<u32, BuilderError> {
        let free = self.devices.iter().position(Option::is_none);
        let id = free.unwrap_or(self.devices.len()) as u32;
        self.add_as(id, device)
    }

    /// Adds a device under the id it brings.
    ///
    /// # Errors
    /// For an id that is taken or too large, an impossible weight, and for a device that is in the ring.
    pub fn add_with_id(&mut self, device: Device) -> Result<u32, BuilderError> {
        self.add_as(device.id, device)
    }

    fn add_as(&mut self, id: u32, mut device: Device) -> Result<u32, BuilderError> {
        check_weight(device.weight, &device.device)?;
        self.check_unused(&device, None)?;
        if id > MOST {
            return Err(BuilderError::IdRange { id, most: MOST });
        }
        let place = id as usize;
        if self.devices.get(place).is_some_and(Option::is_some) {
            return Err(BuilderError::IdTaken { id });
        }
        if place >= self.devices.len() {
            self.devices.resize(place + 1, None);
        }
        device.id = id;
        self.devices[place] = Some(Entry {
            device,
            parts: 0,
            parts_wanted: None,
        });
        if id > MOST_OF_TWO_BYTES {
            self.dev_id_bytes = 4;
        }
        self.changed();
        Ok(id)
    }

    /// Marks a device for removal: its weight is 0 and it goes with the next rebalance.
    ///
    /// # Errors
    /// When there is no such device.
    pub fn remove(&mut self, id: u32) -> Result<(), BuilderError> {
        self.entry_mut(id)?.device.weight = 0.0;
        if !self.removed.contains(&id) {
            self.removed.push(id);
        }
        self.changed();
        Ok(())
    }

    /// How much a device should hold compared with others.
    ///
    /// # Errors
    /// When there is no such device, it is marked for removal, or the weight is negative or no number.
    pub fn set_weight(&mut self, id: u32, weight: f64) -> Result<(), BuilderError> {
        let name = self.staying(id, "weight")?.device.clone();
        check_weight(weight, &name)?;
        self.staying(id, "weight")?.weight = weight;
        self.changed();
        Ok(())
    }

    /// Says that a device stands in another region.
    ///
    /// # Errors
    /// When there is no such device, or it is marked for removal.
    pub fn set_region(&mut self, id: u32, region: u32) -> Result<(), BuilderError> {
        self.staying(id, "region")?.region = region;
        self.changed();
        Ok(())
    }

    /// Says that a device stands in another zone.
    ///
    /// # Errors
    /// When there is no such device, or it is marked for removal.
    pub fn set_zone(&mut self, id: u32, zone: u32) -> Result<(), BuilderError> {
        self.staying(id, "zone")?.zone = zone;
        self.changed();
        Ok(())
    }

    /// Changes where a device is reached, what it is called, or the remark.
    ///
    /// # Errors
    /// When there is no such device, or another device has that address, port and name.
    pub fn set_info(&mut self, id: u32, change: Change) -> Result<(), BuilderError> {
        let Change {
            ip,
            port,
            replication_ip,
            replication_port,
            device,
            meta,
        } = change;
        let mut new = self.device(id).ok_or(BuilderError::NoDevice { id })?.clone();
        new.ip = ip.unwrap_or(new.ip);
        new.port = port.unwrap_or(new.port);
        new.replication_ip = replication_ip.unwrap_or(new.replication_ip);
        new.replication_port = replication_port.unwrap_or(new.replication_port);
        new.device = device.unwrap_or(new.device);
        new.meta = meta.unwrap_or(new.meta);
        self.check_unused(&new, Some(id))?;
        self.entry_mut(id)?.device = new;
        Ok(())
    }

    /// That no other device has the address, port and name.
    fn check_unused(&self, device: &Device, own: Option<u32>) -> Result<(), BuilderError> {
        let key = |it: &Device| (it.ip.clone(), it.port, it.device.clone());
        let same = |known: &&Device| {
            Some(known.id) != own && known.port == device.port && known.device == device.device && known.ip == device.ip
        };
        match self.devices().find(same) {
            None => Ok(()),
            Some(known) => {
                let (ip, port, device) = key(device);
                Err(BuilderError::Duplicate {
                    id: known.id,
                    device,
                    ip,
                    port,
                })
            }
        }
    }

    /// A device that may be changed.
    fn staying(&mut self, id: u32, what: &'static str) -> Result<&mut Device, BuilderError> {
        if self.removed.contains(&id) {
            return Err(BuilderError::Removed { what, id });
        }
        Ok(&mut self.entry_mut(id)?.device)
    }

    fn entry_mut(&mut self, id: u32) -> Result<&mut Entry, BuilderError> {
        let entry = self.devices.get_mut(id as usize).and_then(Option::as_mut);
        entry.ok_or(BuilderError::NoDevice { id })
    }

    fn changed(&mut self) {
        self.devices_changed = true;
        self.version += 1;
    }

    /// The width a rebalance gives the table, as with OpenStack, whatever it was before: as narrow as all ids allow.
    pub(super) fn least_dev_id_bytes(&self) -> u8 {
        if self.ids_fit(2) { 2 } else { 4 }
    }

    /// Whether all ids fit in so many bytes.
    pub(super) fn ids_fit(&self, bytes: u8) -> bool {
        match bytes {
            2 => self.devices.len() <= MOST_OF_TWO_BYTES as usize + 1,
            bytes => bytes == 4,
        }
    }
}

fn check_weight(weight: f64, device: &str) -> Result<(), BuilderError> {
    if weight.is_finite() && weight >= 0.0 {
        return Ok(());
    }
    let device = device.to_owned();
    Err(BuilderError::Weight { weight, device })
}
