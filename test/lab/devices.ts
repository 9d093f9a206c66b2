/** The device plugin's resources in the guest. */
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

/** Possible requests of one container: resource to count. Only unlimited resources are requested together. */
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

/** The number of devices of each resource on a node with the test's device plugin. */
export const TEST_COUNTS: ReadonlyMap<string, number> = new Map(
  TEST_RESOURCES.map(({ name, devices }) => [name, devices.length]),
);

/** The NUMA nodes of a device; undefined for one without topology. */
export function nodesOfDevice(resource: string, id: string): readonly number[] | undefined {
  return TEST_RESOURCES.find(({ name }) => name === resource)?.devices.find((device) => device.id === id)?.nodes;
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
