import { CNI_CODES, type CniError, DPU_NOT_READY } from './errors.ts';

/** State of the DPU at the time of a call. */
export interface DpuWord {
  readonly ready: boolean;
  /** The reason for the state, as text. */
  readonly reason: string;
}

/** Which ADDs need the DPU: all, or those of pods that use one of its devices. */
export type GateScope = 'all' | 'device';

export interface AddQuestion {
  /** Undefined if the node has no DPU. */
  readonly dpu: DpuWord | undefined;
  readonly scope: GateScope;
  readonly namespace: string | undefined;
  /**
   * Namespaces that are exempt: the cluster's own pods, some of which may repair the DPU. A name that ends with `*`
   * matches all namespaces with that prefix.
   */
  readonly exempt: readonly string[];
  /** Whether the attachment has a device; undefined if unknown. */
  readonly hasDevice: boolean | undefined;
}

/** Whether an ADD depends on the DPU. It does if its devices are unknown. */
export function dependsOnDpu({ dpu, scope, namespace, exempt, hasDevice }: AddQuestion): boolean {
  if (dpu === undefined) return false;
  if (namespace !== undefined && isExempt(namespace, exempt)) return false;
  return scope === 'all' || hasDevice !== false;
}

/** Whether a namespace is exempt. A name in the list that ends with `*` matches all namespaces with that prefix. */
export function isExempt(namespace: string, exempt: readonly string[]): boolean {
  return exempt.some((one) => (one.endsWith('*') ? namespace.startsWith(one.slice(0, -1)) : namespace === one));
}

/** Why an ADD must fail, or undefined. */
export function decideAdd(question: AddQuestion): CniError | undefined {
  const { dpu } = question;
  if (dpu === undefined || dpu.ready || !dependsOnDpu(question)) return undefined;
  return { code: CNI_CODES.tryAgainLater, message: `${DPU_NOT_READY}: ${dpu.reason}` };
}

/**
 * Why STATUS reports the network as unavailable, or undefined. Disabled by default: the kubelet sets the node to
 * NotReady, and after five minutes its pods are evicted, although their traffic may still flow.
 */
export function decideStatus(dpu: DpuWord | undefined, enabled: boolean): CniError | undefined {
  if (!enabled || dpu === undefined || dpu.ready) return undefined;
  return { code: CNI_CODES.unavailable, message: `${DPU_NOT_READY}: ${dpu.reason}` };
}

/** Resources that are not devices of a DPU: markers of a network's place, and KubeVirt's own devices. */
const OTHER_RESOURCES = /^(?:(?:physnet\.)?plumbline\.dev|devices\.kubevirt\.io)\//;

/** Whether a pod holds a device of the DPU. */
export function hasDpuDevice(resources: readonly string[]): boolean {
  return resources.some((resource) => !OTHER_RESOURCES.test(resource));
}
