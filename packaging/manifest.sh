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
# The annotation tells plumbline doctor what to propose if an object is missing: cli/doctor/checks/installed.ts.
cat >"$work/kustomization.yaml" <<END
resources: [../manifests/base]
components: [../$component]
patches:
  - target: { kind: Namespace }
    patch: |
      - { op: add, path: /metadata/annotations, value: { plumbline.dev/release-manifest: "$version $1 ${registry,,}" } }
END
echo "# Plumbline $version for Kubernetes $1: kubectl apply --server-side -f FILE"
# Registries accept only lower case.
kubectl kustomize "$work" | sed "s|image: $default/|image: ${registry,,}/|"
