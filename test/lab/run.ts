import { rmSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { monotonicSeconds, sleep } from '../../runtime/time.ts';
import { commandLine, newSeed } from '../support/command-line.ts';
import { createCluster } from './cluster.ts';
import { TEST_COUNTS } from './devices.ts';
import { createGuest } from './guest.ts';
import { findLab, type Lab } from './lab.ts';
import type { MakeDisks } from './machine/qemu.ts';
import { play } from './play.ts';
import { lineOf, mismatchOf } from './print.ts';
import { createRandom } from './random.ts';
import { ROUNDS, type Round } from './rounds.ts';
import { SCENARIOS } from './scenarios/index.ts';
import { type Count, playScenarios } from './scenarios/play.ts';
import type { Scenario } from './scenarios/scenario.ts';

const PODS = 12;
const names = (list: readonly { readonly name: string }[]) => list.map(({ name }) => name).join(', ');
const USAGE = `npm run test:lab -- [options]

On a node with a real kubelet (docs/lab.md): the scenarios, with the agent and what it works with, and then the predictions,
by random pods that are created and deleted under each round's configuration of the kubelet. What is named is played alone.

  --scenario <name>  may be repeated: ${names(SCENARIOS)}; all
  --round <name>     may be repeated: ${names(ROUNDS)}
  --pods <number>    of each round (default ${PODS})
  --seed <number>    of the pods; a run with the same seed draws the same
  --record <file>    write what the kubelet did, a line of JSON for each step
  --keep             leave the machine running until Ctrl-C
  --help

Where there is no lab it says what is missing, and ends with 0. Otherwise the last line counts the steps that held and the
pods that came out as predicted; ends with 1 if one did not, with 2 on wrong options.`;

const {
  values: flags,
  refuse,
  wholeNumber,
} = commandLine(USAGE, {
  seed: { type: 'string' },
  pods: { type: 'string' },
  round: { type: 'string', multiple: true },
  scenario: { type: 'string', multiple: true },
  record: { type: 'string' },
  keep: { type: 'boolean', default: false },
});
const seed = wholeNumber('seed', 0) ?? newSeed();
const pods = wholeNumber('pods', 1) ?? PODS;
const named = flags.round !== undefined || flags.scenario !== undefined;
const rounds = chosen('--round', ROUNDS, flags.round) ?? (named ? [] : ROUNDS);
const allScenarios = named ? flags.scenario?.includes('all') : true;
const scenarios = allScenarios ? SCENARIOS : (chosen('--scenario', SCENARIOS, flags.scenario) ?? []);

const lab = await findLab(process.env);
if ('missing' in lab) {
  console.log(`skipped: ${lab.missing}`);
  console.log('0 passed, 0 failed, 1 skipped');
} else {
  process.exitCode = (await runAll(lab)) ? 0 : 1;
}

async function runAll(lab: Lab): Promise<boolean> {
  const interrupt = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => interrupt.abort(new Error('interrupted')));
  }
  const began = monotonicSeconds();
  const count: Count = { passed: 0, failed: 0 };
  try {
    const others = await lab.up(interrupt.signal, disksOf(scenarios));
    if (scenarios.length > 0) await playScenarios(lab, scenarios, interrupt.signal, count);
    if (rounds.length > 0) await playRounds(lab, interrupt.signal, count);
    if (flags.keep && !others) await kept(lab, interrupt.signal);
  } catch (error) {
    count.failed++;
    console.log(`stopped: ${(error as Error).message}`);
  } finally {
    await lab.down();
  }
  console.log(`seed ${seed}, ${(monotonicSeconds() - began).toFixed(0)} s`);
  console.log(`${count.passed} passed, ${count.failed} failed`);
  return count.failed === 0;
}

function disksOf(played: readonly Scenario[]): MakeDisks {
  return async (places, say) => {
    const disks: Record<string, string> = {};
    for (const scenario of played)
      if (scenario.missing?.() === undefined) Object.assign(disks, await scenario.disks?.(places, say));
    return disks;
  };
}

/** Until Ctrl-C the machine is for whoever wants to look around, and for other runs. */
async function kept(lab: Lab, signal: AbortSignal): Promise<void> {
  console.log(`kept until Ctrl-C\n${lab.hint}`);
  while (!signal.aborted) await sleep(3600, signal).catch(() => undefined);
}

async function playRounds(lab: Lab, signal: AbortSignal, count: Count): Promise<void> {
  const guest = createGuest(lab, signal);
  const cluster = createCluster(lab.kubeconfig(), signal);
  const recorded: string[] = [];
  console.log(`seed ${seed}: ${rounds.length} rounds of ${pods} pods`);
  try {
    await cluster.prepare();
    await guest.installPlugin(await bundlePlugin());
    const host = await guest.host();
    for (const round of rounds) {
      let last = monotonicSeconds();
      await guest.configure(round);
      // Most come up in ten seconds; one in fourteen was seen not to have come up in 60.
      const node = await cluster.readyNode(180, TEST_COUNTS);
      console.log(`${headingOf(round)}, kubelet ${node.version}, configured in ${elapsed()} s`);
      recorded.push(JSON.stringify({ round, version: node.version, host }));
      // A round has its own numbers, so that it draws the same pods whichever others are played.
      const random = createRandom(seed + 1_000_003 * ROUNDS.indexOf(round));
      for await (const outcome of play({
        followed: { version: node.version, host, round },
        node,
        cluster,
        guest,
        random,
        pods,
      })) {
        console.log(lineOf(outcome, Number(elapsed())));
        if (outcome.differences.length > 0) console.log(mismatchOf(outcome));
        if (outcome.differences.length > 0) count.failed++;
        else if (outcome.step.action === 'create') count.passed++;
        recorded.push(JSON.stringify(outcome.step));
      }
      function elapsed(): string {
        const now = monotonicSeconds();
        const seconds = now - last;
        last = now;
        return seconds.toFixed(1);
      }
    }
  } finally {
    await cluster.prepare().catch(() => undefined);
    await guest.restore();
    if (flags.record) await writeFile(flags.record, recorded.map((line) => `${line}\n`).join(''));
    await cluster.close();
  }
}

function headingOf({ name, topologyPolicy, scope, cpuOptions, reserved }: Round): string {
  const options = Object.keys(cpuOptions).join(', ') || 'no option';
  return `# ${name}: ${topologyPolicy}, ${scope} scope, ${options}, ${reserved} reserved`;
}

/** The program for the guest as one file. */
async function bundlePlugin(): Promise<string> {
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

/** Those that a flag names; undefined where it is not given. */
function chosen<Item extends { readonly name: string }>(
  flag: string,
  all: readonly Item[],
  wanted: readonly string[] | undefined,
): readonly Item[] | undefined {
  const unknown = wanted?.find((name) => !all.some((item) => item.name === name));
  if (unknown !== undefined) refuse(`${flag} ${unknown}: there is no such one`);
  return wanted && all.filter(({ name }) => wanted.includes(name));
}
