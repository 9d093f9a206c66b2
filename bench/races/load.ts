import { setTimeout as delay } from 'node:timers/promises';
import * as z from 'zod';
import type { KubeClient } from '../../kube/client.ts';
import { createReflector } from '../../kube/reflector.ts';
import { objectMeta } from '../../kube/resources.ts';
import { silent } from '../../test/support/logger.ts';

const PODS = '/api/v1/namespaces/default/pods';

const seenPod = z.object({
  metadata: objectMeta,
  spec: z.object({ nodeName: z.string().optional() }),
  status: z.object({ phase: z.string().optional(), reason: z.string().optional() }).nullish(),
});

/** The pods of one kind: their number, and how many exist at a time. */
export interface Kind {
  readonly name: string;
  readonly schedulerName: string;
  readonly cpus: number;
  readonly pods: number;
  readonly atATime: number;
}

/** The outcome of the pods of one kind. */
export interface Outcome {
  /** Number of pods that ran in the end. */
  readonly ran: number;
  /** Refusals by kubelets, by reason. Each is followed by another pod, as from its owner. */
  readonly rejected: Readonly<Record<string, number>>;
  /** Largest number of consecutive refusals of one owner. */
  readonly mostInARow: number;
  readonly podsASecond: number;
}

/** Seconds that a pod runs, and the longest wait until it runs. */
const RUNS = 0.3;
const PATIENCE = 120;
/** Seconds until an owner notices that its pod was refused. */
const NOTICED = 0.2;

/**
 * Creates pods of all kinds concurrently, with a number of owners for each kind; each owner replaces a pod that a
 * kubelet refuses.
 */
export async function load(
  client: KubeClient,
  kinds: readonly Kind[],
  progress: (ran: number) => void,
): Promise<Outcome[]> {
  const stop = new AbortController();
  const waiting = new Map<string, (phase: string, reason: string) => void>();
  const pods = createReflector({
    client,
    path: PODS,
    schema: seenPod,
    project: ({ status }) => ({ phase: status?.phase ?? '', reason: status?.reason ?? '' }),
    onChange: ({ key, after }) => {
      if (after?.phase === 'Running' || after?.phase === 'Failed') waiting.get(key)?.(after.phase, after.reason);
    },
    log: silent,
    now: () => performance.now() / 1000,
  });
  const watching = pods.run(stop.signal);
  await pods.whenSynced;
  let all = 0;

  /** @returns undefined if it runs, else why its kubelet refused it */
  const attempt = async (name: string, { cpus, schedulerName }: Kind): Promise<string | undefined> => {
    const ended = new Promise<string | undefined>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${name} did not run within ${PATIENCE} s`)), PATIENCE * 1000);
      waiting.set(`default/${name}`, (phase, reason) => {
        clearTimeout(timer);
        resolve(phase === 'Running' ? undefined : reason);
      });
    });
    ended.catch(() => undefined);
    await client.create(PODS, podOf(name, schedulerName, cpus), { timeout: PATIENCE });
    const why = await ended;
    waiting.delete(`default/${name}`);
    await delay((why === undefined ? RUNS : NOTICED) * 1000);
    await client.delete(`${PODS}/${name}`, { body: { gracePeriodSeconds: 0 }, timeout: PATIENCE });
    return why;
  };

  const runKind = async (kind: Kind): Promise<Outcome> => {
    const rejected: Record<string, number> = {};
    let [next, ran, mostInARow, made] = [0, 0, 0, 0];
    const begun = performance.now();
    const owner = async () => {
      while (next++ < kind.pods) {
        let inARow = 0;
        for (;;) {
          const why = await attempt(`${kind.name}-${++made}`, kind);
          if (why === undefined) break;
          rejected[why] = (rejected[why] ?? 0) + 1;
          mostInARow = Math.max(mostInARow, ++inARow);
        }
        ran++;
        progress(++all);
      }
    };
    await Promise.all(Array.from({ length: kind.atATime }, owner));
    return { ran, rejected, mostInARow, podsASecond: (ran / (performance.now() - begun)) * 1000 };
  };

  try {
    return await Promise.all(kinds.map(runKind));
  } finally {
    stop.abort();
    await watching;
  }
}

/** A Guaranteed pod with whole CPUs. A pod with `nodeName` is bound from the start. */
export function podOf(name: string, schedulerName: string, cpus: number, nodeName?: string): object {
  const amounts = { cpu: String(cpus), memory: '64Mi' };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      schedulerName,
      terminationGracePeriodSeconds: 0,
      ...(nodeName !== undefined && { nodeName }),
      containers: [{ name: 'compute', image: 'none', resources: { requests: amounts, limits: amounts } }],
    },
  };
}
