/**
 * The wire format of the console's server, which console/server/records.ts writes. Names of tuple members are only for
 * the reader: the wire format has positions.
 */
export const WIRE_VERSION = 2;

export interface ShapeContent {
  /** NUMA nodes with their CPUs as CPU lists. */
  readonly cells: readonly (readonly [id: number, cpus: string])[];
  /** CPU lists of SMT siblings. */
  readonly cores: readonly string[];
  readonly reserved: string;
  /** CPUs of the virtual switch's poll mode drivers. */
  readonly polled?: string;
  readonly isolated?: string;
  readonly physnets: readonly (readonly [name: string, cells: string])[];
  readonly tunnel?: string;
  readonly policy: string;
  readonly wholeCores: boolean;
  readonly alignment?: string;
  readonly scope?: string;
  readonly kubelet?: string;
}

export type OwnerEntry = readonly [pod: string, container: string, cpus: string, padding: number];
export type InFlightEntry = readonly [pod: string, kind: InFlightKind, cpus: string];
type InFlightKind = 'nominated' | 'bound';
/** The last transition of the DPU's condition, RFC 3339, and its message. */
export type DpuSince = readonly [time: string, message: string];
/** A running pod that is not as promised, or that has a CPU mask. */
export type RunningEntry = readonly [
  pod: string,
  node: string,
  mask: string,
  verdict: Verdict,
  reason: string,
  text: string,
];
/** The state of a VM or pod, with the same names as in every output of Plumbline. */
export type Verdict = 'ok' | 'stopped' | 'waiting' | 'degraded' | 'broken';
export type DpuState = '' | 'alive' | 'dead' | 'unknown';

export interface PodContent {
  readonly namespace: string;
  readonly name: string;
  readonly vm?: string;
  readonly since?: string;
  readonly node?: string;
  readonly nominated?: string;
  /** kube-scheduler's message that no node fits; '' without a reason, absent before its first attempt. */
  readonly unscheduled?: string;
  readonly rejected?: string;
  readonly refusedOnHost?: string;
  readonly verdict?: Verdict;
  /** Stable reason in one word. */
  readonly reason?: string;
  readonly text?: string;
  readonly cpus: number;
  readonly wholeCores: boolean;
  readonly networks: readonly (readonly [network: string, affinity: string])[];
}

/** Facts about the whole cluster. */
export interface Status {
  /** Name of the leader's pod; null: no leader; absent: unknown. */
  readonly leader?: string | null;
  /** Kinds without a complete list. */
  readonly missing?: string;
  /** Why the data may be outdated. */
  readonly problem?: string;
  readonly version: string;
  /** Kinds that the console has no permission to read. */
  readonly without: readonly string[];
}

export type WireRecord =
  | readonly ['s', shape: number, content: ShapeContent]
  | readonly [
      'n',
      id: number,
      name: string,
      shape: number,
      flags: number,
      dpu: DpuState,
      owners: readonly OwnerEntry[],
      held: readonly InFlightEntry[],
      dpuSince?: DpuSince,
    ]
  | readonly ['n', id: number]
  | readonly ['p', uid: string, content: PodContent]
  | readonly ['p', uid: string]
  | readonly ['r', uid: string, running: RunningEntry]
  | readonly ['r', uid: string]
  | readonly ['c', status: Status];

export interface Hello {
  readonly wire: number;
  /** Whether the following records add to those received before; otherwise they replace them. */
  readonly resumed: boolean;
}

export interface Explanation {
  readonly pod: string;
  readonly time: string;
  /** Nodes on which the extender holds a reservation for the pod. */
  readonly reserved: readonly string[];
  readonly lastCall?: { readonly time: string; readonly offered: number; readonly passed: number };
  readonly groups: readonly {
    readonly fits: boolean;
    readonly kind: string;
    readonly text: string;
    readonly nodes: number;
    readonly missing?: number;
  }[];
  readonly nodes: readonly (readonly [node: string, group: number, detail: string])[];
}

/** The CPUs of Open vSwitch's threads on a node, from its agent. */
export interface SwitchPicture {
  readonly enabled: boolean;
  readonly wanted: string | null;
  readonly problems: readonly string[];
  readonly threads: readonly {
    readonly process: string;
    readonly pid: number;
    readonly kind: string;
    readonly threads: number;
    readonly allowed: string;
    readonly wanted: string | null;
    readonly note: string;
  }[];
}

/** Data that the API server has kept about a node or VM. */
export interface History {
  readonly entries: readonly HistoryEntry[];
  readonly notes: readonly string[];
}

export interface HistoryEntry {
  readonly time: string;
  readonly count?: number;
  readonly since?: string;
  readonly from: 'event' | 'condition' | 'phase';
  readonly isWarning: boolean;
  readonly reason: string;
  readonly text: string;
  readonly about?: string;
}

/** Flags of a node. */
export const Flag = { node: 1, dpuHost: 2, dpuDead: 4, draCpu: 8, stale: 16, quarantined: 32 } as const;
