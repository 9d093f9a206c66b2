import type { Round } from './rounds.ts';

/**
 * The minor version of Kubernetes 1 from which an option of the static CPU manager needs no feature gate, because it is
 * beta or stable. Before that, and for options that are not listed, it is alpha. Source:
 * pkg/kubelet/cm/cpumanager/policy_options.go of 1.33 to 1.36.
 */
const BETA_SINCE: Readonly<Record<string, number>> = {
  'full-pcpus-only': 23,
  'distribute-cpus-across-numa': 33,
  'strict-cpu-reservation': 33,
  'prefer-align-cpus-by-uncorecache': 34,
};

function gatesForOptions(
  cpuOptions: Readonly<Record<string, string>>,
  version: string,
): Readonly<Record<string, boolean>> {
  const minor = Number(/^v1\.(\d+)\./.exec(version)?.[1]);
  const alpha = Object.keys(cpuOptions).some((option) => minor < (BETA_SINCE[option] ?? Number.POSITIVE_INFINITY));
  return alpha ? { CPUManagerPolicyAlphaOptions: true } : {};
}

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
