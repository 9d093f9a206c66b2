import { CpuSet } from '../cpu-set.ts';
import { CpuManager } from './cpu-manager.ts';
import { DeviceManager } from './device-manager.ts';
import type { Hint } from './hint.ts';
import { MemoryManager } from './memory-manager.ts';
import { type Merged, mergeHints, type NumaInfo, type TopologyPolicy } from './merge.ts';
import type { ContainerKind, PodRequest } from './pod-request.ts';
import type { Provider } from './provider.ts';
import { NO_LOCALITY_TEXT, Rejection, type RejectionReason } from './rejection.ts';
import { removePod } from './remove.ts';
import type { KubeletState } from './state.ts';
import type { StaticPolicy } from './static-policy.ts';
import { type CpuTopology, numaNodes } from './topology.ts';
import type { Behaviour } from './versions.ts';

/** What one container would be given. */
export interface ContainerPlacement {
  readonly name: string;
  readonly kind: ContainerKind;
  /** Empty: it runs on the shared pool. */
  readonly cpus: CpuSet;
  /** Device ids by resource. Which of several like devices it would be is not predicted, only how many and where. */
  readonly devices: ReadonlyMap<string, ReadonlySet<string>>;
  /** The NUMA nodes that the topology manager settled on, or null for no affinity. */
  readonly hint: readonly number[] | null;
}

export type Admission =
  | {
      readonly admitted: true;
      readonly state: KubeletState;
      readonly containers: readonly ContainerPlacement[];
      /** The NUMA nodes settled on for the first app container with exclusive CPUs, or for the first app container. */
      readonly hint: readonly number[] | null;
    }
  | {
      readonly admitted: false;
      readonly reason: RejectionReason;
      readonly message: string;
      /**
       * Once the kubelet has cleared away what the refused pod's first containers were given. Under the static memory
       * manager that is not quite the state before: bytes may have moved between nodes, and a group may be another.
       */
      readonly state: KubeletState;
    };

/** What admission depends on and a running kubelet never changes. */
export interface AdmissionRules {
  readonly topology: CpuTopology;
  readonly behaviour: Behaviour;
  /** Absent under the `none` CPU manager policy. */
  readonly cpu: StaticPolicy | undefined;
  readonly policy: TopologyPolicy;
  readonly scope: 'container' | 'pod';
  readonly numa: NumaInfo;
}

/**
 * Admits a pod as the kubelet would, or says why it would not.
 *
 * Containers are admitted one by one, init containers first; every manager is asked in the order device, CPU, memory.
 * In container scope each container's hints see what the ones before it took; in pod scope one hint, made before
 * anything is taken, serves all.
 *
 * Source: pkg/kubelet/cm/topologymanager/scope_container.go, scope_pod.go, scope.go; the order of the managers is from
 * pkg/kubelet/cm/container_manager_linux.go.
 */
export function admitPod(rules: AdmissionRules, state: KubeletState, pod: PodRequest): Admission {
  const devices = new DeviceManager(rules.topology, rules.behaviour, state, pod);
  const cpus = rules.cpu && new CpuManager(rules.cpu, state, pod);
  const memory = state.memory && new MemoryManager(state.memory, pod);
  const providers = [devices, cpus, memory].filter((provider) => provider !== undefined);
  try {
    const hints = admitContainers(rules, providers, pod);
    const containers = pod.containers.map(({ name, kind }, index): ContainerPlacement => {
      const mask = hints[index]?.mask ?? null;
      return {
        name,
        kind,
        cpus: cpus?.assigned(name) ?? CpuSet.EMPTY,
        devices: devices.assigned(name),
        hint: mask === null ? null : numaNodes(rules.topology, mask),
      };
    });
    const apps = containers.filter((container) => container.kind === 'app');
    const leading = apps.find((container) => !container.cpus.isEmpty) ?? apps[0];
    const after = providers.reduce((next, provider) => provider.commit(next), state);
    return { admitted: true, state: after, containers, hint: leading?.hint ?? null };
  } catch (error) {
    if (!(error instanceof Rejection)) throw error;
    const { reason, message } = error;
    const partly = providers.reduce((next, provider) => provider.commit(next), state);
    return { admitted: false, reason, message, state: removePod(partly, pod.uid) };
  }
}

function admitContainers(rules: AdmissionRules, providers: readonly Provider[], pod: PodRequest): Hint[] {
  const merged = (hintsOf: (provider: Provider) => ReturnType<Provider['podHints']>): Hint => {
    const result: Merged = mergeHints(rules.policy, rules.numa, rules.policy === 'none' ? [] : providers.map(hintsOf));
    if (!result.admit) throw new Rejection('TopologyAffinityError', NO_LOCALITY_TEXT);
    return result.hint;
  };
  const forPod = rules.scope === 'pod' ? merged((provider) => provider.podHints()) : undefined;
  return pod.containers.map((container) => {
    const hint = forPod ?? merged((provider) => provider.containerHints(container));
    for (const provider of providers) provider.allocate(container, hint.mask, hint.preferred);
    return hint;
  });
}
