import assert from 'node:assert/strict';
import { guestTopology } from '../../../model/launcher/cpus.ts';

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
