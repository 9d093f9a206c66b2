/** A view at one moment. CPUs are plain numbers and parsed here, so that no code under test judges itself. */
export interface Snapshot {
  readonly nodes: readonly NodeView[];
  readonly pods: readonly PodView[];
}

export interface NodeView {
  readonly name: string;
  /** CPUs of each physical core. */
  readonly cores: readonly (readonly number[])[];
  readonly reserved: readonly number[];
  readonly physnets: Readonly<Record<string, readonly number[]>>;
  readonly owned: readonly Ownership[];
  readonly reported: readonly Ownership[];
  /** CPUs that a thread of Open vSwitch may run on; undefined without Open vSwitch. */
  readonly vswitch?: readonly number[];
}

export interface Ownership {
  readonly pod: string;
  readonly container: string;
  readonly cpus: readonly number[];
}

export interface PodView {
  readonly uid: string;
  readonly name: string;
  readonly node?: string;
  readonly phase: string;
  readonly leaving: boolean;
  readonly cpus: number;
  readonly aligned: boolean;
  readonly physnet?: string;
  readonly devices: readonly string[];
}

/** `1,3-5` as 1, 3, 4, 5. @throws Error for any other text */
export function cpusOf(list: string): number[] {
  if (list.trim() === '') return [];
  return list
    .trim()
    .split(',')
    .flatMap((part) => {
      const [first, last] = part.split('-').map(Number);
      if (first === undefined || !Number.isInteger(first)) throw new Error(`not a CPU list: ${list}`);
      const end = last ?? first;
      return Array.from({ length: end - first + 1 }, (_, i) => first + i);
    });
}

export type Invariant = 'promised-twice' | 'vswitch' | 'misaligned' | 'unpadded';

export interface Violation {
  readonly invariant: Invariant;
  readonly text: string;
}

export function violationsIn({ nodes, pods }: Snapshot): Violation[] {
  return [
    ...nodes.flatMap((node) => [...promisedTwice(node, pods), ...inTheSwitch(node, pods), ...misaligned(node, pods)]),
    ...pods.flatMap(unpadded),
  ];
}

function promisedTwice(node: NodeView, pods: readonly PodView[]): Violation[] {
  const found: string[] = [];
  for (const [source, list] of [
    ['the kubelet’s record', node.owned],
    ['the report', node.reported],
  ] as const) {
    const owners = new Map<number, Ownership>();
    for (const ownership of list) {
      for (const cpu of ownership.cpus) {
        const other = owners.get(cpu);
        if (other) found.push(`${source}: CPU ${cpu} belongs to ${other.pod} and to ${ownership.pod}`);
        if (node.reserved.includes(cpu)) found.push(`${source}: CPU ${cpu} of ${ownership.pod} is reserved`);
        owners.set(cpu, ownership);
      }
    }
  }
  const bound = pods.filter((pod) => pod.node === node.name && pod.phase !== 'Failed' && pod.phase !== 'Succeeded');
  const sum = bound.reduce((total, { cpus }) => total + cpus, 0);
  const free = node.cores.flat().length - node.reserved.length;
  if (sum > free) found.push(`${sum} CPUs are promised to ${bound.length} pods, there are ${free}`);
  return found.map((text) => ({ invariant: 'promised-twice', text: `${node.name}: ${text}` }));
}

function inTheSwitch(node: NodeView, pods: readonly PodView[]): Violation[] {
  const { vswitch } = node;
  if (vswitch === undefined) return [];
  return started(node, pods).flatMap(([pod, cpus]) => {
    const shared = cpus.filter((cpu) => vswitch.includes(cpu));
    const text = `${node.name}: Open vSwitch may run on CPUs ${shared} of ${pod.name}`;
    return shared.length > 0 ? [{ invariant: 'vswitch' as const, text }] : [];
  });
}

function misaligned(node: NodeView, pods: readonly PodView[]): Violation[] {
  return started(node, pods).flatMap(([pod, cpus]) => {
    const wrong: string[] = [];
    const split = node.cores.filter((core) => {
      const own = core.filter((cpu) => cpus.includes(cpu)).length;
      return own > 0 && own < core.length;
    });
    if (pod.aligned && split.length > 0) wrong.push(`half of the cores ${split.map((core) => core.join('+'))}`);
    if (cpus.length !== pod.cpus) wrong.push(`${cpus.length} CPUs instead of ${pod.cpus}`);
    const beside = pod.physnet === undefined ? undefined : node.physnets[pod.physnet];
    if (pod.physnet !== undefined && beside === undefined) wrong.push(`a node without ${pod.physnet}`);
    const away = beside === undefined ? [] : cpus.filter((cpu) => !beside.includes(cpu));
    if (away.length > 0) wrong.push(`CPUs ${away} away from ${pod.physnet}`);
    return wrong.map((text) => ({ invariant: 'misaligned' as const, text: `${node.name}: ${pod.name} has ${text}` }));
  });
}

function unpadded(pod: PodView): Violation[] {
  if (!pod.aligned) return [];
  const wrong: string[] = [];
  if (pod.cpus % 2 !== 0) wrong.push(`${pod.cpus} CPUs`);
  const device = `physnet.plumbline.dev/${pod.physnet}`;
  if (pod.physnet !== undefined && !pod.devices.includes(device)) wrong.push(`no request for ${device}`);
  return wrong.map((text) => ({ invariant: 'unpadded', text: `${pod.name} was admitted with ${text}` }));
}

function started(node: NodeView, pods: readonly PodView[]): [PodView, readonly number[]][] {
  return pods
    .filter((pod) => pod.node === node.name && pod.phase === 'Running' && !pod.leaving)
    .flatMap((pod): [PodView, readonly number[]][] => {
      const own = node.owned.filter((ownership) => ownership.pod === pod.uid);
      return own.length === 0 ? [] : [[pod, own.flatMap(({ cpus }) => cpus)]];
    });
}
