import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { CPU_MASK_ANNOTATION } from '../../model/names.ts';
import { createRandom, type Random } from '../lab/random.ts';
import type { CheckpointFault, LifeKubelet, Owner } from './world/kubelet.ts';
import { coreOf } from './world/machine.ts';
import { type ApiState, LEASE, type LifeNode, NODE } from './world/node.ts';
import type { StateFault } from './world/state-directory.ts';

export interface Step {
  readonly kind: string;
  readonly draw: number;
  readonly pause: number;
}

interface Kind {
  readonly weight: number;
  /** The kind that ends what this one begins, a few events later. Of one group, only one is in progress at a time. */
  readonly ends?: string;
  readonly group?: string;
  /** Does nothing where it does not apply: a shorter sequence must stay a sequence. */
  readonly apply: (node: LifeNode, random: Random) => void | Promise<void>;
}

const OPTIONS = [{ 'full-pcpus-only': 'true' }, {}, { 'full-pcpus-only': 'true', 'align-by-socket': 'true' }];
const VERSIONS = ['v1.35.2', 'v1.36.0', 'v1.36.3', 'v1.37.0'];
const RESERVED = ['0,8', '0,4,8,12'];
const PAGE_COUNTS = [0, 256, 512, 1024];
const DAY = 86_400_000;

/** Whole cores; mostly those of the CPUs that this machine has, which Open vSwitch must then leave. */
function cpusFor(kubelet: LifeKubelet, random: Random): CpuSet | undefined {
  const cores = kubelet.freeCores();
  if (cores.length === 0) return undefined;
  if (random.chance(0.4)) return cores[0];
  const first = random.below(cores.length);
  return unionOf(cores.slice(first, first + 1 + random.below(2)));
}

function startPod({ kubelet }: LifeNode, random: Random, names: Partial<Owner> = {}): void {
  const cpus = kubelet.state === 'ready' ? cpusFor(kubelet, random) : undefined;
  if (cpus === undefined || kubelet.owners.some(({ uid }) => uid === names.uid)) return;
  const uid = kubelet.newUid();
  kubelet.add({ namespace: 'demo', pod: `vm-${uid.slice(-4)}`, uid, container: 'compute', cpus, ...names });
}

async function restartKubelet(node: LifeNode): Promise<void> {
  await node.kubelet.stop();
  await node.kubelet.start();
}

const isReady = (node: LifeNode) => node.kubelet.state === 'ready';

/** CPUs without an owner, apart from the first core and those of this machine. */
function setOnline(node: LifeNode, random: Random, isOnline: boolean): void {
  const { machine, kubelet } = node;
  const { online } = machine.facts;
  const all = CpuSet.range(0, 15);
  const spare = online.minus(kubelet.owned).minus(coreOf(0)).minus(coreOf(1)).minus(coreOf(4));
  const candidates = isOnline ? all.minus(online).toArray() : spare.toArray();
  if (candidates.length === 0 || (!isOnline && online.size <= 11)) return;
  const cpu = random.oneOf(candidates);
  const cpus = random.chance(0.5) ? coreOf(cpu).intersect(CpuSet.of(candidates)) : CpuSet.of([cpu]);
  machine.setOnline(isOnline ? online.union(cpus) : online.minus(cpus));
}

function setPages({ machine }: LifeNode, random: Random): void {
  machine.setPages(random.oneOf([0, 1] as const), random.oneOf(PAGE_COUNTS));
}

const event = (weight: number, apply: Kind['apply']): Kind => ({ weight, apply });
/** Ends an event of its group. */
const ending = (apply: Kind['apply']): Kind => event(0, apply);
const fault = (group: string, ends: string, apply: Kind['apply'], weight = 1): Kind => ({ weight, group, ends, apply });
const checkpoint = (broken: CheckpointFault): Kind =>
  fault('checkpoint', 'checkpoint restored', ({ kubelet }) => kubelet.breakCheckpoint(broken));
const answers = (state: LifeKubelet['answers']): Kind =>
  fault('answers', 'PodResources back', ({ kubelet }) => kubelet.setAnswers(state));
const api = (state: ApiState): Kind => fault('api', 'API server back', (node) => node.setApi(state));
const state = (broken: StateFault): Kind =>
  fault('state', 'state directory repaired', (node) => node.state.break(broken));
const seenLater = (apply: Kind['apply']): Kind => fault('cpus', 'kubelet sees the machine', apply);
const agentEnds = (weight: number, apply: Kind['apply']): Kind => fault('agent', 'agent started', apply, weight);
const whenReady =
  (apply: Kind['apply']): Kind['apply'] =>
  (node, random) =>
    isReady(node) ? apply(node, random) : undefined;
const afterRestart = (change: (node: LifeNode, random: Random) => void): Kind => ({
  weight: 1,
  group: 'kubelet',
  async apply(node, random) {
    change(node, random);
    if (node.kubelet.state !== 'stopped') await restartKubelet(node);
  },
});
const changeSettings = (change: (random: Random) => Partial<LifeKubelet['settings']>): Kind =>
  afterRestart(({ kubelet }, random) => {
    kubelet.settings = { ...kubelet.settings, ...change(random) };
  });
const shortly = (random: Random) => new Promise((resolve) => setTimeout(resolve, random.below(40)));
const announceLaunchers = ({ api: server, launchers }: LifeNode) =>
  server.objects.set('/api/v1/pods', { metadata: {}, items: [...launchers.values()] });

export const KINDS: ReadonlyMap<string, Kind> = new Map(
  Object.entries<Kind>({
    'pod started': event(9, startPod),
    'two pods at once': event(
      2,
      whenReady(({ kubelet }, random) => {
        const [first, second] = kubelet.freeCores();
        if (first === undefined || second === undefined) return;
        const owner = (cpus: CpuSet) => {
          const uid = kubelet.newUid();
          const namespace = random.oneOf(['demo', 'other']);
          return { namespace, pod: `twin-${uid.slice(-4)}`, uid, container: 'compute', cpus };
        };
        kubelet.add(owner(first), owner(second));
      }),
    ),
    'pod with the uid __proto__': event(1, (node, random) => startPod(node, random, { uid: '__proto__' })),
    'container with the name __proto__': event(1, (node, random) => startPod(node, random, { container: '__proto__' })),
    'pod ended': event(
      6,
      whenReady(({ kubelet }, random) => {
        if (kubelet.owners.length > 0) kubelet.remove(random.oneOf(kubelet.owners));
      }),
    ),
    'container restarted': event(
      2,
      whenReady(({ kubelet }, random) => {
        if (kubelet.owners.length === 0) return;
        const { since: _since, ...owner } = random.oneOf(kubelet.owners);
        const isSame = ({ uid, container }: Owner) => uid === owner.uid && container === owner.container;
        kubelet.remove(...kubelet.owners.filter(isSame));
        kubelet.add({ ...owner, cpus: (random.chance(0.5) ? cpusFor(kubelet, random) : undefined) ?? owner.cpus });
      }),
    ),
    'claim added': event(
      2,
      whenReady(({ kubelet }, random) => {
        const cpus = cpusFor(kubelet, random);
        if (cpus !== undefined) kubelet.addClaim(kubelet.newUid(), cpus);
      }),
    ),
    'claim removed': event(2, ({ kubelet }, random) => {
      if (kubelet.claims.size > 0) kubelet.removeClaim(random.oneOf([...kubelet.claims.keys()]));
    }),
    'checkpoint torn': checkpoint('torn'),
    'checkpoint empty': checkpoint('empty'),
    'checkpoint huge': checkpoint('huge'),
    'checkpoint a FIFO': checkpoint('fifo'),
    'checkpoint a directory': checkpoint('directory'),
    'checkpoint a loop of links': checkpoint('loop'),
    'checkpoint restored': ending(({ kubelet }) => kubelet.restoreCheckpoint()),
    'PodResources silent': answers('silent'),
    'PodResources failing': answers('failing'),
    'PodResources slow': answers('slow'),
    'PodResources back': ending(({ kubelet }) => kubelet.setAnswers('ready')),
    'kubelet stopped': fault('kubelet', 'kubelet started', ({ kubelet }) => kubelet.stop()),
    'kubelet started': ending(({ kubelet }) => kubelet.start()),
    'kubelet restarted': { weight: 2, group: 'kubelet', apply: whenReady(restartKubelet) },
    'kubelet of another version': afterRestart(({ kubelet }, random) => {
      kubelet.version = random.oneOf(VERSIONS.filter((version) => version !== kubelet.version));
    }),
    'kubelet with other reserved CPUs': changeSettings((random) => ({ reserved: random.oneOf(RESERVED) })),
    'kubelet with other policy options': changeSettings((random) => ({ options: random.oneOf(OPTIONS) })),
    'kubelet with other reserved pages': changeSettings((random) => ({
      reservedPages: random.oneOf([0, 2 ** 21, 2 ** 24]),
    })),
    'CPU offline': seenLater((node, random) => setOnline(node, random, false)),
    'CPU online': seenLater((node, random) => setOnline(node, random, true)),
    'CPU offline and kubelet restarted': afterRestart((node, random) => setOnline(node, random, false)),
    'CPU online and kubelet restarted': afterRestart((node, random) => setOnline(node, random, true)),
    'huge pages changed': seenLater(setPages),
    'huge pages changed and kubelet restarted': afterRestart(setPages),
    'kubelet sees the machine': ending(whenReady(restartKubelet)),
    'NIC renamed': event(1, ({ machine, switch: ovs }, random) => {
      const from = random.oneOf([...machine.nics.keys()]);
      machine.renameNic(from, from.endsWith('r') ? from.slice(0, -1) : `${from}r`);
      return ovs.setPorts([...machine.nics.keys()]);
    }),
    'NIC added': event(1, ({ machine, switch: ovs }, random) => {
      if (machine.nics.size >= 3) return undefined;
      machine.addNic(`ens${machine.nics.size + 1}f0`, random.below(2));
      return ovs.setPorts([...machine.nics.keys()]);
    }),
    'NIC moved': event(1, ({ machine }, random) => {
      const [name, cell] = random.oneOf([...machine.nics]);
      machine.moveNic(name, 1 - cell);
    }),
    'OVSDB gone': fault('database', 'OVSDB back', ({ switch: ovs }) => ovs.stopDatabase()),
    'OVSDB back': ending(({ switch: ovs }) => ovs.startDatabase()),
    'Open vSwitch restarted': event(1, async (node) => {
      node.isRestarting = true;
      await node.switch.stop();
      await node.switch.start();
      node.masksLost = undefined;
      node.isRestarting = false;
    }),
    'affinity on': event(3, ({ switch: ovs }) => ovs.setOn(true)),
    'affinity off': event(1, ({ switch: ovs }) => ovs.setOn(false)),
    'state directory full': state('full'),
    'state directory unwritable': state('unwritable'),
    'state directory repaired': ending((node) => node.state.repair()),
    'agent killed': agentEnds(2, (node) => node.endAgent('kill')),
    'agent killed while a pod starts': agentEnds(2, async (node, random) => {
      startPod(node, random);
      await shortly(random);
      await node.endAgent('kill');
    }),
    'agent killed while affinity changes': agentEnds(1, async (node, random) => {
      node.switch.setOn(!node.switch.isOn);
      await shortly(random);
      await node.endAgent('kill');
    }),
    'agent stopped': agentEnds(2, (node) => node.endAgent('stop')),
    'agent started': ending((node) => node.startAgent()),
    'second agent started': fault('agent', 'one of two agents ended', (node) =>
      node.agent === undefined ? undefined : node.startSecond(),
    ),
    'one of two agents ended': ending(async (node, random) => {
      const { second } = node;
      if (second === undefined) return;
      if (random.chance(0.5)) {
        await node.endAgent(random.oneOf(['stop', 'kill']));
        return;
      }
      node.second = undefined;
      await second.stop();
    }),
    'VM with a CPU mask added': event(1, (node, random) => {
      const pod = launcherOf(node.kubelet.newUid(), random.oneOf(['0-3', '1:3', 'nonsense']));
      node.launchers.set(pod.metadata.uid, pod);
      announceLaunchers(node);
      node.api.announce('ADDED', pod);
    }),
    'VM with a CPU mask removed': event(1, (node) => {
      const [first] = node.launchers;
      if (first === undefined) return;
      node.launchers.delete(first[0]);
      announceLaunchers(node);
      node.api.announce('DELETED', first[1] as Record<string, unknown>);
    }),
    'wall clock moved': event(2, (node, random) =>
      node.moveClock(random.oneOf([-2 * DAY, -3_600_000, -30_000, 0, 30_000, 3_600_000, 2 * DAY])),
    ),
    'NodeTopology deleted': event(1, (node) => node.deleteTopology()),
    'Lease deleted': event(1, ({ api: server }) => void server.objects.delete(LEASE)),
    'API server silent': api('silent'),
    'API server failing': api('failing'),
    'API server refusing': api('refusing'),
    'API server back': ending((node) => node.setApi('answers')),
    'network map changed': event(1, (node, random) =>
      node.writeMap({ physnet2: random.below(2), tunnel: random.below(2) }),
    ),
    'network map broken': fault('map', 'network map repaired', (node) => node.breakMap()),
    'network map repaired': ending((node) => node.writeMap(node.map)),
  }),
);

function launcherOf(uid: string, mask: string) {
  const metadata = {
    name: `virt-launcher-${uid.slice(-4)}`,
    namespace: 'demo',
    uid,
    labels: {
      'kubevirt.io': 'virt-launcher',
      'kubevirt.io/created-by': uid,
      'vm.kubevirt.io/name': `vm-${uid.slice(-4)}`,
    },
    annotations: { 'kubevirt.io/domain': `vm-${uid.slice(-4)}`, [CPU_MASK_ANNOTATION]: mask },
  };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName: NODE, containers: [{ name: 'compute' }] } };
}

/** Milliseconds before an event: most follow each other closely, and some after the promised times. */
function pauseOf(random: Random, calm: number): number {
  if (random.chance(calm)) return 6000 + random.below(24_000);
  return random.chance(0.25) ? 500 + random.below(2500) : random.below(500);
}

const MAX_FAULT_EVENTS = 5;

/** @param calm probability of a pause in which all promises must be kept @param without texts in names of kinds */
export function generate(seed: number, count: number, calm: number, without: readonly string[] = []): Step[] {
  const random = createRandom(seed);
  const used = [...KINDS].filter(([name]) => !without.some((text) => name.includes(text)));
  const kinds = used.flatMap(([name, { weight }]) => Array.from({ length: weight }, () => name));
  const steps: Step[] = [];
  const pending: { kind: string; group: string; at: number }[] = [];
  const push = (kind: string) => steps.push({ kind, draw: random.below(2 ** 31), pause: pauseOf(random, calm) });
  while (steps.length < count) {
    const due = pending.findIndex(({ at }) => at <= steps.length);
    if (due >= 0) {
      for (const { kind } of pending.splice(due, 1)) push(kind);
      continue;
    }
    const name = random.oneOf(kinds);
    const { ends, group = '' } = KINDS.get(name) ?? {};
    if (pending.some((other) => group !== '' && other.group === group)) continue;
    push(name);
    if (ends !== undefined) pending.push({ kind: ends, group, at: steps.length + random.below(MAX_FAULT_EVENTS) });
  }
  return steps;
}

export async function applyStep(node: LifeNode, { kind, draw }: Step): Promise<void> {
  await KINDS.get(kind)?.apply(node, createRandom(draw));
}
