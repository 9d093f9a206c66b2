import fc from 'fast-check';
import { CpuSet } from '../../../model/cpu-set.ts';
import type { Host } from '../../../model/host.ts';
import type { DevicePool } from '../../../model/kubelet/devices.ts';
import { createKubelet, type Kubelet } from '../../../model/kubelet/kubelet.ts';
import type { CellMemory } from '../../../model/kubelet/memory-state.ts';
import type { PodRequest } from '../../../model/kubelet/pod-request.ts';
import { hostOf, policies, type Shape } from './arbitraries.ts';
import type { NaiveContainer, NaivePod } from './naive-kubelet.ts';

export const PAGES = ['hugepages-2Mi', 'hugepages-1Gi'] as const;

interface CellPart {
  readonly memory: number;
  readonly pages: readonly [number, number];
  readonly reserved: number;
  readonly reservedPages: number;
}

interface Part {
  readonly kind: NaiveContainer['kind'];
  readonly cpus: number;
  readonly memory: number;
  /** Of the first and second kind; null: not requested. */
  readonly pages: readonly [number | null, number | null];
}

/** Pods that start and end on one node. Amounts are small, so that they often coincide. */
export interface Scenario {
  readonly shape: Shape;
  readonly policy: 'none' | 'best-effort' | 'restricted' | 'single-numa-node';
  readonly scope: 'container' | 'pod';
  readonly cpuPolicy: 'none' | 'static';
  readonly fullPcpusOnly: boolean;
  /** By NUMA node; the last may have no CPUs. Undefined: the memory manager's policy is None. */
  readonly cells: readonly CellPart[] | undefined;
  readonly steps: readonly Step[];
}

export type Step =
  | {
      readonly does: 'add';
      readonly pod: 'guaranteed' | 'pod-level resources' | 'burstable';
      readonly parts: readonly Part[];
      readonly nic: readonly number[];
    }
  /** The n-th existing pod ends. */
  | { readonly does: 'remove'; readonly pod: number }
  /** The kubelet restarts and admits its n-th pod again. */
  | { readonly does: 'readmit'; readonly pod: number };

const shapes: fc.Arbitrary<Shape> = fc.record({
  cells: fc.oneof(
    { weight: 2, arbitrary: fc.constant(1) },
    { weight: 8, arbitrary: fc.constant(2) },
    { weight: 5, arbitrary: fc.constant(3) },
    { weight: 1, arbitrary: fc.constant(4) },
  ),
  cores: fc.constantFrom(2, 3),
  threads: fc.constantFrom(1, 2),
  siblings: fc.constant('near' as const),
  cellsPerSocket: fc.constant(1),
});

const cell: fc.Arbitrary<CellPart> = fc.record({
  memory: fc.integer({ min: 1, max: 9 }),
  pages: fc.tuple(fc.nat(6), fc.nat(3)),
  reserved: fc.nat(2),
  reservedPages: fc.nat(1),
});

const pages: fc.Arbitrary<Part['pages']> = fc.oneof(
  { weight: 4, arbitrary: fc.constant([null, null] as const) },
  { weight: 3, arbitrary: fc.tuple(fc.nat(6), fc.constant(null)) },
  { weight: 1, arbitrary: fc.tuple(fc.option<number>(fc.nat(6)), fc.nat(3)) },
);

const part: fc.Arbitrary<Part> = fc.record({
  kind: fc.constantFrom('init' as const, 'init' as const, 'sidecar' as const, 'app' as const, 'app' as const),
  cpus: fc.constantFrom(0, 0, 1, 2, 2, 4),
  memory: fc.integer({ min: 1, max: 7 }),
  pages,
});

const listOf = (length: number) => fc.array(cell, { minLength: length, maxLength: length });

const nth = fc.nat(5);

const add: fc.Arbitrary<Step> = fc.record({
  does: fc.constant('add' as const),
  pod: fc.oneof(
    { weight: 10, arbitrary: fc.constant('guaranteed' as const) },
    { weight: 1, arbitrary: fc.constantFrom('pod-level resources' as const, 'burstable' as const) },
  ),
  parts: fc.array(part, { minLength: 1, maxLength: 3 }),
  nic: fc.oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.uniqueArray(fc.nat(3), { minLength: 1, maxLength: 2 }) },
  ),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: add },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('remove' as const), pod: nth }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('readmit' as const), pod: nth }) },
);

export const scenarios: fc.Arbitrary<Scenario> = shapes.chain((shape) =>
  fc.record({
    shape: fc.constant(shape),
    policy: policies,
    scope: fc.constantFrom('container' as const, 'pod' as const),
    cpuPolicy: fc.constantFrom('none' as const, 'static' as const, 'static' as const),
    fullPcpusOnly: fc.boolean(),
    cells: fc.option(fc.oneof(...[9, 1].map((weight, bare) => ({ weight, arbitrary: listOf(shape.cells + bare) }))), {
      nil: undefined,
      freq: 9,
    }),
    steps: fc.array(step, { minLength: 1, maxLength: 8 }),
  }),
);

/** The agent's report of the NUMA nodes. None reserves more than it has. */
export function cellsOf({ cells }: Scenario): CellMemory[] | undefined {
  return cells?.map(({ memory, pages, reserved, reservedPages }, id) => ({
    id,
    memory: memory + pages[0] + pages[1],
    hugePages: { [PAGES[0]]: pages[0], [PAGES[1]]: pages[1] },
    reserved: { memory: Math.min(reserved, memory), [PAGES[0]]: Math.min(reservedPages, pages[0]) },
  }));
}

/** The kubelet of a scenario, with CPU 0 reserved. */
export function kubeletOf(scenario: Scenario): { readonly kubelet: Kubelet; readonly host: Host } {
  const { shape, policy, scope, cpuPolicy, fullPcpusOnly } = scenario;
  const host = hostOf(shape);
  const cells = cellsOf(scenario);
  const kubelet = createKubelet({
    version: 'v1.36.2',
    host,
    cpuManager: { policy: cpuPolicy, options: { 'full-pcpus-only': `${fullPcpusOnly}` } },
    topologyManager: { policy, scope },
    memoryManager: cells ? { policy: 'Static', cells } : { policy: 'None' },
    reserved: CpuSet.of([0]),
  });
  if ('unpredictable' in kubelet) throw new Error(kubelet.unpredictable);
  return { kubelet, host };
}

/**
 * The pod of a step, init containers and sidecars first. Its NIC belongs to its last container. Only a Guaranteed pod
 * without pod-level resources gets CPUs and memory of its own.
 */
export function containersOf(step: Extract<Step, { does: 'add' }>, { shape, cpuPolicy }: Scenario): NaiveContainer[] {
  const last: Part = { ...step.parts.at(-1)!, kind: 'app' };
  const parts = [...step.parts.slice(0, -1), last].sort((a, b) => Number(a.kind === 'app') - Number(b.kind === 'app'));
  return parts.map(({ kind, cpus, memory, pages }, index): NaiveContainer => {
    const amounts: Record<string, number> = { memory };
    PAGES.forEach((name, i) => {
      const bytes = pages[i];
      if (bytes !== null && bytes !== undefined) amounts[name] = bytes;
    });
    return {
      name: `c${index}`,
      kind,
      cpus: step.pod === 'guaranteed' && cpuPolicy === 'static' ? cpus : 0,
      memory: step.pod === 'guaranteed' ? amounts : {},
      nic: index === parts.length - 1 ? step.nic.filter((id) => id < shape.cells) : [],
    };
  });
}

/** The same pod in the form of the model. */
export function requestOf({ uid, containers }: NaivePod, guaranteed: boolean): PodRequest {
  return {
    uid,
    guaranteed,
    containers: containers.map(({ name, kind, cpus, memory, nic }) => ({
      name,
      kind,
      cpus,
      memory: new Map(Object.entries(memory)),
      devices: new Map(nic.length > 0 ? [[nicName(nic), 1]] : []),
    })),
  };
}

/** Every NIC that a scenario could name, each as its own resource. */
export function nicsOf({ shape }: Scenario): Map<string, DevicePool> {
  const ids = Array.from({ length: shape.cells }, (_, id) => id);
  const sets = ids.flatMap((id) => [[id], ...ids.filter((other) => other !== id).map((other) => [id, other])]);
  return new Map(
    sets.map((nodes) => [nicName(nodes), { devices: [{ id: '0', healthy: true, nodes }], endless: true }]),
  );
}

function nicName(nodes: readonly number[]): string {
  return `nic/${[...nodes].sort((a, b) => a - b).join('-')}`;
}
