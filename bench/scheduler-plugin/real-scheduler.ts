import { readFileSync } from 'node:fs';
import { type ExtenderSettings, type Stage, type StagePod, startStage } from '../../test/real/scheduler/stage.ts';
import { until } from '../../test/support/until.ts';
import { runScript } from '../support/process.ts';
import { serving } from '../support/serving.ts';
import type { BenchSettings } from '../support/settings.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { nodeName, nodeStatus } from './nodes.ts';
import { requireReports, untilQuiet } from './quiet.ts';
import { type Run, type ScheduleOptions, schedule } from './schedule.ts';

const ALL_PODS = 'kube-scheduler-config-all-pods.yaml';
/** The scheduler's default and the value in the shipped profile. */
const PERCENTAGES = [undefined, 100] as const;
const LAUNCHER = { cpu: '4', devices: ['devices.kubevirt.io/kvm'] };
const ORDINARY = { cpu: '500m', devices: [] };

/** A comparison: the schedulers' extenders, and the requests of the pods. */
interface Comparison {
  readonly name: string;
  readonly pod: Pick<StagePod, 'cpu' | 'devices'>;
  readonly extenders: readonly ExtenderSettings[];
  readonly others: readonly ExtenderSettings[];
  /**
   * Runs both schedulers at the same time instead of one after the other, each with its own pods, this many times as
   * many.
   */
  readonly atOnce?: number;
  /** Above 1 if Plumbline is better. */
  readonly ratio: (ours: Run, theirs: Run) => number;
  readonly least: number;
}

/**
 * A real kube-scheduler with many nodes. Pods per second with Plumbline relative to an extender that passes all nodes,
 * called for launchers only and for every pod, in turns. For pods that do not use Plumbline, the scheduler's own
 * processor time relative to a scheduler without any extender, because turns cannot resolve two hundredths.
 */
export async function besideRealScheduler({ nodes, pods, rounds, asked }: BenchSettings): Promise<BenchResult[]> {
  const stage = await startStage();
  try {
    await stage.addNodes(Array.from({ length: nodes }, (_, i) => ({ name: nodeName(i), topology: nodeStatus(i) })));
    const replica = await stage.startReplica({ args: ['--reservation-timeout', '600'] });
    await until('the replica to be active', () => replica.isActive());
    await untilQuiet(stage);
    await requireReports(replica);
    const echo = runScript('bench/scheduler-plugin/echo-extender.ts', [], serving(stage.certificate));
    const { port: echoPort } = await echo.line((found) => typeof found['port'] === 'number');
    const comparisons = comparisonsOf(stage, replica.port, Number(echoPort));
    const lost = replica.ended.then((): never => {
      throw new Error(`the extender has ended:\n${readFileSync(replica.logFile, 'utf8').slice(-4000)}`);
    });
    lost.catch(() => undefined);
    const run = (...runs: ScheduleOptions[]) => Promise.race([schedule(stage, runs), lost]);
    await run({ extenders: [stage.extenderAt(replica.port)], pod: LAUNCHER, pods, percentage: undefined });
    const results: BenchResult[] = [];
    for (const percentage of PERCENTAGES) {
      const profile = `kube-scheduler.${percentage === undefined ? 'default' : `all-nodes`}-profile`;
      for (const { name, pod, extenders, others, atOnce, ratio, least } of comparisons) {
        if (!asked(`${profile}-${name}`)) continue;
        const ratios: number[] = [];
        for (let round = 0; round < rounds; round++) {
          const many = pods * (atOnce ?? 1);
          const both = [extenders, others].map((one) => ({ extenders: one, pod, pods: many, percentage }));
          const [ours, theirs] = atOnce ? await run(...both) : await inTurns(round, run, both);
          if (ours === undefined || theirs === undefined) throw new Error('one of two was not measured');
          ratios.push(ratio(ours, theirs));
          console.error(`# ${profile}-${name}: ${inWords(ours)}; ${inWords(theirs)}`);
        }
        results.push(summary(`${profile}-${name}`, ratios, { least }));
      }
    }
    await echo.stop();
    return results;
  } finally {
    await stage.stop();
  }
}

function comparisonsOf(stage: Stage, port: number, echoPort: number): readonly Comparison[] {
  const scoped = stage.extenderAt(port);
  const { managedResources, ...echoEvery } = {
    ...stage.extenderAt(echoPort),
    prioritizeVerb: '',
    preemptVerb: '',
  } as ExtenderSettings;
  const byRate = { ratio: (ours: Run, theirs: Run) => ours.podsASecond / theirs.podsASecond, least: 0.9 };
  return [
    {
      name: 'over-echo-extender',
      pod: LAUNCHER,
      extenders: [scoped],
      others: [{ ...echoEvery, managedResources }],
      ...byRate,
    },
    {
      name: 'every-pod-over-echo-extender',
      pod: ORDINARY,
      extenders: stage.extendersAt(port, ALL_PODS),
      others: [echoEvery],
      ...byRate,
    },
    {
      name: 'unmatched-over-no-extender',
      pod: ORDINARY,
      extenders: [scoped],
      others: [],
      atOnce: 3,
      ratio: (ours, theirs) => theirs.processorSecondsAPod / ours.processorSecondsAPod,
      least: 0.98,
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
