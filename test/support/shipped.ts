import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { root } from './bundles.ts';

const WORKLOADS = {
  webhook: 'base/webhook/deployment.yaml',
  'scheduler-plugin': 'base/scheduler/deployment.yaml',
  'node-agent': 'base/node-agent/daemonset.yaml',
  console: 'components/console/deployment.yaml',
} as const;

interface Workload {
  readonly spec?: {
    readonly template?: {
      readonly spec: { readonly containers: readonly Container[]; readonly initContainers?: readonly Container[] };
    };
  };
}

interface Container {
  readonly env?: readonly Variable[];
}

interface Variable {
  readonly name: string;
  readonly value?: string;
}

/** The variables that size memory: of Node.js, and of the C library (`MALLOC_ARENA_MAX` and others). */
const isMemorySetting = (name: string): boolean => name === 'NODE_OPTIONS' || name.startsWith('MALLOC_');

/**
 * NODE_OPTIONS and the other memory settings of a daemon in the shipped manifests. They limit the heap: without them, the
 * daemon's memory is not meaningful.
 * @throws Error if the manifest sets no NODE_OPTIONS
 */
export function shippedNodeOptions(daemon: keyof typeof WORKLOADS): Record<string, string> & { NODE_OPTIONS: string } {
  const file = join(root, 'manifests', WORKLOADS[daemon]);
  const documents = parseAllDocuments(readFileSync(file, 'utf8')).map((document) => document.toJS() as Workload | null);
  const containers = documents.flatMap((found) => {
    const pod = found?.spec?.template?.spec;
    return [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])];
  });
  const settings = containers.flatMap(({ env = [] }) => env).filter(({ name }) => isMemorySetting(name));
  const values = Object.fromEntries(settings.map(({ name, value = '' }) => [name, value]));
  const { NODE_OPTIONS: options } = values;
  if (options === undefined) throw new Error(`${file} sets no NODE_OPTIONS`);
  return { ...values, NODE_OPTIONS: options };
}
