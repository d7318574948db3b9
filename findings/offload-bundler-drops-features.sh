#!/usr/bin/env bash
# clang-offload-bundler of LLVM 19 (Debian 12, clang-tools-19 19.1.7), and GPUs that are newer than it.
#
# LLVM 19.1 does not know gfx950. Given two targets of it, gfx950:xnack+ and gfx950:xnack-, the bundler does not
# refuse them: it writes two entries with one ID, `hipv4-amdgcn-amd-amdhsa--gfx950-`, without the feature and with a
# dash at the end, lists one of them, and unbundles one of the two inputs, without any file for the other. Each
# time it exits with 0. With gfx942, which it knows, both entries keep their IDs and come back.
#
# Needs Debian 12's apt and dpkg-deb, and a network. Exits with 1 if the bundler behaves otherwise.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
version=1:19.1.7-3~deb12u1
apt-get download -qq "clang-tools-19=$version" "libclang-cpp19=$version" "libllvm19=$version" 2>/dev/null
for package in *.deb; do dpkg-deb -x "$package" root; done
export LD_LIBRARY_PATH="$folder/root/usr/lib/x86_64-linux-gnu:$folder/root/usr/lib/llvm-19/lib"
bundler=root/usr/lib/llvm-19/bin/clang-offload-bundler

printf plus >plus
printf minus >minus
try() { # the IDs in a bundle of two variants of a GPU, and what comes out again
  local id="hipv4-amdgcn-amd-amdhsa--$1"
  "$bundler" -type=o "-targets=host-x86_64-unknown-linux-gnu,$id:xnack+,$id:xnack-" \
    -input=/dev/null -input=plus -input=minus -output=bundle
  rm -f out.plus out.minus
  "$bundler" -type=o -unbundle "-targets=$id:xnack+,$id:xnack-" -input=bundle -output=out.plus -output=out.minus
  python3 - <<'PYTHON'
import os, struct
data = open("bundle", "rb").read()
count, at, ids = struct.unpack_from("<Q", data, 24)[0], 32, []
for _ in range(count):
    length = struct.unpack_from("<Q", data, at + 16)[0]
    ids.append(data[at + 24:at + 24 + length].decode())
    at += 24 + length
print(*ids[1:], *sorted(name for name in ("out.plus", "out.minus") if os.path.exists(name)))
PYTHON
}
known=$(try gfx942) unknown=$(try gfx950)
printf '%s\n' "$known" "$unknown"
id=hipv4-amdgcn-amd-amdhsa--
[ "$known" = "${id}gfx942:xnack+ ${id}gfx942:xnack- out.minus out.plus" ]
[ "$unknown" = "${id}gfx950- ${id}gfx950- out.minus" ]
