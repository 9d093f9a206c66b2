/**
 * What the extender sends, as it stands on the wire; scheduler-plugin/web-console/records.ts writes it. Names in tuples
 * are for the reader: on the wire there are only their places.
 */
export const WIRE_VERSION = 1;

export interface ShapeContent {
  /** NUMA nodes and their CPUs as list strings. */
  readonly cells: readonly (readonly [id: number, cpus: string])[];
  /** Sibling lists. */
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
export type HeldEntry = readonly [pod: string, kind: HeldKind, cpus: string];
export type HeldKind = 'promised' | 'nominated' | 'bound';
export type DpuState = '' | 'alive' | 'dead' | 'unproven' | 'unknown';

export interface PodContent {
  readonly namespace: string;
  readonly name: string;
  readonly vm?: string;
  readonly since?: string;
  readonly node?: string;
  readonly nominated?: string;
  readonly unscheduled: boolean;
  readonly rejected?: string;
  readonly refusedOnHost?: string;
  readonly cpus: number;
  readonly wholeCores: boolean;
  readonly networks: readonly (readonly [network: string, affinity: string])[];
  readonly decision?: {
    readonly time: string;
    readonly offered: number;
    /** How many of those may have it, and the first of them. */
    readonly passed: number;
    readonly answered: readonly string[];
    readonly refused: readonly (readonly [text: string, nodes: number])[];
  };
}

export interface Replica {
  readonly active: boolean;
  readonly holder?: string;
  readonly missing?: string;
  readonly identity: string;
  readonly version: string;
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
      held: readonly HeldEntry[],
    ]
  | readonly ['n', id: number]
  | readonly ['p', uid: string, content: PodContent]
  | readonly ['p', uid: string]
  | readonly ['c', status: Replica];

export interface Hello {
  readonly wire: number;
  /** What follows adds to what was received before; otherwise it begins anew. */
  readonly resumed: boolean;
}

export interface Explanation {
  readonly pod: string;
  readonly time: string;
  readonly groups: readonly {
    readonly fits: boolean;
    readonly kind: string;
    readonly text: string;
    readonly nodes: number;
    readonly missing?: number;
  }[];
  readonly nodes: readonly (readonly [node: string, group: number, detail: string])[];
}

/** What is true of a node, as bits. */
export const Flag = { node: 1, dpuHost: 2, dpuDead: 4, draCpu: 8, stale: 16, quarantined: 32 } as const;
