#!/bin/sh
# Makes OUTPUT/martlet_VERSION_ARCH.deb of BINARY and of the files of this repository, and beside it
# OUTPUT/martlet-dbgsym_VERSION_ARCH.deb with the debug information that is stripped from BINARY.
# MARTLET_DEB_MAINTAINER names the maintainer. Tests set MARTLET_DEB_VERSION, MARTLET_DEB_COMPRESSION and
# MARTLET_DEB_KEEP_SYMBOLS (the binary as it is, no second package).
set -eu

if [ $# -ne 2 ]; then
    echo "usage: $0 BINARY OUTPUT-DIRECTORY" >&2
    exit 2
fi
binary=$1 output=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
# No file of the package is younger than this, so that two builds of one source make the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || stat -c %Y "$binary")}
export SOURCE_DATE_EPOCH
version=${MARTLET_DEB_VERSION:-$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)}
maintainer=${MARTLET_DEB_MAINTAINER:-Martlet <martlet@localhost>}
architecture=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/martlet symbols=$work/martlet-dbgsym

put() { # MODE FROM TO
    install -D -m "$1" "$2" "$stage/$3"
}

put 0755 "$binary" usr/bin/martlet
if [ -z "${MARTLET_DEB_KEEP_SYMBOLS:-}" ]; then
    # Debuggers, perf and backtraces find the file by the build id, or by the name in .gnu_debuglink.
    build_id=$(readelf --notes "$binary" | sed -n 's/.*Build ID: //p')
    rest=${build_id#??}
    debug=$symbols/usr/lib/debug/.build-id/${build_id%"$rest"}/$rest.debug
    install -d "$(dirname "$debug")"
    objcopy --only-keep-debug --compress-debug-sections "$binary" "$debug"
    chmod 0644 "$debug"
    strip --strip-debug --remove-section=.comment "$stage/usr/bin/martlet"
    objcopy --add-gnu-debuglink="$debug" "$stage/usr/bin/martlet"
fi
python3 "$here/copyright.py" > "$work/copyright"
put 0644 "$work/copyright" usr/share/doc/martlet/copyright
put 0644 "$here/debian/lintian-overrides" usr/share/lintian/overrides/martlet
put 0644 "$root/README.md" usr/share/doc/martlet/README.md
install -d "$stage/usr/share/man/man8"
"$here/man-page.sh" "$stage/usr/bin/martlet" | gzip -9n > "$stage/usr/share/man/man8/martlet.8.gz"
gzip -9n > "$stage/usr/share/doc/martlet/changelog.gz" <<CHANGELOG
martlet ($version) unstable; urgency=medium

  * A build of version $version.

 -- $maintainer  $(date -R -u -d "@$SOURCE_DATE_EPOCH")
CHANGELOG
for sample in "$root"/etc/*-sample; do
    put 0644 "$sample" "etc/swift/$(basename "$sample")"
done
# Not in /etc: dpkg would ask about a file that the operator has written before the package came.
put 0644 "$here/debian/default" usr/share/martlet/default

units=$stage/usr/lib/systemd/system
for unit in martlet.target martlet-up.service martlet-recon-cron.service martlet-recon-cron.timer; do
    put 0644 "$here/systemd/$unit" "usr/lib/systemd/system/$unit"
done
put 0644 "$here/systemd/confinement.conf" usr/lib/systemd/system/martlet-.service.d/confinement.conf
for role in proxy account container object; do
    after=
    [ "$role" = proxy ] && after=" memcached.service"
    sed -e "s|@ROLE@|$role|g; s|@CONF@|/etc/swift/$role-server.conf|g; s|@AFTER@|$after|g; s|@INSTANCE_WORDS@||g" \
        "$here/systemd/server.in" > "$units/martlet-$role.service"
    # Several of a kind on one machine: martlet-object@2 reads /etc/swift/object-server/2.conf, as swift-init numbers them.
    sed -e "s|@ROLE@|$role|g; s|@CONF@|/etc/swift/$role-server/%i.conf|g; s|@AFTER@|$after|g; s|@INSTANCE_WORDS@| %i|g" \
        "$here/systemd/server.in" > "$units/martlet-$role@.service"
done
daemon() { # NAME CONF
    sed -e "s|@DAEMON@|$1|g; s|@CONF@|/etc/swift/$2|g" "$here/systemd/daemon.in" > "$units/martlet-$1.service"
}
for name in auditor replicator reaper; do daemon account-$name account-server.conf; done
for name in auditor replicator updater sync; do daemon container-$name container-server.conf; done
for name in auditor replicator updater expirer; do daemon object-$name object-server.conf; done
daemon container-reconciler container-reconciler.conf

# OpenStack's names, out of the way of its own package; swift-init finds them when this folder is on its PATH.
install -d "$stage/usr/lib/martlet/bin"
for unit in "$units"/martlet-*.service; do
    name=$(basename "$unit" .service)
    name=${name#martlet-}
    case $name in
    *@ | up | recon-cron) continue ;;
    proxy | account | container | object) name=$name-server ;;
    esac
    ln -s ../../../bin/martlet "$stage/usr/lib/martlet/bin/swift-$name"
done
for tool in ring-builder ring-builder-safe ring-composer get-nodes object-info container-info account-info recon recon-cron drive-audit \
    dispersion-populate dispersion-report oldies orphans config form-signature reconciler-enqueue; do
    ln -s ../../../bin/martlet "$stage/usr/lib/martlet/bin/swift-$tool"
done

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
Description: object storage with OpenStack Swift's API, formats and protocols
 The gateway, the account, container and object servers, the daemons that keep
 replicas whole and the operator's tools of OpenStack Swift, in one program.
 A server of it takes the place of an OpenStack one on the same drives, and
 back.
CONTROL

build() { # FOLDER
    (cd "$1" && find usr -type f | sort | xargs md5sum) > "$1/DEBIAN/md5sums"
    chmod -R u+rwX,go+rX,go-w "$1"
    mkdir -p "$output"
    dpkg-deb --root-owner-group "-Z${MARTLET_DEB_COMPRESSION:-xz}" --build "$1" "$output/$(basename "$1")_${version}_$architecture.deb"
}
build "$stage"
[ -d "$symbols" ] || exit 0

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
