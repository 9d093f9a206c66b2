import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { root } from '../support/bundles.ts';

const PAGE = 'docs/reference/security.md';
const HEADING = '## What the installation gives to everybody';

/** Kinds of the manifests with objects in a namespace, except accounts. Any other kind is cluster-scoped. */
const NAMESPACED = [
  ...['ConfigMap', 'DaemonSet', 'Deployment', 'Pod', 'PodDisruptionBudget', 'Service', 'NetworkPolicy', 'Lease'],
  ...['Role', 'RoleBinding', 'Certificate', 'Issuer', 'PrometheusRule', 'ServiceMonitor'],
];

interface ManifestObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: { readonly name?: string; readonly labels?: Readonly<Record<string, string>> };
  readonly subjects?: readonly { readonly kind: string; readonly namespace?: string }[];
  readonly aggregationRule?: unknown;
}

/** Of all overlays and components; the chart has the same objects (`manifests/chart`). */
const OBJECTS: readonly ManifestObject[] = readdirSync(join(root, 'manifests'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.yaml') && !file.startsWith('chart/'))
  .flatMap((file) => parseAllDocuments(readFileSync(join(root, 'manifests', file), 'utf8')))
  .map((document) => (document.toJS() ?? {}) as ManifestObject)
  // Files of kubectl and of Kubernetes' own programs are no objects.
  .filter(({ apiVersion = '' }) => !/^$|\.config\.k8s\.io\//.test(apiVersion));

describe(`${PAGE}: ${HEADING.slice(3)}`, () => {
  it('has each cluster-scoped object and each account of the manifests, and no others', () => {
    const expected = OBJECTS.filter(({ kind = '' }) => !NAMESPACED.includes(kind));
    assert.deepEqual(listed(), [...new Set(expected.map(({ kind, metadata }) => `${kind} ${metadata?.name}`))].sort());
  });

  it('answers each question', () => {
    for (const [kinds = '', , use = '', often = ''] of rows()) assert.ok(use.length > 5 && often.length > 4, kinds);
  });

  it('is right about roles: none is part of a role of Kubernetes, and none is bound to a group or another account', () => {
    const roles = OBJECTS.filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role');
    assert.deepEqual(
      roles.filter(({ metadata }) => Object.keys(metadata?.labels ?? {}).some((label) => label.includes('aggregate'))),
      [],
    );
    const bindings = OBJECTS.filter(({ kind }) => kind === 'ClusterRoleBinding' || kind === 'RoleBinding');
    assert.ok(bindings.length > 15);
    for (const { metadata, subjects = [] } of bindings) {
      for (const { kind, namespace = 'plumbline-system' } of subjects) {
        const isOfDpus = kind === 'Group' && metadata?.name === 'plumbline-dpu';
        const isOfPlumbline = kind === 'ServiceAccount' && namespace === 'plumbline-system';
        const isOfKubeVirt = metadata?.name === 'plumbline-cpu-mask-kubevirt' && namespace === 'kubevirt';
        assert.ok(isOfPlumbline || isOfKubeVirt || isOfDpus, `${metadata?.name}: ${kind} in ${namespace}`);
      }
    }
  });
});

function rows(): string[][] {
  const text = readFileSync(join(root, PAGE), 'utf8');
  const section = text.slice(text.indexOf(HEADING) + HEADING.length).split('\n## ')[0] ?? '';
  const lines = section.split('\n').filter((line) => line.startsWith('| '));
  return lines.slice(1).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

function listed(): string[] {
  const all = rows().flatMap(([kinds = '', names = '']) =>
    kinds.split(', ').flatMap((kind) => [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => `${kind} ${name}`)),
  );
  return all.sort();
}
