import { stringify } from 'yaml';
import { kubeconfig } from '../../../sandbox/cluster/identities.ts';

/** The node's name. */
export const NODE = 'lab-0';
/** The API server's address in the guest, as for every pod: the first of the Service addresses. */
const API_SERVER = 'https://10.0.0.1:443';

/** Files that make the guest a node of this cluster, by path. */
export function nodeFiles(cluster: { readonly ca: string; readonly port: number; readonly token: string }) {
  return {
    '/etc/lab/env': `LAB_NODE=${NODE}\n`,
    '/etc/lab/ca.crt': cluster.ca,
    '/etc/lab/kubeconfig': kubeconfig({ server: API_SERVER, ca: cluster.ca, token: cluster.token }),
    '/etc/lab/kubelet.yaml': stringify(KUBELET),
    '/etc/lab/nftables.conf': nftables(cluster.port),
  };
}

/** The node's own identity, as a line of the API server's token file. */
export function nodeToken(token: string): string {
  return `${token},system:node:${NODE},${NODE},"system:nodes"`;
}

const KUBELET = {
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  authentication: { anonymous: { enabled: false }, webhook: { enabled: true } },
  authorization: { mode: 'Webhook' },
  containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
  cgroupDriver: 'systemd',
  makeIPTablesUtilChains: false,
  clusterDNS: ['10.0.0.10'],
  cpuManagerPolicy: 'static',
  cpuManagerPolicyOptions: { 'full-pcpus-only': 'true' },
  cpuManagerReconcilePeriod: '5s',
  reservedSystemCPUs: '0-1',
  topologyManagerPolicy: 'best-effort',
  topologyManagerScope: 'container',
};

/** The only connection of the guest: to the API server. */
function nftables(port: number): string {
  const there = `ip daddr 10.0.0.1 tcp dport 443 dnat to 10.0.2.2:${port}`;
  const elsewhere = 'oifname "mgmt0" ip daddr != 10.0.2.2 drop';
  return `table ip lab {
  chain from-here { type nat hook output priority dstnat; ${there}; }
  chain from-pods { type nat hook prerouting priority dstnat; ${there}; }
  chain masked { type nat hook postrouting priority srcnat; ip saddr 10.244.0.0/24 oifname "mgmt0" masquerade; }
  chain out { type filter hook output priority filter; ${elsewhere}; }
  chain through { type filter hook forward priority filter; ${elsewhere}; }
}
`;
}
