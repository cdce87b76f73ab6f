//! Which listings have been behind for how long: the oldest record of each container that stayed in a pass.
//!
//! The figures are those of OpenStack Swift 2.38.3's object-updater (`object_updater_stats` and
//! `object_updater_per_device` in `object.recon`), observed. Always holds: of any number of containers only the
//! [`MOST`] that have waited longest are kept in mind for a device.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use vocabulary::Timestamp;

/// Containers of a device to keep in mind (`async_tracker_max_entries`).
const MOST: usize = 100;
/// Containers to name (`async_tracker_dump_count`).
const NAMED: usize = 5;

/// Account and container.
type ListingName = (String, String);

/// What stayed on one device.
#[derive(Debug, Default)]
struct WaitingListings {
    since: HashMap<ListingName, Timestamp>,
    in_order: BTreeSet<(Timestamp, ListingName)>,
}

impl WaitingListings {
    fn note(&mut self, place: ListingName, timestamp: Timestamp) {
        match self.since.get(&place) {
            Some(known) if *known <= timestamp => return,
            Some(known) => drop(self.in_order.remove(&(*known, place.clone()))),
            None => {}
        }
        self.since.insert(place.clone(), timestamp);
        self.in_order.insert((timestamp, place));
        while self.in_order.len() > MOST
            && let Some((_, youngest)) = self.in_order.pop_last()
        {
            self.since.remove(&youngest);
        }
    }
}

/// What stayed in a pass.
#[derive(Debug, Default)]
pub(crate) struct OldestPending {
    devices: BTreeMap<String, WaitingListings>,
}

impl OldestPending {
    /// The device has been looked at, whatever stays there.
    pub(crate) fn begin(&mut self, device: &str) {
        self.devices.insert(device.to_owned(), WaitingListings::default());
    }

    /// A record of this device stays.
    pub(crate) fn note(&mut self, device: &str, account: &str, container: &str, timestamp: Timestamp) {
        let place = (account.to_owned(), container.to_owned());
        self.devices
            .entry(device.to_owned())
            .or_default()
            .note(place, timestamp);
    }

    /// `object_updater_stats` and `object_updater_per_device`.
    pub(crate) fn figures(&self, now: Timestamp) -> Map<String, Value> {
        let per_device = self.devices.iter().map(|(name, waiting)| {
            let entries: Vec<_> = waiting.in_order.iter().collect();
            (name.clone(), figures(&entries, waiting.since.len(), now))
        });
        let per_device: Map<String, Value> = per_device.collect();
        let mut all: Vec<_> = self.devices.values().flat_map(|waiting| &waiting.in_order).collect();
        all.sort();
        let places: BTreeSet<&ListingName> = all.iter().map(|(_, place)| place).collect();
        let mut figures_of_all = Map::new();
        figures_of_all.insert("object_updater_stats".into(), figures(&all, places.len(), now));
        figures_of_all.insert("object_updater_per_device".into(), per_device.into());
        figures_of_all
    }
}

fn figures(entries: &[&(Timestamp, ListingName)], containers: usize, now: Timestamp) -> Value {
    let oldest = entries.first().map(|(timestamp, _)| timestamp.as_f64());
    let named: Vec<Value> = entries
        .iter()
        .take(NAMED)
        .map(|(timestamp, (account, container))| {
            json!({"account": account, "container": container, "timestamp": timestamp.as_f64()})
        })
        .collect();
    let bytes: usize = entries
        .iter()
        .map(|(_, (account, container))| size_of::<(Timestamp, ListingName)>() + account.len() + container.len())
        .sum();
    json!({
        "failures_oldest_timestamp": oldest,
        "failures_oldest_timestamp_age": oldest.map(|oldest| (now.as_f64() - oldest).max(0.0)),
        "failures_account_container_count": containers,
        "failures_oldest_timestamp_account_containers": {"oldest_count": named.len(), "oldest_entries": named},
        "tracker_memory_usage": bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_kept_and_named() {
        let at = |second: usize| Timestamp::from_seconds(second as u64);
        let mut oldest = OldestPending::default();
        oldest.begin("sdb");
        for number in (0..300).rev() {
            oldest.note("sda", "a", &format!("c{number:03}"), at(1000 + number));
            oldest.note("sda", "a", &format!("c{number:03}"), at(5000));
        }
        let figures_of_all = oldest.figures(at(2000));
        let stats = &figures_of_all["object_updater_stats"];
        assert_eq!(stats["failures_oldest_timestamp"], 1000.0);
        assert_eq!(stats["failures_oldest_timestamp_age"], 1000.0);
        assert_eq!(stats["failures_account_container_count"], MOST);
        let named = &stats["failures_oldest_timestamp_account_containers"]["oldest_entries"];
        assert_eq!(
            named[4],
            json!({"account": "a", "container": "c004", "timestamp": 1004.0})
        );
        assert_eq!(
            figures_of_all["object_updater_per_device"]["sdb"]["failures_oldest_timestamp"],
            Value::Null
        );
    }
}
