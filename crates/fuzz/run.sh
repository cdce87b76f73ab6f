#!/bin/sh
# Runs every fuzz target, or those that are named, for so many seconds each:
#     crates/fuzz/run.sh SECONDS [TARGET …]
# What is new to the engine goes to target/fuzz/corpus/TARGET, inputs that break a target to target/fuzz/findings.
# The counters of coverage are inserted by the stable compiler itself; --target keeps them out of build scripts.
set -eu
seconds=${1:?"usage: $0 SECONDS [TARGET ...]"}
shift
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
host=$(rustc -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR="$root/target/fuzz" CARGO_INCREMENTAL=0
coverage="-C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=4"
coverage="$coverage -C llvm-args=-sanitizer-coverage-inline-8bit-counters -C llvm-args=-sanitizer-coverage-pc-table"
coverage="$coverage -C llvm-args=-sanitizer-coverage-trace-compares -C link-arg=-Wl,-z,nostart-stop-gc"
(cd "$here/engine" && RUSTFLAGS="--cfg fuzzing $coverage" cargo build --release --locked --target "$host")
mkdir -p "$root/target/fuzz/findings"
status=0
for target in ${*:-$(ls "$here/corpus")}; do
    mkdir -p "$root/target/fuzz/corpus/$target"
    echo "== $target"
    FUZZ_TARGET=$target "$root/target/fuzz/$host/release/fuzz-engine" -max_total_time="$seconds" -max_len=8192 \
        -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="$root/target/fuzz/findings/$target-" \
        "$root/target/fuzz/corpus/$target" "$here/corpus/$target" > "$root/target/fuzz/$target.log" 2>&1 || status=1
    grep -E "stat::number_of_executed_units|panicked at|SUMMARY|artifact_prefix|Test unit written" "$root/target/fuzz/$target.log" || true
done
exit $status
