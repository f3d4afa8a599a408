#!/usr/bin/env bash
# Runs every fuzz target of the repository for a while: tools/fuzz.sh [DURATION]
# Stops at the first failure and shows its output; the failing input is then in
# the package's testdata/fuzz and belongs into the commit that mends it.
set -euo pipefail
cd "$(dirname "$0")/.."
duration=${1:-60s}

# Making a new input smaller may take the whole of a run, so it is tried once.
fuzz() { # fuzz DIR TARGET
  go test -run='^$' -fuzz="^$2\$" -fuzztime="$duration" -fuzzminimizetime=1x "$1" 2>&1
}

# Until Go 1.27 the engine may take the end of its own time for a failure, above all on a busy
# machine (golang/go#75804). Whatever is found has an input that is written, or ends the
# process; here nothing but the deadline is said.
ended_at_deadline() { # ended_at_deadline OUTPUT
  local rest
  rest=$(grep -vE '^(fuzz: (elapsed|minimizing)|--- FAIL: Fuzz|FAIL|exit status 1$| *$)' <<<"$1")
  [ "$rest" = "    context deadline exceeded" ]
}

targets=0
while IFS=: read -r file declaration; do
  dir=$(dirname "$file")
  target=${declaration#func }
  targets=$((targets + 1))
  echo "fuzz $dir $target $duration"
  if output=$(fuzz "$dir" "$target"); then
    continue
  fi
  if ! ended_at_deadline "$output"; then
    echo "$output"
    exit 1
  fi
  echo "the fuzzing engine met its own deadline while it stopped: nothing found"
done < <(grep -rEo --include='*_test.go' --exclude-dir={.git,bin,testdata,node_modules,tools} '^func Fuzz[A-Za-z0-9_]*' . | sort)
echo "fuzz: $targets targets, nothing found"
