import type { KubeObject } from '../../sandbox/objects.ts';
import { createRandom, type Random } from '../../test/lab/random.ts';
import { allocatable, type Fleet, PHYSNETS, VF_RESOURCE } from './fleets.ts';

/** One VM of the stream, in its user's terms. */
export interface StreamVm {
  readonly name: string;
  readonly cores: number;
  readonly threads: 1 | 2;
  readonly isolated: boolean;
  /** Number of supplemental IO threads. */
  readonly ioThreads: 0 | 1 | 2;
  readonly network: string | undefined;
  /** Whether it asks for a VF; such a VM has no network. */
  readonly vf: boolean;
  /** steady: there is room for all VMs. fill: there are more VMs than room. */
  readonly phase: 'steady' | 'fill';
}

export type StreamEvent =
  | { readonly at: number; readonly create: StreamVm }
  /** The name of an earlier VM. */
  | { readonly at: number; readonly delete: string };

/** Events on a fleet, in order, by seconds since the start. */
export interface Stream {
  readonly events: readonly StreamEvent[];
  readonly vms: readonly StreamVm[];
  /** Time in seconds at which the result is read. */
  readonly end: number;
}

export interface StreamOptions {
  readonly seed: number;
  readonly fleet: Fleet;
  /** Largest number of VMs. Default: as many as the fleet has room for, and a fifth more. */
  readonly vms?: number | undefined;
}

/** Cores and threads of guests. Those that are listed twice are twice as likely. */
const SHAPES = [
  ...[1, 2, 2, 2, 3, 4, 4, 4, 5, 6, 8].map((cores) => [cores, 1] as const),
  ...[1, 2, 2, 4].map((cores) => [cores, 2] as const),
];
/**
 * Share of isolated emulator threads among VMs with an even number of CPUs. A VM with an odd number always has one:
 * otherwise it would run on no full-pcpus-only node.
 */
const ISOLATED = 0.6;
const IO_THREADS = 0.2;
const VF = 1 / 3;
/** Share of VMs with a network among those without a VF. */
const NETWORK = 0.5;
/** Share of CPUs in the steady part, and with the fill. */
const [STEADY, FILL] = [0.65, 1.25];
/** Share of VMs in the steady part that are deleted and replaced by others. */
const CHURN = 0.3;
/** VMs that are created at the same moment in a burst. */
const BURST = 8;
/** Largest number of VMs per second: more would measure the machine that emulates the fleet. */
const RATE = 5;
/** Minimum duration in seconds of each part, and of those after it. */
const ARRIVE = 12;
const CHURNING = 8;
const FILLING = 10;
const PAUSE = 4;
/** Longer than the time within which a VM must run. */
export const SETTLE = 11;

/** Number of CPUs that KubeVirt requests without padding. */
export const needOf = ({ cores, threads, isolated, ioThreads }: StreamVm): number =>
  cores * threads + ioThreads + (isolated ? 1 : 0);

/** The stream for a seed and a fleet; deterministic. */
export function createStream({ seed, fleet, vms: most = Number.POSITIVE_INFINITY }: StreamOptions): Stream {
  const random = createRandom(seed);
  // Drawn separately, so that the sizes of VMs do not depend on it.
  const vfs = createRandom(seed + 1);
  const capacity = allocatable(fleet);
  const vms: StreamVm[] = [];
  const draw = (phase: StreamVm['phase']) => {
    const drawn = drawVm(random, `vm-${vms.length}`, phase);
    const vm = vfs.chance(VF) ? { ...drawn, network: undefined, vf: true } : drawn;
    vms.push(vm);
    return vm;
  };
  // By the number of cores, whatever the contender does, so that the required room does not depend on it.
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

/** Half of them arrive one by one, half in bursts. */
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
  return { name, cores, threads, isolated, ioThreads, network, vf: false, phase };
}

export const VM_NAMESPACE = 'tenants';
/** KubeVirt's own fix for odd numbers of CPUs. */
export const EVEN_PARITY = 'alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity';

/** The VirtualMachine for a VM of the stream. */
export function machineOf(vm: StreamVm, annotations: Readonly<Record<string, string>>): KubeObject {
  const { name, cores, threads, isolated, ioThreads, network, vf } = vm;
  const networks = network === undefined ? [] : [{ name: 'data', multus: { networkName: network } }];
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: VM_NAMESPACE },
    spec: {
      runStrategy: 'Always',
      template: {
        metadata: { annotations: { ...annotations } },
        spec: {
          domain: {
            cpu: {
              sockets: 1,
              cores,
              threads,
              dedicatedCpuPlacement: true,
              ...(isolated && { isolateEmulatorThread: true }),
            },
            ...(ioThreads > 0 && {
              ioThreadsPolicy: 'supplementalPool',
              ioThreads: { supplementalPoolThreadCount: ioThreads },
            }),
            memory: { guest: `${Math.max(1, Math.ceil(needOf(vm) / 4))}Gi` },
            devices: vf ? { hostDevices: [{ name: 'vf', deviceName: VF_RESOURCE }] } : {},
          },
          networks: [{ name: 'default', pod: {} }, ...networks],
        },
      },
    },
  };
}
