//! What one write of 4 KiB costs as a batch of one, as a streamed object, and as one of a batch of 16.
//!
//! `cargo bench -p object-engine --bench one_or_many [-- DIRECTORY [ROUNDS]]`: the variants take turns, so that they
//! meet the same disk. The best of the rounds is printed, and the middle one.

#![allow(clippy::print_stdout)] // the result

use bytes::Bytes;
use object_engine::conformance::{at, commit, key};
use object_engine::{EngineError, FilesConfig, FilesEngine, ObjectEngine, ObjectKey};
use std::time::{Duration, Instant};
use world::World;

const BODY: [u8; 4096] = [7; 4096];
const TOGETHER: usize = 16;

/// Writes objects of 4 KiB.
type WriteObjects = fn(&FilesEngine, &[ObjectKey]) -> Result<(), EngineError>;

const VARIANTS: [(&str, WriteObjects); 3] = [
    ("batches of one", |engine, keys| {
        keys.iter().try_for_each(|key| {
            let put = (key.clone(), Bytes::from_static(&BODY), commit(at(1), &BODY));
            engine.put_all(vec![put]).into_iter().collect()
        })
    }),
    ("streamed", |engine, keys| {
        keys.iter().try_for_each(|key| {
            let mut writer = engine.create(key, Some(BODY.len() as u64))?;
            writer.write(&BODY)?;
            writer.commit(commit(at(1), &BODY))
        })
    }),
    ("a batch of 16", |engine, keys| {
        let put = |key: &ObjectKey| (key.clone(), Bytes::from_static(&BODY), commit(at(1), &BODY));
        engine.put_all(keys.iter().map(put).collect()).into_iter().collect()
    }),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|text| text != "--bench").collect();
    let place = match arguments.first() {
        Some(directory) => tempfile::tempdir_in(directory)?,
        None => tempfile::tempdir()?,
    };
    let rounds: usize = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(200);
    let mut config = FilesConfig::new("sda", place.path());
    config.mount_check = false;
    let engine = FilesEngine::start(config, World::real());
    let mut times = [const { Vec::<Duration>::new() }; VARIANTS.len()];
    for round in 0..rounds {
        for (variant, (name, write)) in VARIANTS.iter().enumerate() {
            let object = |number| key(&format!("/AUTH_bench/{name}/{round}-{number}"));
            let keys: Vec<ObjectKey> = (0..TOGETHER).map(object).collect();
            let began = Instant::now();
            write(&engine, &keys)?;
            times[variant].push(began.elapsed() / TOGETHER as u32);
        }
    }
    for ((name, _), times) in VARIANTS.iter().zip(&mut times) {
        times.sort_unstable();
        println!(
            "{name}: best {:.1?}, median {:.1?} per object",
            times[0],
            times[times.len() / 2]
        );
    }
    Ok(())
}
