#!/usr/bin/env bash
# Runs every fuzz target of the repository for a while: tools/fuzz.sh [DURATION [own]]
# Stops at the first failure and shows its output; the failing input is then in
# the package's testdata/fuzz and belongs into the commit that mends it. As many
# targets run at a time as there are processors, each on one.
#
# With own the engine is led by what an input reaches in this module alone. By default it is led
# by the libraries, too, for which all of them are compiled once more: minutes, and worth it where
# targets run for longer than that.
set -euo pipefail
cd "$(dirname "$0")/.."
duration=${1:-60s}
instrument=-fuzz=Fuzz
if [ "${2:-}" = own ]; then
  instrument=-gcflags=$(go list -m)/...=-d=libfuzzer # what -fuzz gives the compiler for all
fi
processors=$(nproc 2>/dev/null || echo 2)

built=$(mktemp -d)
trap 'rm -f "$built"/*.test "$built"/*.out; rmdir "$built"' EXIT
cache=$(go env GOCACHE)/fuzz

# Until Go 1.27 the engine may take the end of its own time for a failure, above all on a busy
# machine (golang/go#75804). Whatever is found has an input that is written, or ends the
# process; here nothing but the deadline is said.
ended_at_deadline() { # ended_at_deadline FILE
  local rest
  rest=$(grep -vE '^(fuzz: (elapsed|minimizing)|--- FAIL: Fuzz|FAIL|exit status 1$| *$)' "$1")
  [ "$rest" = "    context deadline exceeded" ]
}

# Making a new input smaller may take the whole of a run, so it is tried once.
fuzz() { # fuzz DIR PROGRAM TARGET
  local said="$2.$3.out"
  echo "fuzz $1 $3 $duration"
  if (cd "$1" && GOMAXPROCS=1 "$2" -test.run='^$' -test.fuzz="^$3\$" -test.fuzztime="$duration" \
    -test.fuzzminimizetime=1x -test.fuzzcachedir="$cache/$1" -test.parallel=1) >"$said" 2>&1; then
    return
  fi
  if ended_at_deadline "$said"; then
    echo "$1 $3: the fuzzing engine met its own deadline while it stopped: nothing found"
    return
  fi
  cat "$said"
  return 1
}

# all is one package: it is built once for all of its targets.
all() { # all DIR TARGET...
  local dir=$1 program
  program="$built/${dir//\//_}.test"
  shift
  go test -c "$instrument" -ldflags="-s -w" -o "$program" "./$dir"
  local target
  for target in "$@"; do
    fuzz "$dir" "$program" "$target" || return 1
  done
}

declare -A of=()
targets=0
while IFS=: read -r file declaration; do
  dir=$(dirname "$file")
  of[${dir#./}]+=" ${declaration#func }"
  targets=$((targets + 1))
done < <(grep -rEo --include='*_test.go' --exclude-dir={.git,bin,testdata,node_modules,tools} '^func Fuzz[A-Za-z0-9_]*' . | sort)

running=0
failed=""
for dir in $(printf '%s\n' "${!of[@]}" | sort); do
  if [ "$running" -ge "$processors" ]; then
    wait -n || { failed=yes; break; }
    running=$((running - 1))
  fi
  # shellcheck disable=SC2086 # the targets are words
  all "$dir" ${of[$dir]} &
  running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
  wait -n || failed=yes
  running=$((running - 1))
done
if [ -n "$failed" ]; then
  echo "fuzz: see above; $targets targets"
  exit 1
fi
echo "fuzz: $targets targets, nothing found"
