import assert from 'node:assert/strict';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { coarseNeedOf } from '../../../model/placement/coarse.ts';
import { Fleet, NodeFlag } from '../../../scheduler-plugin/cluster/fleet.ts';
import { createNodeShapes } from '../../../scheduler-plugin/cluster/node-shapes.ts';
import { createNeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { podOf, statusOf } from '../extender-fixture.ts';

const needs = createNeedsReader('all').read(podOf('4'));
const owned = (podUID: string, cpus: string) => ({ podUID, container: 'compute', cpus });

function fleetOf(nodes: Readonly<Record<string, NodeTopologyStatus | undefined>>) {
  const fleet = new Fleet();
  for (const [name, status] of Object.entries(nodes)) {
    fleet.set(name, NodeFlag.node, true);
    if (status) fleet.setReport(name, status);
  }
  const id = (name: string) => fleet.names.find(name);
  const left = (name: string) => fleet.coarse.fitter(coarseNeedOf(needs))(id(name));
  return { fleet, id, left };
}

describe('the fleet', () => {
  it('keeps each flag of a node as a bit', () => {
    const { fleet, id } = fleetOf({ n1: undefined, n2: undefined });
    for (const flag of Object.values(NodeFlag)) {
      fleet.set('n1', flag, true);
      assert.deepEqual([fleet.has(id('n1'), flag), fleet.flags(id('n1'))], [true, NodeFlag.node | flag]);
      if (flag !== NodeFlag.node) fleet.set('n1', flag, false);
      assert.equal(fleet.flags(id('n1')), NodeFlag.node);
    }
    assert.equal(fleet.flags(id('n2')), 1);
    assert.deepEqual(Object.values(NodeFlag), [1, 2, 4, 8, 16, 32]);
  });

  it('has the name of each number in use, and no name for another', () => {
    const { fleet, id } = fleetOf({ n1: undefined });
    assert.deepEqual([fleet.nameOf(id('n1')), fleet.nameOf(1), fleet.nameOf(-1)], ['n1', '', '']);
  });

  it('calls a node plain if it exists and has no flag other than DPU host', () => {
    const { fleet, id } = fleetOf({ n1: undefined });
    assert.equal(fleet.isPlain(id('n1')), true);
    fleet.set('n1', NodeFlag.dpuHost, true);
    assert.equal(fleet.isPlain(id('n1')), true);
    for (const flag of [4, 8, 16, 32] as const) {
      fleet.set('n1', flag, true);
      assert.equal(fleet.isPlain(id('n1')), false, `${flag}`);
      fleet.set('n1', flag, false);
    }
  });

  it('keeps a name while a Node, a flag, a report or a reservation uses it', () => {
    const { fleet, id } = fleetOf({});
    const known = () => [id('n1') >= 0, fleet.size];
    fleet.set('n1', NodeFlag.stale, false);
    fleet.setAssumed('n1', 0, 0);
    fleet.removeReport('n1');
    fleet.setDomains('n1', 'zone=a');
    assert.deepEqual([known(), fleet.changes.count, fleet.domains.of('zone')], [[false, 0], 0, undefined]);
    const steps: readonly [() => void, () => void][] = [
      [() => fleet.set('n1', NodeFlag.stale, true), () => fleet.set('n1', NodeFlag.stale, false)],
      [() => fleet.setReport('n1', statusOf()), () => fleet.removeReport('n1')],
      [() => fleet.setAssumed('n1', 1, 4), () => fleet.setAssumed('n1', 0, 0)],
    ];
    for (const [begin, end] of steps) {
      begin();
      assert.deepEqual(known(), [true, 1]);
      end();
      assert.deepEqual(known(), [false, 0]);
    }
    for (const [begin] of steps) begin();
    for (const [i, [, end]] of steps.entries()) {
      assert.deepEqual(known(), [true, 1], `${i}`);
      end();
    }
    assert.deepEqual(known(), [false, 0]);
  });

  it('clears the data of a number before another node gets it', () => {
    const { fleet, id, left } = fleetOf({ n1: statusOf({ assignments: [owned('x', '1-2')] }) });
    fleet.setAssumed('n1', 1, 4);
    const number = id('n1');
    fleet.setAssumed('n1', 0, 0);
    fleet.removeReport('n1');
    fleet.set('n1', NodeFlag.node, false);
    fleet.set('n2', NodeFlag.node, true);
    assert.equal(id('n2'), number);
    assert.deepEqual(
      [
        fleet.shape(number),
        fleet.load(number),
        fleet.assignments(number),
        fleet.assigned(number),
        fleet.assumed(number),
      ],
      [undefined, '', [], [], 0],
    );
    assert.ok(left('n2') < 0);
    assert.deepEqual([fleet.host(number), fleet.flags(number), [...fleet.ids()]], [undefined, 1, [number]]);
  });

  it('reads from the report which CPUs pods own, and gives equally full nodes the same load', () => {
    const shown = [owned('a', '1-2,9-10'), owned('b', '3,11')];
    const { fleet, id, left } = fleetOf({
      n1: statusOf({ assignments: shown }),
      n2: statusOf({ assignments: [owned('c', '1-3,9-11')] }),
      n3: statusOf(),
    });
    assert.deepEqual(fleet.assignments(id('n1')), shown);
    assert.deepEqual(fleet.shown('n1'), ['a', 'b']);
    assert.deepEqual(fleet.shown('elsewhere'), []);
    assert.deepEqual(
      [fleet.shows(id('n1'), 'b'), fleet.shows(id('n1'), 'c'), fleet.shows(id('n3'), 'a')],
      [true, false, false],
    );
    assert.deepEqual(fleet.assigned(id('n1')).map(String), ['1-2,9-10', '3,11']);
    assert.equal(fleet.load(id('n1')), fleet.load(id('n2')));
    assert.notEqual(fleet.load(id('n1')), fleet.load(id('n3')));
    assert.match(fleet.load(id('n1')), /^\d+ 1-3,9-11$/);
    assert.deepEqual([left('n1'), left('n3')], [4, 10]);
    fleet.setReport('n3', statusOf({ assignments: shown }));
    assert.deepEqual([left('n3'), fleet.load(id('n3')) === fleet.load(id('n1'))], [4, true]);
    fleet.setReport('n3', statusOf({ reserved: '0-1,8-9' }));
    assert.deepEqual([left('n3'), fleet.shown('n3')], [8, []]);
  });

  it('shortens a load of many ranges to a digest', () => {
    const cpus = (count: number) => Array.from({ length: count }, (_, i) => 2 * i + 2).join();
    const many = (count: number, reserved = '0') =>
      statusOf({
        cells: [{ id: 0, cpus: '0-255' }],
        cores: Array.from({ length: 256 }, (_, i) => `${i}`),
        reserved,
        cpuManager: { policy: 'static' },
        physnets: [],
        tunnel: undefined,
        assignments: [owned('x', cpus(count))],
      });
    const { fleet, id } = fleetOf({ n1: many(100), n2: many(100), n3: many(99), n4: many(30) });
    assert.match(fleet.load(id('n1')), /^[A-Za-z0-9+/]{43}=$/);
    assert.equal(fleet.load(id('n1')), fleet.load(id('n2')));
    assert.notEqual(fleet.load(id('n1')), fleet.load(id('n3')));
    assert.match(fleet.load(id('n4')), /^\d+ 2,4,6,/);
    const evens = (from: number, to: number) => Array.from({ length: (to - from) / 2 + 1 }, (_, i) => from + 2 * i);
    for (const [numbers, length] of [
      [[...evens(2, 82), 100, 102], 128],
      [evens(2, 88), 129],
    ] as const) {
      fleet.setReport('n4', { ...many(1), assignments: [owned('x', numbers.join())] });
      const text = `${fleet.shape(id('n4'))?.id} ${numbers.join()}`;
      assert.deepEqual([text.length, fleet.load(id('n4')) === text], [length, length === 128]);
    }
  });

  it('lists the numbers of known nodes', () => {
    const { fleet, id } = fleetOf({ n1: undefined, n2: undefined, n3: undefined });
    fleet.set('n2', NodeFlag.node, false);
    assert.deepEqual([[...fleet.ids()], fleet.size], [[id('n1'), id('n3')], 2]);
    assert.equal(fleet.shows(id('n1'), 'x'), false);
  });

  it('forgets a shape that no node has any more', () => {
    const { fleet, id } = fleetOf({ n1: statusOf() });
    const other = statusOf({ reserved: '0-1,8-9' });
    const shapes = [statusOf(), other, statusOf(), undefined, statusOf()].map((status) => {
      if (status) fleet.setReport('n1', status);
      else fleet.removeReport('n1');
      return fleet.shape(id('n1'))?.id;
    });
    assert.deepEqual(shapes, [1, 2, 3, undefined, 4]);
  });

  it('counts the reservations of a node, and their CPUs as not free', () => {
    const { fleet, id, left } = fleetOf({ n1: statusOf(), n2: undefined });
    fleet.setAssumed('n1', 2, 6);
    assert.deepEqual(
      [fleet.assumed(id('n1')), fleet.assumed(id('n2')), fleet.assumed(99_999), left('n1')],
      [2, 0, 0, 4],
    );
    fleet.setAssumed('n1', 0, 0);
    assert.deepEqual([fleet.assumed(id('n1')), left('n1'), id('n1') >= 0], [0, 10, true]);
  });

  it('trusts a report that is fresh and not quarantined', () => {
    const { fleet, id } = fleetOf({ n1: statusOf(), n2: undefined });
    const trusts = () => fleet.trusted(id('n1')) !== undefined;
    assert.deepEqual([trusts(), fleet.trusted(id('n2'))], [true, undefined]);
    for (const flag of [NodeFlag.stale, NodeFlag.quarantined]) {
      fleet.set('n1', flag, true);
      assert.equal(trusts(), false);
      fleet.set('n1', flag, false);
    }
    assert.equal(trusts(), true);
  });

  it('prepares a node with pods once for each report, and keeps up to 512', () => {
    const status = statusOf({ assignments: [owned('x', '1-2,9-10')] });
    const { fleet, id } = fleetOf(Object.fromEntries(Array.from({ length: 513 }, (_, i) => [`n${i}`, status])));
    const prepared = (i: number) => fleet.host(id(`n${i}`));
    const [first, second] = [prepared(0), prepared(1)];
    assert.equal(prepared(0), first);
    assert.notEqual(first, second);
    for (let i = 2; i < 512; i++) prepared(i);
    assert.equal(prepared(0), first);
    prepared(512);
    assert.equal(prepared(1), second);
    assert.notEqual(prepared(0), first, 'the oldest was forgotten');
    const last = prepared(512);
    fleet.setReport('n512', statusOf({ assignments: [owned('x', '1-3,9-11')] }));
    assert.notEqual(prepared(512), last);
    assert.notEqual(prepared(512), fleet.shape(id('n512'))?.empty);
    fleet.setReport('n512', statusOf());
    assert.equal(prepared(512), fleet.shape(id('n512'))?.empty, 'without pods it is the shape itself');
  });

  it('keeps the flags and reservations of many nodes', () => {
    const { fleet, id } = fleetOf({});
    for (let i = 0; i < 1000; i++) {
      fleet.set(`n${i}`, i % 2 === 0 ? NodeFlag.stale : NodeFlag.dpuHost, true);
      fleet.setAssumed(`n${i}`, i + 1, 0);
    }
    for (let i = 0; i < 1000; i++) {
      const found = [fleet.flags(id(`n${i}`)), fleet.assumed(id(`n${i}`))];
      assert.deepEqual(found, [i % 2 === 0 ? NodeFlag.stale : NodeFlag.dpuHost, i + 1], `n${i}`);
    }
  });

  it('leaves a node without a report if the report contradicts itself', () => {
    const { fleet, id, left } = fleetOf({ n1: statusOf(), n2: statusOf() });
    assert.throws(() => fleet.setReport('n1', statusOf({ cores: ['0'] })));
    assert.deepEqual([fleet.shape(id('n1')), left('n1') < 0], [undefined, true]);
    assert.throws(() => fleet.setReport('n2', statusOf({ assignments: [owned('x', 'all')] })));
    assert.equal(fleet.shape(id('n2')), undefined);
    assert.throws(() => fleet.setReport('n3', statusOf({ cores: ['0'] })));
    assert.deepEqual([id('n3'), fleet.size], [-1, 2]);
  });

  it('adds every change of a node to the change log', () => {
    const { fleet, id } = fleetOf({ n0: undefined, n1: statusOf() });
    const changed = (change: () => void) => {
      const { count } = fleet.changes;
      change();
      return [...(fleet.changes.since(count) ?? [])].includes(id('n1'));
    };
    assert.ok(changed(() => fleet.set('n1', NodeFlag.stale, true)));
    assert.ok(changed(() => fleet.set('n1', NodeFlag.stale, false)));
    assert.ok(changed(() => fleet.setAssumed('n1', 1, 2)));
    assert.ok(changed(() => fleet.setReport('n1', statusOf())));
    assert.ok(changed(() => fleet.removeReport('n1')));
    assert.ok(!changed(() => fleet.set('n0', NodeFlag.stale, true)));
  });
});

describe('the shapes of nodes', () => {
  it('are shared by nodes that differ only in pods, conditions and refusals', () => {
    const shapes = createNodeShapes();
    const one = shapes.take(statusOf());
    const more = {
      assignments: [owned('x', '1')],
      conditions: [],
      pinning: [],
      refusals: [{ namespace: 'a', podName: 'b', container: 'c', message: 'no' }],
    };
    assert.equal(shapes.take(statusOf(more)), one);
    const other = shapes.take(statusOf({ reserved: '0-1,8-9' }));
    assert.deepEqual([one.id, other.id], [1, 2]);
    assert.deepEqual(
      [one.empty.host.threadsPerCore, String(one.empty.reserved), String(other.empty.reserved)],
      [2, '0,8', '0-1,8-9'],
    );
  });

  it('are forgotten when no node uses them, and return with a new number', () => {
    const shapes = createNodeShapes();
    const one = shapes.take(statusOf());
    shapes.take(statusOf());
    shapes.release(one);
    assert.equal(shapes.take(statusOf()), one, 'one node is left');
    shapes.release(one);
    shapes.release(one);
    const again = shapes.take(statusOf());
    assert.notEqual(again, one);
    assert.equal(again.id, 2);
    shapes.release({ ...one, key: 'unknown' });
  });
});
