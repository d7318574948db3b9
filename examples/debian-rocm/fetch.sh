#!/bin/bash
# Fetches Debian 13's ROCm libraries by name, through apt, and lays them out as one build shard:
#   OUT/debian-build/blas_lib_all    librocblas0 and libhipblas0 (2.2 GB)
#   OUT/debian-build/rand_lib_all    librocrand1 (52 MB)
# Usage: fetch.sh OUT [rand|blas|all|libc], by default all. `libc` instead unpacks Debian 13's C and
# C++ libraries to OUT/libc, with which those libraries can be loaded on an older machine.
# Needs apt-get and dpkg-deb on a Debian machine; writes only below OUT. What is there already is
# kept; what an interrupted run left behind is not used.
set -euo pipefail
export LC_ALL=C
umask 022
[ $# -ge 1 ] && [ $# -le 2 ] || { sed -n '2,8s/^# //p' "$0" >&2; exit 64; }
out=$(mkdir -p "$1" && cd "$1" && pwd)
what=${2:-all}
apt=$out/.apt
mkdir -p "$apt"/{lists/partial,cache/archives/partial,debs}

# The mirror that this machine uses, with the suite that has the libraries. The lists, the cache and
# the sources are OUT's own; the keys are the machine's.
mirror=$(apt-get indextargets --no-release-info --format '$(REPO_URI)' | grep -m 1 '/debian/$' || true)
[ -n "$mirror" ] || { echo "$0: apt knows no mirror of Debian" >&2; exit 2; }
echo "deb $mirror trixie main" >"$apt/sources.list"
options=(-qq -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Architecture=amd64)
if [ "$(id -u)" = 0 ]; then options+=(-o APT::Sandbox::User=root); fi

updated=
unpack() { # unpack PACKAGE FOLDER
  if [ -z "$updated" ]; then apt-get "${options[@]}" update; updated=yes; fi
  echo "fetching $1" >&2
  mkdir -p "$2"
  # 'URI' FILE SIZE DIGEST. A file that is there and whole is not fetched again: apt checks both.
  local file
  file=$(apt-get "${options[@]}" download --print-uris "$1" | awk '{ print $2 }')
  (cd "$apt/debs" && apt-get "${options[@]}" download "$1")
  dpkg-deb -x "$apt/debs/$file" "$2"
}

stage() { # stage PACKAGE ARTIFACT PREFIX: adds one package's libraries to an artifact under .work
  local artifact=$out/.work/$2 root=$out/.work/root folder
  rm -rf "$root"
  unpack "$1" "$root"
  mkdir -p "$artifact/$3"
  mv "$root/usr/lib/x86_64-linux-gnu" "$artifact/$3/lib"
  # Debian puts the version between the library's name and its kernel database.
  for folder in "$artifact/$3"/lib/rocblas/*/library; do
    if [ -d "$folder" ]; then
      mv "$folder" "$artifact/$3/lib/rocblas/library"
      rmdir "${folder%/library}"
    fi
  done
  echo "$3" >>"$artifact/artifact_manifest.txt"
}

artifact() { # artifact NAME (PACKAGE PREFIX)...: appears whole or not at all
  local name=$1
  shift
  [ ! -e "$out/debian-build/$name" ] || return 0
  rm -rf "$out/.work"
  while [ $# -gt 0 ]; do
    stage "$1" "$name" "$2"
    shift 2
  done
  mkdir -p "$out/debian-build"
  mv "$out/.work/$name" "$out/debian-build/$name"
  rm -rf "$out/.work"
}

rand() { artifact rand_lib_all librocrand1 math-libs/rocRAND/stage; }
blas() { artifact blas_lib_all librocblas0 math-libs/BLAS/rocBLAS/stage libhipblas0 math-libs/BLAS/hipBLAS/stage; }
libc() {
  [ ! -e "$out/libc" ] || return 0
  rm -rf "$out/.work"
  for package in libc6 libstdc++6 libgcc-s1 libzstd1; do unpack "$package" "$out/.work/libc"; done
  mv "$out/.work/libc" "$out/libc"
  rm -rf "$out/.work"
}

case $what in
  rand | blas) "$what" ;;
  all) rand; blas ;;
  libc) libc ;;
  *) echo "fetch.sh: unknown set \`$what\`" >&2; exit 64 ;;
esac
