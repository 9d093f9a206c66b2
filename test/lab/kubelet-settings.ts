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
