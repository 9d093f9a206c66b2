#!/usr/bin/env bash
# Puts a Kubernetes control plane where the tests of test/real find it: test/control-plane.sh MINOR OUT, as in 1.34 /tmp/k8s,
# then KUBEBUILDER_ASSETS=OUT. The newest patch of that minor version from dl.k8s.io, checked against its sums; etcd is Debian's.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: test/control-plane.sh MINOR OUT" >&2; exit 2; }
mkdir -p "$2"
cd "$2"
arch=$(dpkg --print-architecture)
version=$(curl --fail --silent --show-error --location "https://dl.k8s.io/release/stable-$1.txt")
for program in kube-apiserver kube-scheduler kube-controller-manager kubectl; do
  url="https://dl.k8s.io/release/$version/bin/linux/$arch/$program"
  curl --fail --silent --show-error --location --remote-name "$url"
  echo "$(curl --fail --silent --show-error --location "$url.sha256")  $program" | sha256sum --check --quiet
  chmod +x "$program"
done
command -v etcd >/dev/null || { echo "etcd is missing: apt-get install etcd-server" >&2; exit 1; }
ln -sf "$(command -v etcd)" etcd
echo "$version"
