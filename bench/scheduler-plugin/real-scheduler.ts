import { readFileSync } from 'node:fs';
import {
  type ExtenderSettings,
  inParallel,
  type SeenPod,
  type Stage,
  type StagePod,
  startStage,
  until,
} from '../../test/real/scheduler/stage.ts';
import { quantile } from '../support/http-load.ts';
import { runScript } from '../support/process.ts';
import { serving } from '../support/serving.ts';
import type { BenchSettings } from '../support/settings.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { nodeName, nodeStatus } from './nodes.ts';
import { untilQuiet } from './quiet.ts';

const ALL_PODS = 'kube-scheduler-config-all-pods.yaml';
const PODS_PATH = '/api/v1/namespaces/default/pods';

const BOUNDS = { echo: 0.9, none: 0.98 } as const;
/** The scheduler's own choice, and what the shipped profile sets. */
const PERCENTAGES = [undefined, 100] as const;

/** What stands beside the scheduler, and what the pods ask for. */
interface Setting {
  readonly extenders: readonly ExtenderSettings[];
  readonly pod: Pick<StagePod, 'cpu' | 'devices'>;
}

const LAUNCHER = { cpu: '4', devices: ['devices.kubevirt.io/kvm'] };
const ORDINARY = { cpu: '500m', devices: [] };

/**
 * Pods a second of a real kube-scheduler with many nodes: with Plumbline against an extender that takes every node, asked
 * about launchers alone and about every pod; and for pods that are none of Plumbline's business against a scheduler without
 * any extender. In turns, in one run.
 */
export async function podsPerSecond(settings: BenchSettings): Promise<BenchResult[]> {
  const stage = await startStage();
  try {
    const nodes = Array.from({ length: settings.nodes }, (_, i) => ({ name: nodeName(i), topology: nodeStatus(i) }));
    await stage.addNodes(nodes);
    const replica = await stage.startReplica({ args: ['--claim-timeout', '600'] });
    await until('the replica to be active', () => replica.isActive(), 60);
    await untilQuiet(stage);
    const echo = runScript('bench/scheduler-plugin/echo-extender.ts', [], serving(stage.certificate));
    const line = await echo.line((found) => typeof found['port'] === 'number');
    const scoped = stage.extenderAt(replica.port);
    const { managedResources: _, ...echoEvery } = {
      ...stage.extenderAt(Number(line['port'])),
      prioritizeVerb: '',
      preemptVerb: '',
    } as ExtenderSettings;
    const echoScoped = { ...echoEvery, managedResources: scoped['managedResources'] };
    const lost = replica.ended.then((): never => {
      throw new Error(`the extender has ended:\n${readFileSync(replica.logFile, 'utf8').slice(-4000)}`);
    });
    lost.catch(() => undefined);
    const timed = (setting: Setting, percentage?: number) =>
      Promise.race([rate(stage, setting, settings.pods, percentage), lost]);
    await timed({ extenders: [scoped], pod: LAUNCHER });
    const results: BenchResult[] = [];
    for (const percentage of PERCENTAGES) {
      const name = `kube-scheduler.${percentage === undefined ? 'default' : `all-nodes`}-profile`;
      const run = (setting: Setting) => timed(setting, percentage);
      const [overEcho, overNone, everyPod]: [number[], number[], number[]] = [[], [], []];
      for (let round = 0; round < settings.rounds; round++) {
        const launchers = await inTurns(round, run, [
          { extenders: [scoped], pod: LAUNCHER },
          { extenders: [echoScoped], pod: LAUNCHER },
        ]);
        const others = await inTurns(round, run, [
          { extenders: [scoped], pod: ORDINARY },
          { extenders: [], pod: ORDINARY },
        ]);
        const every = await inTurns(round, run, [
          { extenders: stage.extendersAt(replica.port, ALL_PODS), pod: ORDINARY },
          { extenders: [echoEvery], pod: ORDINARY },
        ]);
        overEcho.push(launchers[0] / launchers[1]);
        overNone.push(others[0] / others[1]);
        everyPod.push(every[0] / every[1]);
        const rates = [launchers, others, every]
          .map((pair) => pair.map((one) => one.toFixed(0)).join(' beside '))
          .join(', ');
        console.error(`${name}: ${rates} pods a second: over an echo, unmatched over none, every pod over an echo`);
      }
      results.push(summary(`${name}-over-echo-extender`, overEcho, { least: BOUNDS.echo }));
      results.push(summary(`${name}-every-pod-over-echo-extender`, everyPod, { least: BOUNDS.echo }));
      results.push(summary(`${name}-unmatched-over-no-extender`, overNone, { least: BOUNDS.none }));
    }
    await echo.stop();
    return results;
  } finally {
    await stage.stop();
  }
}

/** Now one first, now the other, so that a drift of the machine's speed does not count for one of them. */
async function inTurns(
  round: number,
  run: (setting: Setting) => Promise<number>,
  [one, other]: readonly [Setting, Setting],
): Promise<[number, number]> {
  if (round % 2 === 0) return [await run(one), await run(other)];
  const last = await run(other);
  return [await run(one), last];
}

let schedulers = 0;

/** Pods that wait from before the scheduler starts, and how many of them it binds a second. */
async function rate(
  stage: Stage,
  { extenders, pod: wants }: Setting,
  many: number,
  percentage?: number,
): Promise<number> {
  const name = `bench-${++schedulers}`;
  const pods = Array.from({ length: many }, (_, i) => `${name}-${i}`);
  await inParallel(pods, (pod) => stage.addPod({ name: pod, ...wants, more: { schedulerName: name } }));
  const bound: number[] = [];
  const stopped = new AbortController();
  const watching = watchBindings(stage, name, bound, stopped.signal);
  // What goes wrong meanwhile is told by what waits for the bindings.
  watching.catch(() => undefined);
  const scheduler = await stage.startScheduler({
    name,
    extenders,
    ...(percentage !== undefined && { percentageOfNodesToScore: percentage }),
  });
  await until(`${many} pods to be bound`, async () => bound.length >= many, 600);
  await scheduler.stop();
  stopped.abort();
  await watching;
  await inParallel(pods, async (pod) => void (await stage.client.delete(`${PODS_PATH}/${pod}`)));
  await untilQuiet(stage);
  // Without the first and last twentieth: caches fill, and the queue runs dry.
  const [begin, end] = [quantile(bound, 0.05), quantile(bound, 0.95)];
  return (many * 0.9) / ((end - begin) / 1000);
}

/** Notes when each pod of a scheduler is first seen with a node. */
async function watchBindings(stage: Stage, name: string, bound: number[], signal: AbortSignal): Promise<void> {
  const query = { watch: true, fieldSelector: `spec.schedulerName=${name}` };
  const seen = new Set<string>();
  let rest = '';
  try {
    for await (const chunk of await stage.client.watch(PODS_PATH, { query, signal })) {
      const lines = (rest + Buffer.from(chunk).toString()).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const { object } = JSON.parse(line) as { object: SeenPod };
        if (object.spec?.nodeName === undefined || seen.has(object.metadata.name)) continue;
        seen.add(object.metadata.name);
        bound.push(performance.now());
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
