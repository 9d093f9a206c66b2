import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { root } from '../support/bundles.ts';

const CHART = join(root, 'manifests/chart/plumbline');
const read = (name: string) => readFileSync(join(CHART, name), 'utf8');

type Values = { readonly [key: string]: unknown };
const isTable = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Values that README.md describes once for all components. */
const SHARED = ['image', 'resources', 'replicas', 'flags', 'nodeSelector', 'tolerations', 'affinity', 'updateStrategy'];

function pathsOf(values: Values, prefix = ''): string[] {
  return Object.entries(values)
    .filter(([key]) => prefix === '' || !SHARED.includes(key))
    .flatMap(([key, value]) => (isTable(value) ? pathsOf(value, `${prefix}${key}.`) : [`${prefix}${key}`]));
}

describe('the README of the chart', () => {
  const values = pathsOf(parse(read('values.yaml')) as Values);
  const described = [...read('README.md').matchAll(/^\| `.*$/gm)].flatMap(([row]) =>
    [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? ''),
  );

  it('describes exactly the existing values', () => assert.deepEqual(described.sort(), values.sort()));

  it('declares the custom resource of crds/ for Artifact Hub', () => {
    const { annotations } = parse(read('Chart.yaml')) as { annotations: Readonly<Record<string, string>> };
    const [listed] = parse(annotations['artifacthub.io/crds'] ?? '') as {
      kind: string;
      name: string;
      version: string;
    }[];
    const { metadata, spec } = parse(read('crds/nodetopologies.yaml')) as {
      metadata: { name: string };
      spec: { names: { kind: string }; versions: { name: string }[] };
    };
    assert.deepEqual(
      [listed?.kind, listed?.name, listed?.version],
      [spec.names.kind, metadata.name, spec.versions[0]?.name],
    );
  });
});
