//! The watch over drives of real directories.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

use durable_fs::{Drives, StorageDevice};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use upkeep::{DriveWatch, ReconFile, ReconWriter, UpkeepJob};
use world::World;

fn figures(dir: &Path) -> serde_json::Value {
    let bytes = std::fs::read(dir.join("object.recon")).unwrap_or_else(|_| b"{}".to_vec());
    serde_json::from_slice::<serde_json::Value>(&bytes).unwrap()["device_health"]["sda"]["state"].clone()
}

/// Steps, as if seconds passed, until recon says so.
async fn until(watch: &mut DriveWatch, dir: &Path, state: &str) {
    let began = Instant::now();
    while figures(dir) != state {
        assert!(began.elapsed() < Duration::from_secs(60), "never {state}");
        watch.step().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_drive_leaves_service_and_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("sda");
    std::fs::create_dir(&root).unwrap();
    let (world, drives) = (World::real(), Arc::new(Drives::default()));
    let recon = ReconWriter::new(world.clone(), dir.path());
    let mut watch = DriveWatch::new(world.clone(), drives.clone(), false, vec![(recon, ReconFile::Object)]);
    let device = StorageDevice::watched(world.files.clone(), world.random.clone(), drives.health(&root), false);

    watch.step().await;
    drives.health(&root).saw(&root, &std::io::Error::from_raw_os_error(19));
    assert!(drives.is_out(&root));
    until(&mut watch, dir.path(), "out of service").await;
    assert!(device.check_writable().is_err());
    until(&mut watch, dir.path(), "in service").await;
    device.write_file(&root, "file", &root, b"x").unwrap();

    let away = dir.path().join("away");
    std::fs::rename(&root, &away).unwrap();
    until(&mut watch, dir.path(), "out of service").await;
    std::fs::rename(&away, &root).unwrap();
    until(&mut watch, dir.path(), "in service").await;
}

/// Threads of this process that try drives out.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| name.contains("try-unknown")).count()
}

#[tokio::test]
async fn drives_that_nothing_works_on_any_longer_leave_no_thread() {
    let dir = tempfile::tempdir().unwrap();
    let (world, drives) = (World::real(), Arc::new(Drives::default()));
    let mut watch = DriveWatch::new(world, drives.clone(), false, vec![]);
    for number in 0..50 {
        let health = drives.health(&dir.path().join(format!("unknown-{number}")));
        health.suspect();
        watch.step().await;
    }
    assert!(threads() > 0);
    watch.step().await;
    let began = Instant::now();
    while threads() > 0 {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{} threads are left",
            threads()
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
