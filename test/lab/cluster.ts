import * as z from 'zod';
import { createKubeClient } from '../../kube/api-transport.ts';
import { isAlreadyExists, isNotFound } from '../../kube/client.ts';
import { kubeconfigAccess } from '../../kube/kubeconfig.ts';
import { monotonicSeconds, sleep } from '../../runtime/time.ts';
import type { Verdict } from './predict.ts';

export const NAMESPACE = 'plumbline-lab';
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
/** Seconds between two checks of a pod. */
const CHECK_SECONDS = 0.1;

const nodeList = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), uid: z.string() }),
      status: z.object({
        allocatable: z.record(z.string(), z.string()),
        nodeInfo: z.object({ kubeletVersion: z.string() }),
        conditions: z.array(z.object({ type: z.string(), status: z.string() })),
      }),
    }),
  ),
});

const created = z.looseObject({ metadata: z.object({ name: z.string(), uid: z.string() }) });
const podList = z.object({ items: z.array(created) });

const condition = z.object({
  type: z.string(),
  status: z.string(),
  reason: z.string().default(''),
  message: z.string().default(''),
});
const containerStatus = z.object({ name: z.string() });

const observed = z.object({
  status: z.object({
    conditions: z.array(condition).default([]),
    phase: z.string(),
    reason: z.string().default(''),
    message: z.string().default(''),
    containerStatuses: z.array(containerStatus).default([]),
    initContainerStatuses: z.array(containerStatus).default([]),
  }),
});

export interface LabNode {
  readonly name: string;
  readonly uid: string;
  readonly version: string;
  readonly cpus: number;
  /** Allocatable amounts, in the kubelet's format. */
  readonly allocatable: Readonly<Record<string, string>>;
}

export type Cluster = ReturnType<typeof createCluster>;

/** @param nodes how many it has */
export function createCluster(kubeconfig: string, signal: AbortSignal, nodes = 1) {
  const client = createKubeClient(kubeconfigAccess(kubeconfig), 'plumbline-lab');
  const waitFor = async <T>(what: string, seconds: number, look: () => Promise<T | undefined>): Promise<T> => {
    const end = monotonicSeconds() + seconds;
    for (;;) {
      const found = await look();
      if (found !== undefined) return found;
      if (monotonicSeconds() > end) throw new Error(`${what}: not within ${seconds} s`);
      await sleep(CHECK_SECONDS, signal);
    }
  };
  const remove = async (name: string, seconds: number) => {
    await client.delete(`${PODS}/${name}`).catch(unlessNotFound);
    await waitFor(`pod ${name} is gone`, seconds, () =>
      client.get(`${PODS}/${name}`).then(
        () => undefined,
        (error: unknown) => unlessNotFound(error) ?? true,
      ),
    );
  };
  return {
    client,
    /** A Ready node with these numbers of devices. @param name default: the only one @param version of its kubelet */
    readyNode: (
      seconds: number,
      devices: ReadonlyMap<string, number>,
      { name, version }: { readonly name?: string; readonly version?: string | undefined } = {},
    ) =>
      waitFor(
        `${name ?? 'one'} Ready node with ${[...devices].join(', ') || 'no devices'}`,
        seconds,
        async (): Promise<LabNode | undefined> => {
          const { items } = nodeList.parse(await client.get('/api/v1/nodes'));
          const node = items.find(({ metadata }) => metadata.name === (name ?? metadata.name));
          if (!node) return undefined;
          const { allocatable, nodeInfo, conditions } = node.status;
          const ready = conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
          const counted = [...devices].every(([resource, count]) => Number(allocatable[resource] ?? 0) === count);
          const awaited = version === undefined || nodeInfo.kubeletVersion === version;
          if (!ready || !counted || !awaited) return undefined;
          return { ...node.metadata, version: nodeInfo.kubeletVersion, cpus: Number(allocatable['cpu']), allocatable };
        },
      ),
    async forgetNode() {
      const { items } = nodeList.parse(await client.get('/api/v1/nodes'));
      for (const { metadata } of items) await client.delete(`/api/v1/nodes/${metadata.name}`).catch(unlessNotFound);
    },
    /** Creates or empties the namespace. @throws Error if a node is not the lab's: KUBECONFIG names another cluster */
    async prepare() {
      const { length } = nodeList.parse(await client.get('/api/v1/nodes')).items;
      if (length > nodes) throw new Error(`the cluster of ${kubeconfig} has ${length} nodes; the lab has ${nodes}`);
      await client.create('/api/v1/namespaces', { metadata: { name: NAMESPACE } }).catch(unlessThere);
      const account = { metadata: { name: 'default' } };
      await client.create(`/api/v1/namespaces/${NAMESPACE}/serviceaccounts`, account).catch(unlessThere);
      const { items } = podList.parse(await client.get(PODS));
      for (const { metadata } of items) await remove(metadata.name, 60);
    },
    create: async (manifest: object) => created.parse(await client.create(PODS, manifest)).metadata.uid,
    verdict: (name: string, seconds: number) =>
      waitFor(`the kubelet's verdict on pod ${name}`, seconds, async (): Promise<Verdict | undefined> => {
        const { status } = observed.parse(await client.get(`${PODS}/${name}`));
        const { phase, reason, message } = status;
        if (phase === 'Failed') return { admitted: false, reason, message };
        const started = status.containerStatuses.length > 0 || status.initContainerStatuses.length > 0;
        return started ? { admitted: true } : undefined;
      }),
    running: (name: string, seconds: number) =>
      waitFor(`pod ${name} runs`, seconds, async () => {
        const { status } = observed.parse(await client.get(`${PODS}/${name}`));
        return status.phase === 'Running' || status.phase === 'Failed' ? true : undefined;
      }).then(() => undefined),
    remove,
    close: () => client.close(),
  };
}

export function unlessNotFound(error: unknown): undefined {
  if (!isNotFound(error)) throw error;
}

function unlessThere(error: unknown): void {
  if (!isAlreadyExists(error)) throw error;
}
