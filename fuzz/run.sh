#!/usr/bin/env bash
# Runs fuzz targets one after the other. Usage: run.sh SECONDS [TARGET...], by default all.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1
shift
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  mapfile -t targets < <(cargo +nightly fuzz list)
fi
for target in "${targets[@]}"; do
  folders=("fuzz/corpus/$target")
  [ -d "fuzz/seeds/$target" ] && folders+=("fuzz/seeds/$target")
  case $target in
    linking) folders+=(tests/fixtures/binaries) ;;
    rpm_sign) folders+=(fuzz/seeds/package) ;;
    host_binary) folders+=(tests/fixtures/binaries) ;;
    verify_file) folders+=(tests/fixtures/binaries fuzz/seeds/{offload_bundle,ccob,kpack,kpm,kernel_index}) ;;
  esac
  mkdir -p "${folders[0]}"
  # -a keeps the checks of arithmetic that a release leaves out.
  cargo +nightly fuzz run -O -a "$target" "${folders[@]}" -- \
    -rss_limit_mb=2048 -timeout=10 -max_total_time="$seconds" -print_final_stats=1
done
