#!/bin/sh
# Installs what lies beside this script, or removes it again:
#     ./install.sh              program, samples, units, manual page, OpenStack's names; user and folders; reloads what runs
#     ./install.sh remove       all of that but the user, the folders, and files of /etc/swift that were changed
# Configuration, rings and data are never touched. Where a package manager knows martlet, it is to be asked instead.
set -eu
umask 022

cd "$(dirname "$0")"
if [ "$(id -u)" -ne 0 ]; then
    echo "$0: root installs; without root, run usr/bin/martlet where it is (INSTALL)" >&2
    exit 1
fi
if dpkg-query -W -f '${Status}' martlet 2> /dev/null | grep -q ' installed$' || rpm -q martlet > /dev/null 2>&1; then
    echo "$0: martlet is installed as a package; remove that first" >&2
    exit 1
fi

case "${1:-install}" in
install)
    before=
    [ ! -e /usr/bin/martlet ] || before=before
    while read -r file; do
        mkdir -p "/$(dirname "$file")"
        # Under another name first: a program that runs is not written to, and no one sees half a file.
        cp -P --preserve=mode "$file" "/$file.martlet-new"
        mv -f "/$file.martlet-new" "/$file"
    done < scripts/files
    scripts/postinst configure "$before"
    ;;
remove)
    scripts/prerm remove
    while read -r file; do
        case $file in
        etc/*) cmp -s "$file" "/$file" || continue ;;
        esac
        rm -f "/$file"
    done < scripts/files
    # Folders of its own that are empty now.
    sed 's|/[^/]*$||' scripts/files | sort -ru | grep -E 'martlet|swift' | while read -r folder; do
        rmdir "/$folder" 2> /dev/null || true
    done
    rmdir /usr/lib/martlet 2> /dev/null || true
    scripts/postrm remove
    ;;
*)
    echo "usage: $0 [install | remove]" >&2
    exit 2
    ;;
esac
