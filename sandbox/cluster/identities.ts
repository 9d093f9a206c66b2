import { stringify } from 'yaml';
import { NAMESPACE } from '../../model/names.ts';
import type { User } from '../api-server/call.ts';

export type Identity =
  | { readonly kind: 'admin' | 'webhook' | 'scheduler-plugin' }
  | { readonly kind: 'node-agent' | 'dpu'; readonly node: string };

/** The namespace in which each DPU has a service account with the name of its host's node. */
const DPU_NAMESPACE = 'plumbline-dpu';
/** Attribute of a service account's token with the node of its pod. */
const NODE_NAME = 'authentication.kubernetes.io/node-name';

const serviceAccount = (name: string, namespace = NAMESPACE): User => ({
  username: `system:serviceaccount:${namespace}:${name}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
});

/** The extender runs in the scheduler's pod. */
const USERS = {
  admin: { username: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] },
  webhook: serviceAccount('plumbline-webhook'),
  'scheduler-plugin': serviceAccount('plumbline-scheduler'),
};

export function identityUser(identity: Identity): User {
  if (!('node' in identity)) return USERS[identity.kind];
  if (identity.kind === 'dpu') return serviceAccount(identity.node, DPU_NAMESPACE);
  return { ...serviceAccount('plumbline-node-agent'), extra: { [NODE_NAME]: [identity.node] } };
}

export const nameOf = (identity: Identity) =>
  'node' in identity ? `${identity.kind}-${identity.node}` : identity.kind;

interface Access {
  readonly server: string;
  readonly ca: string;
  readonly token: string;
}

export function kubeconfig({ server, ca, token }: Access): string {
  const name = 'plumbline-sandbox';
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  });
}
