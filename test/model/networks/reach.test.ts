import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { type NodeReach, outOfReach, reachFinding } from '../../../model/networks/reach.ts';
import { network, TUNNEL } from './fixture.ts';

const set = (text: string) => CpuSet.parse(text);

describe('whether a node can place a guest near its networks', () => {
  const rooms = new Map([
    [0, 4],
    [1, 6],
    [2, 5],
  ]);
  const node = { rooms, alignment: 'best-effort' };
  const located = (...cells: string[]) => cells.map((text, i) => ({ text: `net${i}`, cells: set(text) }));
  const one = (cpus: number, ...cells: string[]) => outOfReach({ cpus, spansCells: false }, located(...cells), node);
  const spanning = (cpus: number, cells: readonly string[], more: Partial<typeof node> = {}) =>
    outOfReach({ cpus, spansCells: true }, located(...cells), { ...node, ...more });

  it('a guest with one NUMA node needs all CPUs on the NUMA nodes that its networks share', () => {
    assert.equal(one(4, '0', '0-1'), undefined);
    assert.deepEqual(one(5, '0', '0-1'), {
      reason: 'larger-than-cells',
      text: 'net0 is on NUMA node 0, net1 is on NUMA nodes 0-1, where pods can have 4 CPUs at most, and it requests 5',
      excess: 1,
    });
    assert.equal(one(10, '0-1'), undefined);
    assert.equal(one(11, '0-1')?.excess, 1);
    assert.deepEqual(one(1, '0', '1'), {
      reason: 'cannot-split',
      text: 'the kubelet cannot split the CPUs: net0 is on NUMA node 0, net1 is on NUMA node 1, and they have no common NUMA node',
    });
  });

  it('a guest that spans NUMA nodes needs some CPUs near each network', () => {
    assert.equal(spanning(100, ['0', '0-1']), undefined);
    const where = 'net0 is on NUMA node 0, net1 is on NUMA node 1';
    for (const alignment of ['restricted', 'single-numa-node']) {
      assert.deepEqual(spanning(14, ['0', '1'], { alignment }), {
        reason: 'cannot-split',
        text: `the kubelet cannot split the CPUs: ${where}; topologyManagerPolicy ${alignment} refuses a pod with devices on different NUMA nodes`,
      });
    }
    // Outside node 0 there is room for 11, outside node 1 for 9.
    assert.equal(spanning(12, ['0', '1']), undefined);
    assert.deepEqual(spanning(11, ['0', '1']), {
      reason: 'may-not-span',
      text: `the kubelet may put all 11 CPUs away from net0: ${where}; the guest needs more than 11 CPUs to be near all of them for certain`,
    });
    assert.match(spanning(11, ['1', '0'])?.text ?? '', /away from net1: /);
    const even = new Map([0, 1, 2].map((cell) => [cell, 4]));
    assert.match(spanning(8, ['0', '1'], { rooms: even })?.text ?? '', /away from net0: /);
  });
});

describe('the finding that no node can', () => {
  /** A node whose two NUMA nodes have this room; the physnets east and west and the tunnel are on these NUMA nodes. */
  const node = (
    room: number,
    { east, west, tunnel }: { readonly east?: string; readonly west?: string; readonly tunnel?: string },
    alignment = 'best-effort',
  ): NodeReach => ({
    rooms: new Map([
      [0, room],
      [1, room],
    ]),
    alignment,
    networks: {
      physnets: new Map([
        ...(east === undefined ? [] : [['east', set(east)] as const]),
        ...(west === undefined ? [] : [['west', set(west)] as const]),
      ]),
      tunnel: tunnel === undefined ? undefined : set(tunnel),
    },
  });
  const guest = { cpus: 6, spansCells: false };
  const both = [network(), network({ name: 'net4', physnet: 'west' })];
  const tunneled = [network(), TUNNEL];

  for (const [what, required, nodes] of [
    ['a node that is large enough', [network()], [node(1, { east: '0' }), node(6, { east: '0' })]],
    ['apart here, together there', both, [node(9, { east: '0', west: '1' }), node(9, { east: '1', west: '1' })]],
    ['P4: a bond over both NUMA nodes', both, [node(9, { east: '0-1', west: '1' })]],
  ] as const) {
    it(`is absent: ${what}`, () => assert.equal(reachFinding(required, guest, nodes), undefined));
  }

  const LARGER = 'larger than the NUMA nodes of its networks on every node that it can go to: ';
  const tooLarge = (room: number) =>
    `${LARGER}interface net1 (physnet east) is on NUMA node 0, where pods can have ${room} CPUs at most, and it requests 6`;
  const APART = 'the required networks have no common NUMA node on any node that it can go to: net1 (physnet east), ';
  for (const [what, required, nodes, message, isTooLarge] of [
    ['W13: always apart', both, [node(9, { east: '0', west: '1' })], `${APART}net4 (physnet west)`, false],
    ['the tunnel elsewhere', tunneled, [node(9, { east: '0', tunnel: '1' })], `${APART}net2 (the tunnel)`, false],
    [
      'too large for each: the one that misses the least',
      [network()],
      [node(2, { east: '0' }), node(5, { east: '0' }), node(3, { east: '0' })],
      tooLarge(5),
      true,
    ],
  ] as const) {
    it(`is given: ${what}`, () => assert.deepEqual(reachFinding(required, guest, nodes), { message, isTooLarge }));
  }

  it('names the kubelet that may not span before the one that never does, in any order', () => {
    const spans = { cpus: 6, spansCells: true };
    const nodes = [node(9, { east: '0', tunnel: '1' }, 'restricted'), node(9, { east: '0', tunnel: '1' })];
    const findings = [nodes, nodes.toReversed()].map((order) => reachFinding(tunneled, spans, order));
    assert.match(findings[0]?.message ?? '', /^the kubelet may not span the NUMA nodes of its networks on any node /);
    assert.deepEqual(findings[1], findings[0]);
  });
});
