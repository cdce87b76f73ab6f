//! libFuzzer around the targets of the crate `fuzz`, in one program: `FUZZ_TARGET` names the target.
//!
//! **Why libFuzzer**: it needs nothing but a C++ compiler and runs on the pinned stable compiler, which can insert
//! the counters of coverage by itself (`-C passes=sancov-module` and its options, in `crates/fuzz/run.sh`). AFL++
//! and honggfuzz need a compiler of their own or libraries of the system, `cargo fuzz` a nightly compiler. What is
//! lost is AddressSanitizer, which stable cannot switch on; the parsers have no `unsafe` that it would watch.
//! Deliberately absent: the targets (`crates/fuzz/src`); this crate is a workspace of its own, so that neither it nor
//! libFuzzer is ever built with the product or its tests.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static TARGET: OnceLock<fuzz::FuzzTarget> = OnceLock::new();

fuzz_target!(
    init: {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        let Some(target) = fuzz::target(&name) else {
            panic!("FUZZ_TARGET={name:?} names no target; crates/fuzz/src/lib.rs lists them");
        };
        let _ = TARGET.set(target);
    },
    |bytes: &[u8]| {
        if let Some(target) = TARGET.get() {
            (target.run)(bytes);
        }
    }
);
