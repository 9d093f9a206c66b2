import { CNI_CODES, type CniError, DPU_NOT_READY } from './errors.ts';

/** The state of the DPU when a call comes in. */
export interface DpuWord {
  readonly ready: boolean;
  /** Why it is or is not, in words. */
  readonly reason: string;
}

/** Which ADDs need the DPU: every one, or those of pods that hold a device of it. */
export type GateScope = 'all' | 'device';

export interface AddQuestion {
  /** Undefined where the node has no DPU. */
  readonly dpu: DpuWord | undefined;
  readonly scope: GateScope;
  readonly namespace: string | undefined;
  /**
   * Namespaces of the cluster's own pods, which are never held: some of them may be what repairs the DPU. One that ends
   * with `*` stands for all that begin so.
   */
  readonly exempt: readonly string[];
  /** Whether the attachment has a device; undefined if that is unknown. */
  readonly hasDevice: boolean | undefined;
}

/** Whether an ADD depends on the DPU. An ADD whose devices are unknown does. */
export function dependsOnDpu({ dpu, scope, namespace, exempt, hasDevice }: AddQuestion): boolean {
  if (dpu === undefined) return false;
  if (namespace !== undefined && isExempt(namespace, exempt)) return false;
  return scope === 'all' || hasDevice !== false;
}

/** Whether a namespace is one of those named; a name that ends with `*` stands for all that begin so. */
export function isExempt(namespace: string, exempt: readonly string[]): boolean {
  return exempt.some((one) => (one.endsWith('*') ? namespace.startsWith(one.slice(0, -1)) : namespace === one));
}

/** Why an ADD must not continue, or undefined. */
export function decideAdd(question: AddQuestion): CniError | undefined {
  const { dpu } = question;
  if (dpu === undefined || dpu.ready || !dependsOnDpu(question)) return undefined;
  return { code: CNI_CODES.tryAgainLater, message: `${DPU_NOT_READY}: ${dpu.reason}` };
}

/**
 * Why STATUS reports the network as unavailable, or undefined. Off unless asked for: the kubelet turns the node
 * NotReady for it, and after five minutes its pods are evicted, though their traffic may still flow.
 */
export function decideStatus(dpu: DpuWord | undefined, enabled: boolean): CniError | undefined {
  if (!enabled || dpu === undefined || dpu.ready) return undefined;
  return { code: CNI_CODES.unavailable, message: `${DPU_NOT_READY}: ${dpu.reason}` };
}

/** Plumbline's own resources mark where a network is; they are no device of a DPU. */
const MARKERS = /^(?:physnet\.)?plumbline\.dev\//;

/** Whether any of a pod's resources is a device of the DPU: one of those named, or with none named any but markers. */
export function hasDpuDevice(resources: readonly string[], named: ReadonlySet<string>): boolean {
  return resources.some((resource) => (named.size > 0 ? named.has(resource) : !MARKERS.test(resource)));
}
