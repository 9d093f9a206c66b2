#!/bin/sh
# Removes Plumbline from a cluster: its objects, and its labels, annotations, conditions and resources on nodes. Run it again
# if it was interrupted.
#
#   uninstall.sh [--dpu-leases] [FOLDER]
#
# FOLDER is the applied kustomization (default: base, next to this script); omit it after `helm uninstall`.
# --dpu-leases also deletes the Leases ovn-dpu-* of the namespace ovn-kubernetes: use it only if OVN-Kubernetes does not
# manage them itself. It uses kubectl's current context. If objects remain, it lists them and exits with 1.
# docs/tasks/upgrade.md describes the preparation, and how to clean up the hosts.
set -eu

system=plumbline-system
folder=$(dirname "$0")/base
dpu_leases=no
for argument in "$@"; do
  case "$argument" in
    --dpu-leases) dpu_leases=yes ;;
    -h | --help)
      sed -n '2,10p' "$0" | cut -c3-
      exit 0
      ;;
    -*)
      echo "uninstall.sh: unknown argument $argument (--help lists them)" >&2
      exit 2
      ;;
    *) folder=$argument ;;
  esac
done
[ -d "$folder" ] || {
  echo "uninstall.sh: $folder is no folder" >&2
  exit 2
}
kubectl version >/dev/null || {
  echo "uninstall.sh: the cluster does not answer" >&2
  exit 1
}

echo "switching its webhooks off"
kubectl -n "$system" delete rolebinding plumbline-webhook-required --ignore-not-found

echo "deleting what $folder has"
# kubectl fails for kinds of products that are not installed, after deleting the rest. The check for remaining objects
# follows.
kubectl delete --ignore-not-found --timeout=300s -k "$folder" || true
kubectl delete customresourcedefinition nodetopologies.plumbline.dev --ignore-not-found

echo "cleaning nodes"
for node in $(kubectl get nodes -o name); do
  kubectl label "$node" plumbline.dev/threads-per-core- plumbline.dev/full-pcpus-only- >/dev/null
  kubectl annotate "$node" plumbline.dev/recheck- >/dev/null
  kubectl patch "$node" --subresource=status --type=strategic \
    -p '{"status":{"conditions":[{"type":"plumbline.dev/DPUReady","$patch":"delete"},{"type":"plumbline.dev/DPURestarted","$patch":"delete"},{"type":"plumbline.dev/AgentReady","$patch":"delete"}]}}' >/dev/null
  # Resources of removed device plugins remain with the value 0. For five minutes, the kubelet writes them again.
  resources=$(kubectl get "$node" -o 'go-template={{range $name, $_ := .status.capacity}}{{$name}}{{"\n"}}{{end}}' |
    grep -E '^(physnet\.)?plumbline\.dev/' | sed 's/.*/"&":null/' | paste -sd, -) || true
  if [ -n "$resources" ]; then
    kubectl patch "$node" --subresource=status --type=merge \
      -p "{\"status\":{\"capacity\":{$resources},\"allocatable\":{$resources}}}" >/dev/null
  fi
done

if [ "$dpu_leases" = yes ]; then
  kubectl -n ovn-kubernetes get leases -o name | grep '/ovn-dpu-' | xargs -r kubectl -n ovn-kubernetes delete
fi

cluster_scoped=namespaces,customresourcedefinitions,clusterroles,clusterrolebindings,priorityclasses
admission=mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings
left=$({
  kubectl get "$cluster_scoped,$admission" -o name
  kubectl get roles,rolebindings --all-namespaces -o 'go-template={{range .items}}{{.kind}} {{.metadata.namespace}}/{{.metadata.name}}{{"\n"}}{{end}}'
} | grep plumbline) || true
if [ -n "$left" ]; then
  echo "uninstall.sh: left in the cluster:" >&2
  echo "$left" >&2
  exit 1
fi
echo "nothing of Plumbline is left in the cluster; on the hosts remove /var/lib/plumbline and /run/plumbline"
