#!/usr/bin/env bash
# Packs the Helm chart into an archive in a folder, with the images of a registry:
#   packaging/chart.sh OUT [REGISTRY]
# REGISTRY is by default that of packaging/registry.txt.
set -euo pipefail
[ $# -eq 1 ] || [ $# -eq 2 ] || { echo "usage: packaging/chart.sh OUT [REGISTRY]" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
default=$(cat packaging/registry.txt)
registry=${2:-$default}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -rL manifests/chart/plumbline LICENSE "$work"
chart=$work/plumbline
mv "$work/LICENSE" "$chart"
# Registries accept only lower case.
sed -i "s|$default|${registry,,}|" "$chart/values.yaml" "$chart/README.md" "$chart/templates/_helpers.tpl"
helm lint "$chart" --namespace plumbline-system
helm package "$chart" --destination "$out"
