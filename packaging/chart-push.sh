#!/usr/bin/env bash
# Pushes the chart that packaging/chart.sh put into a folder to an OCI registry, and signs it:
#   packaging/chart-push.sh DIR REGISTRY     to oci://REGISTRY/charts/plumbline
# Needs helm and cosign, and a login to the registry.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: packaging/chart-push.sh DIR REGISTRY" >&2; exit 2; }
# Registries accept only lower case.
charts="${2,,}/charts"
for archive in "$1"/plumbline-*.tgz; do
  said=$(helm push "$archive" "oci://$charts" 2>&1)
  echo "$said"
  digest=$(sed -n 's/^Digest: //p' <<<"$said")
  cosign sign --yes "$charts/plumbline@${digest:?helm push named no digest}"
done
