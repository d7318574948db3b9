#!/usr/bin/env bash
# dpkg 1.21.23 of Debian 12, --path-exclude for the files of other GPUs, and hard links between files of a package.
#
# A package has equal files of two GPUs, as hard links to each other: in its tar the first has the content, the second
# is a link to it. An image leaves the first GPU out by a filter of dpkg, --path-exclude. One would expect the second
# file with its content, or an error. In a first installation there is an error. In an upgrade of version 1, which came
# without the filter, dpkg links the second file to the first one of version 1: it exits with 0 without a word, the
# package is installed in version 2, and the file of the GPU that was kept has the content of version 1. So it has after
# the upgrade to version 3. The filtered file and a *.dpkg-new stay, too. `dpkg --verify` shows that the files differ.
#
# With a filter for the other GPU, or with copies in place of links, the file that is kept has the content of version 2.
#
# Needs Debian 12's apt and dpkg-deb, and a network. Exits with 1 if dpkg behaves otherwise.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq dpkg=1.21.23 2>/dev/null
dpkg-deb -x dpkg_*.deb tools
export PATH="$folder/tools/usr/bin:$PATH" LC_ALL=C

library=usr/lib/demo/library
make() { # a package of this version, whose second file is made by this command
  local tree=$1-$2
  mkdir -p "$tree/DEBIAN" "$tree/$library"
  printf 'Package: demo\nVersion: %s\nArchitecture: all\nMaintainer: One <one@example.org>\nDescription: one\n' "$1" \
    >"$tree/DEBIAN/control"
  echo "content of version $1" >"$tree/$library/gfx1030.dat"
  "$2" "$tree/$library/gfx1030.dat" "$tree/$library/gfx1100.dat"
  (cd "$tree" && md5sum "$library"/*) >"$tree/DEBIAN/md5sums"
  dpkg-deb --build "$tree" "$tree.deb" >/dev/null
}
database() { dpkg --root="$folder/image" --force-not-root --force-script-chrootless --log="$folder/log" "$@"; }
try() { # packages made by this command, without this GPU from version 2 on, in these versions one after the other
  local kind=$1 gpu=$2 version filter=() ended=0 file
  shift 2
  rm -rf image words
  mkdir -p image/var/lib/dpkg/{info,updates}
  touch image/var/lib/dpkg/status
  echo "$kind, $*, without $gpu:"
  for version in "$@"; do
    [ "$version" = 1 ] || filter=("--path-exclude=*/$gpu.dat")
    database "${filter[@]}" --install "$version-$kind.deb" >/dev/null 2>>words || ended=$?
  done
  echo "  dpkg ended with $ended" "$(grep -o 'error creating.*' words | head -1)"
  [ "$ended" = 0 ] || return 0
  [ ! -s words ] || sed 's/^/  /' words
  echo "  installed: $(dpkg-query --root="$folder/image" --show demo | tr '\t' ' ')"
  for file in "image/$library"/*; do echo "  ${file##*/}: $(cat "$file")"; done
  database --verify demo | sed 's/^/  /'
}
for version in 1 2 3; do make $version ln; make $version cp; done
{ dpkg-deb -c 2-ln.deb | grep -o '[^/]*\.dat.*'
  try ln gfx1030 2
  try ln gfx1030 1 2
  try ln gfx1030 1 2 3
  try ln gfx1100 1 2
  try cp gfx1030 1 2; } | tee result
diff - result <<'RESULT'
gfx1030.dat
gfx1100.dat link to ./usr/lib/demo/library/gfx1030.dat
ln, 2, without gfx1030:
  dpkg ended with 1 error creating hard link './usr/lib/demo/library/gfx1100.dat': No such file or directory
ln, 1 2, without gfx1030:
  dpkg ended with 0 
  installed: demo 2
  gfx1030.dat: content of version 1
  gfx1100.dat: content of version 1
  gfx1100.dat.dpkg-new: content of version 1
  ??5??????   /usr/lib/demo/library/gfx1030.dat
  ??5??????   /usr/lib/demo/library/gfx1100.dat
ln, 1 2 3, without gfx1030:
  dpkg ended with 0 
  installed: demo 3
  gfx1030.dat: content of version 1
  gfx1100.dat: content of version 1
  gfx1100.dat.dpkg-new: content of version 1
  ??5??????   /usr/lib/demo/library/gfx1030.dat
  ??5??????   /usr/lib/demo/library/gfx1100.dat
ln, 1 2, without gfx1100:
  dpkg ended with 0 
  installed: demo 2
  gfx1030.dat: content of version 2
  missing     /usr/lib/demo/library/gfx1100.dat
cp, 1 2, without gfx1030:
  dpkg ended with 0 
  installed: demo 2
  gfx1100.dat: content of version 2
  missing     /usr/lib/demo/library/gfx1030.dat
RESULT
