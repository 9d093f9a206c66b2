import type { Pod, PodContainer } from '../../model/kubelet/pod-shape.ts';
import { milliValue, parseQuantity } from '../../model/quantity.ts';
import { DEVICE_WISHES } from './devices.ts';
import type { Random } from './random.ts';

/** A drawn pod: no more than what the kubelet's managers read. */
export interface DrawnPod extends Pod {
  readonly spec: { readonly containers: readonly PodContainer[]; readonly initContainers: readonly PodContainer[] };
}

/** Odd counts are rare where whole cores are demanded: there they say only that odd is refused. */
const ALONE = {
  cores: [2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 6, 6, 1, 3, 5],
  threads: [1, 1, 2, 2, 3, 3, 4, 4, 5, 6],
} as const;
const TOGETHER = {
  cores: [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 4, 4, 4, 6, 1, 3],
  threads: [1, 1, 1, 2, 2, 2, 3, 4],
} as const;

const KINDS = ['alone', 'alone', 'alone', 'two', 'two', 'init', 'init', 'sidecar', 'init, sidecar', 'helper'] as const;

/** A random Guaranteed pod of 1 to 6 CPUs a container, with or without devices; or without in any case. */
export function drawPod(random: Random, unit: 'cores' | 'threads', devices = true): DrawnPod {
  const kind = random.oneOf(KINDS);
  const cpus = kind === 'alone' || kind === 'helper' ? ALONE[unit] : TOGETHER[unit];
  const container = (name: string, share: number): PodContainer => {
    const cpu = `${random.oneOf(cpus)}`;
    const wishes = devices && random.chance(share) ? random.oneOf(DEVICE_WISHES) : {};
    return { name, resources: { limits: { cpu, memory: '16Mi', ...wishes } } };
  };
  const main = container('main', 0.65);
  const second = () => container('second', 0.3);
  const init = () => container('init', 0.3);
  const sidecar = (): PodContainer => ({ ...container('sidecar', 0.3), restartPolicy: 'Always' });
  const small: PodContainer = { name: 'helper', resources: { limits: { cpu: '100m', memory: '16Mi' } } };
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

function pod(containers: readonly PodContainer[], initContainers: readonly PodContainer[] = []): DrawnPod {
  return { spec: { containers, initContainers } };
}

/**
 * Whether the scheduler's plain count has room: it sends no pod that asks for more CPU than is left, so neither does
 * this runner. What the CPU manager admits can exceed it only beside helpers on the shared pool.
 * @param cpus allocatable CPUs of the node
 */
export function schedulable(pod: DrawnPod, held: Iterable<DrawnPod>, cpus: number): boolean {
  let asked = milliCpus(pod);
  for (const other of held) asked += milliCpus(other);
  return asked <= cpus * 1000;
}

function milliCpus({ spec }: DrawnPod): number {
  let sidecars = 0;
  let peak = 0;
  for (const container of spec.initContainers) {
    if (container.restartPolicy === 'Always') sidecars += milli(container);
    peak = Math.max(peak, sidecars + (container.restartPolicy === 'Always' ? 0 : milli(container)));
  }
  return Math.max(
    peak,
    spec.containers.reduce((sum, container) => sum + milli(container), sidecars),
  );
}

function milli({ resources }: PodContainer): number {
  return milliValue(parseQuantity(resources?.limits?.['cpu'] ?? '0'));
}

/** `2` CPUs and so on in a line: `init 2, sidecar 2, main 4 (node0)`. */
export function describePod({ spec }: DrawnPod): string {
  return [...spec.initContainers, ...spec.containers]
    .map(({ name, resources }) => {
      const { cpu, memory: _, ...devices } = resources?.limits ?? {};
      const wishes = Object.entries(devices).map(([resource, count]) => `${count} ${resource.split('/')[1]}`);
      return `${name} ${cpu}${wishes.length > 0 ? ` (${wishes.join(', ')})` : ''}`;
    })
    .join(', ');
}

/** The pod as it is created: bound to the node by name, from images that the lab has. */
export function manifestOf(pod: DrawnPod, name: string, node: string) {
  const started = (container: PodContainer) => ({ ...container, image: 'lab/pause:1', imagePullPolicy: 'Never' });
  const ending = (container: PodContainer) => ({
    ...container,
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
      // With 0 the API server would forget the pod before the kubelet has cleared it away.
      terminationGracePeriodSeconds: 1,
      initContainers: pod.spec.initContainers.map((one) =>
        one.restartPolicy === 'Always' ? started(one) : ending(one),
      ),
      containers: pod.spec.containers.map(started),
    },
  };
}
