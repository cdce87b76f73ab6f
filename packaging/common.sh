# What all packages of a build share; scripts of this folder read it: . "$here/common.sh"
#
# MARTLET_PACKAGE_VERSION and MARTLET_PACKAGE_MAINTAINER are what the packages say of themselves. Tests set
# MARTLET_PACKAGE_COMPRESSION=none and MARTLET_PACKAGE_KEEP_SYMBOLS=yes (the binary as it is, no package of its debug
# information), which is quick.
root=$(dirname "$here")
# No file of a package is younger than this, so that two builds of one source make the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || stat -c %Y "$binary")}
export SOURCE_DATE_EPOCH
version=${MARTLET_PACKAGE_VERSION:-$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)}
maintainer=${MARTLET_PACKAGE_MAINTAINER:-Martlet <martlet@localhost>}
summary="object storage with OpenStack Swift's API, formats and protocols"
description=" The gateway, the account, container and object servers, the daemons that keep
 replicas whole and the operator's tools of OpenStack Swift, in one program.
 A server of it takes the place of an OpenStack one on the same drives, and
 back."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# static: needs nothing of the system it runs on; otherwise the oldest glibc that has all that the program asks for.
kind_of() { # BINARY
    if readelf --program-headers --wide "$1" | grep -q ' INTERP '; then
        echo "glibc$(objdump -T "$1" | sed -n 's/.*GLIBC_\([0-9.]*\)[) ].*/\1/p' | sort --version-sort | tail -n 1)"
    else
        echo static
    fi
}
