import assert from 'node:assert/strict';
import fc from 'fast-check';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import { cpuHints } from '../../../model/kubelet/cpu-manager.ts';
import { type DevicePool, deviceHints, handOutOrder, indexPool } from '../../../model/kubelet/devices.ts';
import { bestHint } from '../../../model/kubelet/memory-state.ts';
import { NO_CPU_OPTIONS } from '../../../model/kubelet/options.ts';
import { bitCount, type Hint, isNarrower, subMasks } from '../../../model/kubelet/provider.ts';
import { topologyOfHost } from '../../../model/kubelet/topology.ts';
import { behaviourOf } from '../../../model/kubelet/versions.ts';
import { simpleHost } from './fixture.ts';

const text = (hints: readonly Hint[] | null) =>
  hints?.map(({ mask, preferred }) => `${mask?.toString(2)}${preferred ? '!' : ''}`).join(' ') ?? 'none';

describe('model/kubelet: masks of NUMA nodes', () => {
  it('are tried by size, then by their lowest nodes', () => {
    const masks = (mask: number) =>
      subMasks(mask)
        .map((one) => one.toString(2))
        .join(' ');
    assert.equal(masks(0), '');
    assert.equal(masks(0b111), '1 10 100 11 101 110 111');
    assert.equal(masks(0b1010), '10 1000 1010');
    assert.equal(masks(0b11110), '10 100 1000 10000 110 1010 10010 1100 10100 11000 1110 10110 11010 11100 11110');
  });

  it('are narrower with fewer nodes, or with as many lower ones', () => {
    fc.assert(
      fc.property(fc.nat(255), fc.nat(255), (a, b) => {
        const [ofA, ofB] = [a, b].map((mask) => mask.toString(2).replaceAll('0', '').length);
        assert.equal(bitCount(a), ofA);
        assert.equal(isNarrower(a, b), ofA === ofB ? a < b : ofA! < ofB!);
      }),
    );
  });

  it('the best hint is preferred, then narrow, then low', () => {
    const best = (...hints: [mask: number, preferred: boolean][]) =>
      bestHint(hints.map(([mask, preferred]) => ({ mask, preferred })))?.mask;
    assert.equal(best(), undefined);
    assert.equal(best([0b100, false], [0b11, true]), 0b11);
    assert.equal(best([0b11, true], [0b100, false]), 0b11);
    assert.equal(best([0b11, true], [0b100, true], [0b10, true], [0b1000, true]), 0b10);
    assert.equal(best([0b10, false], [0b1, false]), 0b1);
  });
});

describe('model/kubelet: hints of CPUs', () => {
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
    text(cpuHints(topology, { ...NO_CPU_OPTIONS, alignBySocket }, CpuSet.parse(free), CpuSet.parse(reusable), request));

  it('are all sets with enough free CPUs; those as small as on an empty node are preferred', () => {
    assert.equal(hints('0-3,8-9', 4), '1! 11 101 1001 111 1011 1101 1111');
    assert.equal(hints('0-1,4-5,8-9', 4), '11 101 110 111 1011 1101 1110 1111');
    assert.equal(hints('0-15', 17), '');
    assert.equal(hints('0-7', 5), '11! 111 1011 1111');
  });

  it('include the NUMA nodes of CPUs that can be used again', () => {
    assert.equal(hints('0-3', 2, { reusable: '4' }), '11 111 1011 1111');
    assert.equal(hints('0', 2, { reusable: '4' }), '11 111 1011 1111');
    assert.equal(hints('', 1, { reusable: '4' }), '10! 11 110 1010 111 1011 1110 1111');
  });

  it('are preferred in one socket under align-by-socket, even if they are wider', () => {
    const alignBySocket = true;
    assert.equal(hints('0-1,4-5,8-9', 4, { alignBySocket }), '11! 101 110 111 1011 1101 1110 1111');
    assert.equal(hints('4-15', 9, { alignBySocket }), '1110! 1111!');
    assert.equal(hints('4-7,12-15', 5, { alignBySocket }), '1010! 1011 1110 1111');
  });
});

describe('model/kubelet: hints of devices', () => {
  const topology = topologyOfHost(simpleHost(3, 4));
  const pool = (...nodes: readonly (readonly number[] | undefined)[]): DevicePool => ({
    devices: nodes.map((one, index) => ({ id: `d${index}`, healthy: true, nodes: one })),
  });
  const of = (devices: DevicePool, request: number, available: readonly string[], reusable: readonly string[] = []) => {
    const behaviour = behaviourOf('v1.36.0');
    assert.ok(behaviour);
    return text(
      deviceHints(topology, behaviour, indexPool(topology, devices), new Set(available), new Set(reusable), request),
    );
  };

  it('are the sets with enough free devices', () => {
    const two = pool([0], [2]);
    assert.equal(of(two, 1, ['d0', 'd1']), '1! 100! 101');
    assert.equal(of(two, 1, ['d1']), '100! 101');
    assert.equal(of(two, 2, ['d0', 'd1']), '101!');
    assert.equal(of(two, 3, ['d0', 'd1']), '');
  });

  it('include the devices that can be used again', () => {
    const two = pool([0], [2]);
    assert.equal(of(two, 1, ['d1'], ['d0']), '1! 101');
    assert.equal(of(two, 1, ['d0', 'd1'], []), '1! 100! 101');
  });

  it('are handed out near the hint first, then elsewhere, then without a known node', () => {
    const index = indexPool(topology, pool(undefined, [1], [0], []));
    const all = new Set(['d0', 'd1', 'd2', 'd3']);
    assert.deepEqual(handOutOrder(index, all, 0b1), ['d2', 'd1', 'd0', 'd3']);
    assert.deepEqual(handOutOrder(index, all, 0b10), ['d1', 'd2', 'd0', 'd3']);
    assert.deepEqual(handOutOrder(index, new Set(['d1', 'd3']), 0b1), ['d1', 'd3']);
    assert.deepEqual(handOutOrder(index, all, null), ['d0', 'd1', 'd2', 'd3']);
    const nowhere = indexPool(topology, pool(undefined, []));
    assert.deepEqual(handOutOrder(nowhere, all, 0b1), ['d0', 'd1']);
  });
});
