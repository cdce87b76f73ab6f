//! How many 4 KiB objects per second one machine keeps durably and reads back.
//!
//! `cargo bench -p object-engine [-- DIRECTORY [THREADS [SECONDS]]]`: writes each object to three
//! devices below DIRECTORY (default: a temporary directory), then opens, then reads them.

#![allow(clippy::print_stdout)] // the result

use object_engine::conformance::{at, commit, key};
use object_engine::{FilesConfig, FilesEngine, ObjectEngine, ObjectKey, OpenOptions};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use world::World;

const REPLICAS: usize = 3;
const BODY: [u8; 4096] = [7; 4096];
const PARTITIONS: u32 = 1024;

fn object(number: u64) -> ObjectKey {
    let mut key = key(&format!("/AUTH_bench/container/object-{number}"));
    key.partition = key.hash.partition(PARTITIONS.ilog2());
    key
}

/// Runs `step` on `threads` threads for `time`; calls per second.
fn rate(threads: u64, time: Duration, step: impl Fn(u64) + Sync) -> f64 {
    let (next, started) = (AtomicU64::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while started.elapsed() < time {
                    step(next.fetch_add(1, Ordering::Relaxed));
                }
            });
        }
    });
    next.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64()
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let number = |at: usize, otherwise: u64| {
        arguments
            .get(at)
            .and_then(|text| text.parse().ok())
            .unwrap_or(otherwise)
    };
    let place = match arguments.first() {
        Some(directory) => tempfile::tempdir_in(directory)?,
        None => tempfile::tempdir()?,
    };
    let (threads, time) = (number(1, 16), Duration::from_secs(number(2, 5)));
    let engines: Vec<FilesEngine> = (0..REPLICAS)
        .map(|number| {
            let root: PathBuf = place.path().join(format!("d{number}"));
            std::fs::create_dir(&root)?;
            let mut config = FilesConfig::new(format!("d{number}"), root);
            config.mount_check = false;
            Ok(FilesEngine::start(config, World::real()))
        })
        .collect::<std::io::Result<_>>()?;

    let written = AtomicU64::new(0);
    let puts = rate(threads, time, |number| {
        let key = object(number);
        for engine in &engines {
            let outcome = engine.put(&key, &BODY, commit(at(1), &BODY));
            assert!(outcome.is_ok(), "{outcome:?}");
        }
        written.fetch_max(number, Ordering::Relaxed);
    });
    println!(
        "PUT 4 KiB, {threads} threads: {puts:.0} objects/s = {:.0} files/s",
        puts * REPLICAS as f64
    );

    // What the threads finished without a gap is at least this much.
    let count = written.load(Ordering::Relaxed).saturating_sub(threads).max(1);
    for (label, options) in [
        ("HEAD", OpenOptions::HEAD),
        ("GET first", OpenOptions::GET),
        ("GET again", OpenOptions::GET),
    ] {
        let opens = rate(threads.min(4), time / 2, |number| {
            let found = engines[0].open(&object(number % count), options);
            assert!(found.is_ok());
        });
        println!("{label}: {opens:.0}/s");
    }
    let deletes = rate(threads, time / 2, |number| {
        for engine in &engines {
            let outcome = engine.delete(&object(number), at(2));
            assert!(outcome.is_ok(), "{outcome:?}");
        }
    });
    println!(
        "DELETE: {deletes:.0} objects/s = {:.0} files/s",
        deletes * REPLICAS as f64
    );
    Ok(())
}
