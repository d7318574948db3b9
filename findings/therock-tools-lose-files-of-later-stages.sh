#!/usr/bin/env bash
# therock-tools 0.1.0, AMD's tool for the artifacts of TheRock, as PyPI has it.
#
# An artifact is made of the stage folders of several projects. It keeps them apart, so that a later build can take
# each as it would have installed it, and TheRock's documents say that each file of a stage folder is in exactly one
# component. Two projects install a header that both bundle, a LICENSE of their own, and a program of one name, which
# is a tool of the first and a test of the second. One would expect two of each. `therock-fileset-tool artifact`
# remembers what it took by the path within the stage folder: the files of the first project are in the artifact, and
# those of the second in no component, though the manifests list its folder. The tool exits with 0 without a word, and
# the check for files left out, which its library has, finds none.
#
# With an artifact for each project all are there. Flattened in that order, the files of the second replace those of
# the first, so the install tree has another header than that of the artifact of both.
#
# Needs Python 3.11 or newer with venv, and a network. Exits with 1 if it behaves otherwise.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv tools
tools/bin/pip install -q --disable-pip-version-check --no-deps therock-tools==0.1.0
fileset=tools/bin/therock-fileset-tool

for project in one two; do
  stage=build/$project/stage
  mkdir -p $stage/{bin,include,lib,share/doc}
  for file in bin/demo include/bundled.h "lib/lib$project.so" share/doc/LICENSE; do
    echo "$project" >"$stage/$file"
  done
done
descriptor() { # of projects
  local project
  for project in "$@"; do
    printf '[components.%s."'"$project"'/stage"]\n' lib dev doc
    if [ "$project" = one ]; then echo '[components.run."one/stage"]'; else echo '[components.test."two/stage"]'; fi
    echo 'include = ["bin/*"]'
  done
}
make() { # an artifact of this name, of these projects
  local components=() component made=0
  descriptor "${@:2}" >"$1.toml"
  for component in lib run dev doc test; do components+=("$component" "artifacts/$1_${component}_generic"); done
  "$fileset" artifact --root-dir build --descriptor "$1.toml" --artifact-name "$1" "${components[@]}" >words 2>&1 ||
    made=$?
  echo "$1, of ${*:2}: $made $(cat words)"
  (cd artifacts && find "$1"_* -type f ! -name artifact_manifest.txt | sort)
}
flattened() { # whose file of the two is in the install tree of these artifacts
  rm -rf flat
  "$fileset" artifact-flatten -o flat "$@"
  echo "include/bundled.h in the install tree: of $(cat flat/include/bundled.h)"
}
cat >verify.py <<'PYTHON'
import pathlib
from therock_tools.artifact_builder import ArtifactDescriptor, ComponentScanner

described = ArtifactDescriptor.load_toml_file(pathlib.Path("both.toml"), artifact_name="both")
scanner = ComponentScanner(pathlib.Path("build"), described)
scanner.verify()
print("left out, as the check sees it:", scanner.unmatched_files)
PYTHON
{ make first one
  make second two
  flattened artifacts/first_* artifacts/second_*
  make both one two
  echo "the manifest of both_dev: $(paste -sd' ' artifacts/both_dev_generic/artifact_manifest.txt)"
  flattened artifacts/both_*
  tools/bin/python verify.py; } | tee result
diff - result <<'RESULT'
first, of one: 0 
first_dev_generic/one/stage/include/bundled.h
first_doc_generic/one/stage/share/doc/LICENSE
first_lib_generic/one/stage/lib/libone.so
first_run_generic/one/stage/bin/demo
second, of two: 0 
second_dev_generic/two/stage/include/bundled.h
second_doc_generic/two/stage/share/doc/LICENSE
second_lib_generic/two/stage/lib/libtwo.so
second_test_generic/two/stage/bin/demo
include/bundled.h in the install tree: of two
both, of one two: 0 
both_dev_generic/one/stage/include/bundled.h
both_doc_generic/one/stage/share/doc/LICENSE
both_lib_generic/one/stage/lib/libone.so
both_lib_generic/two/stage/lib/libtwo.so
both_run_generic/one/stage/bin/demo
the manifest of both_dev: one/stage two/stage
include/bundled.h in the install tree: of one
left out, as the check sees it: []
RESULT
