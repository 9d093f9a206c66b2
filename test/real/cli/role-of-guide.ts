import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { root } from '../../support/bundles.ts';
import type { ControlPlane, KubernetesObject } from '../control-plane.ts';

export interface GuideRole extends KubernetesObject {
  readonly rules: readonly { readonly resources: readonly string[]; readonly verbs: readonly string[] }[];
}

/** The roles in docs/reference/cli-doctor.md: one for the cluster, one for plumbline-system. */
export function rolesOfGuide(): GuideRole[] {
  const guide = readFileSync(join(root, 'docs/reference/cli-doctor.md'), 'utf8');
  const [, yaml = ''] = /```yaml\n(apiVersion: rbac[\s\S]*?)```/.exec(guide) ?? [];
  return parseAllDocuments(yaml).map((document) => document.toJS() as GuideRole);
}

/** Grants the roles, with the account's name, to an account of the namespace default. */
export async function grantRoles(plane: ControlPlane, account: string, roles = rolesOfGuide()): Promise<void> {
  const subjects = [{ kind: 'ServiceAccount', name: account, namespace: 'default' }];
  for (const role of roles) {
    const metadata = { ...role.metadata, name: account };
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: role.kind, name: account };
    const binding = { apiVersion: role.apiVersion, kind: `${role.kind}Binding`, metadata, roleRef, subjects };
    await plane.create({ ...role, metadata }, binding);
  }
}
