#!/usr/bin/env bash
# Sums up the runs of run.sh. Usage: table.sh runs.tsv... Prints a Markdown table: per target the
# executions, the minutes, the most edges and the most memory of a run, and the finds.
set -euo pipefail
sort "$@" | awk -F'\t' '
  function line() {
    printf "| `%s` | %d | %.1f | %d | %d | %d |\n", name, runs, seconds / 60, edges, memory, finds
  }
  BEGIN { print "| target | executions | minutes | edges | MiB | finds |\n|---|--:|--:|--:|--:|--:|" }
  $1 != name { if (name != "") line(); name = $1; runs = seconds = edges = memory = finds = 0 }
  {
    runs += $2; seconds += $3; all += $2; time += $3; finds += $6 != 0
    if ($4 > edges) edges = $4
    if ($5 > memory) memory = $5
  }
  END { if (name != "") line(); printf "| all | %d | %.1f | | | |\n", all, time / 60 }'
