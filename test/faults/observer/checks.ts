import type { NodeView, Ownership, PodView, Snapshot } from './snapshot.ts';

export type Invariant = 'promised-twice' | 'vswitch' | 'misaligned' | 'unpadded';

export interface Violation {
  readonly invariant: Invariant;
  readonly text: string;
}

/** What in a snapshot must never be, each with the words that say where. */
export function violationsIn({ nodes, pods }: Snapshot): Violation[] {
  return [
    ...nodes.flatMap((node) => [...promisedTwice(node, pods), ...inTheSwitch(node, pods), ...misaligned(node, pods)]),
    ...pods.flatMap(unpadded),
  ];
}

/** No CPU has two owners, by the kubelet's record and by the agent's report; none is reserved or was never there. */
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

/** No thread of Open vSwitch may run on a CPU of a pod that has been started. */
function inTheSwitch(node: NodeView, pods: readonly PodView[]): Violation[] {
  const { vswitch } = node;
  if (vswitch === undefined) return [];
  return started(node, pods).flatMap(([pod, cpus]) => {
    const shared = cpus.filter((cpu) => vswitch.includes(cpu));
    const text = `${node.name}: Open vSwitch may run on CPUs ${shared} of ${pod.name}`;
    return shared.length > 0 ? [{ invariant: 'vswitch' as const, text }] : [];
  });
}

/** A pod that runs has whole cores, as many CPUs as it asked for, and all of them near its network. */
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

/** A launcher that was admitted carries what the webhook puts there. */
function unpadded(pod: PodView): Violation[] {
  if (!pod.aligned) return [];
  const wrong: string[] = [];
  if (pod.cpus % 2 !== 0) wrong.push(`${pod.cpus} CPUs`);
  const device = `physnet.plumbline.dev/${pod.physnet}`;
  if (pod.physnet !== undefined && !pod.devices.includes(device)) wrong.push(`no request for ${device}`);
  return wrong.map((text) => ({ invariant: 'unpadded', text: `${pod.name} was admitted with ${text}` }));
}

/** The pods of a node that run, with the CPUs that the kubelet's record gives to them. */
function started(node: NodeView, pods: readonly PodView[]): [PodView, readonly number[]][] {
  return pods
    .filter((pod) => pod.node === node.name && pod.phase === 'Running' && !pod.leaving)
    .flatMap((pod): [PodView, readonly number[]][] => {
      const own = node.owned.filter((ownership) => ownership.pod === pod.uid);
      return own.length === 0 ? [] : [[pod, own.flatMap(({ cpus }) => cpus)]];
    });
}
