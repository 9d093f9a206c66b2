import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { plumbline } from '../../cli/run.ts';
import { root } from '../../support/bundles.ts';
import { until } from '../../support/until.ts';
import type { ControlPlane, KubernetesObject } from '../control-plane-stage.ts';

interface GuideRole extends KubernetesObject {
  readonly rules: readonly { readonly resources: readonly string[]; readonly verbs: readonly string[] }[];
}

/** The roles in docs/reference/cli-doctor.md: one for the cluster, one for plumbline-system. */
function rolesOfGuide(): GuideRole[] {
  const guide = readFileSync(join(root, 'docs/reference/cli-doctor.md'), 'utf8');
  const [, yaml = ''] = /```yaml\n(apiVersion: rbac[\s\S]*?)```/.exec(guide) ?? [];
  return parseAllDocuments(yaml).map((document) => document.toJS() as GuideRole);
}

/** Grants the roles, with the account's name, to an account of the namespace default. */
async function grantRoles(plane: ControlPlane, account: string, roles: readonly GuideRole[]): Promise<void> {
  const subjects = [{ kind: 'ServiceAccount', name: account, namespace: 'default' }];
  for (const role of roles) {
    const metadata = { ...role.metadata, name: account };
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: role.kind, name: account };
    const binding = { apiVersion: role.apiVersion, kind: `${role.kind}Binding`, metadata, roleRef, subjects };
    await plane.create({ ...role, metadata }, binding);
  }
}

/**
 * A new user with the roles of the guide, which take effect a moment after they were written.
 * @param forward the verbs of pods/portforward, instead of those of the guide
 * @returns the kubeconfig
 */
export async function userOfGuide(plane: ControlPlane, name: string, forward?: readonly string[]): Promise<string> {
  const roles = rolesOfGuide().map((role) => ({
    ...role,
    rules: role.rules
      .map((rule) => (forward && rule.resources.includes('pods/portforward') ? { ...rule, verbs: forward } : rule))
      .filter(({ verbs }) => verbs.length > 0),
  }));
  await plane.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: 'default' } });
  await grantRoles(plane, name, roles);
  const kubeconfig = await plane.kubeconfig(name, await plane.serviceAccountToken('default', name));
  await until('the role to take effect', async () => (await plumbline(['top'], { kubeconfig })).status === 0);
  return kubeconfig;
}
