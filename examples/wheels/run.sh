#!/usr/bin/env bash
# Splits public wheels, checks, publishes and installs them.
#
#   examples/wheels/run.sh FOLDER [WHEEL…]
#
# FOLDER gets fat/, split/, repository/ and two environments. rockpack is the one on PATH, or $ROCKPACK.
set -euo pipefail
[[ $# -ge 1 ]] || { sed -n '4s/^# *//p' "$0" >&2; exit 64; }
folder=$1
shift
wheels=("$@")
[[ ${#wheels[@]} -gt 0 ]] || wheels=(onnxruntime-rocm cupy-rocm-7-0 bitsandbytes)
rockpack=$(command -v "${ROCKPACK:-rockpack}") || { echo "there is no rockpack" >&2; exit 64; }
rockpack=$(readlink -f "$rockpack")
version() {
  case $1 in
    onnxruntime-rocm) echo 1.22.2.post3 ;;
    cupy-rocm-7-0) echo 14.2.0 ;;
    bitsandbytes) echo 0.50.2 ;;
    *) echo "no such wheel: $1" >&2; return 64 ;;
  esac
}

python=${PYTHON:-python3.11}
"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' ||
  { echo "the wheels are for Python 3.11, and $python is none" >&2; exit 64; }

mkdir -p "$folder"
cd "$folder"
[[ -x tools/bin/twine ]] || {
  "$python" -m venv tools
  tools/bin/pip install -q --disable-pip-version-check 'pip>=25' uv wheel installer twine
}

for wheel in "${wheels[@]}"; do
  mkdir -p "fat/$wheel"
  tools/bin/pip download -q --no-deps --only-binary :all: --python-version 3.11 \
    --platform manylinux_2_34_x86_64 --platform manylinux2014_x86_64 --platform manylinux_2_24_x86_64 \
    --dest "fat/$wheel" "$wheel==$(version "$wheel")"
done

for wheel in "${wheels[@]}"; do
  echo "== $wheel: split"
  rm -rf "split/$wheel"
  "$rockpack" wheel "fat/$wheel" --out "split/$wheel"
  echo "== $wheel: verify"
  "$rockpack" verify "split/$wheel" --against "fat/$wheel"/*.whl
  echo "== $wheel: other readers"
  for file in "split/$wheel"/*.whl; do
    unzip -tqq "$file"
    tools/bin/python - "$file" <<'PYTHON'
import sys
from installer.sources import WheelFile
with WheelFile.open(sys.argv[1]) as wheel:
    wheel.validate_record(validate_contents=True)
PYTHON
    rm -rf unpacked
    tools/bin/wheel unpack --dest unpacked "$file" >/dev/null
  done
  rm -rf unpacked
  tools/bin/twine check "split/$wheel"/*.whl >twine.log || { cat twine.log; exit 1; }
done

echo "== index"
"$rockpack" repo split/* --out repository
tools/bin/python -u -m http.server --bind 127.0.0.1 --directory repository 0 >http.log 2>&1 &
server=$!
trap 'kill $server' EXIT
for _ in $(seq 50); do grep -q 'port [0-9]' http.log && break; sleep 0.1; done
index=http://127.0.0.1:$(sed -n 's/.*port \([0-9]*\).*/\1/p' http.log)/simple/

for wheel in "${wheels[@]}"; do
  echo "== $wheel: install"
  rm -rf with-pip with-uv
  "$python" -m venv with-pip
  with-pip/bin/pip install -q --disable-pip-version-check --no-deps --index-url "$index" "$wheel[device-gfx1100]" \
    "$wheel-device-gfx1100"
  tools/bin/uv venv -q --python "$python" with-uv
  VIRTUAL_ENV=$PWD/with-uv tools/bin/uv pip install -q --no-deps --index-url "$index" "$wheel[device-gfx1100]" \
    "$wheel-device-gfx1100"
  for environment in with-pip with-uv; do
    "$rockpack" verify --installed "$environment"/lib/python3*/site-packages
  done
done

if [[ " ${wheels[*]} " == *" onnxruntime-rocm "* ]]; then
  echo "== import"
  rm -rf with-pip
  "$python" -m venv with-pip
  with-pip/bin/pip install -q --disable-pip-version-check numpy
  with-pip/bin/pip install -q --disable-pip-version-check --index-url "$index" "onnxruntime-rocm[device-gfx1100]"
  with-pip/bin/pip check
  say='import onnxruntime; print(onnxruntime.__version__, onnxruntime.get_available_providers())'
  with-pip/bin/python -c "$say"
  if command -v strip >/dev/null && command -v patchelf >/dev/null; then
    echo "== import, after strip and patchelf"
    find with-pip/lib -path '*/onnxruntime/*' -name '*.so*' -type f -print0 |
      while IFS= read -r -d '' library; do
        strip "$library"
        patchelf --add-rpath "$(printf '/nowhere%.0s' {1..40})" "$library"
      done
    with-pip/bin/python -c "$say"
  fi
fi
echo "all of it passed"
