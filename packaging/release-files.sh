#!/usr/bin/env bash
# Creates the files of a release: manifests for each version of Kubernetes with the images of a registry, npm package, SBOM of
# the bundled packages, and checksums.
#   packaging/release-files.sh OUT [REGISTRY]
set -euo pipefail
[ $# -eq 1 ] || [ $# -eq 2 ] || { echo "usage: packaging/release-files.sh OUT [REGISTRY]" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
version=$(node -p 'require("./package.json").version')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npm run --silent build:package -- --out "$work/package"
npm pack --silent "$work/package" --pack-destination "$out"
for component in manifests/components/kubernetes-*; do
  kubernetes=${component##*-}
  npm run --silent release:manifest -- "$kubernetes" "${@:2}" >"$out/plumbline-kubernetes-$kubernetes.yaml"
done
npm run --silent build:sbom >"$out/plumbline-$version.cdx.json"
cd "$out"
sha256sum -- * >"$work/sums"
mv "$work/sums" SHA256SUMS
