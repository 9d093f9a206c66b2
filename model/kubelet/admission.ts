import { CpuSet } from '../cpu-set.ts';
import { CpuManager } from './cpu-manager.ts';
import { DeviceManager } from './device-manager.ts';
import type { Hint } from './hints.ts';
import { MemoryManager, withoutMemory } from './memory-manager.ts';
import { mergeHints, type NumaInfo, type TopologyPolicy } from './merge.ts';
import type { ContainerKind, PodRequest } from './pod-request.ts';
import { NO_LOCALITY_TEXT, type Provider, Rejection, type RejectionReason } from './provider.ts';
import { type KubeletState, withEntry } from './state.ts';
import { releaseCpus, type StaticPolicy } from './static-policy.ts';
import { type CpuTopology, numaNodes } from './topology.ts';
import type { Behaviour } from './versions.ts';

export interface ContainerPlacement {
  readonly name: string;
  readonly kind: ContainerKind;
  /** Exclusive CPUs; empty if the container runs on the shared pool. */
  readonly cpus: CpuSet;
  /** Device ids by resource. The number and the NUMA nodes are predicted, but not which of several equal devices. */
  readonly devices: ReadonlyMap<string, ReadonlySet<string>>;
  /** The NUMA nodes that the topology manager selected; null for no affinity. */
  readonly hint: readonly number[] | null;
}

export type Admission =
  | {
      readonly admitted: true;
      readonly state: KubeletState;
      readonly containers: readonly ContainerPlacement[];
      /** The selected NUMA nodes of the first app container with exclusive CPUs, or else of the first app container. */
      readonly hint: readonly number[] | null;
      /** Resources of which the kubelet may allocate devices of other NUMA nodes than in `state`. */
      readonly arbitrary: ReadonlySet<string>;
    }
  | {
      readonly admitted: false;
      readonly reason: RejectionReason;
      readonly message: string;
      /** After releasing what the first containers got. With static memory, bytes may have moved and groups changed. */
      readonly state: KubeletState;
    };

export interface AdmissionRules {
  readonly topology: CpuTopology;
  readonly behaviour: Behaviour;
  /** Absent under the CPU manager policy `none`. */
  readonly cpu: StaticPolicy | undefined;
  readonly policy: TopologyPolicy;
  readonly scope: 'container' | 'pod';
  readonly numa: NumaInfo;
}

/**
 * The kubelet admits containers one by one, init containers first: devices, CPUs, memory. In container scope the hints
 * take the containers before into account; in pod scope one hint, computed before anything is taken, serves all.
 * Source: pkg/kubelet/cm/topologymanager/scope_container.go, scope_pod.go, scope.go;
 * pkg/kubelet/cm/container_manager_linux.go.
 */
export function admitPod(rules: AdmissionRules, state: KubeletState, pod: PodRequest): Admission {
  const devices = new DeviceManager(rules.topology, rules.behaviour, state, pod);
  const cpus = rules.cpu && new CpuManager(rules.cpu, state, pod);
  const memory = state.memory && new MemoryManager(state.memory, pod, rules.behaviour);
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
    return { admitted: true, state: after, containers, hint: leading?.hint ?? null, arbitrary: devices.arbitrary };
  } catch (error) {
    if (!(error instanceof Rejection)) throw error;
    const { reason, message } = error;
    const partly = providers.reduce((next, provider) => provider.commit(next), state);
    return { admitted: false, reason, message, state: removePod(partly, pod.uid) };
  }
}

function admitContainers(rules: AdmissionRules, providers: readonly Provider[], pod: PodRequest): Hint[] {
  const merged = (hintsOf: (provider: Provider) => ReturnType<Provider['podHints']>): Hint => {
    const result = mergeHints(rules.policy, rules.numa, rules.policy === 'none' ? [] : providers.map(hintsOf));
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

/** An unknown uid changes nothing. */
export function removePod(state: KubeletState, uid: string): KubeletState {
  const containers = state.assignments.get(uid);
  let defaultSet = state.defaultSet;
  for (const cpus of containers?.values() ?? []) defaultSet = releaseCpus(defaultSet, cpus, []);
  return {
    ...state,
    defaultSet,
    assignments: containers ? withEntry(state.assignments, uid, new Map()) : state.assignments,
    devices: state.devices.has(uid) ? withEntry(state.devices, uid, new Map()) : state.devices,
    memory: state.memory && withoutMemory(state.memory, uid),
  };
}
