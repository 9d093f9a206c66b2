import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import { cpuHints } from '../../../model/kubelet/cpu-manager.ts';
import { mergeHints } from '../../../model/kubelet/merge.ts';
import { NO_CPU_OPTIONS } from '../../../model/kubelet/options.ts';
import { bitCount, subMasks } from '../../../model/kubelet/provider.ts';
import { topologyOfHost } from '../../../model/kubelet/topology.ts';
import { hintText } from './fixture.ts';

describe('hints of CPUs', () => {
  /** Four NUMA nodes of four CPUs in two sockets. */
  const host = createHost({
    cells: [0, 1, 2, 3].map((id) => ({ id, cpus: `${4 * id}-${4 * id + 3}` })),
    cores: Array.from({ length: 8 }, (_, core) => `${2 * core}-${2 * core + 1}`),
    sockets: [
      { id: 0, cpus: '0-7' },
      { id: 1, cpus: '8-15' },
    ],
  });
  const topology = topologyOfHost(host);
  const hints = (free: string, request: number, { reusable = '', alignBySocket = false } = {}) =>
    hintText(
      cpuHints(topology, { ...NO_CPU_OPTIONS, alignBySocket }, CpuSet.parse(free), CpuSet.parse(reusable), request),
    );

  it('are preferred in one socket under align-by-socket, even if they are wider', () => {
    const alignBySocket = true;
    assert.equal(hints('0-1,4-5,8-9', 4, { alignBySocket }), '11! 101 110 111 1011 1101 1110 1111');
    assert.equal(hints('4-15', 9, { alignBySocket }), '1110! 1111!');
    assert.equal(hints('4-7,12-15', 5, { alignBySocket }), '1010! 1011 1110 1111');
  });
});

describe('merging hints', () => {
  it('of eight nodes and three resources with 255 hints each is fast', () => {
    const list = subMasks(255).map((mask) => ({ mask, preferred: bitCount(mask) === 3 }));
    const { hint: merged } = mergeHints('restricted', { all: 255 }, [
      new Map([['a', list]]),
      new Map([['b', list]]),
      new Map([['c', list]]),
    ]);
    assert.deepEqual(merged, { mask: 0b111, preferred: true });
  });
});
