import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { root } from '../../support/bundles.ts';
import type { ControlPlane, KubernetesObject } from '../control-plane.ts';
import { failure, serveVirtApi, type VirtApiAnswer } from '../virt-api.ts';
import { FOREIGN_DEFINITIONS } from '../webhook/crds.ts';

const MERGE = 'application/merge-patch+json';
const PAUSED = { type: 'Paused', status: 'True', reason: 'PausedByUser', message: 'VMI was paused by user' };

interface Condition {
  readonly type: string;
  readonly lastTransitionTime?: string;
}

interface Vmi {
  readonly metadata: { readonly uid: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly status?: { readonly phase?: string; readonly conditions?: readonly Condition[] };
}

/**
 * KubeVirt as the extender sees it, on a real API server: the definition of VMIs, virt-api's unpause behind the real
 * aggregation layer (so the API server itself authenticates and authorizes), and the writes of virt-handler.
 */
export interface KubeVirtStandIn {
  /** The unpaused VMs in order: `default/vm`. */
  readonly unpauses: string[];
  /** Unpauses fail with 503 while this is true. */
  away: boolean;
  /** A VMI that the webhook starts paused, by default. */
  create(name: string, annotations?: Readonly<Record<string, string>>): Promise<void>;
  /** virt-handler has started the guest paused, in a launcher with that uid. */
  started(name: string, node: string, podUID: string): Promise<void>;
  /** A user pauses the guest, some seconds after earlier events. */
  pause(name: string): Promise<void>;
  isPaused(name: string): Promise<boolean>;
  recordOf(name: string): Promise<string | undefined>;
  stop(): Promise<void>;
}

export async function installKubeVirt(plane: ControlPlane): Promise<KubeVirtStandIn> {
  const { client } = plane;
  const pathOf = (name: string, namespace = 'default') =>
    `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachineinstances/${name}`;
  const get = async (name: string, namespace?: string) => (await client.get(pathOf(name, namespace))) as Vmi;
  const write = (name: string, status: object) => client.patch(pathOf(name), MERGE, { status });
  let clock = Date.parse('2026-11-01T10:00:00Z');
  const paused = () => {
    clock += 5000;
    return { ...PAUSED, lastTransitionTime: `${new Date(clock).toISOString().slice(0, 19)}Z` };
  };

  const standIn: KubeVirtStandIn = {
    unpauses: [],
    away: false,
    async create(name, annotations = {}) {
      const marks = { 'plumbline.dev/cpu-mask': '1-2', 'plumbline.dev/paused-start': 'waiting', ...annotations };
      await client.create(pathOf('').replace(/\/$/, ''), {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        metadata: { name, annotations: marks },
        spec: { startStrategy: 'Paused', domain: { cpu: { cores: 2 } } },
      });
    },
    async started(name, node, podUID) {
      await write(name, { phase: 'Running', nodeName: node, activePods: { [podUID]: node }, conditions: [paused()] });
    },
    async pause(name) {
      await write(name, { conditions: [paused()] });
    },
    isPaused: async (name) => isPaused(await get(name)),
    recordOf: async (name) => (await get(name)).metadata.annotations?.['plumbline.dev/paused-start'],
    async stop() {
      await virtApi.stop();
    },
  };

  const unpause = async (namespace: string, name: string): Promise<VirtApiAnswer> => {
    if (standIn.away) return { status: 503, body: failure(503, 'ServiceUnavailable', 'virt-api is down') };
    const vmi = await get(name, namespace);
    if (vmi.status?.phase !== 'Running') return { status: 409, body: failure(409, 'Conflict', 'VMI is not running') };
    if (!isPaused(vmi)) return { status: 409, body: failure(409, 'Conflict', 'VMI is not paused') };
    standIn.unpauses.push(`${namespace}/${name}`);
    await write(name, { conditions: [] });
    return { status: 202 };
  };
  const virtApi = await serveVirtApi(plane, { unpause });
  await plane.create(...FOREIGN_DEFINITIONS, ...(await policy()));
  return standIn;
}

const isPaused = ({ status }: Vmi): boolean => status?.conditions?.some(({ type }) => type === 'Paused') ?? false;

async function policy(): Promise<KubernetesObject[]> {
  const yaml = await readFile(join(root, 'manifests/base/policies/paused-start.yaml'), 'utf8');
  return parseAllDocuments(yaml).map((document) => document.toJS() as KubernetesObject);
}
