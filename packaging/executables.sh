#!/usr/bin/env bash
# Builds the archives of a release: the command as one file, for amd64 and arm64, each with the licenses of its contents.
#   packaging/executables.sh VERSION OUT NODE-AMD64 NODE-ARM64
# NODE-*: bin/node of nodejs.org's Linux archives, in the version of this machine's node. Run `npm run build` first.
set -euo pipefail
[ $# -eq 4 ] || { echo "usage: packaging/executables.sh VERSION OUT NODE-AMD64 NODE-ARM64" >&2; exit 2; }
version=$1 out=$2
declare -A nodes=([amd64]=$3 [arm64]=$4) names=([amd64]=x64 [arm64]=arm64)
cd "$(dirname "$0")/.."
koffi=$(node -p 'require("./package.json").dependencies.koffi')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
out=$(cd "$out" && pwd)
for arch in amd64 arm64; do
  mkdir -p "$work/$arch"
  # npm installs only the native module of its own architecture.
  archive=$(npm pack --silent --pack-destination "$work" "@koromix/koffi-linux-${names[$arch]}@$koffi")
  tar -xzf "$work/$archive" -C "$work/$arch"
  npx tsx packaging/executable.ts --node "${nodes[$arch]}" --out "$work/$arch/plumbline" \
    --koffi "$work/$arch/package/linux_${names[$arch]}/koffi.node"
  mv "$work/$arch/plumbline.licenses" "$work/$arch/LICENSES"
  # The same input gives the same archive: no owners, no times, no name in gzip's header.
  tar -C "$work/$arch" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - plumbline LICENSES |
    gzip -n9 >"$out/plumbline-$version-linux-$arch.tar.gz"
  echo "$out/plumbline-$version-linux-$arch.tar.gz"
done
