#!/bin/sh
# Builds PROFILE (dist unless it is named) and the Debian package twice, from what is committed, in two folders and with
# two homes of cargo, and compares the files byte by byte. REPRODUCE_IN is where (a temporary folder, which goes again).
set -eu
profile=${1:-dist}
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
work=$(mktemp -d "${REPRODUCE_IN:-/tmp}/reproduce.XXXXXX")
trap 'rm -rf "$work"' EXIT
# A shell that a signal ends runs no trap of its exit.
trap 'exit 130' INT TERM HUP
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH CARGO_INCREMENTAL=0
unset CARGO_TARGET_DIR

# The crates must be there before their folder is copied and its name becomes a flag. A symbolic link would not do: the
# compiler sees the working folder by one name and the files by the other.
(cd "$root" && cargo fetch --locked)
mkdir -p "$work/another/home"
registry=${CARGO_HOME:-$HOME/.cargo}/registry
cp -al "$registry" "$work/another/home/registry" 2> /dev/null || cp -a "$registry" "$work/another/home/registry"

build() { # FOLDER
    mkdir -p "$1"
    git -C "$root" archive HEAD | tar -x -C "$1"
    (cd "$1" && packaging/reproducible.sh cargo build --profile "$profile" --locked --offline -p martlet)
    "$1/packaging/build-deb.sh" "$1/target/$profile/martlet" "$1/target/debian"
}
build "$work/one"
CARGO_HOME=$work/another/home build "$work/another/longer/name/of/a/folder"

status=0
for file in "target/$profile/martlet" $(cd "$work/one" && echo target/debian/*.deb); do
    if cmp "$work/one/$file" "$work/another/longer/name/of/a/folder/$file"; then
        (cd "$work/one" && sha256sum "$file")
    else
        status=1
    fi
done
exit $status
