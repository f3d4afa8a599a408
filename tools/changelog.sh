#!/usr/bin/env bash
# Collects changes/*.md under a heading of a version at the top of CHANGELOG.md and
# removes them: tools/changelog.sh 1.2.3 (dated today) or 1.2.3 2030-01-31.
set -euo pipefail
cd "${CHANGELOG_ROOT:-$(dirname "$0")/..}"
version=${1:-}
date=${2:-$(date -u +%F)}

fail() { echo "changelog: $*" >&2; exit 1; }

[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "want a version such as 1.2.3, have '$version'"
grep -q "^## $version " CHANGELOG.md && fail "CHANGELOG.md has $version already"
shopt -s nullglob
entries=()
for file in changes/*.md; do
  [ "$file" = changes/README.md ] && continue
  [[ $(head -c 2 "$file") == "- " ]] || fail "$file: want a list item at its beginning ('- ...')"
  entries+=("$file")
done
[ ${#entries[@]} -gt 0 ] || fail "there is nothing to collect in changes"

new=$(mktemp)
trap 'rm -f "$new"' EXIT
# What stands before the first version stays first; the line that says that nothing
# was released yet goes with the first release.
awk '/^## / { exit } { print }' CHANGELOG.md | sed 's/ Nothing was released yet\.//' |
  sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' >"$new"
{
  echo
  echo "## $version ($date)"
  echo
  cat "${entries[@]}"
  echo
  awk '/^## / { begun = 1 } begun { print }' CHANGELOG.md
} >>"$new"
sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' "$new" >CHANGELOG.md # no empty lines at the end
rm "${entries[@]}"
echo "CHANGELOG.md has $version, from ${#entries[@]} files"
