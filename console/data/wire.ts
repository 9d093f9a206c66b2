/** Records as JSON arrays that start with their kind. The version changes if an older page would misread them. */
export const WIRE_VERSION = 9;

/** Hardware, kubelet and networks: equal for nodes of the same model. */
export interface ShapeContent {
  readonly cells: readonly (readonly [id: number, cpus: string])[];
  readonly cores: readonly string[];
  readonly reserved: string;
  /** CPUs of the virtual switch's poll mode drivers. */
  readonly polled?: string | undefined;
  readonly isolated?: string | undefined;
  readonly physnets: readonly (readonly [name: string, cells: string])[];
  readonly tunnel?: string | undefined;
  readonly policy: string;
  readonly wholeCores: boolean;
  readonly alignment?: string | undefined;
  readonly scope?: string | undefined;
  readonly kubelet?: string | undefined;
}

export type RemedyEntry = readonly [text: string, ...commands: string[]];

/** After the name of a pod that only the old report of a silent agent has: it keeps its CPUs in the map, and is no running VM. */
export const GONE = ' (gone)';

/** After the name of a VM whose migration has CPUs here before its guest. */
export const MIGRATION_TARGET = ' (migration target)';

export type OwnerEntry = readonly [pod: string, container: string, cpus: string, padding: number];
/** A pod in flight; the CPUs are '' if not predicted. */
export type InFlightEntry = readonly [pod: string, kind: 'nominated' | 'bound', cpus: string];
export type NodeProblem = 'dpu-dead' | 'dpu-restarted' | 'silent' | 'quarantined' | 'no-report' | 'dra-cpu' | 'no-node';

export interface NodeContent {
  /** Absent without a report, and if the report is in quarantine. */
  readonly shape?: ShapeContent | undefined;
  readonly problems: readonly NodeProblem[];
  readonly remedies: readonly RemedyEntry[];
  /** The last renewal of a silent agent's Lease, RFC 3339: the age of the node's data. */
  readonly silentSince?: string | undefined;
  readonly dpu: DpuState;
  /** The last transition of the DPU's condition, RFC 3339, and its message. */
  readonly dpuSince?: readonly [time: string, message: string] | undefined;
  /** In the order of their pods' lowest CPUs. */
  readonly owners: readonly OwnerEntry[];
  readonly inFlight: readonly InFlightEntry[];
  readonly resources: readonly (readonly [resource: string, text: string])[];
}

/** A running pod with details that the nodes' records do not contain: not as promised, paused, or with a CPU mask. */
export type RunningEntry = readonly [
  pod: string,
  node: string,
  mask: string,
  verdict: StateVerdict,
  reason: string,
  text: string,
  remedies: readonly RemedyEntry[],
];
/** The state of a VM or pod, with the same names as in every output of Plumbline. */
export type StateVerdict = 'ok' | 'stopped' | 'waiting' | 'degraded' | 'broken';
export type DpuState = '' | 'alive' | 'dead' | 'unknown';

export interface PodContent {
  readonly namespace: string;
  readonly name: string;
  readonly vm?: string | undefined;
  readonly since?: string | undefined;
  readonly node?: string | undefined;
  readonly nominated?: string | undefined;
  /** kube-scheduler's message that no node fits; '' without a reason, absent before its first attempt. */
  readonly unscheduled?: string | undefined;
  readonly rejected?: string | undefined;
  readonly refusedOnHost?: string | undefined;
  readonly verdict?: StateVerdict | undefined;
  readonly reason?: string | undefined;
  readonly text?: string | undefined;
  readonly remedies?: readonly RemedyEntry[] | undefined;
  /** KubeVirt has not created its launcher: `name` is the VM's, and what it requests is unknown. */
  readonly noLauncher?: true | undefined;
  readonly cpus: number;
  readonly wholeCores: boolean;
  readonly mask?: string | undefined;
  readonly networks: readonly (readonly [network: string, affinity: string])[];
}

export interface Status {
  /** Name of the leader's pod; null: no leader; absent: unknown. */
  readonly leader?: string | null | undefined;
  readonly missing?: string | undefined;
  readonly problem?: readonly [since: string, why: string] | undefined;
  readonly notReady: readonly string[];
  readonly version: string;
  /** The letters of the pods that own CPUs of a node, in their order and as in `plumbline top`. */
  readonly letters: string;
  readonly without: readonly string[];
}

/** A record of a thing (`p` also of a VM without a launcher), and the shorter one of its end. */
export type WireRecord =
  | readonly ['n', name: string, content: NodeContent]
  | readonly ['n', name: string]
  | readonly ['p', uid: string, content: PodContent]
  | readonly ['p', uid: string]
  | readonly ['r', uid: string, running: RunningEntry]
  | readonly ['r', uid: string]
  | readonly ['c', status: Status];

export interface ExtenderExplanation {
  readonly pod: string;
  /** RFC 3339. */
  readonly time: string;
  /** Nodes on which the extender holds a reservation for the pod, until the scheduler binds it to one of them. */
  readonly reserved: readonly string[];
  /** The scheduler's last filter call for the pod: number of nodes in the request and in the response. */
  readonly lastCall?: { readonly time: string; readonly offered: number; readonly passed: number } | undefined;
  /** Groups of equal verdicts: first nodes that fit, then near misses, then nodes that were never meant for the pod. */
  readonly groups: readonly VerdictGroup[];
  /** The text is about this node only. */
  readonly nodes: readonly (readonly [node: string, group: number, text: string])[];
}

export interface Diagnosis {
  readonly verdict: StateVerdict;
  readonly reason: string;
  readonly text: string;
  readonly causes: readonly string[];
  readonly remedies: readonly RemedyEntry[];
  readonly notes: readonly string[];
}

/** What a drain of a node would do with the VMs there, in an order in which each finds its place. */
export interface DrainPicture {
  readonly orderMatters: boolean;
  readonly vms: readonly DrainEntry[];
  readonly notes: readonly string[];
}

export interface DrainEntry {
  /** namespace/name. */
  readonly vm: string;
  readonly outcome: 'migrates' | 'restarts' | 'stops' | 'blocks' | 'unknown';
  /** The node where it runs afterwards; undefined: nowhere else. */
  readonly to?: string | undefined;
  /** '': shared CPUs. */
  readonly cpus: string;
  /** Why it does not migrate. */
  readonly text: string;
  readonly remedies: readonly RemedyEntry[];
}

export interface VerdictGroup {
  readonly fits: boolean;
  readonly kind: string;
  readonly text: string;
  readonly nodes: number;
  /** The smallest shortage among these nodes, in CPUs. */
  readonly missing?: number | undefined;
}

export interface SwitchPicture {
  readonly enabled: boolean;
  readonly desired: string | null;
  readonly problems: readonly string[];
  /** Each entry stands for equal threads of one process. */
  readonly threads: readonly {
    readonly process: string;
    readonly pid: number;
    readonly kind: string;
    readonly threads: number;
    readonly allowed: string;
    /** Wanted CPUs; null for threads that are not managed, and while no affinity is set. */
    readonly desired: string | null;
    readonly note: string;
  }[];
}

/** What was taken from the VMs on a node, as shares of the time of their CPUs. */
export interface InterferencePicture {
  readonly vms: readonly {
    /** `namespace/name` */
    readonly name: string;
    readonly share: number | null;
    /** One value for each 30 s, oldest first; null where it is unknown. */
    readonly history: readonly (number | null)[];
    readonly sources: readonly string[];
  }[];
}

export interface HistoryAnswer {
  readonly entries: readonly HistoryEntry[];
  readonly notes: readonly string[];
}

export interface HistoryEntry {
  /** RFC 3339; the last occurrence of a repeated Event. */
  readonly time: string;
  readonly count?: number | undefined;
  readonly since?: string | undefined;
  /** Origin: an Event, a condition of an object, or a phase of a VM. */
  readonly from: 'event' | 'condition' | 'phase';
  readonly isWarning: boolean;
  readonly reason: string;
  readonly text: string;
  /** `Pod virt-launcher-router-x2x4z`, if the entry is not about the node or VM itself. */
  readonly about?: string | undefined;
}
