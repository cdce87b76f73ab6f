//! Many seeds without a broken promise, and every planted bug found.
//!
//! `MARTLET_SEEDS=100000` runs more, `MARTLET_FIRST_SEED` other ones, `MARTLET_SEED=17` one of them in words;
//! `MARTLET_BUG=Handoffs` looks for the bugs of that name only.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

use simulation::bugs::Bug;
use simulation::databases;
use simulation::run::{RunOutcome, run};
use simulation::topology::Topologies;
use simulation::whole;
use std::sync::atomic::{AtomicU64, Ordering};

/// A tenth of a run is asking for memory.
#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// Take half a minute on two processors.
const SEEDS: u64 = 200;
const DATABASE_SEEDS: u64 = 60;
const WHOLE_SEEDS: u64 = 10;
/// Each bug must show within so many.
const SEEDS_PER_BUG: u64 = 1_000;
const WHOLE_SEEDS_PER_BUG: u64 = 100;
/// The seeds that found planted bugs last, of those that the first seed does not find: tried before all others.
const FOUND_BY: &[(Bug, u64)] = &[
    (Bug::AcknowledgesUnstored, 4),
    (Bug::SkipsChecksums, 7),
    (Bug::PanicsOnFaults, 21),
    (Bug::KeepsTemporaries, 2),
    (Bug::QueuesWithoutBound, 34),
    (Bug::RemovesHandoffsEarly, 7),
    (Bug::ForgetsReplicas, 5),
    (Bug::SyncsNoReplicas, 3),
    (Bug::TrustsShortAnswers, 216),
    (Bug::ForgetsHints, 24),
    (Bug::TakesOlderReplicas, 3),
    (Bug::KeepsDeletionsToItself, 15),
    (Bug::TrustsOwnClock, 5),
    (Bug::SeatsConnections, 3),
    (Bug::TrustsLostRows, 2),
    (Bug::ForgetsDeletedContainers, 2),
    (Bug::ForgetsDeletedRows, 2),
    (Bug::ReplacesDatabases, 10),
    (Bug::CommitsNothing, 3),
    (Bug::SyncsNoDatabases, 2),
    (Bug::SyncsNoJournals, 9),
    (Bug::ObeysForeignSchemas, 2),
    (Bug::MovesNothing, 3),
    (Bug::ForgetsIntents, 5),
    (Bug::ForgetsLateRows, 3),
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// What runs a seed: objects, or databases.
type Runs = fn(&Topologies, u64, Option<Bug>, bool) -> RunOutcome;

/// The first seed among `seeds` that breaks a promise, on all processors.
fn first_broken(run: Runs, first: u64, count: u64, bug: Option<Bug>) -> Option<(u64, RunOutcome)> {
    let (next, broken) = (AtomicU64::new(first), AtomicU64::new(u64::MAX));
    let search = || {
        let topologies = Topologies::new().unwrap();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count || seed > broken.load(Ordering::Relaxed) {
                return;
            }
            if run(&topologies, seed, bug, false).violation.is_some() {
                broken.fetch_min(seed, Ordering::Relaxed);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(search))));
    let seed = broken.into_inner();
    let topologies = Topologies::new().unwrap();
    (seed != u64::MAX).then(|| (seed, run(&topologies, seed, bug, true)))
}

fn hold(run: Runs, seeds: u64, replay: &str) {
    if let Some(seed) = number("MARTLET_SEED") {
        let outcome = run(&Topologies::new().unwrap(), seed, None, true);
        outcome.lines.iter().for_each(|line| eprintln!("{line}"));
        return assert_eq!(outcome.violation, None, "seed {seed}");
    }
    let (first, count) = (
        number("MARTLET_FIRST_SEED").unwrap_or(1),
        number("MARTLET_SEEDS").unwrap_or(seeds),
    );
    if let Some((seed, outcome)) = first_broken(run, first, count, None) {
        let last = outcome.lines.len().saturating_sub(40);
        let violation = outcome
            .violation
            .map_or("it does not show again".into(), |violation| violation.to_string());
        let last = outcome.lines[last..].join("\n");
        panic!("seed {seed}: {violation}\n…\n{last}\n\nreplay with: make simulate SEED={seed}{replay}");
    }
}

fn repeat(run: Runs, seeds: u64) {
    let topologies = Topologies::new().unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..seeds {
        let once = run(&topologies, seed, None, true);
        let again = run(&topologies, seed, None, true);
        let differ = once.lines.iter().zip(&again.lines).find(|(one, other)| one != other);
        assert_eq!(differ, None, "seed {seed}");
        assert_eq!(
            (once.fingerprint, once.lines.len()),
            (again.fingerprint, again.lines.len()),
            "seed {seed}"
        );
        seen.insert(once.fingerprint);
    }
    assert_eq!(seen.len() as u64, seeds);
}

fn find(run: Runs, seeds: u64, bugs: &[Bug]) {
    let wanted = std::env::var("MARTLET_BUG").unwrap_or_default();
    for bug in bugs.iter().filter(|bug| format!("{bug:?}").contains(&wanted)) {
        let last = FOUND_BY
            .iter()
            .find(|(known, _)| known == bug)
            .map_or(1, |(_, seed)| *seed);
        let found = first_broken(run, last, 1, Some(*bug)).or_else(|| first_broken(run, 1, seeds, Some(*bug)));
        let (seed, outcome) = found.unwrap_or_else(|| panic!("{bug:?} is not found"));
        let violation = outcome.violation.map_or_else(String::new, |v| v.to_string());
        eprintln!("{bug:?}: seed {seed}: {violation}");
    }
}

#[test]
fn the_page_names_every_planted_bug() {
    let page = include_str!("../../../docs/simulation.md");
    for bug in Bug::ALL.iter().chain(&Bug::OF_DATABASES).chain(&Bug::OF_WHOLE_CLUSTERS) {
        assert!(
            page.contains(&format!("`{bug:?}`")),
            "docs/simulation.md does not name {bug:?}"
        );
    }
}

#[test]
fn no_promise_is_broken() {
    hold(run, SEEDS, "");
}

#[test]
fn no_promise_of_databases_is_broken() {
    hold(databases::run, DATABASE_SEEDS, " OF=_of_databases");
}

#[test]
fn no_promise_of_whole_clusters_is_broken() {
    hold(whole::run, WHOLE_SEEDS, " OF=_of_whole_clusters");
}

#[test]
fn a_seed_always_gives_the_same_run_of_a_whole_cluster() {
    repeat(whole::run, 3);
}

#[test]
fn every_planted_bug_of_whole_clusters_is_found() {
    find(whole::run, WHOLE_SEEDS_PER_BUG, &Bug::OF_WHOLE_CLUSTERS);
}

#[test]
fn a_seed_always_gives_the_same_run() {
    repeat(run, 20);
}

#[test]
fn a_seed_always_gives_the_same_run_of_databases() {
    repeat(databases::run, 8);
}

#[test]
fn every_planted_bug_is_found() {
    find(run, SEEDS_PER_BUG, &Bug::ALL);
}

#[test]
fn every_planted_bug_of_databases_is_found() {
    find(databases::run, SEEDS_PER_BUG, &Bug::OF_DATABASES);
}
