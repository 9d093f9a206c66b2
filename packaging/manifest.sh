#!/usr/bin/env bash
# Prints everything of manifests/base as one YAML that `kubectl apply` takes, for clusters of one version of Kubernetes:
#   packaging/manifest.sh 1.NN [REGISTRY]
# REGISTRY has the images; the default is that of packaging/registry.txt. Needs kubectl.
set -euo pipefail
[ $# -eq 1 ] || [ $# -eq 2 ] || { echo "usage: packaging/manifest.sh 1.NN [REGISTRY]" >&2; exit 2; }
cd "$(dirname "$0")/.."
component=manifests/components/kubernetes-$1
[ -d "$component" ] || { echo "there is no $component: Plumbline does not support Kubernetes $1" >&2; exit 1; }
default=$(cat packaging/registry.txt)
registry=${2:-$default}
version=$(node -p 'require("./package.json").version')
work=$(mktemp -d -p . .manifest.XXXXXX)
trap 'rm -rf "$work"' EXIT
printf 'resources: [../manifests/base]\ncomponents: [../%s]\n' "$component" >"$work/kustomization.yaml"
echo "# Plumbline $version for Kubernetes $1: kubectl apply --server-side -f FILE"
# Registries accept only lower case.
kubectl kustomize "$work" | sed "s|image: $default/|image: ${registry,,}/|"
