import type { NodeGroup } from './groups.ts';

/** How far a VM or pod has come. */
export type Stage =
  | 'stopped'
  | 'no-launcher'
  | 'gated'
  | 'unscheduled'
  | 'starting'
  | 'rejected'
  | 'failed'
  | 'deleting'
  | 'succeeded'
  | 'paused'
  | 'running';

/** The whole answer, as `-o json` gives it. */
export interface Explanation {
  readonly kind: 'pod' | 'vm';
  readonly namespace: string;
  readonly name: string;
  readonly stage: Stage;
  /** One line: what it waits for, or where it runs. */
  readonly why: string;
  /** The pod that this is about: of a VM its launcher. */
  readonly pod?: string | undefined;
  readonly node?: string | undefined;
  /** What it asks for, in words. */
  readonly asks: readonly string[];
  /** What would help, the likeliest first. */
  readonly help: readonly string[];
  /** More that is known about the cause. */
  readonly causes: readonly string[];
  /** What kube-scheduler itself said last. */
  readonly scheduler?: string | undefined;
  /** Where the node by node answer is from; absent where no node was looked at. */
  readonly source?: 'extender' | 'reports' | undefined;
  readonly nodes: readonly NodeGroup[];
  /** What is to be kept in mind when reading it. */
  readonly notes: readonly string[];
  /** Of the last minutes, newest first. */
  readonly events: readonly { readonly reason: string; readonly message: string; readonly ago: number }[];
}

/** What a stage adds to the answer. */
export type Finding = Pick<Explanation, 'stage' | 'why'> &
  Partial<Pick<Explanation, 'help' | 'causes' | 'scheduler' | 'source' | 'nodes' | 'notes'>>;
