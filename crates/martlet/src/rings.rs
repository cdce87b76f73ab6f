//! Ring files: read at start, read again when they change.
//!
//! Always holds: a file that has become unreadable leaves the ring in force as it is, with one
//! warning per change, until it can be read (`ring_file.rs`).

use crate::failure::CommandFailure;
use crate::ring_file::RingFile;
use arc_swap::ArcSwap;
use gateway::{LiveRing, Rings};
use placement::Ring;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{HashPrefix, Policies};
use world::World;

/// How often ring files are looked at, as in Swift.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// The rings of a cluster and the files they came from.
pub struct WatchedRings {
    files: Vec<(RingFile, LiveRing)>,
}

impl WatchedRings {
    /// Reads account, container and all object rings below `swift_dir`.
    pub fn load(swift_dir: &Path, policies: &Policies, hash: &HashPrefix) -> Result<(Rings, Self), CommandFailure> {
        let mut files = Vec::new();
        let mut load = |name: &str| -> Result<LiveRing, CommandFailure> {
            let mut file = RingFile::new(swift_dir.join(format!("{name}.ring.gz")));
            let ring = Arc::new(ArcSwap::from_pointee(file.read()?));
            files.push((file, ring.clone()));
            Ok(ring)
        };
        let (account, container) = (load("account")?, load("container")?);
        let mut objects = BTreeMap::new();
        for policy in policies.iter() {
            objects.insert(policy.index, load(&policy.index.ring_name())?);
        }
        files
            .iter()
            .for_each(|(file, ring)| tell_of_increase(file.path(), None, &ring.load()));
        let rings = Rings {
            account,
            container,
            objects,
            policies: policies.clone(),
            hash: hash.clone(),
            nodes: gateway::nodes::NodeTables::default(),
        };
        Ok((rings, Self { files }))
    }

    /// Reads files that change from now on, for ever.
    pub async fn watch(mut self, world: World) {
        loop {
            world.clock.sleep(LOOK_EVERY).await;
            for (file, ring) in &mut self.files {
                match file.read_again() {
                    Some(Ok(fresh)) => {
                        tell_of_increase(file.path(), Some(&ring.load()), &fresh);
                        ring.store(Arc::new(fresh));
                        tracing::info!("{} has changed and is in force", file.path().display());
                    }
                    Some(Err(error)) => {
                        tracing::warn!("{error}; the ring read before stays in force until this one can be read");
                    }
                    None => {}
                }
            }
        }
    }
}

/// Says what goes on while the partition power of a ring is increased, when a ring is read that says so and the one
/// before did not.
fn tell_of_increase(path: &Path, before: Option<&Ring>, now: &Ring) {
    let powers = |ring: &Ring| Some((ring.part_power(), ring.data().next_part_power()?));
    let Some((power, next)) = powers(now).filter(|now| before.and_then(powers) != Some(*now)) else {
        return;
    };
    let (name, ring) = (path.file_name().unwrap_or_default().to_string_lossy(), path.display());
    match name.starts_with("object") {
        true => tracing::warn!(
            "{ring}: its partition power is being increased (it is {power}, and next_part_power is {next}): object \
             servers link what is written, swift-object-relinker links and cleans up what is there already, and \
             object-replicators leave the policy alone until the increase is finished"
        ),
        false => tracing::error!(
            "{ring}: its partition power is being increased, which only rings of objects can be: databases are not \
             found any more once it is"
        ),
    }
}
