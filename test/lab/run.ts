import { writeFile } from 'node:fs/promises';
import { monotonicSeconds, sleep } from '../../runtime/time.ts';
import { recordRun } from '../last-run.ts';
import { commandLine, newSeed } from '../support/command-line.ts';
import { countsText } from '../tally.ts';
import { type KubeletProgram, kubeletFolders, readKubelets } from './kubelets.ts';
import { findLab, type Lab } from './lab.ts';
import type { LayoutName } from './machine/layouts.ts';
import type { MakeDisks } from './machine/qemu.ts';
import { createTally, playRounds } from './play-rounds.ts';
import { type RecordedRound, writeRecording } from './recording.ts';
import { ROUNDS } from './rounds.ts';
import { SCENARIOS } from './scenarios/index.ts';
import { type Count, playScenarios } from './scenarios/play.ts';
import type { Scenario } from './scenarios/scenario.ts';

const PODS = 12;
const LAYOUT: LayoutName = 'two-nodes';
const names = (list: readonly { readonly name: string }[]) => list.map(({ name }) => name).join(', ');
const USAGE = `npm run test:lab -- [options]

On a node with a real kubelet (docs/maintainers/lab.md): the scenarios, with the agent and what it works with, and then the predictions,
by random pods that are created and deleted under each round's configuration of the kubelet. What is named is played alone.

  --scenario <name>  may be repeated: ${names(SCENARIOS)}; all
  --round <name>     may be repeated: ${names(ROUNDS)}; all
  --kubelet <folder> plays the rounds on the kubelet in this folder; may be repeated; without a name of a scenario or round
                     all rounds (default: the folders in KUBELETS, separated by colons, else the machine's own kubelet)
  --pods <number>    of each round (default ${PODS})
  --seed <number>    of the pods; a run with the same seed draws the same
  --record <file>    write what the kubelets did, a line of JSON for each step
  --last-run         write test/lab/last-run.md, if everything was played and nothing failed
  --keep             leave the machine running until Ctrl-C
  --help

Where there is no lab it says what is missing, and ends with 0. Otherwise a table says for each version of the kubelet how
many pods were created and how many steps were mispredicted, and the last line counts the steps that held and the pods that
came out as predicted; ends with 1 if one did not, with 2 on wrong options.`;

const {
  values: flags,
  refuse,
  wholeNumber,
} = commandLine(USAGE, {
  seed: { type: 'string' },
  pods: { type: 'string' },
  round: { type: 'string', multiple: true },
  scenario: { type: 'string', multiple: true },
  kubelet: { type: 'string', multiple: true },
  record: { type: 'string' },
  'last-run': { type: 'boolean', default: false },
  keep: { type: 'boolean', default: false },
});
const seed = wholeNumber('seed', 0) ?? newSeed();
const pods = wholeNumber('pods', 1) ?? PODS;
const named = flags.round !== undefined || flags.scenario !== undefined;
const rounds = chosen('--round', ROUNDS, flags.round) ?? (named ? [] : ROUNDS);
const scenarios = chosen('--scenario', SCENARIOS, flags.scenario) ?? (named || flags.kubelet ? [] : SCENARIOS);
const kubelets = await readKubelets(kubeletFolders(flags.kubelet, process.env)).catch((error: Error) =>
  refuse(error.message),
);

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
  const held: Count = { passed: 0, failed: 0 };
  const tally = createTally();
  const recorded: RecordedRound[] = [];
  const setups = setupsToPlay();
  if (rounds.length > 0) console.log(`seed ${seed}: ${rounds.length} rounds of ${pods} pods${onWhich(kubelets)}`);
  try {
    for (const [index, setup] of setups.entries()) {
      const others = await lab.up({ ...setup, makeDisks: disksOf(setup.scenarios) }, interrupt.signal);
      if (setup.scenarios.length > 0) await playScenarios(lab, setup.scenarios, interrupt.signal, held);
      const here = setup.rounds;
      const toPlay = { rounds: here, kubelets, pods, seed };
      if (here.length > 0) await playRounds(lab, toPlay, tally, recorded, interrupt.signal);
      if (index === setups.length - 1 && flags.keep && !others) await kept(lab, interrupt.signal);
      await lab.down();
    }
  } catch (error) {
    held.failed++;
    console.log(`stopped: ${(error as Error).message}`);
  } finally {
    await lab.down();
    if (flags.record) await writeFile(flags.record, writeRecording(recorded));
  }
  for (const line of tally.table()) console.log(line);
  console.log(`seed ${seed}, ${(monotonicSeconds() - began).toFixed(0)} s`);
  const failed = held.failed + tally.failed;
  if (flags['last-run'] && failed === 0 && rounds.length === ROUNDS.length && scenarios.length === SCENARIOS.length) {
    const counts = { passed: held.passed + tally.passed, failed, skipped: 0 };
    recordRun('lab', countsText(counts), [
      ['kubelet', kubelets.map(({ version }) => version).join(' and ') || 'of the machine'],
    ]);
  }
  console.log(`${held.passed + tally.passed} passed, ${failed} failed`);
  return failed === 0;
}

/** Scenarios and most rounds use the machine with two NUMA nodes; it comes first, and last with a second machine. */
function setupsToPlay() {
  const layouts = [...new Set([LAYOUT, ...rounds.map(({ layout = LAYOUT }) => layout)])];
  const single = layouts.map((layout) => ({
    layout,
    machines: 1,
    scenarios: layout === LAYOUT ? scenarios.filter(({ machines }) => machines !== 2) : [],
    rounds: rounds.filter((round) => (round.layout ?? LAYOUT) === layout),
  }));
  const both = scenarios.filter(({ machines }) => machines === 2);
  const setups = [...single, { layout: LAYOUT, machines: 2, scenarios: both, rounds: [] }];
  const used = setups.filter((one) => one.scenarios.length > 0 || one.rounds.length > 0);
  return used.length > 0 ? used : setups.slice(0, 1);
}

function onWhich(programs: readonly KubeletProgram[]): string {
  return programs.length > 0 ? ` on each of ${programs.map(({ version }) => version).join(', ')}` : '';
}

function disksOf(played: readonly Scenario[]): MakeDisks {
  return async (places, say) => {
    const disks: Record<string, string> = {};
    for (const scenario of played)
      if (scenario.missing?.() === undefined) Object.assign(disks, await scenario.disks?.(places, say));
    return disks;
  };
}

async function kept(lab: Lab, signal: AbortSignal): Promise<void> {
  await lab.keep();
  console.log(`kept until Ctrl-C\n${lab.hint}`);
  while (!signal.aborted) await sleep(3600, signal).catch(() => undefined);
}

function chosen<Item extends { readonly name: string }>(
  flag: string,
  all: readonly Item[],
  wanted: readonly string[] | undefined,
): readonly Item[] | undefined {
  const unknown = wanted?.find((name) => name !== 'all' && !all.some((item) => item.name === name));
  if (unknown !== undefined) refuse(`${flag} ${unknown}: there is no such one`);
  if (wanted?.includes('all')) return all;
  return wanted && all.filter(({ name }) => wanted.includes(name));
}
