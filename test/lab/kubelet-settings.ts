import { gatesForOptions } from './option-gates.ts';
import type { Round } from './rounds.ts';

/** MiB of memory that a kubelet reserves for eviction by default. */
const EVICTION = 100;

/** The fields of a KubeletConfiguration that a round sets, for a kubelet of this version. */
export function kubeletSettings(round: Round, version: string): Readonly<Record<string, unknown>> {
  const { reservedMemory } = round;
  const reserved = reservedMemory?.reduce((sum, amount) => sum + amount, 0) ?? 0;
  return {
    featureGates: gatesForOptions(round.cpuOptions, version),
    cpuManagerPolicy: 'static',
    cpuManagerPolicyOptions: round.cpuOptions,
    reservedSystemCPUs: round.reserved,
    topologyManagerPolicy: round.topologyPolicy,
    topologyManagerScope: round.scope,
    topologyManagerPolicyOptions: round.topologyOptions ?? {},
    ...(reservedMemory && {
      memoryManagerPolicy: 'Static',
      kubeReserved: { memory: `${reserved - EVICTION}Mi` },
      reservedMemory: reservedMemory.flatMap((amount, numaNode) =>
        amount > 0 ? [{ numaNode, limits: { memory: `${amount}Mi` } }] : [],
      ),
    }),
    ...(round.settings && { enableDebuggingHandlers: false }),
    // These change only how soon a decision is visible.
    cpuManagerReconcilePeriod: '1s',
    nodeStatusUpdateFrequency: '1s',
  };
}

/**
 * A KubeletConfiguration as the flags of a kubelet that has no configuration file.
 * Source: kubernetes 1.36, cmd/kubelet/app/options/options.go (AddKubeletConfigFlags).
 */
export function kubeletFlags(configuration: Readonly<Record<string, unknown>>): string[] {
  const { apiVersion: _, kind: _kind, ...fields } = configuration;
  // Only a configuration file has default thresholds.
  const eviction = `--eviction-hard=memory.available<${EVICTION}Mi`;
  return [
    eviction,
    ...Object.entries(fields).flatMap(([field, value]) => FLAGS[field]?.(value as never) ?? unknownField(field)),
  ];
}

function unknownField(field: string): never {
  throw new Error(`no flag for the field ${field}`);
}

const FLAGS: Readonly<Record<string, (value: never) => string[]>> = {
  authentication: (value: { anonymous: { enabled: boolean }; webhook: { enabled: boolean } }) => [
    `--anonymous-auth=${value.anonymous.enabled}`,
    `--authentication-token-webhook=${value.webhook.enabled}`,
  ],
  authorization: (value: { mode: string }) => [`--authorization-mode=${value.mode}`],
  containerRuntimeEndpoint: plain('container-runtime-endpoint'),
  cgroupDriver: plain('cgroup-driver'),
  makeIPTablesUtilChains: plain('make-iptables-util-chains'),
  clusterDNS: (value: string[]) => [`--cluster-dns=${value.join(',')}`],
  enableDebuggingHandlers: plain('enable-debugging-handlers'),
  featureGates: pairs('feature-gates'),
  cpuManagerPolicy: plain('cpu-manager-policy'),
  cpuManagerPolicyOptions: pairs('cpu-manager-policy-options'),
  cpuManagerReconcilePeriod: plain('cpu-manager-reconcile-period'),
  reservedSystemCPUs: plain('reserved-cpus'),
  topologyManagerPolicy: plain('topology-manager-policy'),
  topologyManagerScope: plain('topology-manager-scope'),
  topologyManagerPolicyOptions: pairs('topology-manager-policy-options'),
  memoryManagerPolicy: plain('memory-manager-policy'),
  kubeReserved: pairs('kube-reserved'),
  reservedMemory: (value: { numaNode: number; limits: { memory: string } }[]) =>
    value.map(({ numaNode, limits }) => `--reserved-memory=${numaNode}:memory=${limits.memory}`),
  nodeStatusUpdateFrequency: plain('node-status-update-frequency'),
};

function plain(flag: string): (value: unknown) => string[] {
  return (value) => [`--${flag}=${value}`];
}

/** No flag for an empty map, which a kubelet refuses for some. */
function pairs(flag: string): (value: object) => string[] {
  return (value) => {
    const entries = Object.entries(value).map(([key, of]) => `${key}=${of}`);
    return entries.length > 0 ? [`--${flag}=${entries.join(',')}`] : [];
  };
}
