import type { Round } from './rounds.ts';

export interface TestResource {
  readonly name: string;
  readonly devices: readonly { readonly id: string; readonly nodes?: readonly number[] }[];
}

const DOMAIN = 'lab.plumbline.dev';

/** Eight of a kind are more than the lab's CPUs can use; `few-*` run out. */
export const TEST_RESOURCES: readonly TestResource[] = [
  resource('node0', like(8, [0])),
  resource('node1', like(8, [1])),
  resource('both', like(8, [0, 1])),
  resource('few-split', [[0], [0], [1], [1]]),
  resource('few-anywhere', like(3, undefined)),
];

export const DEVICE_WISHES: readonly Readonly<Record<string, string>>[] = [
  { [named('node0')]: '1' },
  { [named('node0')]: '1' },
  { [named('node1')]: '1' },
  { [named('node1')]: '1' },
  { [named('both')]: '1' },
  { [named('few-anywhere')]: '1' },
  { [named('few-anywhere')]: '2' },
  { [named('few-split')]: '1' },
  { [named('few-split')]: '2' },
  { [named('node0')]: '1', [named('node1')]: '1' },
  { [named('node0')]: '1', [named('both')]: '2' },
];

export const SRIOV_PREFIX = 'openshift.io';

/** Resources of openshift/sriov-network-device-plugin, whose devices are NICs of the machine by PCI address. */
export const SRIOV_RESOURCES: readonly TestResource[] = [
  { name: `${SRIOV_PREFIX}/nic`, devices: [...nics(0, [0, 1, 2]), ...nics(1, [0, 1])] },
  { name: `${SRIOV_PREFIX}/nic_node1`, devices: nics(1, [2, 3]) },
];

export function resourcesOf({ sriov }: Round): readonly TestResource[] {
  return sriov ? [...TEST_RESOURCES, ...SRIOV_RESOURCES] : TEST_RESOURCES;
}

export function deviceCounts(round: Round): ReadonlyMap<string, number> {
  return new Map(resourcesOf(round).map(({ name, devices }) => [name, devices.length]));
}

export function nodesOfDevice(resource: string, id: string): readonly number[] | undefined {
  const all = [...TEST_RESOURCES, ...SRIOV_RESOURCES];
  return all.find(({ name }) => name === resource)?.devices.find((device) => device.id === id)?.nodes;
}

/** The NICs `pluginNics` of the machine: each NUMA node's are on the second bus behind its PCI root. */
function nics(node: number, functions: readonly number[]): TestResource['devices'] {
  const bus = (64 + 32 * node + 2).toString(16);
  return functions.map((number) => ({ id: `0000:${bus}:00.${number}`, nodes: [node] }));
}

function named(short: string): string {
  return `${DOMAIN}/${short}`;
}

function like(count: number, nodes: readonly number[] | undefined) {
  return Array.from({ length: count }, () => nodes);
}

function resource(short: string, nodes: readonly (readonly number[] | undefined)[]): TestResource {
  return {
    name: named(short),
    devices: nodes.map((near, index) => ({ id: `${short}-${index}`, ...(near && { nodes: near }) })),
  };
}
