#!/bin/sh
# Makes OUTPUT/martlet_VERSION_ARCH.deb of BINARY and of the files of this repository (stage.sh), and beside it
# OUTPUT/martlet-dbgsym_VERSION_ARCH.deb with the debug information that is stripped from BINARY.
# What the environment may say: common.sh.
set -eu

if [ $# -ne 2 ]; then
    echo "usage: $0 BINARY OUTPUT-DIRECTORY" >&2
    exit 2
fi
binary=$1 output=$2
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
architecture=$(dpkg --print-architecture)
stage=$work/martlet symbols=
[ -n "${MARTLET_PACKAGE_KEEP_SYMBOLS:-}" ] || symbols=$work/martlet-dbgsym
compression=xz
[ "${MARTLET_PACKAGE_COMPRESSION:-}" != none ] || compression=none

build_id=$("$here/stage.sh" "$binary" "$stage" $symbols)
install -D -m 0644 "$here/debian/lintian-overrides" "$stage/usr/share/lintian/overrides/martlet"
gzip -9n > "$stage/usr/share/doc/martlet/changelog.gz" <<CHANGELOG
martlet ($version) unstable; urgency=medium

  * A build of version $version.

 -- $maintainer  $(date -R -u -d "@$SOURCE_DATE_EPOCH")
CHANGELOG

install -d "$stage/DEBIAN"
for script in postinst prerm postrm; do
    install -m 0755 "$here/debian/$script" "$stage/DEBIAN/$script"
done
(cd "$stage" && find etc -type f | sort | sed 's|^|/|') > "$stage/DEBIAN/conffiles"
size=$(du -sk --exclude=DEBIAN "$stage" | cut -f1)
libc=$(dpkg-query -W -f '${Version}' libc6 | sed 's/[-+].*//')
cat > "$stage/DEBIAN/control" <<CONTROL
Package: martlet
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $size
Depends: libc6 (>= $libc), libgcc-s1, passwd
Recommends: rsync
Suggests: memcached
Section: net
Priority: optional
Description: $summary
$description
CONTROL

build() { # FOLDER
    (cd "$1" && find usr -type f | sort | xargs md5sum) > "$1/DEBIAN/md5sums"
    chmod -R u+rwX,go+rX,go-w "$1"
    mkdir -p "$output"
    dpkg-deb --root-owner-group -Z$compression --build "$1" "$output/$(basename "$1")_${version}_$architecture.deb"
}
build "$stage"
[ -n "$symbols" ] || exit 0

install -d "$symbols/DEBIAN" "$symbols/usr/share/doc"
ln -s martlet "$symbols/usr/share/doc/martlet-dbgsym"
size=$(du -sk --exclude=DEBIAN "$symbols" | cut -f1)
cat > "$symbols/DEBIAN/control" <<CONTROL
Package: martlet-dbgsym
Source: martlet
Version: $version
Auto-Built-Package: debug-symbols
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $size
Depends: martlet (= $version)
Section: debug
Priority: optional
Description: debug symbols for martlet
Build-Ids: $build_id
CONTROL
build "$symbols"
