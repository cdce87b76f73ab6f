#!/bin/sh
# Runs a race on an XFS of its own, the file system Swift's deployment guide recommends: a file of SIZE, through a loop device
# that does not cache it a second time. As root; needs xfsprogs, and SIZE of free space.
#
#   tests/race/on_xfs.sh 16G tests/race/upkeep.py --races replication
set -eu
[ $# -ge 2 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
cd "$(dirname "$0")/../.."
size=$1; shift
mkdir -p target
place=$(mktemp -d "$PWD/target/xfs.XXXXXX")
mkdir "$place/drive"
device=
away() {
    umount "$place/drive" 2>/dev/null || true
    [ -z "$device" ] || losetup -d "$device"
    rm -rf "$place/file" && rmdir "$place/drive" "$place"
}
trap away EXIT
trap 'exit 130' INT TERM
fallocate -l "$size" "$place/file"
device=$(losetup --show --find --direct-io=on --sector-size 4096 "$place/file")
mkfs.xfs -q -i size=512 -K "$device"
mount -o noatime "$device" "$place/drive"
.venv/bin/python "$@" --dir "$place/drive/race"
