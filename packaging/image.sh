#!/usr/bin/env bash
# Builds an image for amd64 and arm64 from a target of the Dockerfile, with provenance and SBOM attached:
#   packaging/image.sh TARGET OUT                     into an OCI archive in the folder OUT
#   packaging/image.sh TARGET --push REGISTRY         to REGISTRY/plumbline-TARGET, signed with cosign
# Needs docker with buildx, and QEMU's handlers for the other architecture; pushing also needs cosign and a login.
set -euo pipefail
usage="usage: packaging/image.sh TARGET OUT | TARGET --push REGISTRY"
target=${1:?$usage}
case "${2:-}" in
  --push) registry=${3:?$usage} ;;
  '') echo "$usage" >&2; exit 2 ;;
  *) mkdir -p "$2"; out=$(cd "$2" && pwd) ;;
esac
cd "$(dirname "$0")/.."
version=$(node -p 'require("./package.json").version')
# The image has the times of the commit, so that two builds of one commit are identical.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
build=(docker buildx build --platform linux/amd64,linux/arm64 --target "$target" --provenance mode=max --sbom true)
if [ -n "${out:-}" ]; then
  "${build[@]}" --output "type=oci,dest=$out/plumbline-$target-$version.tar,rewrite-timestamp=true" .
  exit
fi
# Registries accept only lower case.
image="${registry,,}/plumbline-$target"
metadata=$(mktemp)
trap 'rm -f "$metadata"' EXIT
"${build[@]}" --tag "$image:$version" --output type=image,push=true,rewrite-timestamp=true --metadata-file "$metadata" .
digest=$(node -p 'JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"))["containerimage.digest"]' "$metadata")
cosign sign --yes "$image@$digest"
echo "$image@$digest"
