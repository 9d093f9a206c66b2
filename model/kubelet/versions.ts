import type { CpuOptions } from './options.ts';

/** What decides whether a change can affect a kubelet. */
export interface Settings {
  readonly options: CpuOptions;
  readonly scope: string;
  readonly isMemoryStatic: boolean;
}

interface Change {
  readonly before: string;
  readonly after: string;
  /** The minor version of the first release, as which its prereleases count. */
  readonly since: number;
  /** Number of the pull request in kubernetes/kubernetes. */
  readonly change: number;
  readonly what: string;
  /** Of a change that is only described: the settings with which a kubelet is not predicted without `nearest`. */
  readonly touches?: (settings: Settings) => boolean;
}

/**
 * Changes of the kubelet's resource managers since 1.33, from the sources of 1.33.13, 1.34.9, 1.35.6 and 1.36.3. The
 * file of each, what was read of it, and changes without an effect: docs/reference/compatibility.md. A distribution may
 * backport a change without showing it (OpenShift has #138244 in its 1.35).
 */
export const CHANGES = {
  deviceHints: {
    before: 'all-nodes',
    after: 'device-nodes',
    since: 36,
    change: 138244,
    what: 'device hints name only NUMA nodes that have such a device',
  },
  distributionSockets: {
    before: 'any',
    after: 'one-preferred',
    since: 37,
    change: 139778,
    what: 'distribute-cpus-across-numa with align-by-socket prefers NUMA nodes of one socket',
  },
  hintedNodes: {
    before: 'ignored',
    after: 'minimum',
    since: 38,
    change: 139456,
    what: 'distribute-cpus-across-numa uses all NUMA nodes of the topology manager’s hint',
  },
  /** How the room for the remainder of a distribution is counted. */
  remainder: {
    before: 'cpus',
    after: 'groups',
    since: 38,
    change: 140730,
    what: 'distribute-cpus-across-numa with full-pcpus-only ends where parts of cores are free; earlier kubelets hang',
  },
  spread: {
    before: 'by-id',
    after: 'by-core',
    since: 38,
    change: 140766,
    what: 'distribute-cpus-across-cores takes one CPU of each core in turn, whatever the ids',
    touches: ({ options }) => options.distributeAcrossCores,
  },
  spreadSockets: {
    before: 'any',
    after: 'one-with-room',
    since: 38,
    change: 141238,
    what: 'distribute-cpus-across-cores with align-by-socket stays on a socket that has room',
    touches: ({ options }) => options.distributeAcrossCores && options.alignBySocket,
  },
  restoredPodMemory: {
    before: 'first-container',
    after: 'all-containers',
    since: 38,
    change: 141070,
    what: 'after a restart, the pod-scope hint of memory comes from all containers of the pod',
    touches: ({ scope, isMemoryStatic }) => scope === 'pod' && isMemoryStatic,
  },
} as const satisfies Record<string, Change>;

export type Behaviour = { readonly [Name in keyof typeof CHANGES]: (typeof CHANGES)[Name]['before' | 'after'] };
export const OLDEST_BEHAVIOUR = behaviourAt(0);

/** A feature gate with effects that are not predicted where it is on. */
interface Gate {
  readonly effect: string;
  /** Its default from each of these minor versions on, ascending. Before the first one it does not exist. */
  readonly defaults: readonly { readonly since: number; readonly on: boolean }[];
  /** What node.status.declaredFeatures has under the static CPU manager if the gate is on. */
  readonly declaredAs?: string;
}

export const GATES: Readonly<Record<string, Gate>> = {
  PodLevelResourceManagers: {
    effect: 'pod-level managers are',
    // Alpha in 1.36.3; beta by the description of #141209.
    defaults: [36, 37].map((since) => ({ since, on: false })),
  },
  InPlacePodVerticalScalingExclusiveCPUs: {
    effect: 'resizes of exclusive CPUs are',
    defaults: [{ since: 32, on: false }],
    declaredAs: 'GuaranteedQoSPodCPUResize',
  },
  InPlacePodVerticalScalingExclusiveMemory: {
    effect: 'resizes of memory that the static manager gave out are',
    defaults: [{ since: 34, on: false }],
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
export function nearestBehaviour(text: string) {
  const reported = minorOf(text);
  if (reported === undefined) return undefined;
  const minor = Math.min(LAST_MINOR, Math.max(FIRST_MINOR, reported));
  return { behaviour: behaviourAt(minor), version: `1.${minor}` };
}

function behaviourAt(minor: number): Behaviour {
  const values = Object.entries(CHANGES).map(([name, { before, after, since }]) => [
    name,
    minor < since ? before : after,
  ]);
  return Object.fromEntries(values) as Behaviour;
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
  return Object.values<Change>(CHANGES).find(({ since, touches }) => since <= minor && touches?.(settings) === true);
}

function minorOf(text: string): number | undefined {
  const match = /^v?1\.(\d{1,4})(?:\.\d{1,4})?(?:[.+-]|$)/.exec(text);
  return match ? Number(match[1]) : undefined;
}
