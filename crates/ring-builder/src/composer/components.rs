//! Which builders may be joined to one ring, and which may follow those it was made of before.

use super::record::{ComponentRecord, CompositeRecord};
use crate::files::{BuilderFiles, Shelf};
use crate::number::decimal;
use crate::terminal::Stop;
use placement::RingBuilder;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use vocabulary::Fault;
use world::World;

/// A builder that brings some replicas.
pub(super) struct Component {
    /// Where it is.
    pub(super) path: PathBuf,
    /// What is in it.
    pub(super) builder: RingBuilder,
}

impl Component {
    /// Reads a builder.
    pub(super) fn read(world: &World, path: &Path) -> Result<Component, Fault> {
        let files = BuilderFiles {
            builder: path.to_owned(),
            ring: path.to_owned(),
            by_ring: false,
        };
        let read = Shelf::new(world, files).read_builder();
        let builder = read.map_err(Stop::into_fault)?;
        let missing = || Fault::caller(format!("Ring Builder file does not exist: {}", path.display()));
        Ok(Component {
            path: path.to_owned(),
            builder: builder.ok_or_else(missing)?,
        })
    }

    /// What is remembered of it.
    pub(super) fn part(&self) -> ComponentRecord {
        let id = self.builder.id().unwrap_or_default().to_owned();
        ComponentRecord::of(self.builder.version(), self.builder.replicas(), id)
    }
}

/// Whether one ring can be made of them.
pub(super) fn may_be_joined(components: &[Component]) -> Result<(), Fault> {
    if components.len() < 2 {
        return Err(Fault::caller("Two or more component builders are required."));
    }
    let problems: Vec<String> = components
        .iter()
        .enumerate()
        .flat_map(|(place, it)| problems(place, &it.builder))
        .collect();
    if !problems.is_empty() {
        return Err(Fault::caller(format!(
            "Problem with builders.\n{}",
            problems.join("\n")
        )));
    }
    ids_differ(components)?;
    same_power(components)?;
    regions_differ(components)?;
    devices_differ(components)
}

fn problems(place: usize, builder: &RingBuilder) -> Vec<String> {
    let mut problems = Vec::new();
    if builder.id().is_none() {
        problems.push(format!(
            "Problem with builder at index {place}: no id; save it with a current ring builder first"
        ));
    }
    if builder.replicas().fract() != 0.0 {
        let replicas = decimal(builder.replicas());
        problems.push(format!("Non integer replica count {replicas} found at index {place}"));
    }
    if builder.devices_changed() || !builder.ever_rebalanced() {
        problems.push(format!("Builder needs rebalance to apply changes at index {place}"));
    }
    problems
}

fn ids_differ(components: &[Component]) -> Result<(), Fault> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (place, component) in components.iter().enumerate() {
        places.entry(component.part().id).or_default().push(place.to_string());
    }
    let twice = places.into_iter().filter(|(_, places)| places.len() > 1);
    let twice: Vec<String> = twice
        .map(|(id, places)| format!("Builder id '{id}' used at indexes {}", places.join(", ")))
        .collect();
    if twice.is_empty() {
        Ok(())
    } else {
        Err(Fault::caller(twice.join("\n")))
    }
}

fn same_power(components: &[Component]) -> Result<(), Fault> {
    let mut places: BTreeMap<(u32, Option<u32>), Vec<usize>> = BTreeMap::new();
    for (place, component) in components.iter().enumerate() {
        let builder = &component.builder;
        places
            .entry((builder.part_power(), builder.next_part_power()))
            .or_default()
            .push(place);
    }
    if places.len() == 1 {
        return Ok(());
    }
    let found = places.iter().map(|((power, next), places)| match next {
        None => format!("part_power={power} found at indexes {places:?}"),
        // OpenStack's forgets the increase, and composes a ring that no longer says where objects are to be linked.
        Some(next) => format!("part_power={power}, being increased to {next}, found at indexes {places:?}"),
    });
    let found: Vec<String> = found.collect();
    Err(Fault::caller(format!(
        "All builders must have same value for 'part_power'.\n{}",
        found.join("\n  ")
    )))
}

fn regions_differ(components: &[Component]) -> Result<(), Fault> {
    let mut seen = BTreeSet::new();
    for component in components {
        let own: BTreeSet<u32> = component.builder.devices().map(|device| device.region).collect();
        if own.iter().any(|region| !seen.insert(*region)) {
            return Err(Fault::caller("Same region found in different rings"));
        }
    }
    Ok(())
}

fn devices_differ(components: &[Component]) -> Result<(), Fault> {
    let mut seen = HashMap::new();
    for (place, component) in components.iter().enumerate() {
        for device in component.builder.devices() {
            let key = (device.ip.as_str(), device.port, device.device.as_str());
            if let Some(first) = seen.insert(key, place).filter(|first| *first != place) {
                let (ip, port, name) = key;
                return Err(Fault::caller(format!(
                    "Duplicate ip/port/device combination {ip}/{port}/{name} found in builders at indexes {first} and {place}"
                )));
            }
        }
    }
    Ok(())
}

/// Whether they may follow those of which the ring was made before.
pub(super) fn may_follow(components: &[Component], before: &CompositeRecord) -> Result<(), Fault> {
    let now: Vec<ComponentRecord> = components.iter().map(Component::part).collect();
    let mut wrong = Vec::new();
    for place in 0..now.len().max(before.components.len()) {
        match (before.components.get(place), now.get(place)) {
            (Some(old), Some(new)) => {
                wrong.extend(change(old, new).map(|why| format!("Invalid builder change at index {place}: {why}")))
            }
            (None, Some(new)) => wrong.push(format!("Unexpected extra builder at index {place}: {}", new.shown())),
            (Some(old), None) => wrong.push(format!("Missing builder at index {place}: {}", old.shown())),
            (None, None) => {}
        }
    }
    if !wrong.is_empty() {
        return Err(Fault::caller(wrong.join("\n")));
    }
    if now == before.components {
        let why = "None of the component builders has been modified since the existing composite ring was built.";
        return Err(Fault::caller(why));
    }
    Ok(())
}

/// What a component may not become.
fn change(old: &ComponentRecord, new: &ComponentRecord) -> Option<String> {
    if old.id != new.id {
        return Some(format!("Attribute mismatch for id: '{}' != '{}'", old.id, new.id));
    }
    if old.replicas() != new.replicas() {
        let (old, new) = (decimal(old.replicas()), decimal(new.replicas()));
        return Some(format!("Attribute mismatch for replicas: {old} != {new}"));
    }
    if new.version < old.version {
        return Some(format!("Older builder version: {} < {}", new.version, old.version));
    }
    None
}
