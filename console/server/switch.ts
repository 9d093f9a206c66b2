/** Equal threads of one process of Open vSwitch. */
interface SwitchThreads {
  /** `ovs-vswitchd`, with its role if it has one. */
  readonly process: string;
  readonly pid: number;
  /** `handler`, `pmd-c01/id:8`, … */
  readonly kind: string;
  readonly threads: number;
  /** CPU list of the CPUs on which the kernel lets them run. */
  readonly allowed: string;
  /** Wanted CPUs; null for threads that are not managed, and while no affinity is set. */
  readonly wanted: string | null;
  /** Why the threads are elsewhere, or are not managed. */
  readonly note: string;
}

/** The CPUs of Open vSwitch's threads on a node, which its agent reads from the kernel for each query. */
export interface SwitchPicture {
  /** Whether the agent moves threads. */
  readonly enabled: boolean;
  readonly wanted: string | null;
  readonly problems: readonly string[];
  readonly threads: readonly SwitchThreads[];
}

/** Queries the agent of a node. `why` says why there is no answer. */
export type AskSwitch = (node: string) => Promise<{ readonly answer: SwitchPicture } | { readonly why: string }>;
