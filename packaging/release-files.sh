#!/usr/bin/env bash
# Creates the files of a release: executables, npm package, krew manifest, SBOM of the bundled packages, and checksums.
#   packaging/release-files.sh OUT NODE-ARCHIVES BASE-URL
# NODE-ARCHIVES is the output of packaging/node-archives.sh; BASE-URL is the future address of the files in OUT.
set -euo pipefail
[ $# -eq 3 ] || { echo "usage: packaging/release-files.sh OUT NODE-ARCHIVES BASE-URL" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
archives=$(cd "$2" && pwd)
url=$3
cd "$(dirname "$0")/.."
version=$(node -p 'require("./package.json").version')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npm run --silent build:package -- --out "$work/package"
npm pack --silent "$work/package" --pack-destination "$out"
packaging/executables.sh "$version" "$out" "$archives/x64/bin/node" "$archives/arm64/bin/node"
npm run --silent build:krew -- --version "$version" --base-url "$url" "$out"/plumbline-"$version"-linux-*.tar.gz >"$out/plumbline.yaml"
npm run --silent build:sbom >"$out/plumbline-$version.cdx.json"
cd "$out"
sha256sum -- * >"$work/sums"
mv "$work/sums" SHA256SUMS
