import { createRandom } from '../lab/random.ts';
import { type Load, startLoad } from './load.ts';
import type { Scenario } from './scenarios/scenario.ts';
import { type Ground, startWorld, type World } from './world/world.ts';

/** Seconds within which every waiting VM must be placed after the fault. */
export const LIMITS: Readonly<Record<Ground, number>> = { sandbox: 30, real: 90 };

export interface Outcome {
  readonly problems: readonly string[];
  readonly notes: readonly string[];
  readonly logs: string | undefined;
}

export interface PlayOptions {
  readonly ground: Ground;
  readonly seed: number;
  readonly vms: number;
  readonly progress?: (text: string) => void;
}

const PROGRESS_SECONDS = 20;
/** The share of VMs that run before the fault starts. */
const BEFORE = 0.1;

export async function play(scenario: Scenario, { ground, seed, vms, progress }: PlayOptions): Promise<Outcome> {
  const problems: string[] = [];
  const notes: string[] = [];
  let world: World;
  try {
    world = await startWorld(ground, { from: scenario.from?.(), openVswitch: scenario.openVswitch });
    await scenario.prepare?.(world).catch(async (error: unknown) => {
      await world.stop(true);
      throw error;
    });
  } catch (error) {
    return { problems: [String(error)], notes, logs: undefined };
  }
  const load = startLoad({ world, seed, vms });
  const telling = setInterval(() => progress?.(`${load.placed} VMs ran`), PROGRESS_SECONDS * 1000);
  try {
    await Promise.race([load.running(Math.ceil(vms * BEFORE)), load.done]);
    const random = createRandom(seed);
    const fault = scenario.run({ world, load, random, note: (text) => notes.push(text) });
    await Promise.race([fault, load.done.then(() => fault)]);
    load.healthy(LIMITS[ground]);
    await load.done;
    problems.push(...judge(scenario, world, load));
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
    problems.push(...judge(scenario, world, load));
  }
  notes.unshift(...figures(world, load, LIMITS[ground]));
  notes.push(...[...load.refusedAdmissions].map(([message, times]) => `refused ${times} times: ${message}`));
  clearInterval(telling);
  load.stop();
  const held = problems.length === 0;
  await world.stop(!held);
  return { problems, notes, logs: held ? undefined : world.directory };
}

/** An answer after which the launcher is created again soon: the API server took too long, as on a busy machine. */
const ASKED_AGAIN = /could not be read .*; try again$/;

function judge(scenario: Scenario, { observer, daemons }: World, load: Load): string[] {
  const { violations, samples, seen } = observer;
  const crashes = daemons.all.flatMap((daemon) => daemon.crashes);
  const counted = [...load.refusedAdmissions].filter(([message]) => scenario.noRefusals || !ASKED_AGAIN.test(message));
  const refused = scenario.admissionsMayFail ? [] : counted;
  const ended = [...load.ended].filter(([reason]) => !mayEnd(scenario, reason));
  return [
    ...violations.map(({ invariant, text }) => `${invariant}: ${text}`),
    ...crashes,
    ...refused.map(([message, times]) => `an admission was refused (${times} times): ${message}`),
    ...ended.map(([reason, times]) => `a promise was not kept (${times} times): ${reason}`),
    ...(samples === 0 || seen.running === 0 || seen.besideVswitch === 0 ? ['the observer saw nothing'] : []),
  ];
}

function mayEnd({ launchersMayFail: which }: Scenario, reason: string): boolean {
  return which instanceof RegExp ? which.test(reason) : which === true;
}

function figures({ observer, daemons }: World, load: Load, limit: number): string[] {
  const { samples, seen, violations } = observer;
  const ended = [...load.ended].map(([reason, times]) => `${times} ${reason}`).join(', ');
  const refused = [...load.refusedAdmissions.values()].reduce((sum, times) => sum + times, 0);
  const kills = daemons.all.reduce((sum, daemon) => sum + daemon.kills, 0);
  return [
    `${load.placed} VMs ran, the slowest ${load.slowest.toFixed(1)} s after the fault's end (may take ${limit})`,
    `${samples} looks, ${seen.running} pods seen running, ${seen.besideVswitch} of them next to Open vSwitch: ${violations.length} violations`,
    `${refused} creations of launchers refused for a while; ended before they ran: ${ended || 'none'}; ${kills} kills`,
  ];
}
