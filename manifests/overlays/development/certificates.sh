#!/bin/sh
# Makes what cert-manager would: a certificate authority, serving certificates of webhook and extender as
# Secrets, and the authority in the webhooks' configurations. The authority's key is thrown away, so run it again to renew.
#
#   certificates.sh [--days N] [--address IP]... [--ca-out FILE]
#
# --address adds an address to the extender's certificate (a fixed ClusterIP, 127.0.0.1); --ca-out writes the authority's
# certificate, for kube-scheduler's caFile. kubectl's current context says which cluster.
set -eu

namespace=plumbline-system
days=30
addresses=""
ca_out=""
usage() {
  sed -n '2,8p' "$0" | cut -c3-
}
while [ $# -gt 0 ]; do
  case "$1" in
    --days | --address | --ca-out)
      if [ $# -lt 2 ]; then
        echo "certificates.sh: $1 takes a value" >&2
        exit 2
      fi
      case "$1" in
        --days) days=$2 ;;
        --address) addresses="$addresses,IP:$2" ;;
        --ca-out)
          case "$2" in
            /*) ca_out=$2 ;;
            *) ca_out=$PWD/$2 ;;
          esac
          ;;
      esac
      shift 2
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      echo "certificates.sh: unknown argument $1 (--help lists them)" >&2
      exit 2
      ;;
  esac
done
for program in openssl kubectl; do
  command -v "$program" >/dev/null || {
    echo "certificates.sh: $program is not installed" >&2
    exit 1
  }
done
kubectl get namespace "$namespace" >/dev/null || {
  echo "certificates.sh: apply manifests/overlays/development first" >&2
  exit 1
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
umask 077
key() {
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1" 2>/dev/null
}

key ca.key
openssl req -x509 -new -key ca.key -sha256 -days "$days" -subj "/CN=plumbline-development" -out ca.crt

# serving NAME SUBJECT-ALTERNATIVE-NAMES
serving() {
  key "$1.key"
  openssl req -new -key "$1.key" -subj "/CN=$1" -out "$1.csr"
  printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth\n' "$2" >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -sha256 -days "$days" \
    -extfile "$1.ext" -out "$1.crt" 2>/dev/null
  kubectl -n "$namespace" create secret generic "$1-tls" --type=kubernetes.io/tls --dry-run=client -o yaml \
    --from-file=tls.crt="$1.crt" --from-file=tls.key="$1.key" --from-file=ca.crt=ca.crt | kubectl apply -f -
}
serving plumbline-webhook "DNS:plumbline-webhook.$namespace.svc,DNS:plumbline-webhook.$namespace.svc.cluster.local"
serving plumbline-scheduler-plugin \
  "DNS:plumbline-scheduler-plugin.$namespace.svc,DNS:plumbline-scheduler-plugin.$namespace.svc.cluster.local$addresses"

bundle=$(openssl base64 -A -in ca.crt)
# inject KIND NAME
inject() {
  webhooks=$(kubectl get "$1" "$2" -o 'jsonpath={range .webhooks[*]}{.name}{"\n"}{end}')
  patch=""
  index=0
  for webhook in $webhooks; do
    patch="$patch{\"op\":\"add\",\"path\":\"/webhooks/$index/clientConfig/caBundle\",\"value\":\"$bundle\"},"
    index=$((index + 1))
  done
  kubectl patch "$1" "$2" --type=json -p "[${patch%,}]"
}
inject mutatingwebhookconfiguration plumbline-webhook
inject mutatingwebhookconfiguration plumbline-opt-in
inject validatingwebhookconfiguration plumbline-webhook
if [ -n "$ca_out" ]; then
  umask 022
  cat ca.crt >"$ca_out"
fi
