#!/bin/sh
# Runs a race on XFS, the file system Swift's deployment guide recommends: a file of SIZE, through a loop device that does not
# cache it a second time. With 4xSIZE each of the race's devices has a file system of its own, as drives have. As root; needs
# xfsprogs, and so much free space.
#
#   tests/race/on_xfs.sh 16G tests/race/upkeep.py --races replication
#   tests/race/on_xfs.sh 4x5G tests/race/upkeep.py --races expired-in-turns --replicas 2
set -eu
[ $# -ge 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
cd "$(dirname "$0")/../.."
case $1 in 4x*) drives="1 2 3 4" ;; *) drives=1 ;; esac
size=${1#4x}; shift
mkdir -p target
place=$(mktemp -d "$PWD/target/xfs.XXXXXX")
# Also of what was made in part: what is not there, not mounted or on no loop device is no reason to leave the rest.
away() {
    for drive in $drives; do
        umount "$place/$drive" 2>/dev/null || true
        device=$(losetup --noheadings --output NAME --associated "$place/$drive.file" 2>/dev/null || true)
        [ -z "$device" ] || losetup -d "$device"
        rm -f "$place/$drive.file"
        rmdir "$place/$drive" 2>/dev/null || true
    done
    rm -rf "$place/race" && rmdir "$place"
}
trap away EXIT
trap 'exit 130' INT TERM
for drive in $drives; do
    mkdir "$place/$drive"
    fallocate -l "$size" "$place/$drive.file"
    device=$(losetup --show --find --direct-io=on --sector-size 4096 "$place/$drive.file")
    mkfs.xfs -q -i size=512 -K "$device"
    mount -o noatime "$device" "$place/$drive"
done
case $drives in
1) .venv/bin/python "$@" --dir "$place/1/race" ;;
*) .venv/bin/python "$@" --dir "$place/race" --drives "$place/1" "$place/2" "$place/3" "$place/4" ;;
esac
