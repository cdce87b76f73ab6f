//! Batches of objects on one drive that loses its power: one step later in each run, until the power lasts.
//!
//! The clusters of `seeds.rs` have few names, and so never a batch that is synced at once.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

use bytes::Bytes;
use object_engine::conformance::{at, commit, key, read_all};
use object_engine::{EngineError, FilesConfig, FilesEngine, ObjectEngine, OpenOptions};
use simulation::clock::SimClock;
use simulation::dice::Dice;
use simulation::disk::{SimFiles, WriteOrder};
use simulation::executor::Executor;
use simulation::trace::Trace;
use std::sync::Arc;
use world::World;

/// More than are synced one by one.
const OBJECTS: usize = 12;

fn world(seed: u64, order: WriteOrder) -> (World, SimFiles) {
    let dice = Dice::new(seed);
    let clock = SimClock::new(Executor::new(dice.clone()));
    let files = SimFiles::new(clock, dice, Trace::new(false), 0, &[("d", order)]);
    let world = World {
        files: Arc::new(files.clone()),
        ..World::real()
    };
    (world, files)
}

fn engine(world: &World) -> FilesEngine {
    let mut config = FilesConfig::new("d", "/srv/d");
    config.mount_check = false;
    FilesEngine::start(config, world.clone())
}

/// What is there of an object: its body, or when it was deleted, if ever.
fn found(engine: &dyn ObjectEngine, name: &str) -> Result<Vec<u8>, Option<vocabulary::Timestamp>> {
    match engine.open(&key(name), OpenOptions::GET) {
        Ok(found) => Ok(read_all(found).unwrap()),
        Err(EngineError::NotFound { deleted_at }) => Err(deleted_at),
        // Only a drive that lies leaves that.
        Err(EngineError::Quarantined { .. }) => Ok(b"quarantined".to_vec()),
        Err(error) => panic!("{name}: {error}"),
    }
}

/// Writes and deletes together with power for so many steps; whether it lasted. An error when what was acknowledged is
/// not there afterwards, or what was not is neither as it was before nor as it should have become.
fn write_until_dark(seed: u64, order: WriteOrder, steps: u32, lies: bool) -> Result<bool, String> {
    let (world, files) = world(seed, order);
    files.lie(lies);
    let before = engine(&world);
    let names: Vec<String> = (0..OBJECTS).map(|number| format!("/a/c/{number}")).collect();
    let (kept, new) = names.split_at(OBJECTS / 2);
    for name in kept {
        before.put(&key(name), b"old", commit(at(1), b"old")).unwrap();
    }
    files.lose_power_after(steps);
    let body = Bytes::from_static(b"new body");
    let put = |name: &String| (key(name), body.clone(), commit(at(2), &body));
    let written = before.put_all(names.iter().map(put).collect());
    let deletions: Vec<_> = names.iter().map(|name| (key(name), at(3))).collect();
    let deleted = before.delete_all(deletions);
    let lasted = !files.is_dark();
    drop(before);
    files.restore_power();
    let after = engine(&world);
    for (at_index, name) in names.iter().enumerate() {
        let now = found(&after, name);
        let was_there = Ok(b"old".to_vec());
        let allowed = match (&written[at_index], &deleted[at_index]) {
            (_, Ok(())) => vec![Err(Some(at(3)))],
            (Ok(()), Err(_)) => vec![Ok(body.to_vec()), Err(Some(at(3)))],
            (Err(_), Err(_)) if new.contains(name) => vec![Err(None), Ok(body.to_vec()), Err(Some(at(3)))],
            (Err(_), Err(_)) => vec![was_there, Ok(body.to_vec()), Err(Some(at(3)))],
        };
        if !allowed.contains(&now) {
            return Err(format!("seed {seed}, {order:?}, {steps} steps: {name} is {now:?}"));
        }
    }
    Ok(lasted)
}

#[test]
fn what_was_acknowledged_of_a_batch_survives_a_loss_of_power() {
    for order in [WriteOrder::Log, WriteOrder::Any] {
        for seed in 0..4 {
            let mut steps = 0;
            while !write_until_dark(seed, order, steps, false).unwrap() {
                steps += 1;
            }
            assert!(steps > 60, "the power was never lost: {steps}");
        }
    }
}

/// Else the other test shows nothing.
#[test]
fn a_drive_that_only_says_that_it_syncs_is_found_out() {
    let found_out = (0..100).any(|steps| write_until_dark(1, WriteOrder::Log, steps, true).is_err());
    assert!(found_out);
}
