#!/bin/sh
# Builds a package set as parallel jobs of this machine, as github-actions.yml does on several, and
# joins the parts in OUT, a new folder: what a build that failed left there is to be removed first.
#
#     parallel.sh PARTS OUT ARTIFACTS [OPTION OF BUILD]...
#
# ROCKPACK is the program, `rockpack` if unset. Needs jq.
set -eu
if [ $# -lt 3 ]; then
    echo 'usage: parallel.sh PARTS OUT ARTIFACTS [OPTION OF BUILD]...' >&2
    exit 64
fi
parts=$1 out=$2 artifacts=$3
shift 3
rockpack=${ROCKPACK:-rockpack}

matrix=$("$rockpack" plan --artifacts "$artifacts" "$@" --matrix "$parts")
partitions=$(echo "$matrix" | jq -r '.include[].partition')
mkdir "$out"
jobs=
for part in $partitions; do
    "$rockpack" build --artifacts "$artifacts" "$@" --partition "$part" --out "$out" > /dev/null &
    jobs="$jobs $!"
done
failed=0
for job in $jobs; do
    wait "$job" || failed=$?
done
[ "$failed" = 0 ] || exit "$failed"
"$rockpack" verify "$out" --against "$artifacts" --join "$out/packages.json"
rm "$out"/packages-*-of-*.json*
