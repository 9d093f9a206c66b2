import type { RequestingPod } from '../../model/kubelet/pod-request.ts';
import { milliValue, parseQuantity } from '../../model/quantity.ts';
import type { ContainerShape } from '../../model/shapes.ts';
import { DEVICE_WISHES, SRIOV_RESOURCES, TEST_RESOURCES } from './devices.ts';
import type { Random } from './random.ts';

export interface DrawnPod extends RequestingPod {
  readonly spec: { readonly containers: readonly ContainerShape[]; readonly initContainers: readonly ContainerShape[] };
}

/** Odd counts are rare if whole cores are required: there they only show that odd is refused. */
const ALONE = {
  cores: [2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 6, 6, 1, 3, 5],
  threads: [1, 1, 2, 2, 3, 3, 4, 4, 5, 6],
} as const;
const TOGETHER = {
  cores: [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 4, 4, 4, 6, 1, 3],
  threads: [1, 1, 1, 2, 2, 2, 3, 4],
} as const;

const KINDS = ['alone', 'alone', 'alone', 'two', 'two', 'init', 'init', 'sidecar', 'init, sidecar', 'helper'] as const;

/** Without the static memory manager, the amount does not matter. */
const LITTLE = { memory: '16Mi' };
/** A NUMA node of the lab has 2 GiB, or 1 GiB if there are four: most pods fit in one, few need two. */
const MEMORY = ['16Mi', '64Mi', '200Mi', '350Mi', '500Mi', '700Mi', '900Mi', '1300Mi', '1800Mi', '2300Mi'] as const;
/** Of four pages. */
const GIGABYTE_PAGES = ['1Gi', '1Gi', '1Gi', '2Gi', '3Gi'] as const;
/** Of 64 MiB per NUMA node, or 32. */
const HUGE_PAGES = ['8Mi', '16Mi', '32Mi', '48Mi', '64Mi', '80Mi'] as const;

export interface Draw {
  /** Whether counts are mostly whole cores. */
  readonly unit: 'cores' | 'threads';
  readonly devices: 'none' | 'some' | 'several';
  readonly nics: boolean;
  readonly memory: boolean;
  /** Whether init containers end. A restarted kubelet allocates for them again, and may refuse the running pod. */
  readonly initContainers: boolean;
  readonly gigabytePages: boolean;
}

export function drawPod(
  random: Random,
  { unit, devices, nics, initContainers, memory, gigabytePages }: Draw,
): DrawnPod {
  const kind = random.oneOf(KINDS.filter((name) => initContainers || !name.startsWith('init')));
  const cpus = kind === 'alone' || kind === 'helper' ? ALONE[unit] : TOGETHER[unit];
  const amounts = (): Record<string, string> => {
    if (!memory) return LITTLE;
    const pages = random.chance(0.35) ? { 'hugepages-2Mi': random.oneOf(HUGE_PAGES) } : {};
    const large = gigabytePages && random.chance(0.5) ? { 'hugepages-1Gi': random.oneOf(GIGABYTE_PAGES) } : {};
    return { memory: random.oneOf(MEMORY), ...pages, ...large };
  };
  const someDevices = (share: number) =>
    devices !== 'none' && random.chance(share) ? random.oneOf(DEVICE_WISHES) : {};
  const container = (name: string, share: number): ContainerShape => {
    const cpu = `${random.oneOf(cpus)}`;
    const isMain = name === 'main';
    const wishes = devices === 'several' && isMain ? severalDevices(random) : someDevices(share);
    const ofNics = nics && isMain ? { [random.oneOf(SRIOV_RESOURCES).name]: random.oneOf(['1', '1', '2']) } : {};
    return { name, resources: { limits: { cpu, ...amounts(), ...wishes, ...ofNics } } };
  };
  const main = container('main', 0.65);
  const second = () => container('second', 0.3);
  const init = () => container('init', 0.3);
  const sidecar = (): ContainerShape => ({ ...container('sidecar', 0.3), restartPolicy: 'Always' });
  const small: ContainerShape = { name: 'helper', resources: { limits: { cpu: '100m', ...LITTLE } } };
  switch (kind) {
    case 'alone':
      return pod([main]);
    case 'two':
      return pod([main, second()]);
    case 'helper':
      return pod(random.chance(0.5) ? [main, small] : [small, main]);
    case 'init':
      return pod([main], [init()]);
    case 'sidecar':
      return pod([main], [sidecar()]);
    case 'init, sidecar':
      return pod([main], random.chance(0.5) ? [init(), sidecar()] : [sidecar(), init()]);
  }
}

function severalDevices(random: Random): Record<string, string> {
  const absent = random.oneOf(['/node0', '/node1', '/node0', '/node1', '']);
  const names = TEST_RESOURCES.map(({ name }) => name).filter((name) => absent === '' || !name.endsWith(absent));
  const count = random.oneOf([2, 2, 3, 4]);
  const wishes: Record<string, string> = {};
  while (Object.keys(wishes).length < count) {
    const resource = random.oneOf(names.filter((name) => !(name in wishes)));
    wishes[resource] = random.oneOf(['1', '1', '1', '2']);
  }
  return wishes;
}

function pod(containers: readonly ContainerShape[], initContainers: readonly ContainerShape[] = []): DrawnPod {
  return { spec: { containers, initContainers } };
}

/**
 * Whether there is room by the scheduler's plain count: it places no pod that requests more CPU, memory or huge pages
 * than are free, so neither does this runner. The CPU manager can admit more only if helpers run on the shared pool.
 * @param allocatable amounts of the node, in the kubelet's format
 */
export function schedulable(
  pod: DrawnPod,
  held: Iterable<DrawnPod>,
  allocatable: Readonly<Record<string, string>>,
): boolean {
  const pods = [pod, ...held];
  return COUNTED.every((resource) => {
    const asked = pods.reduce((sum, one) => sum + peakOf(one, resource), 0);
    return asked <= milliValue(parseQuantity(allocatable[resource] ?? '0'));
  });
}

const COUNTED = ['cpu', 'memory', 'hugepages-2Mi', 'hugepages-1Gi'] as const;

function peakOf({ spec }: DrawnPod, resource: string): number {
  const amount = ({ resources }: ContainerShape) => milliValue(parseQuantity(resources?.limits?.[resource] ?? '0'));
  let sidecars = 0;
  let peak = 0;
  for (const container of spec.initContainers) {
    if (container.restartPolicy === 'Always') sidecars += amount(container);
    peak = Math.max(peak, sidecars + (container.restartPolicy === 'Always' ? 0 : amount(container)));
  }
  return Math.max(
    peak,
    spec.containers.reduce((sum, container) => sum + amount(container), sidecars),
  );
}

/** One line with CPUs and other amounts: `init 2, sidecar 2 700Mi, main 4 (1 node0)`. */
export function describePod({ spec }: DrawnPod): string {
  return [...spec.initContainers, ...spec.containers]
    .map(({ name, resources }) => {
      const { cpu, memory = '', 'hugepages-2Mi': small, 'hugepages-1Gi': large, ...devices } = resources?.limits ?? {};
      const pages = [small, large].filter((size) => size !== undefined);
      const huge = pages.length > 0 ? ` + ${pages.join(' + ')} huge` : '';
      const bytes = memory === LITTLE.memory && huge === '' ? '' : ` ${memory}${huge}`;
      const wishes = Object.entries(devices).map(([resource, count]) => `${count} ${resource.split('/')[1]}`);
      return `${name} ${cpu}${bytes}${wishes.length > 0 ? ` (${wishes.join(', ')})` : ''}`;
    })
    .join(', ');
}

const NEVER_THERE = 'never-there';

/**
 * The pod as it is created: bound to the node by name, with images of the lab.
 * @param starts whether its containers must run. A pod that waits for a volume is admitted anyway, and holds its
 * resources; emulated hardware takes ten seconds and more to start and stop a container.
 */
export function manifestOf(pod: DrawnPod, name: string, node: string, starts = true) {
  const held = starts ? {} : { volumeMounts: [{ name: NEVER_THERE, mountPath: '/never' }] };
  const lasting = (container: ContainerShape) => ({
    ...container,
    ...held,
    image: 'lab/pause:1',
    imagePullPolicy: 'Never',
  });
  const ending = (container: ContainerShape) => ({
    ...container,
    ...held,
    image: 'lab/busybox:1',
    command: ['true'],
    imagePullPolicy: 'Never',
  });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      nodeName: node,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      ...(!starts && { volumes: [{ name: NEVER_THERE, configMap: { name: NEVER_THERE } }] }),
      // With 0, the API server would delete the pod before the kubelet has removed it.
      terminationGracePeriodSeconds: 1,
      initContainers: pod.spec.initContainers.map((one) =>
        one.restartPolicy === 'Always' ? lasting(one) : ending(one),
      ),
      containers: pod.spec.containers.map(lasting),
    },
  };
}
