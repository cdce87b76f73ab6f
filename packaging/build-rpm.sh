#!/bin/sh
# Makes OUTPUT/martlet-VERSION-1.ARCH.rpm of BINARY and of the files of this repository (stage.sh), and beside it
# OUTPUT/martlet-debuginfo-VERSION-1.ARCH.rpm with the debug information that is stripped from BINARY.
# What the environment may say: common.sh. rpmbuild makes it (Debian's package `rpm`, Fedora's `rpm-build`).
set -eu

if [ $# -ne 2 ]; then
    echo "usage: $0 BINARY OUTPUT-DIRECTORY" >&2
    exit 2
fi
binary=$1 output=$2
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
stage=$work/stage symbols=
[ -n "${MARTLET_PACKAGE_KEEP_SYMBOLS:-}" ] || symbols=$work/symbols
payload=w19.zstdio
[ "${MARTLET_PACKAGE_COMPRESSION:-}" != none ] || payload=w.ufdio
"$here/stage.sh" "$binary" "$stage" $symbols > "$work/build-id"
install -m 0644 "$root/LICENSE" "$stage/usr/share/doc/martlet/LICENSE"

# What happens at installation, upgrade and removal is written once, in debian/. Both package managers say by arguments what
# is going on: rpm how many versions will be left, dpkg a word.
scriptlet() { # SECTION SCRIPT, and what rpm's first argument is in dpkg's words
    printf '\n%%%s\n%s\n' "$1" "$3"
    sed -e '1d' -e 's/%/%%/g' "$here/debian/$2"
}

folders() { # folders that are this package's own, of those below $stage
    (cd "$stage" && find etc usr -type d) | grep -E '(^etc/swift|/martlet|/martlet-\.service\.d)(/|$)' | sort
}

{
    cat <<SPEC
Name: martlet
Version: $version
Release: 1
Summary: $summary
License: Apache-2.0
Packager: $maintainer
Requires(post): /usr/sbin/useradd, /usr/sbin/groupadd
Recommends: rsync
Suggests: memcached

%description
$(echo "$description" | sed 's/^ //')
SPEC
    [ -z "$symbols" ] || cat <<SPEC

%package debuginfo
Summary: debug information of martlet
Requires: martlet = %{version}-%{release}
AutoReqProv: no

%description debuginfo
Lines of the source for backtraces, perf and debuggers.
SPEC
    scriptlet post postinst 'if [ "$1" = 1 ]; then set -- configure ""; else set -- configure before; fi'
    scriptlet preun prerm 'if [ "$1" = 0 ]; then set -- remove; else set -- upgrade; fi'
    scriptlet postun postrm 'if [ "$1" = 0 ]; then set -- remove; else set -- upgrade; fi'
    printf '\n%%files\n'
    # The scriptlet gives the folder of the configuration to the group of the servers.
    folders | sed -e 's|^|%dir /|' -e 's|^%dir /etc/swift$|%dir %verify(not group) /etc/swift|'
    (cd "$stage" && find etc usr -type f -o -type l) | sort | sed \
        -e 's|^|/|' -e 's|^/etc/|%config(noreplace) &|' -e 's#^/usr/share/doc/martlet/\(copyright\|LICENSE\)$#%license &#' -e 's|^/usr/share/man/|%doc &|'
    [ -z "$symbols" ] || printf '\n%%files debuginfo\n%s\n' "$(cd "$symbols" && find usr -type f | sed 's|^|/|')"
} > "$work/martlet.spec"
[ -z "$symbols" ] || cp -a "$symbols/." "$stage/"

# Nothing is built, stripped or compressed by rpmbuild, and no name or time of this machine comes in.
rpmbuild -bb --quiet --buildroot "$stage" --noclean \
    --define "_topdir $work/rpmbuild" --define "_rpmdir $work/rpms" --define "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" \
    --define "_binary_payload $payload" --define "_buildhost localhost" --define "_build_id_links none" \
    --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
    --define "__os_install_post %{nil}" --define "debug_package %{nil}" "$work/martlet.spec"
mkdir -p "$output"
mv "$work"/rpms/*.rpm "$output"
