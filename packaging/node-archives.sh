#!/usr/bin/env bash
# Downloads Node.js for amd64 and arm64 from nodejs.org, in the version of this machine's node, and verifies the checksums:
#   packaging/node-archives.sh OUT     makes OUT/x64/bin/node and OUT/arm64/bin/node
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: packaging/node-archives.sh OUT" >&2; exit 2; }
mkdir -p "$1"
cd "$1"
version=$(node -p process.version)
curl --fail --silent --show-error --location --remote-name "https://nodejs.org/dist/$version/SHASUMS256.txt"
for arch in x64 arm64; do
  archive="node-$version-linux-$arch.tar.gz"
  curl --fail --silent --show-error --location --remote-name "https://nodejs.org/dist/$version/$archive"
  grep " $archive\$" SHASUMS256.txt | sha256sum --check --quiet
  mkdir -p "$arch"
  tar -xzf "$archive" -C "$arch" --strip-components 1 --wildcards '*/bin/node' '*/LICENSE'
done
