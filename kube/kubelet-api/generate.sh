#!/bin/sh
# Generates gen/*.ts from the two .proto files next to this script. Needs: protoc (Debian: apt-get install
# protobuf-compiler) and the development dependencies (npm ci).
set -eu
cd "$(dirname "$0")"

if ! command -v protoc >/dev/null; then
  echo 'generate: protoc is missing; install protobuf-compiler (Debian) or protobuf (Fedora, Homebrew)' >&2
  exit 1
fi
plugin=../../node_modules/.bin/protoc-gen-ts_proto
if [ ! -x "$plugin" ]; then
  echo 'generate: ts-proto is missing; run npm ci' >&2
  exit 1
fi

# Options: no JSON conversion and no partial messages (unused), 64-bit ids as numbers (they are CPU and NUMA node ids; a number above 2^53
# throws), ESM imports with the extension .ts.
options=env=node,esModuleInterop=true,importSuffix=.ts,outputServices=grpc-js,outputJsonMethods=false,outputPartialMethods=false
options=$options,useExactTypes=false,forceLong=number,useDate=false,unrecognizedEnum=false
options=$options,removeComments=true,exportCommonSymbols=false

mkdir -p gen
protoc --plugin=protoc-gen-ts_proto="$plugin" --ts_proto_out=gen --ts_proto_opt="$options" ./*.proto
