#!/bin/sh
# Runs a command that builds Rust with flags that keep this machine's paths out of what is built:
#     packaging/reproducible.sh cargo build --profile dist --locked -p martlet
# Paths of the sources become /usr/src/martlet, those of crates /usr/src/crates; C code of crates alike. The standard
# library's are remapped as it is. Nothing in the build asks for the time.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
home=${CARGO_HOME:-$HOME/.cargo}
crates=$(echo "$home"/registry/src/*)
flags= cflags=
for folder in $crates; do
    flags="$flags --remap-path-prefix=$folder=/usr/src/crates"
    cflags="$cflags -ffile-prefix-map=$folder=/usr/src/crates"
done
export RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$root=/usr/src/martlet$flags"
export CFLAGS="${CFLAGS:-} -ffile-prefix-map=$root=/usr/src/martlet$cflags"
# What incremental builds make depends on what was built before.
export CARGO_INCREMENTAL=0
exec "$@"
