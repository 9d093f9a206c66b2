import { execFileSync, type StdioOptions } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { root } from '../../support/bundles.ts';
import { pathOf } from '../../support/parts.ts';
import type { KubernetesObject } from '../control-plane.ts';

/** The kinds of the base for agents. */
const KINDS = [
  'Namespace',
  'CustomResourceDefinition',
  'ServiceAccount',
  'ClusterRole',
  'ClusterRoleBinding',
  'Role',
  'RoleBinding',
];

/**
 * The objects of the shipped base, with a component, for agents: namespaces, CRDs, permissions, and the policies that
 * restrict them.
 */
export function agentObjects(component?: string): KubernetesObject[] {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-base-'));
  let yaml: string;
  try {
    cpSync(join(root, 'manifests'), join(directory, 'manifests'), { recursive: true });
    const components = component === undefined ? '' : `manifests/base/node-agent/components/${component}`;
    writeFileSync(join(directory, 'kustomization.yaml'), `resources: [manifests/base]\ncomponents: [${components}]\n`);
    const stdio: StdioOptions = ['ignore', 'pipe', 'ignore'];
    yaml = execFileSync(pathOf('kubectl'), ['kustomize', directory], { encoding: 'utf8', stdio });
  } finally {
    rmSync(directory, { recursive: true });
  }
  const objects = parseAllDocuments(yaml).map((document) => document.toJS() as KubernetesObject);
  return objects.filter(
    ({ kind, metadata }) =>
      KINDS.includes(kind) ||
      (kind.startsWith('ValidatingAdmissionPolicy') &&
        /^plumbline-(node-agent|node-agent-events|dpu|dpu-tokens)$/.test(metadata.name)),
  );
}
