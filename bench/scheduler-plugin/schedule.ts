import { setTimeout as delay } from 'node:timers/promises';
import {
  type ExtenderSettings,
  inParallel,
  type Replica,
  type SeenPod,
  type Stage,
  type StagePod,
} from '../../test/real/scheduler/stage.ts';
import { cpuSecondsOf } from '../support/process.ts';

const PODS_PATH = '/api/v1/namespaces/default/pods';
/** Seconds for all pods of a scheduler. */
const WITHIN = 900;

/** One scheduler's run. */
export interface Run {
  /** Pods that it binds. */
  readonly podsASecond: number;
  /** Its own processor time, of all threads. */
  readonly processorSecondsAPod: number;
}

export interface ScheduleOptions {
  readonly extenders: readonly ExtenderSettings[];
  readonly pod: Pick<StagePod, 'cpu' | 'devices'>;
  readonly pods: number;
  readonly percentage: number | undefined;
}

let schedulers = 0;

/**
 * Starts a separate scheduler for each of these, all at once, with pods that were waiting before it starts. The first
 * and last twentieth of its pods do not count: caches fill, and the queue runs empty.
 */
export async function schedule(stage: Stage, wanted: readonly ScheduleOptions[]): Promise<Run[]> {
  const runs = wanted.map((options) => ({ ...options, name: `bench-${++schedulers}` }));
  const stopped = new AbortController();
  const waiting = runs.map(({ name, pods }) => Array.from({ length: pods }, (_, i) => `${name}-${i}`));
  const each = (work: (pod: string, of: (typeof runs)[number]) => Promise<unknown>) =>
    Promise.all(runs.map((of, i) => inParallel(waiting[i]!, async (pod) => void (await work(pod, of)))));
  await each((name, { pod, name: schedulerName }) => stage.addPod({ name, ...pod, more: { schedulerName } }));
  const measured = await Promise.all(runs.map((run) => measure(stage, run, stopped.signal)));
  stopped.abort();
  await each((pod) => stage.client.delete(`${PODS_PATH}/${pod}`));
  await untilQuiet(stage);
  return measured;
}

async function measure(
  stage: Stage,
  { name, extenders, pods, percentage }: ScheduleOptions & { readonly name: string },
  signal: AbortSignal,
): Promise<Run> {
  const [first, last] = [Math.ceil(pods * 0.05), Math.floor(pods * 0.95)];
  const at = new Map<number, { readonly seconds: number; readonly processor: number }>();
  let bound = 0;
  let pid = 0;
  const watching = watchBindings(stage, name, signal, () => {
    bound++;
    if (bound !== first && bound !== last) return;
    at.set(bound, { seconds: performance.now() / 1000, processor: cpuSecondsOf(pid) });
  });
  let failure: unknown;
  watching.catch((error: unknown) => {
    failure = error;
  });
  const scheduler = await stage.startScheduler({
    name,
    extenders,
    ...(percentage !== undefined && { percentageOfNodesToScore: percentage }),
  });
  pid = scheduler.pid;
  const deadline = performance.now() + WITHIN * 1000;
  while (bound < pods) {
    scheduler.assertAlive();
    if (failure !== undefined) throw failure;
    if (performance.now() > deadline) throw new Error(`${bound} of ${pods} pods are bound after ${WITHIN} s`);
    await delay(50);
  }
  await scheduler.stop();
  const [begin, end] = [at.get(first)!, at.get(last)!];
  return {
    podsASecond: (last - first) / (end.seconds - begin.seconds),
    processorSecondsAPod: (end.processor - begin.processor) / (last - first),
  };
}

/**
 * Reports for each pod of a scheduler when it first has a node. The API server ends the watch of a slow reader, for
 * example on a busy machine; the next one starts with the API server's cached state (resourceVersion 0), however old.
 */
async function watchBindings(stage: Stage, name: string, signal: AbortSignal, onBound: () => void): Promise<void> {
  const query = { fieldSelector: `spec.schedulerName=${name}`, resourceVersion: '0' };
  const seen = new Set<string>();
  try {
    while (!signal.aborted) {
      let rest = '';
      for await (const chunk of await stage.client.watch(PODS_PATH, { query, signal })) {
        const lines = (rest + Buffer.from(chunk).toString()).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) {
          const { object } = JSON.parse(line) as { object: SeenPod };
          if (object.spec?.nodeName === undefined || seen.has(object.metadata.name)) continue;
          seen.add(object.metadata.name);
          onBound();
        }
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Waits until no node changes any more: the extender has written the labels for the reports. */
export async function untilQuiet(stage: Stage): Promise<void> {
  const version = async () => {
    const { metadata } = (await stage.client.get('/api/v1/nodes', { query: { limit: 1 } })) as {
      metadata: { resourceVersion: string };
    };
    return metadata.resourceVersion;
  };
  for (let before = await version(); ; ) {
    await delay(3000);
    const now = await version();
    // Only the active replica's Lease is renewed, about twice in that time.
    if (Number(now) - Number(before) < 10) return;
    before = now;
  }
}

/**
 * Checks that the extender uses the report of every node. Without it, it answers from the number of CPUs alone, and a
 * measurement would not show what it usually does.
 *
 * @throws Error if a report is in quarantine
 */
export async function requireReports({ metric }: Pick<Replica, 'metric'>): Promise<void> {
  const quarantined = await metric('plumbline_extender_quarantined_reports');
  if (quarantined > 0) {
    throw new Error(
      `${quarantined} reports are in quarantine; make the Nodes of this benchmark agree with their reports`,
    );
  }
}
