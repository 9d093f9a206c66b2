import assert from 'node:assert/strict';
import { EVEN_PARITY_ANNOTATION, guestTopology, launcherCpus, pinnedCpus } from '../../../model/launcher/cpus.ts';
import type { VmiShape } from '../../../model/shapes.ts';

describe('the topology of a guest', () => {
  const four = { limits: { cpu: '4' } };
  for (const [what, resources, cpu, expected] of [
    ['no CPU', undefined, undefined, [1, 1, 1]],
    ['a request: as many sockets', { requests: { cpu: '3' } }, undefined, [3, 1, 1]],
    [
      'a request and a limit: the limit, rounded up',
      { requests: { cpu: '3' }, limits: { cpu: '4500m' } },
      undefined,
      [5, 1, 1],
    ],
    ['a fraction of a CPU', { requests: { cpu: '100m' } }, undefined, [1, 1, 1]],
    ['a limit and no topology', four, { dedicatedCpuPlacement: true }, [4, 1, 1]],
    ['a limit and cores', four, { cores: 2 }, [1, 2, 1]],
    ['a limit, threads and sockets', four, { threads: 2, sockets: 3 }, [3, 1, 2]],
  ] as const) {
    it(`${what}: ${expected.join(' x ')}`, () => {
      const domain = { ...(cpu && { cpu }), ...(resources && { resources }) };
      const { sockets, cores, threads } = guestTopology({ metadata: {}, spec: { domain } });
      assert.deepEqual([sockets, cores, threads], expected);
    });
  }
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
  const even = { [EVEN_PARITY_ANNOTATION]: '' };
  for (const [what, guest, rendered, pinned] of [
    ['guest and emulator', vmi({}), [3, 0, 1, 4], [3, 0, 1, 4]],
    ['a pool', vmi({}, 'supplementalPool', 2), [3, 2, 1, 6], [3, 2, 1, 6]],
    ['a pool of another policy', vmi({}, 'shared', 2), [3, 2, 1, 6], [3, 0, 1, 4]],
    ['even parity', vmi({ cores: 4 }, undefined, undefined, even), [4, 0, 2, 6], [4, 0, 2, 6]],
    ['even parity, odd', vmi({}, undefined, undefined, even), [3, 0, 1, 4], [3, 0, 1, 4]],
    // KubeVirt counts the pool twice: 3 + 1 + 1 is odd, 3 + 1 is even.
    ['even parity with a pool', vmi({}, 'supplementalPool', 1, even), [3, 1, 1, 5], [3, 1, 2, 6]],
    ['even parity with a pool, even', vmi({ cores: 4 }, 'supplementalPool', 1, even), [4, 1, 2, 7], [4, 1, 1, 6]],
  ] as const) {
    it(what, () => {
      const numbers = ({ vcpus, ioThreads, emulator, total }: ReturnType<typeof launcherCpus>) => [
        vcpus,
        ioThreads,
        emulator,
        total,
      ];
      assert.deepEqual([numbers(launcherCpus(guest)), numbers(pinnedCpus(guest))], [rendered, pinned]);
    });
  }
});
