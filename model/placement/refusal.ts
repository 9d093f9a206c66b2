/** Why a node cannot take a pod. Few and stable: they label metrics and steer what is tried next. */
export type RefusalReason =
  /** The node's CPU manager gives no container CPUs of its own. */
  | 'no-exclusive-cpus'
  /** The request is no whole number of cores. */
  | 'misaligned'
  | 'too-few-whole-cores'
  | 'too-few-cpus'
  /** Whole cores cannot be had on this node by its make or by its reserved CPUs. */
  | 'no-whole-cores'
  /** The kubelet would give CPUs that the virtual switch's poll-mode threads keep busy. */
  | 'polled-cpus'
  /** The topology manager would refuse: no NUMA nodes fit all that the pod asks for. */
  | 'no-common-node'
  /** The CPUs would not be on the NUMA nodes of a required network. */
  | 'network-elsewhere'
  /** Required networks have no NUMA node in common, and the kubelet gives no container CPUs near each of them. */
  | 'cannot-split'
  /** The same of a guest with NUMA nodes of its own, which the kubelet may put away from one of them. */
  | 'may-not-span'
  /** The NUMA nodes of a required network could not hold the pod if they were empty. */
  | 'larger-than-cells'
  /** It fits only if the kubelet admits it before or after pods that are on their way. */
  | 'in-flight'
  /** Something else the kubelet hands out (memory, devices) is short. */
  | 'resources';

/** What kube-scheduler counts by text: no number and no name in them. */
const TEXTS: Readonly<Record<RefusalReason, string>> = {
  'no-exclusive-cpus': 'node gives no exclusive CPUs',
  misaligned: 'CPU request is not whole cores',
  'too-few-whole-cores': 'too few free whole cores',
  'too-few-cpus': 'too few free CPUs',
  'no-whole-cores': 'node cannot give whole cores',
  'polled-cpus': 'free CPUs are polled by the virtual switch',
  'no-common-node': 'no NUMA node fits all resources',
  'network-elsewhere': 'no room on the NUMA nodes of a required network',
  'cannot-split': 'the kubelet cannot split it over the NUMA nodes of its networks',
  'may-not-span': 'the kubelet may not span the NUMA nodes of its networks',
  'larger-than-cells': 'larger than the NUMA nodes of its networks',
  'in-flight': 'reserved for pods in flight',
  resources: 'resources short on the node',
};

/** A refusal: what is short, where, how much was wanted and how much there is. */
export interface Refusal {
  readonly reason: RefusalReason;
  /** For kube-scheduler, which counts nodes by this text. */
  readonly text: string;
  /** For people. */
  readonly detail: string;
  /** The resource that blocks. */
  readonly resource: 'cpus' | 'cores' | 'numa' | 'network' | 'other';
  /** NUMA nodes it is about, if it is about some. */
  readonly where?: readonly number[] | undefined;
  readonly wanted?: number | undefined;
  readonly available?: number | undefined;
}

/** A refusal with the fixed text of its reason. `detail` names the values. */
export function refusal(reason: RefusalReason, detail: string, more: Partial<Refusal> = {}): Refusal {
  return { resource: 'other', ...more, reason, text: TEXTS[reason], detail };
}
