#!/usr/bin/env bash
# Measures whole builds: Debian's ROCm libraries (examples/debian-rocm) and generated sets
# (examples/generate), each beside the bare compressor over the same payloads in the same run.
#
# Usage: benches/e2e.sh DIR [SET...]
#   SET    debian, or the size of a generated set (50M, 1G); by default debian 50M 200M 800M 2G
# JOBS (2) are the threads of a build, ROUNDS (3) how often everything is done; medians are printed.
# OPTIONS are further options of `rockpack build`, e.g. OPTIONS='--preset fast' or '--compression xz'.
# DISTINCT (2G): generated sets beyond it repeat their files by hard links.
#
# DIR keeps the sets (6 GB with these) and takes the packages, up to a third of the input for each
# format, while they are measured.
# Needs gcc, python3, zstd, xz, dpkg-deb, rpm2cpio, and root for the memory of a control group.
set -euo pipefail
# Skips a set that cannot be made.
shopt -s inherit_errexit
export LC_ALL=C
[ $# -ge 1 ] || { sed -n '5,9s/^# //p' "$0" >&2; exit 64; }
dir=$(mkdir -p "$1" && realpath "$1")
shift
sets=("$@")
[ ${#sets[@]} -gt 0 ] || sets=(debian 50M 200M 800M 2G)
jobs=${JOBS:-2}
count=${ROUNDS:-3}
read -ra more <<<"${OPTIONS:-}"
cd "$(dirname "$0")/.."

cargo build --release --locked --quiet --bin rockpack --example generate
target=$(realpath "${CARGO_TARGET_DIR:-target}")/release

artifacts_of() { # artifacts_of SET: makes the set, and prints where it is
  if [ "$1" = debian ]; then
    examples/debian-rocm/fetch.sh "$dir" all >&2
    echo "$dir/debian-build"
    return
  fi
  if [ ! -e "$dir/set-$1" ]; then
    rm -rf "$dir/set-$1.part"
    "$target/examples/generate" "$dir/set-$1.part" "$1" "${DISTINCT:-2G}"
    mv "$dir/set-$1.part" "$dir/set-$1"
  fi
  echo "$dir/set-$1"
}

options_of() {
  case $1 in
    debian) echo --config examples/debian-rocm/packaging.toml --version 5.7.1 ;;
    *) echo --version 7.1.0 ;;
  esac
}

row() { # row SET: reads the figures
  python3 -c '
import json, sys
f, name = json.load(sys.stdin), sys.argv[1]
mb = lambda key: f[key] / 1e6
print("| {} | {:.0f} | {:.1f} | {:.1f} + {:.1f} | {:.0f} | {:.0f} | {:.0f} | {:.1f} | {:.1f} | {:.2f} |".format(
    name, mb("input"), f["wall"], f["user"], f["sys"], f["anonymous"] / 2**20, f["cached"] / 2**20,
    mb("written"), f["throughput"], f["bare"], f["ratio"]))' "$1"
}

echo "| set | input MB | wall s | user + sys s | anonymous MiB | page cache MiB | written MB | MB/s per core | bare s | ratio |"
echo "|---|---|---|---|---|---|---|---|---|---|"
for set in "${sets[@]}"; do
  artifacts=$(artifacts_of "$set")
  mkdir -p "$dir/run-$set"
  read -ra options < <(options_of "$set")
  .ci/measure.py bench "$target/rockpack" "$artifacts" "$dir/run-$set" "$jobs" "$count" \
    "${options[@]}" "${more[@]}" 2>"$dir/run-$set/log" | row "$set"
done
