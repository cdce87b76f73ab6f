#!/bin/sh
# Simulated runs with seeds that did not run yet, until there were so many together: crates/simulation/run.sh 1000000.
# Which seeds ran stands in target/simulated/, so that what was interrupted goes on where it ended.
set -eu
cd "$(dirname "$0")/../.."
most=$1
state=target/simulated
mkdir -p "$state"

next() { cat "$state/next$1" 2>/dev/null || echo 1; }

# Runs of one kind with the next seeds, which count once all of them held.
some() {
    first=$(next "$1")
    make --no-print-directory simulate OF="$1" FIRST="$first" SEEDS="$2" >"$state/log$1" 2>&1 || {
        cat "$state/log$1"
        exit 1
    }
    echo $((first + $2)) >"$state/next$1.new"
    mv "$state/next$1.new" "$state/next$1"
}

sum() { echo $(($(next "") + $(next _of_databases) + $(next _of_whole_clusters) - 3)); }

while [ "$(sum)" -lt "$most" ]; do
    some "" "${ROUND:-20000}"
    some _of_databases $((${ROUND:-20000} / 20))
    some _of_whole_clusters $((${ROUND:-20000} / 200))
    echo "$(date +%H:%M:%S) $(sum) runs held: seeds below $(next "") of objects, $(next _of_databases) of databases," \
        "$(next _of_whole_clusters) of whole clusters"
done
