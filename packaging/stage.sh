#!/bin/sh
# Lays out what every package of Martlet holds, each file in its place below STAGE: of BINARY, of etc/ and of this folder.
# What only one kind of package has (its control files, its changelog) is added by the script that makes that kind.
# With SYMBOLS, debug information is stripped from the program and laid out below that folder; the build id is printed.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: $0 BINARY STAGE [SYMBOLS]" >&2
    exit 2
fi
binary=$1 stage=$2 symbols=${3:-}
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")

put() { # MODE FROM TO
    install -D -m "$1" "$2" "$stage/$3"
}

put 0755 "$binary" usr/bin/martlet
if [ -n "$symbols" ]; then
    # Debuggers, perf and backtraces find the file by the build id, or by the name in .gnu_debuglink.
    build_id=$(readelf --notes "$binary" | sed -n 's/.*Build ID: //p')
    rest=${build_id#??}
    debug=$symbols/usr/lib/debug/.build-id/${build_id%"$rest"}/$rest.debug
    install -d "$(dirname "$debug")"
    objcopy --only-keep-debug --compress-debug-sections "$binary" "$debug"
    chmod 0644 "$debug"
    strip --strip-debug --remove-section=.comment "$stage/usr/bin/martlet"
    objcopy --add-gnu-debuglink="$debug" "$stage/usr/bin/martlet"
    echo "$build_id"
fi
install -d "$stage/usr/share/doc/martlet" "$stage/usr/share/man/man8"
# What a C library that is linked in says of its licence comes along.
static=
readelf --program-headers --wide "$binary" | grep -q ' INTERP ' || static=--musl
python3 "$here/copyright.py" $static > "$stage/usr/share/doc/martlet/copyright"
put 0644 "$root/README.md" usr/share/doc/martlet/README.md
"$here/man-page.sh" "$stage/usr/bin/martlet" | gzip -9n > "$stage/usr/share/man/man8/martlet.8.gz"
for sample in "$root"/etc/*-sample; do
    put 0644 "$sample" "etc/swift/$(basename "$sample")"
done
# Not in /etc: the package manager would ask about a file that the operator has written before the package came.
put 0644 "$here/debian/default" usr/share/martlet/default
# For the machines of Prometheus and of Grafana, which read neither of their own accord.
for file in "$root"/etc/prometheus/*.yml "$root"/etc/grafana/*.json; do
    put 0644 "$file" "usr/share/martlet/${file#"$root/etc/"}"
done

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
for name in auditor replicator updater sync lifecycle notifier; do daemon container-$name container-server.conf; done
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
    dispersion-populate dispersion-report oldies orphans config form-signature reconciler-enqueue bench; do
    ln -s ../../../bin/martlet "$stage/usr/lib/martlet/bin/swift-$tool"
done
chmod -R u+rwX,go+rX,go-w "$stage"
