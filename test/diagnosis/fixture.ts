import type { Cause, VmFacts } from '../../diagnosis/facts.ts';
import { type Remedy, remedyLines } from '../../diagnosis/remedies.ts';
import type { PodShape } from '../../model/shapes.ts';
import { vmiOwner } from '../support/vmi-owner.ts';

/** A VM with only a known name. */
export const VM: VmFacts = { namespace: 'tenants', name: 'fw', kind: 'vm' };

export const ANNOTATED = { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' };
export const DECIDED = { 'plumbline.dev/decision': '{"cpus":{"compute":4},"padding":1}' };

interface PodParts {
  readonly metadata?: PodShape['metadata'] & { readonly creationTimestamp?: string };
  readonly spec?: Partial<PodShape['spec']> & { readonly affinity?: object | undefined };
  readonly status?: PodShape['status'];
  /** Undefined: no CPUs in its requests. */
  readonly cpus?: string | undefined;
  readonly resources?: Readonly<Record<string, string>>;
}

/** A launcher of KubeVirt with a decision of the webhook and four CPUs of its own. */
export function launcher({ metadata = {}, spec = {}, status, resources = {}, ...parts }: PodParts = {}) {
  const { cpus } = { cpus: '4', ...parts };
  const amounts = { ...(cpus && { cpu: cpus }), memory: '1Gi', 'devices.kubevirt.io/kvm': '1', ...resources };
  return {
    metadata: {
      name: 'virt-launcher-fw-abcde',
      namespace: 'tenants',
      uid: 'pod-uid',
      labels: { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': 'vmi-uid' },
      ownerReferences: [vmiOwner('fw', 'vmi-uid')],
      annotations: { ...ANNOTATED, ...DECIDED },
      ...metadata,
    },
    spec: {
      schedulerName: 'plumbline-scheduler',
      containers: [{ name: 'compute', resources: { requests: amounts, limits: amounts } }],
      ...spec,
    },
    ...(status && { status }),
  };
}

/** A remedy in one line. */
export function remedyText(remedy: Pick<Remedy, 'text' | 'commands'>): string {
  const [text, ...commands] = remedyLines(remedy);
  return commands.length === 0 ? text : `${text}: ${commands.join('; ')}`;
}

/** A cause with its remedies' ids. */
export function shown({ reason, text, remedies }: Cause) {
  return { reason, text, remedies: remedies.map(({ id }) => id) };
}

/** The same in one line: `Reason: text [remedy, …]`. */
export function line(cause: Cause): string {
  const { reason, text, remedies } = shown(cause);
  return `${reason}: ${text}${remedies.length === 0 ? '' : ` [${remedies.join(', ')}]`}`;
}
