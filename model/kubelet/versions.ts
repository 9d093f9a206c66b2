import type { CpuOptions } from './options.ts';

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
  readonly distributionSockets: 'any' | 'one-preferred';
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
  /** What was read: source, or only the description, the release note and the review. */
  readonly basis: string;
  readonly behaviour: Partial<Behaviour>;
  /** Of a change that is only described: the settings with which a kubelet is not predicted without `nearest`. */
  readonly touches?: (settings: Settings) => boolean;
}

/** What decides whether a change can affect a kubelet. */
export interface Settings {
  readonly options: CpuOptions;
  readonly scope: string;
  readonly isMemoryStatic: boolean;
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

/** The file in a pull request on 1.37 and later changes, whose resizes follow the same steps as first assignments. */
const AS_IN_RESIZE = 'source: the file in a pull request on 1.38';

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
    basis: 'source: the file of 1.36.3',
    behaviour: { deviceHints: 'device-nodes' },
  },
  {
    since: 37,
    change: 139778,
    file: 'cpumanager/cpu_assignment.go',
    what: 'distribute-cpus-across-numa with align-by-socket prefers NUMA nodes of one socket',
    basis: AS_IN_RESIZE,
    behaviour: { distributionSockets: 'one-preferred' },
  },
  {
    since: 37,
    change: 140314,
    file: 'cpumanager/state/checkpoint.go',
    what: 'cpu_manager_state version 4: pods in the JSON text `data`',
    basis: 'source: the file in a pull request on 1.37',
    behaviour: {},
  },
  {
    since: 38,
    change: 139456,
    file: 'cpumanager/cpu_assignment.go',
    what: 'distribute-cpus-across-numa uses all NUMA nodes of the topology manager’s hint',
    basis: AS_IN_RESIZE,
    behaviour: { hintedNodes: 'minimum' },
  },
  {
    since: 38,
    change: 140730,
    file: 'cpumanager/cpu_assignment.go',
    what: 'distribute-cpus-across-numa with full-pcpus-only ends where parts of cores are free; earlier kubelets hang',
    basis: AS_IN_RESIZE,
    behaviour: { remainder: 'groups' },
  },
  {
    since: 38,
    change: 140766,
    file: 'cpumanager/cpu_assignment.go',
    what: 'distribute-cpus-across-cores takes one CPU of each core in turn, whatever the ids',
    basis: 'description',
    behaviour: { spread: 'by-core' },
    touches: ({ options }) => options.distributeAcrossCores,
  },
  {
    since: 38,
    change: 141238,
    file: 'cpumanager/cpu_assignment.go',
    what: 'distribute-cpus-across-cores with align-by-socket stays on a socket that has room',
    basis: 'description',
    behaviour: { spreadSockets: 'one-with-room' },
    touches: ({ options }) => options.distributeAcrossCores && options.alignBySocket,
  },
  {
    since: 38,
    change: 141070,
    file: 'memorymanager/policy_static.go',
    what: 'after a restart, the pod-scope hint of memory comes from all containers of the pod',
    basis: 'description',
    behaviour: { restoredPodMemory: 'all-containers' },
    touches: ({ scope, isMemoryStatic }) => scope === 'pod' && isMemoryStatic,
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

/** A feature gate with effects that are not predicted where it is on. */
interface Gate {
  readonly effect: string;
  /** Its default from each of these minor versions on, ascending. Before the first one it does not exist. */
  readonly defaults: readonly { readonly since: number; readonly on: boolean; readonly basis: string }[];
  /** What node.status.declaredFeatures has under the static CPU manager if the gate is on. */
  readonly declaredAs?: string;
}

export const GATES: Readonly<Record<string, Gate>> = {
  PodLevelResourceManagers: {
    effect: 'pod-level managers are',
    defaults: [
      { since: 36, on: false, basis: 'source of 1.36.3, alpha' },
      { since: 37, on: false, basis: 'description of #141209, beta' },
    ],
  },
  InPlacePodVerticalScalingExclusiveCPUs: {
    effect: 'resizes of exclusive CPUs are',
    defaults: [{ since: 32, on: false, basis: 'source of 1.36.3, alpha' }],
    declaredAs: 'GuaranteedQoSPodCPUResize',
  },
  InPlacePodVerticalScalingExclusiveMemory: {
    effect: 'resizes of memory that the static manager gave out are',
    defaults: [{ since: 34, on: false, basis: 'source of 1.36.3, alpha' }],
  },
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

/** The gates that are on and not predicted: as configured, else by the version's default. @param gates by name, for tests */
export function unpredictedGates(
  version: string,
  configured: Readonly<Record<string, boolean>> = {},
  gates = GATES,
): string | undefined {
  const minor = minorOf(version) ?? 0;
  const isOn = ([name, { defaults }]: [string, Gate]) =>
    configured[name] ?? defaults.findLast(({ since }) => since <= minor)?.on ?? false;
  const texts = Object.entries(gates)
    .filter(isOn)
    .map(([name, { effect }]) => `the feature gate ${name} is on; ${effect} not predicted`);
  return texts.length === 0 ? undefined : texts.join('; ');
}

/** The first change of a version that was not read in its source and that affects a kubelet with these settings. */
export function onlyDescribed(version: string, settings: Settings): Change | undefined {
  const minor = minorOf(version) ?? 0;
  return CHANGES.find(({ since, touches }) => since <= minor && touches?.(settings) === true);
}

function minorOf(text: string): number | undefined {
  const match = /^v?1\.(\d{1,4})(?:\.\d{1,4})?(?:[.+-]|$)/.exec(text);
  return match ? Number(match[1]) : undefined;
}
