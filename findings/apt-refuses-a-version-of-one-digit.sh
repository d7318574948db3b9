#!/usr/bin/env bash
# apt of Debian 12 (2.6.1), and a dependency on a version of one character, `Depends: base (=1)`.
#
# deb-control(5) lets blanks around the version away, dpkg-deb 1.21.23 builds the package without a word, and dpkg
# installs it. apt 2.6.1 wants four characters behind the parenthesis: in the last relation of a field it finds no
# dependency in `(=1)`, and `apt-get update` ends with 100 for all repositories of the machine, whichever has the
# package. `(= 1)`, `(=1.0)`, and the same relation in front of another one are read.
#
# Needs Debian 12's apt, dpkg-deb and dpkg, and a network. Exits with 1 if the two behave otherwise.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
cd "$folder"
apt-get download -qq apt=2.6.1 libapt-pkg6.0=2.6.1 dpkg=1.21.23 2>/dev/null
for package in *.deb; do dpkg-deb -x "$package" root; done
export LD_LIBRARY_PATH="$folder/root/usr/lib/x86_64-linux-gnu"

mkdir -p made/DEBIAN repository lists/partial cache/archives/partial database etc
touch database/status
try() { # exit codes of building, of installing and of `apt-get update` for a package with this field
  local field=$1 built=0 installed=0 read=0
  printf 'Package: one\nVersion: 1\nArchitecture: all\nMaintainer: One <one@example.org>\nDescription: one\n%s\n' \
    "$field" >made/DEBIAN/control
  root/usr/bin/dpkg-deb --build made repository/one.deb >/dev/null 2>words || built=$?
  [ ! -s words ] || built="$built $(cat words)"
  root/usr/bin/dpkg --admindir="$folder/database" --force-depends --force-not-root --force-script-chrootless \
    --no-act --install repository/one.deb >/dev/null 2>&1 || installed=$?
  { cat made/DEBIAN/control
    echo "Filename: ./one.deb"
    echo "Size: $(stat -c %s repository/one.deb)"
    echo "SHA256: $(sha256sum repository/one.deb | cut -d' ' -f1)"; } >repository/Packages
  echo "deb [trusted=yes] copy:$folder/repository ./" >sources.list
  rm -rf lists/* cache/*.bin
  root/usr/bin/apt-get update -qq -o Dir::Etc="$folder/etc" -o Dir::Etc::SourceList="$folder/sources.list" \
    -o Dir::State="$folder" -o Dir::State::status="$folder/database/status" -o Dir::Cache="$folder/cache" \
    -o Dir::Bin::methods="$folder/root/usr/lib/apt/methods" -o APT::Sandbox::User=root -o Debug::NoLocking=1 \
    >words 2>&1 || read=$?
  echo "$field: built $built, installed $installed, read $read" "$(grep -o 'Problem parsing dependency.*' words | head -1)"
}
try 'Depends: base (=1)' | tee result
for field in 'Depends: base (= 1)' 'Depends: base (=1.0)' 'Depends: base (=1), other'; do try "$field" | tee -a result; done
diff result - <<'RESULT'
Depends: base (=1): built 0, installed 0, read 100 Problem parsing dependency 20 of one:all=1
Depends: base (= 1): built 0, installed 0, read 0 
Depends: base (=1.0): built 0, installed 0, read 0 
Depends: base (=1), other: built 0, installed 0, read 0 
RESULT
