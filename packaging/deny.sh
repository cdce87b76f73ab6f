#!/bin/sh
# Runs cargo-deny's checks (deny.toml): packaging/deny.sh licenses bans sources, or: packaging/deny.sh advisories.
# cargo-deny is built into target/tools when it is not installed, which takes some minutes. The advisories are a git
# repository: where it cannot be reached, and ADVISORIES names no other copy, that check says so and is skipped.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
version=0.20.2
tool=$(command -v cargo-deny || true)
if [ -z "$tool" ]; then
    tool=target/tools/bin/cargo-deny
    [ -x "$tool" ] || cargo install --locked --root target/tools --version "$version" cargo-deny
fi
if [ "$*" != advisories ]; then
    exec "$tool" --all-features --config deny.toml check "$@"
fi
original=$(sed -n 's/^db-urls = \["\(.*\)"\]$/\1/p' deny.toml)
database=${ADVISORIES:-$original}
# cargo-deny takes no URL without a host; git puts the other copy in its place.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.$database.insteadOf" GIT_CONFIG_VALUE_0="$original"
if ! git ls-remote --quiet --exit-code "$original" HEAD > /dev/null 2>&1; then
    echo "skipped: the database of advisories, $database, cannot be reached; ADVISORIES=file:///a/clone names another copy"
    exit 0
fi
mkdir -p target/tools
where="db-path = \"$root/target/tools/advisories\"\ngit-fetch-with-cli = true"
sed "s|^db-urls = .*|&\n$where|" deny.toml > target/tools/deny.toml
exec "$tool" --all-features --config target/tools/deny.toml check advisories
