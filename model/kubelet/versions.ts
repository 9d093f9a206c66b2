export interface Behaviour {
  /** NUMA nodes for which the device manager creates hints: all of the host, or those that have such a device. */
  readonly deviceHints: 'all-nodes' | 'device-nodes';
  /** How distribute-cpus-across-cores orders the CPUs of a socket: by id, or one of each core in turn. */
  readonly spread: 'by-id' | 'by-core';
  /** Whether distribute-cpus-across-cores with align-by-socket stays on a socket that has room. */
  readonly spreadSockets: 'any' | 'one-with-room';
  /** Room for the remainder of a distribution: counted in CPUs, with which it may never end, or in whole groups. */
  readonly remainder: 'cpus' | 'groups';
  /** Whether a distribution uses at least as many NUMA nodes as the topology manager's hint has. */
  readonly hintedNodes: 'ignored' | 'minimum';
  /** Whether a distribution prefers the NUMA nodes of one socket under align-by-socket. */
  readonly distributionSockets: 'any' | 'not-predicted';
  /** With what the pod-scope hint of memory is restored after a restart. */
  readonly restoredPodMemory: 'first-container' | 'all-containers';
}

interface Change {
  /** The minor version of the first release, as which its prereleases count. */
  readonly since: number;
  /** Number of the pull request in kubernetes/kubernetes. */
  readonly change: number;
  /** Below pkg/kubelet/cm. */
  readonly file: string;
  readonly what: string;
  /** Whether the merged source was read, or only the description, the release note and the review. */
  readonly basis: 'source' | 'description';
  readonly behaviour: Partial<Behaviour>;
}

export const OLDEST_BEHAVIOUR: Behaviour = {
  deviceHints: 'all-nodes',
  spread: 'by-id',
  spreadSockets: 'any',
  remainder: 'cpus',
  hintedNodes: 'ignored',
  distributionSockets: 'any',
  restoredPodMemory: 'first-container',
};

/**
 * Changes of the kubelet's resource managers since 1.33, from the sources of 1.33.13, 1.34.9, 1.35.6 and 1.36.3. A
 * distribution may backport a change without showing it (OpenShift has #138244 in its 1.35).
 */
export const CHANGES: readonly Change[] = [
  {
    since: 36,
    change: 138244,
    file: 'devicemanager/topology_hints.go',
    what: 'device hints name only NUMA nodes that have such a device',
    basis: 'source',
    behaviour: { deviceHints: 'device-nodes' },
  },
  {
    since: 37,
    change: 139778,
    file: 'cpumanager/cpu_assignment.go',
    what: 'distribute-cpus-across-numa considers align-by-socket; not predicted together',
    basis: 'description',
    behaviour: { distributionSockets: 'not-predicted' },
  },
  {
    since: 37,
    change: 140314,
    file: 'cpumanager/state/checkpoint.go',
    what: 'cpu_manager_state version 4: pods and baselines in the JSON text `data`',
    basis: 'description',
    behaviour: {},
  },
  {
    since: 38,
    change: 139456,
    file: 'cpumanager/cpu_assignment.go',
    what: 'distribute-cpus-across-numa uses all NUMA nodes of the topology manager’s hint',
    basis: 'description',
    behaviour: { hintedNodes: 'minimum' },
  },
  {
    since: 38,
    change: 140730,
    file: 'cpumanager/cpu_assignment.go',
    what: 'distribute-cpus-across-numa with full-pcpus-only ends where parts of cores are free; earlier kubelets hang',
    basis: 'description',
    behaviour: { remainder: 'groups' },
  },
  {
    since: 38,
    change: 140766,
    file: 'cpumanager/cpu_assignment.go',
    what: 'distribute-cpus-across-cores takes one CPU of each core in turn, whatever the ids',
    basis: 'description',
    behaviour: { spread: 'by-core' },
  },
  {
    since: 38,
    change: 141238,
    file: 'cpumanager/cpu_assignment.go',
    what: 'distribute-cpus-across-cores with align-by-socket stays on a socket that has room',
    basis: 'description',
    behaviour: { spreadSockets: 'one-with-room' },
  },
  {
    since: 38,
    change: 141070,
    file: 'memorymanager/policy_static.go',
    what: 'after a restart, the pod-scope hint of memory comes from all containers of the pod',
    basis: 'description',
    behaviour: { restoredPodMemory: 'all-containers' },
  },
  {
    since: 38,
    change: 141041,
    file: 'cpumanager/policy_static.go',
    what: 'CPUs of a pod as a whole survive a restart; only with PodLevelResourceManagers, which is not predicted',
    basis: 'description',
    behaviour: {},
  },
  {
    since: 38,
    change: 137534,
    file: 'devicemanager/manager.go',
    what: 'no device goes to two pods that are admitted at once; no prediction changes',
    basis: 'description',
    behaviour: {},
  },
];

/** Feature gates, off by default, with effects that are not predicted. */
export const UNPREDICTED_GATES: Readonly<Record<string, string>> = {
  /** Alpha in 1.36, beta from 1.37 on (kubernetes #138738), and off in both. */
  PodLevelResourceManagers: 'pod-level managers are',
  /** Alpha since 1.32. */
  InPlacePodVerticalScalingExclusiveCPUs: 'resizes of exclusive CPUs are',
  /** Alpha since 1.34. */
  InPlacePodVerticalScalingExclusiveMemory: 'resizes of memory that the static manager gave out are',
};

const FIRST_MINOR = 33;
const LAST_MINOR = 38;
export const PREDICTED_VERSIONS = `1.${FIRST_MINOR} to 1.${LAST_MINOR}-alpha`;

/** The behaviour of a kubelet version, or undefined if it is not predicted. @param text such as `v1.36.2` */
export function behaviourOf(text: string): Behaviour | undefined {
  const minor = minorOf(text);
  return minor === undefined || minor < FIRST_MINOR || minor > LAST_MINOR ? undefined : behaviourAt(minor);
}

/** Undefined if it is no version. */
export function nearestBehaviour(
  text: string,
): { readonly behaviour: Behaviour; readonly version: string } | undefined {
  const reported = minorOf(text);
  if (reported === undefined) return undefined;
  const minor = Math.min(LAST_MINOR, Math.max(FIRST_MINOR, reported));
  return { behaviour: behaviourAt(minor), version: `1.${minor}` };
}

function behaviourAt(minor: number): Behaviour {
  const changes = CHANGES.filter(({ since }) => since <= minor);
  return Object.assign({ ...OLDEST_BEHAVIOUR }, ...changes.map(({ behaviour }) => behaviour));
}

function minorOf(text: string): number | undefined {
  const match = /^v?1\.(\d{1,4})(?:\.\d{1,4})?(?:[.+-]|$)/.exec(text);
  return match ? Number(match[1]) : undefined;
}
