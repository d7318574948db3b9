#!/usr/bin/env bash
# CPack of CMake 4.4.5, as PyPI has it, and the size of an installed library in a .deb.
#
# A shared library with VERSION and SOVERSION is installed as one file, of 32 MiB in .hip_fatbin, and two symbolic
# links to it, and so they are in the package. One would expect an Installed-Size of the file, as dpkg-gencontrol
# 1.21.23 computes it from the same tree: deb-substvars(5) has 1 KiB for what is no regular file. CPack's DEB generator
# adds the size of the file for each link as well, so the field is three times too large, and apt announces three times
# the space. If the development link is in a component of its own (NAMELINK_COMPONENT), the library's package claims
# twice its size, and the other one next to nothing: there the link has no target while CPack counts.
#
# Needs python3 with venv, gcc, perl, Debian 12's apt and dpkg, and a network. Exits with 1 if one of them behaves
# otherwise.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv tools
tools/bin/pip install -q --disable-pip-version-check cmake==4.4.5 ninja==1.13.0
export PATH="$folder/tools/bin:$PATH"
apt-get download -qq dpkg-dev=1.21.23 libdpkg-perl=1.21.23 2>/dev/null
for package in *.deb; do dpkg-deb -x "$package" root; done

cat >demo.c <<'C'
__attribute__((section(".hip_fatbin"))) const char code[32 << 20] = {1};
C
cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(demo VERSION 7.1.0 LANGUAGES C)
add_library(demo SHARED demo.c)
set_target_properties(demo PROPERTIES VERSION 5.0.70100 SOVERSION 5)
install(TARGETS demo LIBRARY DESTINATION lib COMPONENT library NAMELINK_COMPONENT development)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "One <one@example.org>")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
include(CPack)
CMAKE

cmake -G Ninja -B build >/dev/null
cmake --build build >/dev/null
cpack --config build/CPackConfig.cmake -B whole >/dev/null
cpack --config build/CPackConfig.cmake -B parts -D CPACK_DEB_COMPONENT_INSTALL=ON >/dev/null
dpkg-deb -x whole/*.deb unpacked
mkdir debian
printf 'Source: demo\nMaintainer: One <one@example.org>\n\nPackage: demo\nArchitecture: any\nDescription: demo\n' \
  >debian/control
cat >debian/changelog <<'TEXT'
demo (7.1.0) unstable; urgency=low

  * One.

 -- One <one@example.org>  Thu, 01 Jan 2026 00:00:00 +0000
TEXT

says() { # what apt says of a package, on a machine with no other
  mkdir -p lists/partial cache/archives/partial etc
  touch status
  LC_ALL=C apt-get install --assume-no -o Dir::Etc="$folder/etc" -o Dir::State="$folder" \
    -o Dir::State::status="$folder/status" -o Dir::Cache="$folder/cache" -o Debug::NoLocking=1 "$1" 2>/dev/null || true
}
mebibytes() { echo "$1: $(($2 / 1024)) MiB"; }
{ find unpacked -type l -printf '%f -> %l\n' | sort
  mebibytes "regular files" $(($(find unpacked -type f -printf '%s\n') / 1024))
  PERL5LIB=root/usr/share/perl5 perl root/usr/bin/dpkg-gencontrol -pdemo -Punpacked -Tnone -fnone -O >control
  mebibytes "dpkg-gencontrol" "$(sed -n 's/^Installed-Size: //p' control)"
  for package in whole/*.deb parts/*.deb; do
    mebibytes "CPack, ${package%%_*}" "$(dpkg-deb -f "$package" Installed-Size)"
  done
  says ./whole/*.deb | grep 'After this operation'; } | tee result
diff - result <<'RESULT'
libdemo.so -> libdemo.so.5
libdemo.so.5 -> libdemo.so.5.0.70100
regular files: 32 MiB
dpkg-gencontrol: 32 MiB
CPack, whole/demo: 96 MiB
CPack, parts/demo-development: 0 MiB
CPack, parts/demo-library: 64 MiB
After this operation, 101 MB of additional disk space will be used.
RESULT
