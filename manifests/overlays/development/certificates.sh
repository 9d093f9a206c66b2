#!/bin/sh
# Replaces cert-manager: creates a certificate authority (Secret plumbline-ca) and the webhook's certificate (Secret
# plumbline-webhook-tls), and adds the authority to the webhooks' configurations. Run it again to renew the certificate: it
# keeps the authority, and renews it with the same key when it has less than three years left.
#
#   certificates.sh [--days N] [--ca-out FILE]
#
# --days sets the validity of the serving certificate (default 90). --ca-out writes the authority's certificate. It uses
# kubectl's current context.
set -eu

namespace=plumbline-system
days=90
ca_days=3650
ca_out=""
usage() {
  sed -n '2,9p' "$0" | cut -c3-
}
while [ $# -gt 0 ]; do
  case "$1" in
    --days | --ca-out)
      if [ $# -lt 2 ]; then
        echo "certificates.sh: $1 takes a value" >&2
        exit 2
      fi
      case "$1" in
        --days) days=$2 ;;
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

# secret NAME: writes the Secret NAME from the files NAME.crt and NAME.key and the authority's certificate
secret() {
  kubectl -n "$namespace" create secret generic "$1" --type=kubernetes.io/tls --dry-run=client -o yaml \
    --from-file=tls.crt="$1.crt" --from-file=tls.key="$1.key" --from-file=ca.crt=plumbline-ca.crt |
    kubectl apply --server-side --force-conflicts -f -
}
# stored FIELD FILE: writes a field of the authority's Secret; fails if there is none
stored() {
  kubectl -n "$namespace" get secret plumbline-ca --ignore-not-found -o "go-template={{index .data \"$1\" | base64decode}}" >"$2"
  [ -s "$2" ]
}

if ! stored tls.key plumbline-ca.key; then
  key plumbline-ca.key
fi
if ! stored tls.crt plumbline-ca.crt || ! openssl x509 -in plumbline-ca.crt -noout -checkend $((3 * 365 * 86400)) >/dev/null; then
  openssl req -x509 -new -key plumbline-ca.key -sha256 -days "$ca_days" -subj "/CN=plumbline-ca" -out plumbline-ca.crt
  secret plumbline-ca
fi

# issue NAME: writes the Secret NAME-tls with a serving certificate for the Service NAME
issue() {
  key "$1-tls.key"
  openssl req -new -key "$1-tls.key" -subj "/CN=$1" -out "$1.csr"
  {
    printf 'extendedKeyUsage=serverAuth\nbasicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n'
    printf 'subjectAltName=DNS:%s,DNS:%s\n' "$1.$namespace.svc" "$1.$namespace.svc.cluster.local"
  } >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA plumbline-ca.crt -CAkey plumbline-ca.key -CAcreateserial -sha256 -days "$days" \
    -extfile "$1.ext" -out "$1-tls.crt" 2>/dev/null
  secret "$1-tls"
}
issue plumbline-webhook

bundle=$(openssl base64 -A -in plumbline-ca.crt)
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
  cat plumbline-ca.crt >"$ca_out"
fi
