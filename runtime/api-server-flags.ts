/** The flag for access to the API server, the same for all daemons. */
export const API_SERVER_FLAGS = {
  kubeconfig: {
    flag: '--kubeconfig <path>',
    help: 'kubeconfig with a token or a certificate, to run outside a pod; default: the pod’s service account',
  },
} as const;
