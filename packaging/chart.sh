#!/usr/bin/env bash
# Packs the Helm chart into an archive in a folder: packaging/chart.sh OUT. Refuses a chart that differs from the manifests.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: packaging/chart.sh OUT" >&2; exit 2; }
out=$1
cd "$(dirname "$0")/.."
npm run --silent chart
git diff --exit-code -- manifests/chart || { echo "the chart is not what the manifests make it: commit what npm run chart wrote" >&2; exit 1; }
cp LICENSE manifests/chart/plumbline/
trap 'rm -f manifests/chart/plumbline/LICENSE' EXIT
helm lint manifests/chart/plumbline --namespace plumbline-system
mkdir -p "$out"
helm package manifests/chart/plumbline --destination "$out"
