import type { NodeGroup } from '../../model/vm-state/facts.ts';
import type { VmState } from '../../model/vm-state/state.ts';
import type { Asks } from './asks.ts';

export interface Placement {
  readonly cpus: readonly number[];
  readonly numaNodes: readonly number[];
  readonly wholeCores: boolean;
}

/** The complete answer. */
export interface Explanation extends VmState {
  readonly kind: 'pod' | 'vm';
  readonly namespace: string;
  readonly name: string;
  /** The pod that this explains; for a VM, its launcher. */
  readonly pod?: string | undefined;
  readonly node?: string | undefined;
  /** Its dedicated CPUs, as its node reports them. */
  readonly placement?: Placement | undefined;
  readonly asks?: Asks | undefined;
  /** The last message of kube-scheduler. */
  readonly scheduler?: string | undefined;
  /** The source of the answer for each node; absent if no node was checked. */
  readonly source?: 'extender' | 'reports' | undefined;
  readonly nodes: readonly NodeGroup[];
  /** Limits of this answer. */
  readonly notes: readonly string[];
  /** Events of the last minutes, newest first. */
  readonly events: readonly ExplainedEvent[];
}

export interface ExplainedEvent {
  readonly reason: string;
  readonly message: string;
  /** Seconds. */
  readonly ago: number;
  /** The component that it names as its author. */
  readonly component: string;
  /** Whether a policy protects that name. Otherwise any user who may create Events in the namespace can have written it. */
  readonly verified: boolean;
}
