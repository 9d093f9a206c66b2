import { stringify } from 'yaml';
import { kubeconfig } from '../../../sandbox/cluster/identities.ts';

export const nodeName = (index: number): string => `lab-${index}`;
export const podNetwork = (index: number): string => `10.244.${index}.0/24`;
const linkAddress = (index: number): string => `10.245.0.${index + 1}`;
export const linkMac = (index: number): string => `52:54:00:6c:61:1${index}`;
/** The other one of two machines. */
export const peerOf = (index: number): number => 1 - index;

/** The API server's address in the guest, as for every pod: the first of the Service addresses. */
const API_SERVER = 'https://10.0.0.1:443';

export interface NodeOptions {
  readonly index: number;
  readonly hasPeer: boolean;
  readonly ca: string;
  readonly port: number;
  readonly token: string;
}

export function nodeFiles({ index, hasPeer, ca, port, token }: NodeOptions): Readonly<Record<string, string>> {
  const peer = peerOf(index);
  const link = `LAB_LINK=${linkAddress(index)}/24\nLAB_PEER=${linkAddress(peer)}\nLAB_PEER_PODS=${podNetwork(peer)}\n`;
  return {
    '/etc/lab/env': `LAB_NODE=${nodeName(index)}\n${hasPeer ? link : ''}`,
    '/etc/lab/ca.crt': ca,
    '/etc/lab/kubeconfig': kubeconfig({ server: API_SERVER, ca, token }),
    '/etc/lab/kubelet.yaml': stringify(KUBELET),
    '/etc/lab/nftables.conf': nftables(port, podNetwork(index)),
    '/etc/cni/net.d/10-lab.conflist': JSON.stringify({
      cniVersion: '1.0.0',
      name: 'lab',
      plugins: [podBridge(podNetwork(index))],
    }),
    ...(hasPeer && {
      '/etc/systemd/network/10-peer0.link': `[Match]\nMACAddress=${linkMac(index)}\n\n[Link]\nName=peer0\n`,
      '/etc/systemd/system/lab-network.service.d/peer.conf': `[Unit]\nWants=${PEER_UNIT}\nAfter=${PEER_UNIT}\n`,
    }),
  };
}
const PEER_UNIT = 'sys-subsystem-net-devices-peer0.device';

export function podBridge(subnet: string) {
  const ipam = { type: 'host-local', ranges: [[{ subnet }]], routes: [{ dst: '0.0.0.0/0' }] };
  return { type: 'bridge', bridge: 'cni0', isGateway: true, ipam } as const;
}

export function nodeToken(index: number, token: string): string {
  return `${token},system:node:${nodeName(index)},${nodeName(index)},"system:nodes"`;
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

/** The only connections of the guest: to the API server, and to the peer's pods. */
function nftables(port: number, pods: string): string {
  const there = `ip daddr 10.0.0.1 tcp dport 443 dnat to 10.0.2.2:${port}`;
  const elsewhere = 'oifname "mgmt0" ip daddr != 10.0.2.2 drop';
  return `table ip lab {
  chain from-here { type nat hook output priority dstnat; ${there}; }
  chain from-pods { type nat hook prerouting priority dstnat; ${there}; }
  chain masked { type nat hook postrouting priority srcnat; ip saddr ${pods} oifname "mgmt0" masquerade; }
  chain out { type filter hook output priority filter; ${elsewhere}; }
  chain through { type filter hook forward priority filter; ${elsewhere}; }
}
`;
}
