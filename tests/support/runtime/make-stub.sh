#!/bin/bash
# Makes stand-ins for the libraries that LIB... need and this machine lacks, so that LIB... can be
# loaded with every symbol bound: each has the soname, the symbol versions and the symbols asked for.
# A libamdhip64.so.* is the runtime of runtime.c; every other function returns 0.
# Usage: make-stub.sh LIB... OUT. Prints the files made. Needs gcc, readelf, ldconfig and awk. A library is
# present if ldconfig knows it, if it lies in a folder of ROCKPACK_LIBRARY_PATH, or if it is a LIB.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 2 ] || { sed -n '2,6s/^# //p' "$0" >&2; exit 64; }
libraries=("${@:1:$#-1}")
out=$(mkdir -p "${!#}" && cd "${!#}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for library in "${libraries[@]}"; do
  readelf -dW "$library"
done | sed -nE 's/.*\((NEEDED|SONAME)\).*\[(.*)\]$/\1 \2/p' | sort -u >"$work/dynamic"
sed -n 's/^SONAME //p' "$work/dynamic" >"$work/present"
/sbin/ldconfig -p | awk '$2 ~ /^\(/ { print $1 }' >>"$work/present"
IFS=: read -ra folders <<<"${ROCKPACK_LIBRARY_PATH:-}"
for folder in "${folders[@]}"; do ls "$folder" >>"$work/present"; done
sed -n 's/^NEEDED //p' "$work/dynamic" | grep -Fxv -f "$work/present" >"$work/missing" || true

# SONAME VERSION of every version need, and SYMBOL VERSION (- for none) of every undefined symbol.
for library in "${libraries[@]}"; do
  readelf -VW "$library" | awk '/ File: / { for (i = 1; i < NF; i++) if ($i == "File:") file = $(i + 1) } / Name: .* Flags: / && file { for (i = 1; i < NF; i++) if ($i == "Name:") print file, $(i + 1) }'
  readelf --dyn-syms -W "$library" | awk '$7 == "UND" && $5 != "WEAK" && $8 != "" { n = split($8, part, /@+/); print "UND", part[1], (n > 1 ? part[2] : "-") }' >>"$work/undefined"
done | sort -u >"$work/versions"
sort -u -o "$work/undefined" "$work/undefined"

# Symbols that no given or present library defines: by version, and all of the unversioned ones.
for library in "${libraries[@]}"; do
  readelf --dyn-syms -W "$library" | awk '$7 != "UND" && $8 != "" { split($8, part, /@+/); print part[1] }'
done | sort -u >"$work/defined"

make_stub() { # make_stub SONAME UNVERSIONED: `yes` if it also takes the unversioned symbols
  local soname=$1 unversioned=$2
  awk -v soname="$soname" '$1 == soname { print $2 }' "$work/versions" >"$work/own"
  awk -v unversioned="$unversioned" 'FILENAME ~ /\/own$/ { own[$1]; next } FILENAME ~ /\/defined$/ { defined[$1]; next }
    ($3 in own) || ($3 == "-" && unversioned == "yes" && !($2 in defined)) { print $2, $3 }' \
    "$work/own" "$work/defined" "$work/undefined" >"$work/symbols"
  # A symbol outside of all nodes stays exported without a version.
  awk '$2 != "-" { list[$2] = list[$2] " \"" $1 "\";" } END { for (v in list) print v " {" list[v] " };" }' \
    "$work/symbols" >"$work/version.map"
  local versions=()
  if [ -s "$work/version.map" ]; then versions=(-Wl,--version-script="$work/version.map"); fi
  local sources=("$work/functions.S") real=/dev/null
  case $soname in libamdhip64.so.*)
    sources+=("$here/runtime.c" "$here/archive.c"); real=$work/real
    sed -nE 's/^void \**(__hip\w+)\(.*/\1/p' "$here/runtime.c" >"$real" ;;
  esac
  { echo '.text'
    cut -d' ' -f1 "$work/symbols" | sort -u | grep -Fxv -f "$real" |
      sed 's/.*/.globl "&"\n.type "&", @function\n"&": xorl %eax, %eax\n ret/' || true
    echo '.section .note.GNU-stack,"",@progbits'; } >"$work/functions.S"
  gcc -O1 -Wall -Wextra -Werror -Wno-unused-function -fPIC -shared -Wl,-soname,"$soname" \
    "${versions[@]}" "${sources[@]}" -ldl -o "$out/$soname"
  echo "$out/$soname"
}

# A symbol without a version may come from anywhere: from a library that is needed without versions.
taker=$(cut -d' ' -f1 "$work/versions" | grep -Fxv -f - "$work/missing" | head -n 1 || true)
while read -r soname; do
  if [ "$soname" = "${taker:-$(head -n 1 "$work/missing")}" ]; then make_stub "$soname" yes; else make_stub "$soname" no; fi
done <"$work/missing"
