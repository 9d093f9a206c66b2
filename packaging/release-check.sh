#!/usr/bin/env bash
# Checks whether this checkout can be released under a tag: packaging/release-check.sh v1.2.3
# The tag must equal the version of package.json (test/manifests/version.test.ts checks chart and manifests against it),
# and the changelog must have a section for it that is no longer marked as unreleased.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: packaging/release-check.sh vVERSION" >&2; exit 2; }
cd "$(dirname "$0")/.."
version=$(node -p 'require("./package.json").version')
[ "$1" = "v$version" ] || { echo "the tag is $1, and package.json says $version: set both to the same" >&2; exit 1; }
npm run --silent release:notes -- "$version" >/dev/null
if grep -q "^## $version (unreleased)" CHANGELOG.md; then
  echo "CHANGELOG.md still says that $version is unreleased: put the date there" >&2
  exit 1
fi
# The tiers that need special parts, and the benchmarks, must have passed on this code.
npx tsx test/last-run.ts || { echo "a record is stale: run the command above again, and commit what it writes" >&2; exit 1; }
