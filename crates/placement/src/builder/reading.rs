//! What a report prints of a builder. Nothing here changes it.

use crate::device::Device;
use crate::error::BuilderError;
use vocabulary::Partition;

use super::RingBuilder;

/// What OpenStack says of a device that holds partitions and should hold none.
const MAX_BALANCE: f64 = 999.99;

impl RingBuilder {
    /// All devices, by id, also those marked for removal.
    pub fn devices(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().flatten().map(|entry| &entry.device)
    }

    /// The list of devices with its holes; the place is the id.
    pub fn slots(&self) -> impl Iterator<Item = Option<&Device>> {
        self.devices.iter().map(|entry| entry.as_ref().map(|it| &it.device))
    }

    /// The device of an id.
    pub fn device(&self, id: u32) -> Option<&Device> {
        self.entry(id).map(|entry| &entry.device)
    }

    /// Partitions held by a device.
    pub fn parts_of(&self, id: u32) -> Option<u64> {
        u64::try_from(self.entry(id)?.parts).ok()
    }

    /// How many partitions more (or fewer) the last rebalance wanted a device to have.
    pub fn parts_wanted(&self, id: u32) -> Option<i64> {
        self.entry(id)?.parts_wanted
    }

    /// Whether a device goes with the next rebalance.
    pub fn is_removed(&self, id: u32) -> bool {
        self.removed.contains(&id)
    }

    /// The devices that go with the next rebalance, in the order they were removed.
    pub fn removed(&self) -> &[u32] {
        &self.removed
    }

    /// The builder's version: it grows with every change of devices, rebalance and step of the partition power.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The id that OpenStack gives a builder when it is first saved; composite rings tell builders apart by it.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The replica count asked for.
    pub fn replicas(&self) -> f64 {
        self.replicas
    }

    /// The power of two of the partition count.
    pub fn part_power(&self) -> u32 {
        self.part_power
    }

    /// The power the ring is moving to, while an increase is on its way.
    pub fn next_part_power(&self) -> Option<u32> {
        self.next_part_power
    }

    /// How many partitions there are.
    pub fn partition_count(&self) -> u32 {
        1 << self.part_power
    }

    /// How long a partition stays before another of its replicas may move.
    pub fn min_part_hours(&self) -> i64 {
        self.min_part_hours
    }

    /// How much more than its share a device may take, as a fraction.
    pub fn overload(&self) -> f64 {
        self.overload
    }

    /// The width of device ids in the ring, in bytes.
    pub fn dev_id_bytes(&self) -> u8 {
        self.dev_id_bytes
    }

    /// Whether anything changed since the last rebalance that asks for another.
    pub fn devices_changed(&self) -> bool {
        self.devices_changed
    }

    /// Whether partitions were ever placed.
    pub fn ever_rebalanced(&self) -> bool {
        !self.rows.is_empty()
    }

    /// How many regions, zones and devices there are, those marked for removal included.
    pub fn place_counts(&self) -> (usize, usize, usize) {
        let mut zones: Vec<(u32, u32)> = self.devices().map(|device| (device.region, device.zone)).collect();
        zones.sort_unstable();
        zones.dedup();
        let mut regions: Vec<u32> = zones.iter().map(|zone| zone.0).collect();
        regions.dedup();
        (regions.len(), zones.len(), self.devices().count())
    }

    /// Percent of partitions' replicas that stood too close together after the last rebalance.
    pub fn dispersion(&self) -> f64 {
        self.dispersion
    }

    /// The weight that one partition's replica stands for.
    ///
    /// # Errors
    /// When no device has weight.
    pub fn weight_of_one_part(&self) -> Result<f64, BuilderError> {
        let total: f64 = self.devices().map(|device| device.weight).sum();
        if total <= 0.0 {
            return Err(BuilderError::NoDevices);
        }
        Ok(self.partitions() as f64 * self.replicas / total)
    }

    /// How far the worst device is from its share by weight, in percent.
    ///
    /// # Errors
    /// When no device has weight.
    pub fn balance(&self) -> Result<f64, BuilderError> {
        let per_weight = self.weight_of_one_part()?;
        let ids = self.devices().map(|device| device.id);
        Ok(ids.map(|id| self.off_share(id, per_weight).abs()).fold(0.0, f64::max))
    }

    /// How far a device is from its share by weight, in percent: above zero with too much.
    ///
    /// # Errors
    /// When no device has weight.
    pub fn balance_of(&self, id: u32) -> Result<f64, BuilderError> {
        Ok(self.off_share(id, self.weight_of_one_part()?))
    }

    fn off_share(&self, id: u32, per_weight: f64) -> f64 {
        match self.entry(id) {
            None => 0.0,
            Some(entry) if entry.device.weight == 0.0 && entry.parts == 0 => 0.0,
            Some(entry) if entry.device.weight == 0.0 => MAX_BALANCE,
            Some(entry) => 100.0 * entry.parts as f64 / (entry.device.weight * per_weight) - 100.0,
        }
    }

    /// Device ids by replica and partition; nothing before the first rebalance.
    pub fn assignments(&self) -> &[Vec<u32>] {
        &self.rows
    }

    /// The devices that hold a partition, each once.
    pub fn part_devices(&self, partition: Partition) -> Vec<&Device> {
        let mut devices: Vec<&Device> = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            let id = row.get(partition.index());
            let device = id.and_then(|&id| self.device(id));
            devices.extend(device.filter(|it| devices.iter().all(|known| known.id != it.id)));
        }
        devices
    }

    /// The partitions that any of these devices hold and how many of them do: most first, then by number.
    pub fn list_parts(&self, ids: &[u32]) -> Vec<(Partition, u32)> {
        let mut asked = vec![false; self.devices.len()];
        for &id in ids {
            if let Some(asked) = asked.get_mut(id as usize) {
                *asked = true;
            }
        }
        let mut matches = vec![0u32; if self.rows.is_empty() { 0 } else { self.partitions() }];
        for row in &self.rows {
            for (count, &id) in matches.iter_mut().zip(row) {
                *count += u32::from(asked[id as usize]);
            }
        }
        let found = (0..).map(Partition).zip(matches).filter(|(_, count)| *count > 0);
        let mut found: Vec<(Partition, u32)> = found.collect();
        found.sort_by_key(|&(partition, count)| (u32::MAX - count, partition));
        found
    }

    /// Seconds until partitions moved last may move again.
    pub fn min_part_seconds_left(&self, now: i64) -> i64 {
        let elapsed = now.saturating_sub(self.moves_epoch);
        (self.min_part_hours * 3600).saturating_sub(elapsed).max(0)
    }

    /// Hours since a partition moved, at most 255.
    pub fn hours_since_move(&self, partition: Partition, now: i64) -> i64 {
        let before = self.moves.get(partition.index()).copied().unwrap_or(0);
        let elapsed = now.saturating_sub(self.moves_epoch).max(0) / 3600;
        elapsed.saturating_add(i64::from(before)).min(255)
    }
}
