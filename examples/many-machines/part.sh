#!/bin/sh
# Builds the part of a package set that belongs to this job of an array of jobs. The last command of
# this text joins the parts when all jobs are done.
#
#     part.sh PARTS OUT ARTIFACTS [OPTION OF BUILD]...
#
# The number of the job comes from SLURM_ARRAY_TASK_ID (Slurm: `sbatch --array=1-PARTS`) or from
# JOB_COMPLETION_INDEX (Kubernetes: an Indexed Job with `completions: PARTS`). Every job writes into the
# same OUT, which all machines share, or into a folder of its own. ROCKPACK is the program, `rockpack` if
# unset.
#
#     rockpack verify OUT --against ARTIFACTS --join OUT/packages.json
set -eu
[ $# -ge 3 ] || { sed -n '5s/^# *//p' "$0" >&2; exit 64; }
parts=$1 out=$2 artifacts=$3
shift 3

if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then
    # An array may begin at any number and count in steps: `--array=0-6:2`.
    first=${SLURM_ARRAY_TASK_MIN:-1} step=${SLURM_ARRAY_TASK_STEP:-1}
    part=$(((SLURM_ARRAY_TASK_ID - first) / step + 1))
    jobs=${SLURM_ARRAY_TASK_COUNT:-$parts}
elif [ -n "${JOB_COMPLETION_INDEX:-}" ]; then
    part=$((JOB_COMPLETION_INDEX + 1)) jobs=$parts
else
    echo "$0: neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX says which part to build" >&2
    exit 64
fi
if [ "$jobs" -ne "$parts" ] || [ "$part" -lt 1 ] || [ "$part" -gt "$parts" ]; then
    echo "$0: job $part of $jobs jobs has no part of $parts: start as many jobs as parts" >&2
    exit 64
fi
exec "${ROCKPACK:-rockpack}" build --artifacts "$artifacts" "$@" --partition "$part/$parts" --out "$out"
