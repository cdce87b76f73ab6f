#!/bin/sh
# Brings stores of other makes into a folder, for tests/harness/other_stores.py: Ceph's RGW from Debian's packages, which are
# unpacked there and not installed, and Versity's gateway, a Go module, built there.
#
#     tests/harness/other_stores.sh FOLDER [rgw] [versitygw]
#
# What is there already stays as it is.
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
export GOBIN="$folder" GOFLAGS=-buildvcs=false

rgw() {
   mkdir -p "$folder/debs"
   # What this machine lacks of them.
   packages=$(apt-get --simulate --no-install-recommends install ceph-common ceph-mon ceph-osd radosgw | awk '$1 == "Inst" { print $2 }')
   (cd "$folder/debs" && apt-get --quiet --quiet -o APT::Sandbox::User=root download $packages)
   for package in "$folder"/debs/*.deb; do
      dpkg-deb --extract "$package" "$folder/ceph.new"
   done
   rm -r "$folder/debs"
   mv "$folder/ceph.new" "$folder/ceph"
}

versitygw() {
   go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
}

for make in "$@"; do
   case $make in
      rgw) [ -d "$folder/ceph" ] || rgw ;;
      versitygw) [ -x "$folder/versitygw" ] || versitygw ;;
      *) echo "$make: expected rgw or versitygw" >&2; exit 2 ;;
   esac
done
