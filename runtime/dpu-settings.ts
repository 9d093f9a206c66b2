import * as z from 'zod';
import { quote } from '../model/errors.ts';
import { DPU_EXEMPT_NAMESPACES, DPU_LEASE_NAMESPACE } from '../model/names.ts';

/** Maximum members of a list: the gate's state file contains the namespaces, and the CNI plugin reads 16 KiB of it. */
const MAX_NAMESPACES = 128;

const EXEMPT_NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$|^[a-z0-9][-a-z0-9]{0,61}\*$/;

/** Namespaces separated by commas; empty text is an empty list. */
const namespaces = z.string().transform((text, context): readonly string[] => {
  const members = text.split(',', MAX_NAMESPACES + 1).flatMap((one) => one.trim() || []);
  if (members.length > MAX_NAMESPACES) context.addIssue(`expected at most ${MAX_NAMESPACES} members`);
  const wrong = members.find((member) => !EXEMPT_NAMESPACE.test(member));
  if (wrong !== undefined) context.addIssue(`${quote(wrong)} is not a namespace, nor the beginning of names (name*)`);
  return members;
});

/**
 * Settings about DPUs that agents and extender must agree on. Both have them from the ConfigMap plumbline-dpu, whose keys
 * are the variables below.
 */
export const dpuSettings = {
  dpuLease: z.enum(['own', 'observe']).default('own'),
  dpuLeaseNamespace: z.string().min(1).default(DPU_LEASE_NAMESPACE),
  dpuUnknown: z.enum(['ready', 'not-ready']).default('ready'),
  dpuScope: z.enum(['all', 'attached']).default('all'),
  dpuExempt: namespaces.prefault(DPU_EXEMPT_NAMESPACES.join()),
} as const;

export const DPU_FLAGS = {
  dpuLease: {
    flag: '--dpu-lease <policy>',
    help: 'own: Plumbline keeps the DPUs’ leases; observe where OVN-Kubernetes writes them: a single renewal does not count then',
    env: 'PLUMBLINE_DPU_LEASE',
  },
  dpuLeaseNamespace: {
    flag: '--dpu-lease-namespace <name>',
    help: 'namespace of the leases that DPUs renew, where OVN-Kubernetes has another',
    env: 'PLUMBLINE_DPU_LEASE_NAMESPACE',
  },
  dpuUnknown: {
    flag: '--dpu-unknown <policy>',
    help: 'state of a DPU while the API server does not answer: ready, or not-ready where a pod without a network is worse than a pod that waits',
    env: 'PLUMBLINE_DPU_UNKNOWN',
  },
  dpuScope: {
    flag: '--dpu-scope <scope>',
    help: 'pods that need the DPU of their node: all (on the pod network), or attached where the pod network does not use the DPU: those that request a device of it',
    env: 'PLUMBLINE_DPU_SCOPE',
  },
  dpuExempt: {
    flag: '--dpu-exempt <namespaces>',
    help: 'namespaces whose pods may go to a node with a dead DPU and start there, because they repair it; `openshift-*` matches by prefix',
    env: 'PLUMBLINE_DPU_EXEMPT',
  },
} as const;
