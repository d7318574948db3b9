#!/usr/bin/env bash
# Runs fuzz targets one after the other, each for SECONDS, in ROUNDS rounds (0: until stopped).
# Usage: run.sh SECONDS [-r ROUNDS] [-w FOLDER] [-b BINARIES] [TARGET...]
# By default all targets once, in this folder. FOLDER gets corpus/, artifacts/, logs/ and runs.tsv,
# a line per run, for table.sh. BINARIES is a folder of built targets; without it they are
# built. A find does not end the runs; the exit status then is 1.
set -euo pipefail
# The frame names of backtraces in errors take more heap than any input does.
export RUST_LIB_BACKTRACE=0
here=$(cd "$(dirname "$0")" && pwd)
seconds=$1
shift
rounds=1 work=$here binaries=
while getopts r:w:b: option; do
  case $option in
    r) rounds=$OPTARG ;;
    w) work=$OPTARG ;;
    b) binaries=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(cd "$here" && basename -s .rs fuzz_targets/*.rs)
if [ -z "$binaries" ]; then
  # -a keeps the checks of arithmetic that a release leaves out.
  (cd "$here/.." && cargo +nightly fuzz build -O -a)
  binaries=$(echo "$here"/target/*/release)
fi

# The seed folders of TARGET: the one with its name, and those in seeds/more.
seeds() { echo "fuzz/seeds/$1"; sed -n "s/^$1 //p" "$here/seeds/more"; }

# The number behind NAME of libFuzzer's final statistics in LOG.
stat_of() { sed -n "s/^stat::$1: *//p" "$2" | tail -1; }

status=0
run() { # run TARGET
  local target=$1 log=$work/logs/$1 code=0 started=$SECONDS covered folder given
  local folders=("$work/corpus/$target")
  given=$(seeds "$target")
  for folder in $given; do
    [ ! -d "$here/../$folder" ] || folders+=("$here/../$folder")
  done
  mkdir -p "$work"/{logs,corpus/"$target",artifacts/"$target"}
  "$binaries/$target" "${folders[@]}" -artifact_prefix="$work/artifacts/$target/" \
    -rss_limit_mb=2048 -timeout=10 -max_total_time="$seconds" -print_final_stats=1 \
    >"$log" 2>&1 </dev/null || code=$?
  covered=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | sort -n | tail -1)
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$target" "$(stat_of number_of_executed_units "$log")" \
    $((SECONDS - started)) "$covered" \
    "$(stat_of peak_rss_mb "$log")" "$code" >>"$work/runs.tsv"
  [ "$code" = 0 ] || { status=1; cp "$log" "$log.$(date +%s).find"; echo "$target: see $log" >&2; }
}

for ((round = 0; rounds == 0 || round < rounds; round++)); do
  for target in "${targets[@]}"; do run "$target"; done
done
exit $status
