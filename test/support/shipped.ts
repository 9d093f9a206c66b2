import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
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

/**
 * NODE_OPTIONS of a daemon in the shipped manifests. They limit the heap: without them, the daemon's memory is not
 * meaningful.
 * @throws Error if the manifest sets none
 */
export function shippedNodeOptions(daemon: keyof typeof WORKLOADS): { readonly NODE_OPTIONS: string } {
  const file = join(root, 'manifests', WORKLOADS[daemon]);
  const documents = parseAllDocuments(readFileSync(file, 'utf8')).map((document) => document.toJS() as Workload | null);
  const containers = documents.flatMap((found) => {
    const pod = found?.spec?.template?.spec;
    return [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])];
  });
  const options = containers.flatMap(({ env = [] }) => env).find(({ name }) => name === 'NODE_OPTIONS')?.value;
  if (options === undefined) throw new Error(`${file} sets no NODE_OPTIONS`);
  return { NODE_OPTIONS: options };
}

interface Profile {
  readonly pluginConfig: readonly Readonly<Record<string, unknown>>[];
}

/** The plugin configuration of Plumbline's kube-scheduler. */
export function shippedPluginConfig(): Profile['pluginConfig'] {
  const text = readFileSync(join(root, 'manifests/base/scheduler/config.yaml'), 'utf8');
  const { profiles } = parse(text) as { readonly profiles: readonly [Profile] };
  return profiles[0].pluginConfig;
}
