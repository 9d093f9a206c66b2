# One image for each daemon:
#   docker build --target webhook          --tag plumbline-webhook:0.1.0 .
#   docker build --target scheduler-plugin --tag plumbline-scheduler-plugin:0.1.0 .
#   docker build --target node-agent       --tag plumbline-node-agent:0.1.0 .
#   docker build --target console          --tag plumbline-console:0.1.0 .
# What is in them is what `npm run build:image -- NAME --out DIRECTORY` makes, which takes no container engine.

FROM node:24-bookworm-slim AS build
# For the CNI plugin, one static file in C.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends gcc libc6-dev make musl-tools \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY package.json package-lock.json ./
# koffi comes built; nothing needs an install script.
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build:image -- webhook scheduler-plugin node-agent console --out /images

FROM gcr.io/distroless/nodejs24-debian12:nonroot AS webhook
COPY --from=build /images/webhook /
USER 65532:65532
WORKDIR /plumbline
EXPOSE 8443 8081
ENTRYPOINT ["/nodejs/bin/node", "/plumbline/webhook.cjs"]
CMD []

FROM gcr.io/distroless/nodejs24-debian12:nonroot AS scheduler-plugin
COPY --from=build /images/scheduler-plugin /
USER 65532:65532
WORKDIR /plumbline
EXPOSE 9443 8081
ENTRYPOINT ["/nodejs/bin/node", "/plumbline/scheduler-plugin.cjs"]
CMD []

# Optional: the web page (manifests/components/console).
FROM gcr.io/distroless/nodejs24-debian12:nonroot AS console
COPY --from=build /images/console /
USER 65532:65532
WORKDIR /plumbline
EXPOSE 8081
ENTRYPOINT ["/nodejs/bin/node", "/plumbline/console.cjs"]
CMD []

# Root, as the kubelet's sockets are root's. manifests/base/namespace.yaml has every reason, and what it does without.
FROM gcr.io/distroless/nodejs24-debian12 AS node-agent
COPY --from=build /images/node-agent /
USER 0:0
WORKDIR /plumbline
EXPOSE 8082
ENTRYPOINT ["/nodejs/bin/node", "/plumbline/node-agent.cjs"]
CMD []
