#!/usr/bin/env bash
# The step of action.yml: installs rockpack by pip, builds packages, and writes outputs and summary.
#
# Needs Python 3 with venv. pip reads its own variables, such as PIP_INDEX_URL.
set -euo pipefail
out=$ROCKPACK_ACTION_OUT
if [[ -z $out || $out == *$'\n'* ]]; then
  echo "::error::the input \`out\` is not the path of a folder"
  exit 64
fi

environment=$RUNNER_TEMP/rockpack/environment
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet --disable-pip-version-check \
  "rockpack${ROCKPACK_ACTION_VERSION:+==$ROCKPACK_ACTION_VERSION}"
# The folder of the environment has a Python of its own, which later steps do not expect.
mkdir -p "$RUNNER_TEMP/rockpack/bin"
ln -sf "$environment/bin/rockpack" "$RUNNER_TEMP/rockpack/bin/rockpack"
PATH=$RUNNER_TEMP/rockpack/bin:$PATH
echo "$RUNNER_TEMP/rockpack/bin" >>"$GITHUB_PATH"

# xargs splits words as a shell does, and expands nothing.
words=$(xargs -r printf '%s\n' <<<"$ROCKPACK_ACTION_ARGUMENTS")
if [[ -z $words ]]; then
  echo "::error::the input \`arguments\` is empty"
  exit 64
fi
mapfile -t arguments <<<"$words"
rockpack build "${arguments[@]}" --out "$out"

python3 - "$out" >>"$GITHUB_OUTPUT" <<'PYTHON'
import json
import sys

receipt = f"{sys.argv[1]}/packages.json"
with open(receipt, encoding="utf-8") as file:
    built = json.load(file)
architectures = {arch for package in built["packages"] for arch in package.get("archs", [])}
print(f"set={sys.argv[1]}")
print(f"receipt={receipt}")
print(f"version={built['version']}")
print(f"packages={len(built['packages'])}")
print(f"architectures={json.dumps(sorted(architectures), separators=(',', ':'))}")
PYTHON

if [ "$ROCKPACK_ACTION_SUMMARY" = true ]; then
  rockpack --quiet report "$out" >>"$GITHUB_STEP_SUMMARY"
fi
