import { setTimeout as delay } from 'node:timers/promises';
import * as z from 'zod';
import { type Cluster, NAMESPACE } from '../cluster.ts';
import { KUBELET_ROOT } from '../guest.ts';
import type { LabMachine } from '../lab.ts';
import { manifestOf } from '../pods.ts';
import { CPU_CHECKPOINT } from '../snapshot.ts';

export interface ScenePod {
  readonly name: string;
  readonly uid: string;
}

const podStatus = z.object({
  status: z.object({
    phase: z.string(),
    reason: z.string().default(''),
    message: z.string().default(''),
    containerStatuses: z
      .array(
        z.object({
          started: z.boolean().nullish(),
          state: z.object({
            waiting: z.object({ reason: z.string(), message: z.string().default('') }).nullish(),
            running: z.object({}).nullish(),
          }),
        }),
      )
      .default([]),
  }),
});
const eventList = z.object({
  items: z.array(
    z.object({
      reason: z.string(),
      message: z.string(),
      involvedObject: z.object({ uid: z.string().default('') }),
    }),
  ),
});
const checkpoint = z.object({ entries: z.record(z.string(), z.record(z.string(), z.string())).nullish() });

export type ScenePods = ReturnType<typeof createScenePods>;

/** Seconds to remove one on emulated hardware. */
const CLEARED = 600;

export function createScenePods(lab: LabMachine, cluster: Cluster, node: string) {
  const { client } = cluster;
  const base = `/api/v1/namespaces/${NAMESPACE}`;
  return {
    /** @param resources limits besides memory: `{ cpu: '2' }` @param more fields of the pod's spec */
    async create(name: string, resources: Readonly<Record<string, string>>, more: object = {}): Promise<ScenePod> {
      const main = { name: 'main', resources: { limits: { memory: '16Mi', ...resources } } };
      const manifest = manifestOf({ spec: { containers: [main], initContainers: [] } }, name, node);
      const uid = await cluster.create({
        ...manifest,
        spec: { ...manifest.spec, ...more },
      });
      return { name, uid };
    },
    async remove({ name, uid }: ScenePod) {
      await cluster.remove(name, CLEARED);
      // The API server deletes the pod a moment before the kubelet's CPU manager does.
      while ((await entriesOf(lab))[uid] !== undefined) await delay(200);
    },
    async state({ name }: ScenePod): Promise<string> {
      const { status } = podStatus.parse(await client.get(`${base}/pods/${name}`));
      if (status.phase === 'Failed') return `Failed: ${status.reason}: ${status.message}`;
      const [main] = status.containerStatuses;
      const waiting = main?.state.waiting;
      if (waiting) return `${waiting.reason}: ${waiting.message}`;
      return main?.state.running ? 'Running' : status.phase;
    },
    /** The CPUs of the pod's only container in the kubelet's checkpoint, as a list; '' for none. */
    cpus: async ({ uid }: ScenePod): Promise<string> => Object.values((await entriesOf(lab))[uid] ?? {})[0] ?? '',
    async events({ name, uid }: ScenePod): Promise<readonly string[]> {
      const { items } = eventList.parse(
        await client.get(`${base}/events`, { query: { fieldSelector: `involvedObject.name=${name}` } }),
      );
      return items
        .filter(({ involvedObject }) => ['', uid].includes(involvedObject.uid))
        .map(({ reason, message }) => `${reason}: ${message}`);
    },
  };
}

async function entriesOf(lab: LabMachine): Promise<Readonly<Record<string, Readonly<Record<string, string>>>>> {
  return checkpoint.parse(JSON.parse(await lab.run(`cat ${KUBELET_ROOT}/${CPU_CHECKPOINT}`))).entries ?? {};
}
