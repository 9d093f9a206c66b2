import assert from 'node:assert/strict';
import type { CpuSet } from '../../../model/cpu-set.ts';
import {
  advertisedResources,
  deviceSlots,
  devicesOf,
  slotOf,
  socketName,
} from '../../../node-agent/device-plugin/resources.ts';
import { set } from '../support.ts';

const PHYSNET = 'physnet.plumbline.dev/a';

describe('the resources of a node', () => {
  it('are its physnets, its tunnel if it has one, and the one that opts pods into placement', () => {
    const physnets = new Map([
      ['a', set('1')],
      ['b', set('')],
    ]);
    const displayed = (tunnel: CpuSet | undefined, down?: Set<string | undefined>) =>
      advertisedResources({ physnets, tunnel }, 3, down).map(
        ({ name, cells, slots, preStart, healthy }) => `${name} ${cells} ${slots} ${preStart} ${healthy}`,
      );
    const placed = 'plumbline.dev/placed  3 false true';
    assert.deepEqual(displayed(set('0-1')), [
      `${PHYSNET} 1 3 true true`,
      'physnet.plumbline.dev/b  3 true true',
      'plumbline.dev/tunnel 0,1 3 true true',
      placed,
    ]);
    assert.equal(displayed(undefined).length, 3);
    const down = displayed(set('0'), new Set(['b', undefined])).filter((text) => text.endsWith('false'));
    assert.deepEqual(down, ['physnet.plumbline.dev/b  3 true false', 'plumbline.dev/tunnel 0 3 true false']);
  });

  const slots: [number, number][] = [
    [-1, 0],
    [1.9, 1],
    [10_001, 10_000],
    [Number.NaN, 0],
  ];
  for (const [pods, expected] of slots)
    it(`have ${expected} slots for ${pods} pods`, () => assert.equal(deviceSlots(pods), expected));

  it('have equal devices on their NUMA nodes, with ids that name the resource', () => {
    const resource = { name: PHYSNET, cells: [0, 1], slots: 2, preStart: true, healthy: false };
    const topology = { nodes: [{ ID: 0 }, { ID: 1 }] };
    assert.deepEqual(devicesOf(resource)[1], { ID: 'a-1', health: 'Unhealthy', topology });
    assert.deepEqual(devicesOf({ ...resource, cells: [], slots: 1, healthy: true }), [
      { ID: 'a-0', health: 'Healthy', topology: undefined },
    ]);
  });

  it('find the index of their own devices only', () => {
    const indexes: [string, number | undefined][] = [
      ['a-0', 0],
      ['a-1000000000', undefined],
      ['a-01', undefined],
      ['a-1x', undefined],
      ['b-1', undefined],
    ];
    for (const [id, expected] of indexes) assert.equal(slotOf(PHYSNET, id), expected, id);
  });

  it('have short socket names that differ', () => {
    assert.equal(socketName('plumbline.dev/tunnel'), 'plumbline-tunnel.sock');
    assert.equal(socketName('physnet.plumbline.dev/a'), 'plumbline-physnet-a.sock');
    const fits = 'x'.repeat(32);
    assert.equal(socketName(`physnet.plumbline.dev/${fits}`), `plumbline-physnet-${fits}.sock`);
    const [first, other] = ['1', '2'].map((end) => socketName(`physnet.plumbline.dev/${fits}${end}`));
    assert.notEqual(first, other);
    for (const name of [first, other]) {
      assert.ok((name?.length ?? 0) <= 'plumbline-.sock'.length + 40 && !name?.includes('xxx'), name);
    }
  });
});
