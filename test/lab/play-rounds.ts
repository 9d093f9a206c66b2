import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monotonicSeconds } from '../../runtime/time.ts';
import { bundleProgram } from '../support/bundle-program.ts';
import { type AgentReport, startAgent } from './agent-report.ts';
import { createCluster } from './cluster.ts';
import { deviceCounts } from './devices.ts';
import { createGuest } from './guest.ts';
import type { KubeletProgram } from './kubelets.ts';
import type { Lab } from './lab.ts';
import { lineOf, mismatchOf, type Outcome, play, type Step } from './play.ts';
import { whyUnpredictable } from './predict.ts';
import { createRandom } from './random.ts';
import type { RecordedNode, RecordedRound } from './recording.ts';
import { emptySnapshot, expectedReport } from './report.ts';
import { ROUNDS, type Round } from './rounds.ts';
import { missingSriov } from './sriov.ts';

export interface RoundsToPlay {
  readonly rounds: readonly Round[];
  readonly kubelets: readonly KubeletProgram[];
  readonly pods: number;
  readonly seed: number;
}

const NODE_READY = 180;

export async function playRounds(
  lab: Lab,
  { rounds, kubelets, pods, seed }: RoundsToPlay,
  tally: Tally,
  recorded: RecordedRound[],
  signal: AbortSignal,
): Promise<void> {
  const guest = createGuest(lab, signal);
  const cluster = createCluster(lab.kubeconfig(), signal);
  const clock = createClock();
  let agent: AgentReport | undefined;
  try {
    await cluster.prepare();
    await guest.startPlugin(await bundlePlugin());
    const hardware = await guest.hardware();
    for (const kubelet of kubelets.length > 0 ? kubelets : [undefined]) {
      if (kubelet) {
        await guest.replaceKubelet(kubelet);
        await cluster.forgetNode();
        console.log(`## kubelet ${kubelet.version}, ${kubelet.path}, in its place in ${clock()} s`);
      }
      await agent?.stop();
      agent = undefined;
      const version = kubelet?.version ?? (await guest.kubeletVersion());
      for (const round of rounds) {
        const inGuest: RecordedNode = { round, version, ...hardware };
        const expected = expectedReport(inGuest, emptySnapshot(inGuest), new Map());
        const reason = (round.sriov && missingSriov(process.env)) || whyUnpredictable(expected);
        if (reason !== '') {
          console.log(`skipped: round ${round.name}: ${reason}`);
          tally.skip(version);
          continue;
        }
        await guest.configure(round, version);
        const node = await cluster.readyNode(NODE_READY, deviceCounts(round), { version });
        if (agent === undefined) agent = await startAgent(lab, cluster, node, signal);
        else await agent.restart();
        const report = await agent.settled(new Map(), expected);
        console.log(`${headingOf(round)}, kubelet ${node.version}, configured in ${clock()} s`);
        const steps: Step[] = [];
        recorded.push({ node: inGuest, report, steps });
        // A round has its own random numbers, so that it draws the same pods whichever others are played.
        const random = createRandom(seed + 1_000_003 * ROUNDS.indexOf(round));
        for await (const outcome of play({ recorded: inGuest, node, cluster, guest, agent, random, pods, report })) {
          print(outcome, Number(clock()));
          tally.count(version, outcome);
          steps.push(outcome.step);
        }
      }
    }
  } finally {
    await agent?.stop().catch(() => undefined);
    await cluster.prepare().catch(() => undefined);
    if (kubelets.length > 0) await cluster.forgetNode().catch(() => undefined);
    await guest.restore();
    await cluster.close();
  }
}

function print(outcome: Outcome, seconds: number): void {
  console.log(lineOf(outcome, seconds));
  if (outcome.differences.length > 0) console.log(mismatchOf(outcome));
}

function headingOf({ name, topologyPolicy, scope, cpuOptions, topologyOptions = {}, reserved, reservedMemory }: Round) {
  const options = Object.keys({ ...cpuOptions, ...topologyOptions }).join(', ') || 'no option';
  const memory = reservedMemory ? `, ${reservedMemory.join(' + ')} MiB of memory` : '';
  return `# ${name}: ${topologyPolicy}, ${scope} scope, ${options}, ${reserved}${memory} reserved`;
}

export function createClock(): () => string {
  let last = monotonicSeconds();
  return () => {
    const now = monotonicSeconds();
    const seconds = now - last;
    last = now;
    return seconds.toFixed(1);
  };
}

export async function bundlePlugin(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-lab-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  return bundleProgram('test/lab/device-plugin.ts', join(directory, 'device-plugin.cjs'));
}

interface Row {
  pods: number;
  steps: number;
  notPredicted: number;
  mispredictions: number;
  skipped: number;
}

type Tally = ReturnType<typeof createTally>;

type Counted = Pick<Outcome, 'differences' | 'unpredictable'> & { readonly step: { readonly action: string } };

export function createTally() {
  const rows = new Map<string, Row>();
  const rowOf = (version: string): Row => {
    const row = rows.get(version) ?? { pods: 0, steps: 0, notPredicted: 0, mispredictions: 0, skipped: 0 };
    rows.set(version, row);
    return row;
  };
  const sum = (of: (row: Row) => number) => [...rows.values()].reduce((total, row) => total + of(row), 0);
  let passed = 0;
  return {
    count(version: string, { step, differences, unpredictable }: Counted) {
      const row = rowOf(version);
      row.steps++;
      if (step.action === 'create') row.pods++;
      if (unpredictable !== undefined) row.notPredicted++;
      if (differences.length > 0) row.mispredictions++;
      else if (step.action === 'create' && unpredictable === undefined) passed++;
    },
    /** One round that is not predicted for this version, or lacks a part. */
    skip(version: string) {
      rowOf(version).skipped++;
    },
    get passed() {
      return passed;
    },
    get failed() {
      return sum((row) => row.mispredictions);
    },
    table: (): readonly string[] => {
      if (rows.size === 0) return [];
      const lines = [...rows].map(([version, { pods, steps, notPredicted, mispredictions, skipped }]) =>
        [version, pods, steps, notPredicted, mispredictions, skipped].map(String),
      );
      return columns([['kubelet', 'pods', 'steps', 'not predicted', 'mispredictions', 'rounds skipped'], ...lines]);
    },
  };
}

function columns(lines: readonly (readonly string[])[]): string[] {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  return lines.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  );
}
