import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { sidecarConfiguration } from '../../cli/demo/cluster.ts';
import {
  configurationAt,
  type ExtenderSettings,
  inParallel,
  type StagePod,
  startStage,
} from '../../test/real/scheduler/stage.ts';
import { root } from '../../test/support/bundles.ts';
import { listenOnLoopback } from '../../test/support/processes.ts';
import { until } from '../../test/support/until.ts';
import { runScript } from '../support/process.ts';
import type { BenchSettings } from '../support/settings.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { nodeName, nodeStatus } from './nodes.ts';
import { type Run, requireReports, type ScheduleOptions, schedule, untilQuiet } from './schedule.ts';

/** The scheduler's default and the value in the shipped profile. */
const PERCENTAGES = [undefined, 100] as const;
/** The least ratio. */
const MIN_RATIO = 0.9;
const LAUNCHER = { cpu: '4', devices: ['devices.kubevirt.io/kvm'] };
const ORDINARY = { cpu: '500m', devices: [] };

/** A comparison: the schedulers' extenders, and the requests of the pods. */
interface Comparison {
  readonly name: string;
  readonly pod: Pick<StagePod, 'cpu' | 'devices'>;
  readonly extenders: readonly ExtenderSettings[];
  readonly others: readonly ExtenderSettings[];
}

/**
 * A real kube-scheduler with many nodes. Pods per second with Plumbline relative to an extender that passes all nodes, in
 * turns: launchers with Plumbline's own kube-scheduler, and ordinary pods with the extender next to the cluster's.
 */
export async function besideRealScheduler({ nodes, pods, rounds, asked }: BenchSettings): Promise<BenchResult[]> {
  const stage = await startStage();
  try {
    await stage.addNodes(Array.from({ length: nodes }, (_, i) => ({ name: nodeName(i), topology: nodeStatus(i) })));
    const replica = await stage.startReplica({ args: ['--reservation-timeout', '600'] });
    await until('the replica to be active', () => replica.isActive());
    await untilQuiet(stage);
    await requireReports(replica);
    const echo = runScript('bench/scheduler-plugin/echo-extender.ts', []);
    const { port: echoPort } = await echo.line((found) => typeof found['port'] === 'number');
    const comparisons = await comparisonsOf(replica.port, Number(echoPort));
    const lost = until('the extender to end', () => !replica.isAlive(), Number.POSITIVE_INFINITY).then((): never => {
      throw new Error(`the extender has ended:\n${readFileSync(replica.logFile, 'utf8').slice(-4000)}`);
    });
    lost.catch(() => undefined);
    const run = (...runs: ScheduleOptions[]) => Promise.race([schedule(stage, runs), lost]);
    const { extenders } = await configurationAt('sidecar', replica.port);
    await run({ extenders, pod: LAUNCHER, pods, percentage: undefined });
    const results: BenchResult[] = [];
    for (const percentage of PERCENTAGES) {
      const profile = `kube-scheduler.${percentage === undefined ? 'default' : `all-nodes`}-profile`;
      for (const { name, pod, extenders: ours, others: theirs } of comparisons) {
        if (!asked(`${profile}-${name}`)) continue;
        const ratios: number[] = [];
        for (let round = 0; round < rounds; round++) {
          const both = [ours, theirs].map((extenders) => ({ extenders, pod, pods, percentage }));
          const [withPlumbline, withEcho] = await inTurns(round, run, both);
          if (withPlumbline === undefined || withEcho === undefined) throw new Error('one of two was not measured');
          ratios.push(withPlumbline.podsASecond / withEcho.podsASecond);
          console.error(`# ${profile}-${name}: ${inWords(withPlumbline)}; ${inWords(withEcho)}`);
        }
        results.push(summary(`${profile}-${name}`, ratios, { least: MIN_RATIO }));
      }
    }
    await echo.stop();
    return results;
  } finally {
    await stage.stop();
  }
}

async function comparisonsOf(port: number, echoPort: number): Promise<readonly Comparison[]> {
  const echoAt = async (way: 'sidecar' | 'loopback'): Promise<ExtenderSettings[]> => {
    const [filter] = (await configurationAt(way, echoPort)).extenders;
    return [{ ...filter, prioritizeVerb: '', preemptVerb: '' }];
  };
  return [
    {
      name: 'over-echo-extender',
      pod: LAUNCHER,
      extenders: (await configurationAt('sidecar', port)).extenders,
      others: await echoAt('sidecar'),
    },
    {
      name: 'every-pod-over-echo-extender',
      pod: ORDINARY,
      extenders: (await configurationAt('loopback', port)).extenders,
      others: await echoAt('loopback'),
    },
  ];
}

const inWords = ({ podsASecond, processorSecondsAPod }: Run) =>
  `${podsASecond.toFixed(0)} pods a second, ${(processorSecondsAPod * 1000).toFixed(2)} ms each`;

/** Alternates which one is first, so that a drift of the machine's speed affects both. */
async function inTurns(
  round: number,
  run: (one: ScheduleOptions) => Promise<Run[]>,
  both: readonly ScheduleOptions[],
): Promise<Run[]> {
  const runs: Run[] = [];
  for (const one of round % 2 === 0 ? both : both.toReversed()) runs.push(...(await run(one)));
  return round % 2 === 0 ? runs : runs.toReversed();
}

const [OUTAGE_NODES, OUTAGE_PODS, OUTAGE_VMS] = [200, 2000, 20];

/**
 * Pods per second of the cluster's own kube-scheduler while Plumbline's extender hangs and VMs wait for it, relative to
 * the same cluster without Plumbline, in turns.
 */
export async function ordinaryDuringOutage({ rounds }: BenchSettings): Promise<BenchResult[]> {
  const stage = await startStage();
  const hung = createServer(() => undefined);
  const port = await listenOnLoopback(hung);
  try {
    await stage.addNodes(Array.from({ length: OUTAGE_NODES }, (_, i) => ({ name: nodeName(i) })));
    const { extenders } = (await sidecarConfiguration(root, port)) as { extenders: ExtenderSettings[] };
    const run = async () => {
      const [one] = await schedule(stage, [{ extenders: [], pod: ORDINARY, pods: OUTAGE_PODS, percentage: undefined }]);
      if (one === undefined) throw new Error('nothing was measured');
      return one.podsASecond;
    };
    const duringOutage = async () => {
      const vms = Array.from({ length: OUTAGE_VMS }, (_, i) => `vm-${i}`);
      const scheduler = await stage.startScheduler({ name: 'plumbline-scheduler', extenders });
      const more = { schedulerName: 'plumbline-scheduler' };
      await inParallel(vms, async (name) => stage.addPod({ name, cpu: '4', more }));
      const rate = await run();
      await scheduler.stop();
      await inParallel(
        vms,
        async (name) => void (await stage.client.delete(`/api/v1/namespaces/default/pods/${name}`)),
      );
      return rate;
    };
    await run();
    const ratios: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const first = round % 2 === 0 ? await duringOutage() : await run();
      const second = round % 2 === 0 ? await run() : await duringOutage();
      const [outage, alone] = round % 2 === 0 ? [first, second] : [second, first];
      console.error(`# ${outage.toFixed(0)} pods a second during the outage, ${alone.toFixed(0)} without Plumbline`);
      ratios.push(outage / alone);
    }
    return [summary('outage.ordinary-pods-over-no-plumbline', ratios, { least: 0.9 })];
  } finally {
    hung.closeAllConnections();
    hung.close();
    await stage.stop();
  }
}
