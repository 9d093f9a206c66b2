import type { NodeGroup } from '../../model/vm-state/node-groups.ts';
import type { VmState } from '../../model/vm-state/state.ts';
import type { Asks } from './asks.ts';

export interface Placement {
  readonly cpus: readonly number[];
  readonly numaNodes: readonly number[];
  readonly wholeCores: boolean;
}

/** The whole answer. */
export interface Explanation extends VmState {
  readonly kind: 'pod' | 'vm';
  readonly namespace: string;
  readonly name: string;
  /** The pod that this is about: of a VM its launcher. */
  readonly pod?: string | undefined;
  readonly node?: string | undefined;
  /** CPUs of its own that it has, as its node reports. */
  readonly placement?: Placement | undefined;
  readonly asks?: Asks | undefined;
  /** What kube-scheduler itself said last. */
  readonly scheduler?: string | undefined;
  /** Where the node by node answer is from; absent where no node was looked at. */
  readonly source?: 'extender' | 'reports' | undefined;
  readonly nodes: readonly NodeGroup[];
  /** What is to be kept in mind when reading it. */
  readonly notes: readonly string[];
  /** Of the last minutes, newest first; `ago` in seconds. */
  readonly events: readonly { readonly reason: string; readonly message: string; readonly ago: number }[];
}
