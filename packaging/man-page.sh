#!/bin/sh
# Prints a manual page that is made of what BINARY says of itself: martlet(8), every command in it.
set -eu
binary=$1

# Text as it stands; a dot or an apostrophe at the beginning of a line is no request.
as_it_stands() {
    printf '.nf\n'
    sed -e 's/\\/\\e/g; s/-/\\-/g; s/^\([.'"'"']\)/\\\&\1/'
    printf '.fi\n'
}

cat <<PAGE
.TH MARTLET 8 "" "$("$binary" --version)" "OpenStack Swift's way of storing objects"
.SH NAME
martlet \- object storage with OpenStack Swift's API, formats and protocols
.SH DESCRIPTION
PAGE
"$binary" --help | as_it_stands
"$binary" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p' | while read -r command; do
    [ "$command" != help ] || continue
    printf '.SH MARTLET %s\n' "$(echo "$command" | tr a-z- 'A-Z ')"
    "$binary" "$command" --help 2>&1 | as_it_stands
done
cat <<'PAGE'
.SH FILES
.TP
/etc/swift
configuration, rings and builders; a sample of each file with every option
.TP
/usr/lib/martlet/bin
OpenStack Swift's names for the commands
PAGE
