#!/bin/sh
# Makes OUTPUT/martlet-VERSION-MACHINE-KIND.tar.gz of BINARY and of the files of this repository (stage.sh). KIND is
# `static`, or `glibc2.34` where the program needs that glibc or a newer one. Beside it: the debug information.
# What the environment may say: common.sh.
set -eu

if [ $# -ne 2 ]; then
    echo "usage: $0 BINARY OUTPUT-DIRECTORY" >&2
    exit 2
fi
binary=$1 output=$2
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
name=martlet-$version-$(uname -m)-$(kind_of "$binary")
stage=$work/$name symbols=
[ -n "${MARTLET_PACKAGE_KEEP_SYMBOLS:-}" ] || symbols=$work/symbols
level=9
[ "${MARTLET_PACKAGE_COMPRESSION:-}" != none ] || level=1

"$here/stage.sh" "$binary" "$stage" $symbols > "$work/build-id"
install -m 0644 "$root/LICENSE" "$stage/usr/share/doc/martlet/LICENSE"
install -m 0755 "$here/tarball/install.sh" "$stage/install.sh"
install -m 0644 "$here/tarball/INSTALL" "$stage/INSTALL"
# What is done after files are laid down and before they go is written once, for all packages.
install -d "$stage/scripts"
for script in postinst prerm postrm; do
    install -m 0755 "$here/debian/$script" "$stage/scripts/$script"
done
(cd "$stage" && find etc usr -type f -o -type l | sort) > "$stage/scripts/files"

pack() { # FOLDER NAME FILE
    tar --create --directory "$1" --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        --mode=u+rwX,go+rX,go-w "$2" | gzip -"$level"n > "$output/$3.tar.gz"
}
mkdir -p "$output"
pack "$work" "$name" "$name"
[ -z "$symbols" ] || pack "$symbols" usr "$name-debug"
