export interface DpuWord {
  readonly ready: boolean;
  readonly reason: string;
}

/** Which ADDs need the DPU: all, or those of pods that use one of its devices. */
export type GateScope = 'all' | 'device';

export interface AddQuestion {
  /** Undefined if the node has no DPU. */
  readonly dpu: DpuWord | undefined;
  readonly scope: GateScope;
  readonly namespace: string | undefined;
  /** A name that ends with `*` matches all namespaces with that prefix. Some of their pods may repair the DPU. */
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
  return exempt.some((pattern) =>
    pattern.endsWith('*') ? namespace.startsWith(pattern.slice(0, -1)) : namespace === pattern,
  );
}

/** Source: containernetworking/cni SPEC.md, section 5. */
export const CNI_CODES = {
  incompatibleVersion: 1,
  invalidEnvironment: 4,
  ioFailure: 5,
  decodeFailure: 6,
  invalidConfig: 7,
  tryAgainLater: 11,
  unavailable: 50,
} as const;

export function decideAdd(question: AddQuestion): CniError | undefined {
  return dependsOnDpu(question) ? notReady(question.dpu, CNI_CODES.tryAgainLater) : undefined;
}

/** Off by default: the kubelet sets the node to NotReady, and its pods are evicted although their traffic may flow. */
export function decideStatus(dpu: DpuWord | undefined, enabled: boolean): CniError | undefined {
  return enabled ? notReady(dpu, CNI_CODES.unavailable) : undefined;
}

function notReady(dpu: DpuWord | undefined, code: number): CniError | undefined {
  return dpu === undefined || dpu.ready ? undefined : { code, message: `DPU Not Ready: ${dpu.reason}` };
}

/** Resources that are not devices of a DPU: markers of a network's place, and KubeVirt's own devices. */
const OTHER_RESOURCES = /^(?:(?:physnet\.)?plumbline\.dev|devices\.kubevirt\.io)\//;

export function hasDpuDevice(resources: readonly string[]): boolean {
  return resources.some((resource) => !OTHER_RESOURCES.test(resource));
}

export interface CniError {
  readonly code: number;
  readonly message: string;
}

/** A pod, as container runtimes pass it to CNI plugins. */
export interface CniPod {
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly uid: string | undefined;
}

/** `KEY=value;…`; anything else is ignored. The first of two equal keys applies: meta-plugins append theirs. */
export function parseCniArgs(text: string | undefined): ReadonlyMap<string, string> {
  const pairs = (text ?? '').split(';').flatMap((pair): [string, string][] => {
    const at = pair.indexOf('=');
    return at > 0 ? [[pair.slice(0, at), pair.slice(at + 1)]] : [];
  });
  return new Map(pairs.reverse());
}

/** The pod of a call; empty if the runtime does not serve a kubelet and names no pod. */
export function podOf(args: ReadonlyMap<string, string>): CniPod {
  const value = (key: string) => args.get(key) || undefined;
  return { namespace: value('K8S_POD_NAMESPACE'), name: value('K8S_POD_NAME'), uid: value('K8S_POD_UID') };
}

/** Saved for the agent's restart, and for the shim while the agent does not respond. native/cni/state.c parses it. */
export interface GateState {
  readonly dpu: 'ready' | 'not-ready' | 'none';
  readonly reason: string;
  readonly status: boolean;
  readonly scope: GateScope;
  readonly exempt: readonly string[];
  /** Whole milliseconds of CLOCK_MONOTONIC. */
  readonly at: number;
  /** The last observation of the lease; undefined if the agent watches none. */
  readonly lease?: ObservedLease | undefined;
}

/** The last observed renewal, by a clock that all processes share until the machine reboots. */
export interface ObservedLease {
  readonly bootId: string;
  readonly renewTime: string;
  /** Milliseconds of CLOCK_MONOTONIC of the first observation of this renewal and of the last read of the lease. */
  readonly changedAt: number;
  readonly readAt: number;
  readonly changes: number;
}

/** Characters of a reason and of a renewTime: the shim reads files of less than 16 KiB. */
const MAX_REASON_CHARACTERS = 512;
const MAX_TIME_CHARACTERS = 64;

/** The shim reads the reason verbatim: it must not need escapes. */
export function formatGateState({ lease, ...state }: GateState): string {
  const plain = state.reason.slice(0, MAX_REASON_CHARACTERS).replaceAll(/["\\\p{Cc}]/gu, ' ');
  const leasePart = lease !== undefined && lease.renewTime.length <= MAX_TIME_CHARACTERS ? { lease } : {};
  return `${JSON.stringify({ ...state, reason: plain, ...leasePart })}\n`;
}
