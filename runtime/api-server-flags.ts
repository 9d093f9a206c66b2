/** Flags for access to the API server, the same for all daemons. */
export const API_SERVER_FLAGS = {
  kubeconfig: {
    flag: '--kubeconfig <path>',
    help: 'kubeconfig with a token or a certificate; default: the pod’s service account',
  },
  apiHost: {
    flag: '--api-host <host>',
    help: 'the API server, in a pod; set by Kubernetes',
    env: 'KUBERNETES_SERVICE_HOST',
  },
  apiPort: {
    flag: '--api-port <number>',
    help: 'the port of the API server, in a pod; set by Kubernetes',
    env: 'KUBERNETES_SERVICE_PORT',
  },
} as const;
