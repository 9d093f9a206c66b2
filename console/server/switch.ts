/** Threads of one process of Open vSwitch that are alike. */
export interface SwitchThreads {
  /** `ovs-vswitchd`, and its role where it has one. */
  readonly process: string;
  readonly pid: number;
  /** `handler`, `pmd-c01/id:8`, … */
  readonly kind: string;
  readonly threads: number;
  /** CPUs that the kernel lets them run on, as a list. */
  readonly allowed: string;
  /** CPUs that they belong on; null for threads that are left alone, and while nothing is set. */
  readonly wanted: string | null;
  /** Why they are not there, or are left alone. */
  readonly note: string;
}

/** Where Open vSwitch's threads are on a node, as its agent reads them from the kernel when it is asked. */
export interface SwitchPicture {
  /** Whether the agent moves them. */
  readonly enabled: boolean;
  readonly wanted: string | null;
  readonly problems: readonly string[];
  readonly threads: readonly SwitchThreads[];
}

/** Asks the agent of a node, or says in words why it cannot be asked. */
export type AskSwitch = (node: string) => Promise<{ readonly answer: SwitchPicture } | { readonly why: string }>;
