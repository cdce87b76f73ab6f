#!/bin/sh
# Makes FOLDER, which holds .deb files, a repository that apt reads and whose signature it checks:
#     packaging/apt-repository.sh FOLDER KEY
# KEY is a secret key that gpg knows (a fingerprint or an address). The public key is put beside, as archive-keyring.gpg.
# Every run reads the folder anew. A repository without signature is not made.
set -eu

if [ $# -ne 2 ]; then
    echo "usage: $0 FOLDER KEY" >&2
    exit 2
fi
folder=$(cd "$1" && pwd) key=$2
cd "$folder"
if ! ls ./*.deb > /dev/null 2>&1; then
    echo "$0: no .deb file in $folder" >&2
    exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

gpg --batch --output "$work/archive-keyring.gpg" --export "$key"
if [ ! -s "$work/archive-keyring.gpg" ]; then
    echo "$0: gpg knows no key $key" >&2
    exit 1
fi
apt-ftparchive packages . > "$work/Packages"
gzip -9n < "$work/Packages" > "$work/Packages.gz"
mkdir "$work/listed"
ln "$work/Packages" "$work/Packages.gz" "$work/listed"
apt-ftparchive -o APT::FTPArchive::Release::Origin=Martlet -o APT::FTPArchive::Release::Label=Martlet release "$work/listed" > "$work/Release"
gpg --batch --local-user "$key" --armor --detach-sign --output "$work/Release.gpg" "$work/Release"
gpg --batch --local-user "$key" --clearsign --output "$work/InRelease" "$work/Release"
cd "$work"
chmod 0644 archive-keyring.gpg Packages Packages.gz Release Release.gpg InRelease
# The list comes before what signs it.
mv archive-keyring.gpg Packages Packages.gz Release Release.gpg InRelease "$folder"
