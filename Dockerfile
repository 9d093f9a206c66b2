# One image for each daemon:
#   docker build --target webhook          --tag REGISTRY/plumbline-webhook:0.1.0 .
#   docker build --target scheduler-plugin --tag REGISTRY/plumbline-scheduler-plugin:0.1.0 .
#   docker build --target node-agent       --tag REGISTRY/plumbline-node-agent:0.1.0 .
#   docker build --target console          --tag REGISTRY/plumbline-console:0.1.0 .
# `--platform linux/arm64` builds for DPUs and other arm64 machines, on either architecture and without emulation.
# `npm run build:image -- NAME --out DIRECTORY` builds the content of an image without a container engine.

# glibc, apt, Node.js 20.19 or newer and npm.
ARG BUILD_BASE=docker.io/library/node:24-bookworm-slim
# glibc and Node.js at /nodejs/bin/node.
ARG RUN_BASE=gcr.io/distroless/nodejs24-debian12

FROM --platform=$BUILDPLATFORM ${BUILD_BASE} AS build
ARG TARGETARCH
# For the CNI gate, one static file in C.
RUN apt-get update \
 && case "$(dpkg --print-architecture):$TARGETARCH" in \
      amd64:arm64) compiler="gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;; \
      arm64:amd64) compiler="gcc-x86-64-linux-gnu libc6-dev-amd64-cross" ;; \
      *) compiler="" ;; \
    esac \
 && apt-get install --yes --no-install-recommends gcc libc6-dev make musl-tools $compiler \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /source
# An alternative npm registry.
ARG NPM_CONFIG_REGISTRY
COPY package.json package-lock.json ./
# koffi is prebuilt; no package needs an install script.
RUN npm ci --ignore-scripts
# koffi's native module for the image's architecture.
RUN mkdir /target && cp package.json package-lock.json /target \
 && case "$TARGETARCH" in amd64) cpu=x64 ;; *) cpu=$TARGETARCH ;; esac \
 && npm ci --prefix /target --ignore-scripts --omit=dev --os=linux --cpu=$cpu
COPY . .
RUN npm run build:image -- webhook scheduler-plugin node-agent console \
      --arch "$TARGETARCH" --modules /target/node_modules --out /images

FROM ${RUN_BASE} AS webhook
COPY --from=build /images/webhook /
USER 65532:65532
WORKDIR /plumbline
EXPOSE 8443 8081
ENTRYPOINT ["/nodejs/bin/node", "/plumbline/webhook.cjs"]
CMD []

FROM ${RUN_BASE} AS scheduler-plugin
COPY --from=build /images/scheduler-plugin /
USER 65532:65532
WORKDIR /plumbline
EXPOSE 9443 8081
ENTRYPOINT ["/nodejs/bin/node", "/plumbline/scheduler-plugin.cjs"]
CMD []

# Optional: the web page (manifests/components/console).
FROM ${RUN_BASE} AS console
COPY --from=build /images/console /
USER 65532:65532
WORKDIR /plumbline
EXPOSE 8081
ENTRYPOINT ["/nodejs/bin/node", "/plumbline/console.cjs"]
CMD []

# Root, because root owns the kubelet's sockets. manifests/base/namespace.yaml lists all reasons, and the privileges that are not needed.
FROM ${RUN_BASE} AS node-agent
COPY --from=build /images/node-agent /
USER 0:0
WORKDIR /plumbline
EXPOSE 8082
ENTRYPOINT ["/nodejs/bin/node", "/plumbline/node-agent.cjs"]
CMD []
