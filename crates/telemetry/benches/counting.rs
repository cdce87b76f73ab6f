//! What counting costs a request: `make bench-metrics`.
//!
//! Each round does what a server does for a request whose bodies pass whole: begins it, looks at the clock twice,
//! counts the bytes of both bodies and the answer. By one thread, then by as many as there are processors, all
//! counting in the same place.
//! Always holds: with optimisation, a request that costs [`LIMIT`] or more fails the run.

#![allow(clippy::print_stdout, reason = "a bench prints")]

use std::hint::black_box;
use std::sync::Arc;
use telemetry::Statsd;
use telemetry::metrics::{Requests, Role};
use world::{Clock, World};

/// A hundredth of what a small GET takes.
const LIMIT: f64 = 1000.0;
const ROUNDS: usize = 400;
const REQUESTS: u32 = 5_000;

/// Nanoseconds a request.
fn count(requests: &Arc<Requests>, clock: &dyn Clock) -> f64 {
    let since = clock.elapsed();
    for _ in 0..REQUESTS {
        let under = requests.begin(black_box("GET"));
        let began = clock.elapsed();
        requests.received(black_box(0));
        requests.sent(black_box(4096));
        under.answered(black_box(200), clock.elapsed().saturating_sub(began));
    }
    (clock.elapsed().saturating_sub(since)).as_nanos() as f64 / f64::from(REQUESTS)
}

/// The same when two looks at the clock are all there is.
fn look(clock: &dyn Clock) -> f64 {
    let since = clock.elapsed();
    for _ in 0..REQUESTS {
        black_box(clock.elapsed().saturating_sub(black_box(clock.elapsed())));
    }
    (clock.elapsed().saturating_sub(since)).as_nanos() as f64 / f64::from(REQUESTS)
}

/// The fastest of several rounds: what disturbs only adds.
fn best(round: impl Fn() -> f64) -> f64 {
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

/// The slowest of threads that count at once, in their best round.
fn together(threads: usize, requests: &Arc<Requests>, clock: &dyn Clock) -> f64 {
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| best(|| count(requests, clock))))
            .collect();
        all.into_iter()
            .filter_map(|thread| thread.join().ok())
            .fold(0.0, f64::max)
    })
}

fn main() {
    let (requests, world) = (Requests::new(Role::Object, Statsd::default()), World::real());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let one = best(|| count(&requests, &*world.clock));
    let all = together(threads, &requests, &*world.clock);
    println!("counting a request: {one:.0} ns by one thread, {all:.0} ns by {threads} at once");
    println!(
        "two looks at the clock of these: {:.0} ns",
        best(|| look(&*world.clock))
    );
    if !cfg!(debug_assertions) && one.max(all) >= LIMIT {
        println!("more than {LIMIT} ns");
        std::process::exit(1);
    }
}
