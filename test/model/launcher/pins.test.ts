import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { ParseError } from '../../../model/errors.ts';
import { createHost } from '../../../model/host.ts';
import { podResourcesOf } from '../../../model/launcher/containers.ts';
import { launcherCpus, pinnedCpus } from '../../../model/launcher/cpus.ts';
import { formatPausedStart, nextStep, parsePausedStart, startsRunning } from '../../../model/launcher/paused-start.ts';
import { LauncherPinError, type LauncherPinRequest, launcherPins } from '../../../model/launcher/pins.ts';
import { ioThreadPins, launcherCells } from '../../../model/launcher/qemu-threads.ts';
import { integralCpus } from '../../../model/quantity.ts';
import type { VmiShape } from '../../../model/shapes.ts';
import { ANNOTATED, CPU, container, launcher } from '../admission/facts.ts';
import { alignmentOf } from './alignment.ts';

/** 4 cores of 2 threads in each of two NUMA nodes: CPUs n and n + 8 form a core. */
const HOST = createHost({
  cells: [
    { id: 0, cpus: '0-3,8-11' },
    { id: 1, cpus: '4-7,12-15' },
  ],
  cores: Array.from({ length: 8 }, (_, n) => `${n},${n + 8}`),
});
const set = (text: string) => CpuSet.parse(text);

describe('pins of a launcher on two NUMA nodes', () => {
  const pins = (cpuset: string, cores: number, threads: number, more: Partial<LauncherPinRequest> = {}) =>
    launcherPins({
      cpuset: set(cpuset),
      cells: launcherCells(HOST),
      guest: { sockets: 1, cores, threads },
      strict: false,
      ...more,
    });

  it('take whole cores before fragments, one NUMA node after the other', () => {
    assert.deepEqual(pins('0-1,9', 1, 2).vcpus, [1, 9]);
    assert.deepEqual(pins('0-1,4,9,12', 2, 2).vcpus, [1, 9, 4, 12]);
    assert.deepEqual(pins('0,9-11', 2, 2).vcpus, [0, 9, 10, 11]);
    assert.deepEqual(pins('0-2,4,8-10,12', 1, 1, { emulator: 1 }), {
      vcpus: [0],
      ioThreads: [],
      emulator: [8],
      spare: [1, 9, 2, 10, 4, 12],
    });
  });

  it('are empty for IO threads and the emulator if there are none', () =>
    assert.deepEqual(pins('0,4', 1, 1), { vcpus: [0], ioThreads: [], emulator: [], spare: [4] }));

  it('use up a fragment before they split another core', () =>
    assert.deepEqual(pins('0-1,8-9', 1, 2, { ioThreads: 1, emulator: 1 }), {
      vcpus: [0, 8],
      ioThreads: [1],
      emulator: [9],
      spare: [],
    }));

  it('split a guest core between NUMA nodes only if the guest is not strict', () => {
    assert.deepEqual(pins('0,4', 1, 2).vcpus, [0, 4]);
    const fails = (request: () => unknown, message: string) =>
      assert.throws(request, (error: Error) => error instanceof LauncherPinError && error.message === message);
    fails(
      () => pins('0,4', 1, 2, { strict: true }),
      'no CPUs left for 1 of 1 guest cores of 2 threads without a guest core that spans NUMA cells',
    );
    fails(() => pins('0-1,4,8-9', 3, 2), 'no CPUs left for 1 of 3 guest cores of 2 threads');
    fails(() => pins('0', 3, 2), 'no CPUs left for 3 of 3 guest cores of 2 threads');
    fails(() => pins('0', 1, 0), 'a guest core cannot have 0 threads');
    fails(() => pins('0-2', 1, 1, { ioThreads: 3 }), 'no CPUs left for 1 of 3 IO threads');
    fails(() => pins('0-2', 1, 1, { ioThreads: 1, emulator: 4 }), 'no CPUs left for 3 of 4 emulator CPUs');
  });

  it('treat a CPU without siblings as a core', () => {
    const cells = [[0, 1].map((cpu) => ({ cpu, siblings: [] }))];
    assert.deepEqual(pins('0-1', 2, 1, { cells }).vcpus, [0, 1]);
    assert.deepEqual(pins('1', 1, 1, { cells }).vcpus, [1]);
  });
});

describe('IO threads of a guest', () => {
  const seen = (container: string, vcpus: readonly number[], ioThreads: number, emulator: string) =>
    ioThreadPins({ container: set(container), host: HOST, vcpus, ioThreads, emulator: set(emulator) });

  it('are found for guests with one or two threads per core', () => {
    // Two threads: the whole core first, then the fragment.
    assert.deepEqual(seen('0-2,9-10', [1, 9], 1, '2'), [0]);
    assert.deepEqual(seen('0-2,9-10', [0, 1], 1, '2'), [9]);
    assert.deepEqual(seen('0-3', [0], 1, '2'), [1]);
  });

  it('are unknown if the two algorithms disagree or other pins are visible', () => {
    assert.equal(seen('1-3,9-10', [1, 9], 1, ''), undefined);
    assert.deepEqual(seen('2-3,10-11', [2, 10], 1, '11'), [3]);
    assert.equal(seen('2-3,10-11', [2, 3], 1, '11'), undefined);
    assert.equal(seen('2-3,10-11', [10, 2], 1, '11'), undefined);
  });

  it('are unknown if a CPU of the emulator differs', () => {
    assert.deepEqual(seen('1-3,9-11', [1, 9], 2, '3,11'), [2, 10]);
    assert.equal(seen('1-3,9-11', [1, 9], 2, '3,0'), undefined);
    assert.equal(seen('1-3,9-11', [1, 9], 2, '0,11'), undefined);
  });

  it('depend on the host as virt-handler describes it', () => {
    const [first, second] = launcherCells(HOST);
    assert.deepEqual(
      first?.map(({ cpu }) => cpu),
      [0, 1, 2, 3, 8, 9, 10, 11],
    );
    assert.deepEqual(second?.[0], { cpu: 4, siblings: [4, 12] });
  });
});

describe('the record of a start that waits for its pins', () => {
  const START = 'plumbline.dev/cpu-mask-start';
  it('stays unchanged and ends no pause if another version wrote it', () => {
    const record = { state: 'unknown', text: 'halted 7' } as const;
    assert.equal(formatPausedStart(record), 'halted 7');
    assert.deepEqual(parsePausedStart('halted 7'), record);
    const since = '2026-11-01T10:00:00Z';
    const step = (paused: { reason: string; since: string } | undefined) =>
      nextStep({ record, phase: 'Running', paused }, { state: 'pinned', reason: '', message: '' });
    assert.deepEqual(step({ reason: 'PausedByUser', since }), {
      do: 'tell',
      reason: 'UnknownRecord',
      message:
        'its record "halted 7" is of another version of Plumbline: upgrade the extender, or unpause the VM yourself',
    });
    assert.deepEqual(step({ reason: 'PausedIOError', since }), { do: 'nothing' });
    assert.deepEqual(step(undefined), { do: 'nothing' });
  });
  it('is not written for a VM that starts running', () => {
    assert.equal(startsRunning({ annotations: { [START]: 'running' } }), true);
    assert.equal(startsRunning({ annotations: { [START]: 'paused' } }), false);
    assert.equal(startsRunning({}), false);
  });
});

describe('the CPUs that KubeVirt gives to a launcher', () => {
  const vmi = (more: object, ioThreadsPolicy?: string, count?: number, annotations = {}): VmiShape => ({
    metadata: { annotations },
    spec: {
      domain: {
        cpu: { cores: 3, isolateEmulatorThread: true, ...more },
        ...(ioThreadsPolicy && { ioThreadsPolicy }),
        ...(count !== undefined && { ioThreads: { supplementalPoolThreadCount: count } }),
      },
    },
  });
  const EVEN = { 'alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity': '' };
  for (const [what, one, rendered, pinned] of [
    ['guest and emulator', vmi({}), [3, 0, 1, 4], [3, 0, 1, 4]],
    ['a pool', vmi({}, 'supplementalPool', 2), [3, 2, 1, 6], [3, 2, 1, 6]],
    ['a pool of another policy', vmi({}, 'shared', 2), [3, 2, 1, 6], [3, 0, 1, 4]],
    ['even parity', vmi({ cores: 4 }, undefined, undefined, EVEN), [4, 0, 2, 6], [4, 0, 2, 6]],
    ['even parity, odd', vmi({}, undefined, undefined, EVEN), [3, 0, 1, 4], [3, 0, 1, 4]],
    // KubeVirt counts the pool twice: 3 + 1 + 1 is odd, 3 + 1 is even.
    ['even parity with a pool', vmi({}, 'supplementalPool', 1, EVEN), [3, 1, 1, 5], [3, 1, 2, 6]],
    ['even parity with a pool, even', vmi({ cores: 4 }, 'supplementalPool', 1, EVEN), [4, 1, 2, 7], [4, 1, 1, 6]],
  ] as const) {
    it(what, () => {
      const numbers = (cpus: ReturnType<typeof launcherCpus>) => [
        cpus.vcpus,
        cpus.ioThreads,
        cpus.emulator,
        cpus.total,
      ];
      assert.deepEqual([numbers(launcherCpus(one)), numbers(pinnedCpus(one))], [rendered, pinned]);
    });
  }
});

describe('amounts and containers of a pod', () => {
  it('read whole CPUs', () => {
    assert.deepEqual(['0', '1', '1000m', '1500m'].map(integralCpus), [0, 1, 1, undefined]);
    assert.throws(() => integralCpus('x'), ParseError);
  });

  it('list containers with whole CPUs, init containers first, up to the limit of a host', () => {
    const pod = {
      metadata: {},
      spec: {
        containers: ['1', '65535', '65536', '0', '500m'].map((cpu, i) => container(`c${i}`, cpu)),
        initContainers: [container('i', '2'), { name: 'none' }],
      },
    };
    assert.deepEqual(podResourcesOf(pod).integral, [
      { list: 'initContainers', index: 0, name: 'i', cpus: 2, hasEqualLimit: true },
      { list: 'containers', index: 0, name: 'c0', cpus: 1, hasEqualLimit: true },
      { list: 'containers', index: 1, name: 'c1', cpus: 65_535, hasEqualLimit: true },
    ]);
  });

  it('compare request and limit as amounts', () => {
    const equal = (requests: object | undefined, limits: object | undefined) => {
      const resources = { ...(requests && { requests: { ...requests } }), ...(limits && { limits: { ...limits } }) };
      const [container] = podResourcesOf({ metadata: {}, spec: { containers: [{ name: 'c', resources }] } }).integral;
      return container?.hasEqualLimit;
    };
    assert.equal(equal({ cpu: '1' }, { cpu: '1' }), true);
    assert.equal(equal({ cpu: '1' }, { cpu: '1000m' }), true);
    assert.equal(equal({ cpu: '1' }, { cpu: '2' }), false);
    assert.equal(equal(undefined, { cpu: '2' }), true);
    assert.equal(equal({ cpu: '1' }, undefined), false);
    assert.equal(equal(undefined, undefined), undefined);
  });

  it('list reasons why a pod is not Guaranteed', () => {
    const whys = (...containers: object[]) =>
      podResourcesOf({ metadata: {}, spec: { containers: containers as never } }).obstacles.map(
        ({ container: of, why }) => `${of}: ${why}`,
      );
    assert.deepEqual(whys(container('a', '1')), []);
    assert.deepEqual(whys({ name: 'a' }), ['a: it has no cpu limit']);
    assert.deepEqual(whys({ name: 'a', resources: { limits: { cpu: '1' } } }), ['a: it has no memory limit']);
    assert.deepEqual(whys({ name: 'a', resources: { limits: { cpu: '0', memory: '1Gi' } } }), [
      'a: it has no cpu limit',
    ]);
    assert.deepEqual(whys(container('a', '1', '2'), container('b', '1')), [
      'a: its cpu request 1 differs from its limit 2',
    ]);
    const pod = (resources: object) => ({ metadata: {}, spec: { containers: [container('a', '1')], resources } });
    assert.deepEqual(
      [pod({}), pod({ requests: { cpu: '1' } }), pod({ limits: { cpu: '1' } }), pod({ requests: {}, limits: null })]
        .map(podResourcesOf)
        .map(({ isPodLevel, exclusive }) => [isPodLevel, exclusive]),
      [
        [false, true],
        [true, false],
        [true, false],
        [false, true],
      ],
    );
  });
});

describe('the alignment of a launcher', () => {
  const vmi = { metadata: { annotations: ANNOTATED }, spec: { domain: { cpu: CPU } } };
  const align = (compute: object, its: VmiShape = vmi) =>
    alignmentOf(launcher({ containers: [compute as never] }).pod, { vmi: its });
  const why = (alignment: ReturnType<typeof align>) => alignment.why ?? alignment.to;

  it('needs a whole number of CPUs that a host can have', () => {
    assert.equal(why(align(container('compute', '1'))), 2);
    assert.equal(why(align(container('compute', '65535'))), 65_536);
    assert.equal(why(align(container('compute', '65537'))), 'no-exclusive-cpus');
    assert.equal(why(align(container('compute', '65536'))), 'no-exclusive-cpus');
    assert.equal(why(align(container('compute', '0'))), 'no-exclusive-cpus');
    assert.equal(why(align(container('compute', '1', '3'))), 'no-exclusive-cpus');
    assert.equal(why(align({ name: 'compute' })), 'no-exclusive-cpus');
  });

  it('is absent without a CPU topology', () =>
    assert.equal(why(align(container('compute', '9'), { metadata: {}, spec: { domain: {} } })), 'not-dedicated'));
});
