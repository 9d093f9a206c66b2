import { createRandom, type Random } from '../../test/lab/random.ts';
import { allocatable, type Fleet, PHYSNETS } from './fleets.ts';

/** One VM of the stream, as its user writes it. */
export interface StreamVm {
  readonly name: string;
  readonly cores: number;
  readonly threads: 1 | 2;
  readonly isolated: boolean;
  /** Supplemental IO threads. */
  readonly ioThreads: 0 | 1 | 2;
  readonly network: string | undefined;
  /** steady: there is room for all of them. fill: more than there is room for. */
  readonly phase: 'steady' | 'fill';
}

export type StreamEvent =
  | { readonly at: number; readonly create: StreamVm }
  /** The name of a VM created before. */
  | { readonly at: number; readonly delete: string };

/** What happens to a fleet, at seconds from the start, in order. */
export interface Stream {
  readonly events: readonly StreamEvent[];
  readonly vms: readonly StreamVm[];
  /** Seconds at which the result is read. */
  readonly end: number;
}

export interface StreamOptions {
  readonly seed: number;
  readonly fleet: Fleet;
  /** Most VMs. Default: as many as the fleet has room for, and a fifth more. */
  readonly vms?: number | undefined;
}

/** Cores and threads of guests; those that are there twice are twice as likely. */
const SHAPES = [
  ...[1, 2, 2, 2, 3, 4, 4, 4, 5, 6, 8].map((cores) => [cores, 1] as const),
  ...[1, 2, 2, 4].map((cores) => [cores, 2] as const),
];
/** Of the VMs with an even number of CPUs. One with an odd number has it always: else it runs on no full-pcpus-only node. */
const ISOLATED = 0.6;
const IO_THREADS = 0.2;
const NETWORK = 0.5;
/** Of the CPUs: what the steady part comes to, and all of it with what the fill adds. */
const [STEADY, FILL] = [0.65, 1.25];
/** Of the VMs of the steady part: deleted, and as many others created. */
const CHURN = 0.3;
/** Every so many VMs come at one instant, so many at a time. */
const BURST = 8;
/** Most VMs a second: more than that would measure the machine that emulates the fleet. */
const RATE = 5;
/** Least seconds of each part, and those after it. */
const ARRIVE = 12;
const CHURNING = 8;
const FILLING = 10;
const PAUSE = 4;
/** Longer than the time within which a VM counts as running. */
export const SETTLE = 11;

/** CPUs that KubeVirt asks for without padding. */
export const needOf = ({ cores, threads, isolated, ioThreads }: StreamVm): number =>
  cores * threads + ioThreads + (isolated ? 1 : 0);

/** The same seed and fleet give the same stream. */
export function createStream({ seed, fleet, vms: most = Number.POSITIVE_INFINITY }: StreamOptions): Stream {
  const random = createRandom(seed);
  const capacity = allocatable(fleet);
  const vms: StreamVm[] = [];
  const draw = (phase: StreamVm['phase']) => {
    const vm = drawVm(random, `vm-${vms.length}`, phase);
    vms.push(vm);
    return vm;
  };
  // By the cores that it takes, whatever the fleet makes of it: so the room needed does not depend on the contender.
  const sizeOf = (vm: StreamVm) => Math.ceil(needOf(vm) / fleet.threads) * fleet.threads;
  const upTo = (share: number, used: number, phase: StreamVm['phase'], limit: number) => {
    const drawn: StreamVm[] = [];
    let cpus = used;
    while (cpus < capacity * share && vms.length < limit) {
      const vm = draw(phase);
      drawn.push(vm);
      cpus += sizeOf(vm);
    }
    return { drawn, cpus };
  };

  const first = upTo(STEADY, 0, 'steady', Math.ceil(most / 2));
  const arriving = lasting(first.drawn.length, ARRIVE);
  const events: StreamEvent[] = arrivals(first.drawn, arriving);
  let [at, cpus] = [arriving + PAUSE, first.cpus];
  const alive = [...first.drawn];
  const turns = Math.round(first.drawn.length * CHURN);
  const churning = lasting(turns, CHURNING);
  for (let turn = 0; turn < turns; turn++) {
    const [gone] = alive.splice(random.below(alive.length), 1) as [StreamVm];
    const come = draw('steady');
    alive.push(come);
    cpus += sizeOf(come) - sizeOf(gone);
    const moment = at + (turn * churning) / turns;
    events.push({ at: moment, delete: gone.name }, { at: moment, create: come });
  }
  at += churning + SETTLE;
  const rest = upTo(FILL, cpus, 'fill', most);
  const filling = lasting(rest.drawn.length, FILLING);
  events.push(...rest.drawn.map((create, i) => ({ at: at + (i * filling) / rest.drawn.length, create })));
  return { events, vms, end: at + (rest.drawn.length > 0 ? filling + SETTLE : 0) };
}

const lasting = (vms: number, least: number): number => Math.max(least, vms / RATE);

/** Half of them one by one, half in bursts. */
function arrivals(vms: readonly StreamVm[], seconds: number): StreamEvent[] {
  return vms.map((create, i) => {
    const block = Math.floor(i / BURST);
    const place = block % 2 === 0 ? i : block * BURST;
    return { at: (place * seconds) / vms.length, create };
  });
}

function drawVm(random: Random, name: string, phase: StreamVm['phase']): StreamVm {
  const [cores, threads] = random.oneOf(SHAPES);
  const ioThreads = random.chance(IO_THREADS) ? random.oneOf([1, 2] as const) : 0;
  const isOdd = (cores * threads + ioThreads) % 2 === 1;
  const isolated = random.chance(ISOLATED) || isOdd;
  const network = random.chance(NETWORK) ? random.oneOf(PHYSNETS) : undefined;
  return { name, cores, threads, isolated, ioThreads, network, phase };
}
