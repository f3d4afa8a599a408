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

targets=0
while IFS=: read -r file declaration; do
  dir=$(dirname "$file")
  target=${declaration#func }
  targets=$((targets + 1))
  echo "fuzz $dir $target $duration"
  if ! output=$(fuzz "$dir" "$target"); then
    # On a busy machine the fuzzing engine may miss its own deadline at the end
    # of a run; that is no finding, so such a run is repeated once.
    if grep -q 'context deadline exceeded' <<<"$output" && ! grep -q 'Failing input written' <<<"$output"; then
      output=$(fuzz "$dir" "$target") || { echo "$output"; exit 1; }
    else
      echo "$output"
      exit 1
    fi
  fi
done < <(grep -rEo --include='*_test.go' --exclude-dir={.git,bin,testdata,node_modules,tools} '^func Fuzz[A-Za-z0-9_]*' . | sort)
echo "fuzz: $targets targets, nothing found"
