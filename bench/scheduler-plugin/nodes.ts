import type { NodeTopologyStatus } from '../../kube/node-topology.ts';

export function nodeName(index: number): string {
  return `worker-${index}.east.example.internal`;
}

/** What a node of two sockets, of 32 cores with two threads each, reports. */
export const MACHINE = {
  kubeletVersion: 'v1.36.2',
  cells: [
    { id: 0, cpus: '0-31,64-95' },
    { id: 1, cpus: '32-63,96-127' },
  ],
  cores: Array.from({ length: 64 }, (_, core) => `${core},${core + 64}`),
  reserved: '0,64',
  cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
} satisfies Partial<NodeTopologyStatus>;

/** With up to seven pods of 18 CPUs: one of eight nodes is full. */
export function nodeStatus(index: number): NodeTopologyStatus {
  return {
    ...MACHINE,
    topologyManager: { policy: 'best-effort' },
    assignments: Array.from({ length: index % 8 }, (_, pod) => ({
      podUID: `3f2b9c1e-${String(index).padStart(6, '0')}-4c1d-9a7e-${String(pod).padStart(12, '0')}`,
      container: 'compute',
      cpus: `${pod * 9 + 1}-${pod * 9 + 9},${pod * 9 + 65}-${pod * 9 + 73}`,
    })),
    physnets: [{ name: 'physnet0', cells: '0' }],
  };
}

const VFS = 16;
const OTHER_DEVICES = Array.from({ length: 6 }, (_, i) => `example.com/device${i}`);

/**
 * The same with devices: a third of the nodes have eight resources, two of them VFs on one NUMA node each. The numbers
 * of VFs in use differ more than the sets of pods.
 * @param index of the node
 */
export function statusWithDevices(index: number, pods = index): NodeTopologyStatus {
  const group = (cells: string, used = 0) => ({ cells, total: VFS, free: VFS - used });
  const devices = [
    ...OTHER_DEVICES.map((resource) => ({ resource, groups: [group('0'), group('1')] })),
    { resource: 'openshift.io/vf0', groups: [group('0', pods % VFS)] },
    { resource: 'openshift.io/vf1', groups: [group('1', pods % (VFS - 1))] },
  ];
  return { ...nodeStatus(pods), devices: index % 3 === 0 ? devices : [] };
}

const AMOUNTS = { cpu: '10', memory: '8Gi', 'devices.kubevirt.io/kvm': '1' };
/** A launcher's only container. */
export const LAUNCHER_CONTAINER = {
  name: 'compute',
  image: 'none',
  resources: { requests: AMOUNTS, limits: AMOUNTS },
} as const;

const UID_DIGITS = 8;
/** A uid of a fixed length, so that it can replace another one in a body. */
export const uidOf = (number: number) => `uid-${String(number).padStart(UID_DIGITS, '0')}`;

/** Makes the body of a filter call one for another pod, in place: kube-scheduler asks to filter each pod once. */
export function renumberPod(body: Buffer, number: number): void {
  body.write(uidOf(number), body.indexOf('"uid":"') + '"uid":"'.length);
}

/** A filter call with the names of all nodes, or of some, in a separate order. */
export function filterBody(nodes: number, seed: number, offered = nodes): Buffer {
  const metadata = { name: 'vm', namespace: 'east', uid: uidOf(seed) };
  const pod = { metadata, spec: { containers: [LAUNCHER_CONTAINER] } };
  return Buffer.from(JSON.stringify({ Pod: pod, Nodes: null, NodeNames: offeredNames(nodes, seed, offered) }));
}

/** The first of all nodes' names in an order of kube-scheduler, which offers only some of them in large clusters. */
export function offeredNames(nodes: number, seed: number, offered = nodes): string[] {
  return schedulerOrder(nodes, seed).slice(0, offered).map(nodeName);
}

const WORKERS = 16;

/**
 * kube-scheduler's order of node names: it starts somewhere in its list, 16 workers take chunks of the square root of
 * its length, and each adds a node when it has finished it. Source: findNodesThatPassFilters in
 * pkg/scheduler/schedule_one.go, chunkSizeFor in pkg/scheduler/framework/parallelize.
 */
function schedulerOrder(count: number, seed: number): number[] {
  let state = seed + 1;
  const random = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const run = Math.floor(Math.sqrt(count));
  const begin = random(count);
  const order: number[] = [];
  let taken = 0;
  const take = () => {
    const from = taken;
    taken = Math.min(count, taken + run);
    return Array.from({ length: taken - from }, (_, i) => (begin + from + i) % count).reverse();
  };
  const workers = Array.from({ length: WORKERS }, take);
  while (order.length < count) {
    const worker = random(WORKERS);
    if (workers[worker]!.length === 0) workers[worker] = take();
    const next = workers[worker]!.pop();
    if (next !== undefined) order.push(next);
  }
  return order;
}
