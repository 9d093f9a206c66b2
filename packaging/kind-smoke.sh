#!/usr/bin/env bash
# Installs Plumbline into a kind cluster, with images built from this checkout, and uninstalls it again:
#   packaging/kind-smoke.sh [KIND-NODE-IMAGE]
# Needs docker, kind, kubectl and network access; CERT_MANAGER is the file or URL of cert-manager's manifest.
# Without KubeVirt, it verifies that the manifests apply, every daemon becomes ready, an ordinary pod is scheduled, and no
# pod is refused that has not opted in.
set -euo pipefail
: "${CERT_MANAGER:?name cert-manager.yaml of a release, a file or an address}"
cd "$(dirname "$0")/.."
name=plumbline-smoke-$$
version=$(node -p 'require("./package.json").version')
registry=$(cat packaging/registry.txt)
work=$(mktemp -d -p . .kind-smoke.XXXXXX)
config=$work/kubeconfig
cleanup() {
  status=$?
  if [ "$status" -ne 0 ]; then
    kubectl --kubeconfig "$config" -n plumbline-system get pods,events || true
    kubectl --kubeconfig "$config" -n plumbline-system logs --all-containers --prefix --tail 50 \
      -l 'app.kubernetes.io/name in (plumbline-webhook, plumbline-scheduler, plumbline-node-agent)' || true
  fi
  kind delete cluster --name "$name" >/dev/null 2>&1 || true
  rm -rf "$work"
  exit "$status"
}
trap cleanup EXIT

images=()
for target in webhook scheduler-plugin node-agent; do
  docker build --quiet --target "$target" --tag "$registry/plumbline-$target:$version" .
  images+=("$registry/plumbline-$target:$version")
done
kind create cluster --name "$name" --kubeconfig "$config" --wait 120s ${1:+--image "$1"}
kind load docker-image --name "$name" "${images[@]}"
k() { kubectl --kubeconfig "$config" "$@"; }

k apply --server-side -f "$CERT_MANAGER"
k -n cert-manager rollout status deployment --timeout 180s
# cert-manager's webhook starts serving a moment after its pod is ready.
minor=$(k version -o json | node -p 'JSON.parse(require("fs").readFileSync(0, "utf8")).serverVersion.minor.replace(/\D.*/, "")')
cat >"$work/kustomization.yaml" <<KUSTOMIZATION
resources: [../manifests/base]
components: [../manifests/components/kubernetes-1.$minor]
KUSTOMIZATION
applied=
for _ in $(seq 30); do
  if k apply --server-side -k "$work"; then applied=1; break; fi
  sleep 5
done
[ -n "$applied" ]
for workload in deployment/plumbline-webhook deployment/plumbline-scheduler daemonset/plumbline-node-agent; do
  k -n plumbline-system rollout status "$workload" --timeout 300s
done
k get nodetopologies -o name | grep .

k run plain --image registry.k8s.io/pause:3.10 --restart Never
k wait pod/plain --for condition=Ready --timeout 120s
k create namespace opted
k -n opted apply -f - <<'POD'
apiVersion: v1
kind: Pod
metadata:
  name: own-scheduler
spec:
  schedulerName: plumbline-scheduler
  containers: [{ name: pause, image: "registry.k8s.io/pause:3.10" }]
POD
k -n opted wait pod/own-scheduler --for condition=Ready --timeout 120s

k delete -k "$work" --wait --timeout 180s
left=$(k get mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,clusterroles,clusterrolebindings -o name | grep plumbline || true)
[ -z "$left" ] || { echo "left behind: $left" >&2; exit 1; }
k run afterwards --image registry.k8s.io/pause:3.10 --restart Never
k wait pod/afterwards --for condition=Ready --timeout 120s
echo "kind: installed, scheduled, removed"
