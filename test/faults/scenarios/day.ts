import { setTimeout } from 'node:timers/promises';
import type { FaultContext, Scenario } from './scenario.ts';

const SECOND = 1000;
const HOUR = 3600 * SECOND;
/** Longer than any deadline of a daemon. */
const MAX_FAULT_MILLISECONDS = 240 * SECOND;

/** In steps, since the clocks may begin to go fast meanwhile. */
async function delay(milliseconds: number): Promise<void> {
  const ends = performance.now() + milliseconds;
  while (performance.now() < ends) await setTimeout(SECOND);
}

type Fault = (context: FaultContext, milliseconds: number) => Promise<void>;

/** Each lasts a random time, and is over when it returns. */
const FAULTS: Readonly<Record<string, Fault>> = {
  async killed({ world, random }) {
    random.oneOf(world.daemons.all).kill();
  },
  async 'watches cut'({ world }) {
    world.gate.cutWatches();
  },
  async 'connections frozen'({ world }, milliseconds) {
    world.gate.freezeOpen();
    await delay(milliseconds);
  },
  async partitioned({ world }, milliseconds) {
    await world.gate.shut();
    await delay(milliseconds);
    await world.gate.open();
  },
  async 'without answers'({ world }, milliseconds) {
    world.gate.behave({ mute: true });
    await delay(milliseconds);
    world.gate.behave({});
  },
  async expired({ world }, milliseconds) {
    world.gate.behave({ expireWatches: true });
    world.gate.cutWatches();
    await delay(milliseconds);
    world.gate.behave({});
  },
  async 'daemon stopped'({ world, random }, milliseconds) {
    const daemon = random.oneOf(world.daemons.all);
    const { pid } = daemon;
    process.kill(pid, 'SIGSTOP');
    await delay(milliseconds);
    if (daemon.pid === pid && daemon.running) process.kill(pid, 'SIGCONT');
  },
};

export const DAY: Scenario = {
  name: 'day',
  title: 'a day of all these faults, one after the other, with clocks that go fast (--speed)',
  on: ['sandbox'],
  missing: () => (process.env['PLUMBLINE_TEST_SPEED'] === undefined ? 'it needs --speed' : undefined),
  vms: 20,
  lifeMilliseconds: { least: 20 * SECOND, most: 200 * SECOND },
  limitSeconds: 900,
  admissionsMayFail: true,
  launchersMayFail: true,
  run: day,
};

async function day(context: FaultContext): Promise<void> {
  const { random, note, hours, load } = context;
  const ends = performance.now() + hours * HOUR;
  const times = new Map<string, number>();
  while (performance.now() < ends) {
    const name = random.oneOf(Object.keys(FAULTS));
    times.set(name, (times.get(name) ?? 0) + 1);
    await FAULTS[name]?.(context, random.below(MAX_FAULT_MILLISECONDS));
    await delay(random.below(MAX_FAULT_MILLISECONDS));
  }
  note(`${hours} h: ${[...times].map(([name, count]) => `${count} × ${name}`).join(', ')}; ${load.placed} VMs ran`);
}
