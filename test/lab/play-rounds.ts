import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { monotonicSeconds } from '../../runtime/time.ts';
import { type AgentReport, startAgent } from './agent-report.ts';
import { createCluster } from './cluster.ts';
import { deviceCounts } from './devices.ts';
import { createGuest } from './guest.ts';
import type { KubeletProgram } from './kubelets.ts';
import type { Lab } from './lab.ts';
import { type Outcome, play, type Step } from './play.ts';
import { whyUnpredictable } from './predict.ts';
import { lineOf, mismatchOf } from './print.ts';
import { createRandom } from './random.ts';
import type { RecordedNode, RecordedRound } from './recording.ts';
import { emptySnapshot, expectedReport } from './report.ts';
import { ROUNDS, type Round } from './rounds.ts';
import { missingSriov } from './sriov.ts';
import type { Tally } from './tally.ts';

/** The rounds for the running machine. */
export interface RoundsToPlay {
  readonly rounds: readonly Round[];
  /** Empty: the machine's own. */
  readonly kubelets: readonly KubeletProgram[];
  readonly pods: number;
  readonly seed: number;
}

/** Seconds: most start in ten; one in fourteen had not started after 60. */
const NODE_READY = 180;

/** Plays rounds on each kubelet, and adds the results to the tally and to the recording. */
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

/** Returns the seconds since its last call. */
export function createClock(): () => string {
  let last = monotonicSeconds();
  return () => {
    const now = monotonicSeconds();
    const seconds = now - last;
    last = now;
    return seconds.toFixed(1);
  };
}

/** The guest's program as one file. */
export async function bundlePlugin(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-lab-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  const outfile = join(directory, 'device-plugin.cjs');
  await build({
    entryPoints: [join(import.meta.dirname, 'device-plugin.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    logLevel: 'warning',
  });
  return outfile;
}
