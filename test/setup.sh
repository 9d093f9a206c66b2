#!/bin/sh
# Installs the Debian packages that the tests use beyond Node.js. What is there already costs nothing.
set -eu

packages="openvswitch-switch qemu-system-x86 gcc libc6-dev musl-tools make openssl strace irqbalance ethtool iproute2 containernetworking-plugins containerd runc chromium fonts-dejavu-core golang-go golang-github-appc-cni-dev"
# Of Prometheus only promtool is used, which may have come another way.
command -v promtool >/dev/null || packages="$packages prometheus"

missing=""
for package in $packages; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
if [ -z "$missing" ]; then
  echo "test:setup: everything is installed"
  exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "test:setup: run as root, or: sudo apt-get install$missing" >&2
  exit 1
fi

# The daemons are started by the tests themselves, with directories of their own: keep the packages from starting any.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
apt-get update -q
# shellcheck disable=SC2086  # one word each
DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
