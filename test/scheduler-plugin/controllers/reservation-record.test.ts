import assert from 'node:assert/strict';
import { createNeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod, podViewOf } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { createReservationRecord } from '../../../scheduler-plugin/controllers/reservation-record.ts';
import { recordingLogger, silent } from '../../support/logger.ts';
import { extenderOf, podOf, statusOf, withUid } from '../extender-fixture.ts';

const full = statusOf({ assignments: [{ podUID: 'other', container: 'compute', cpus: '1-5,9-13' }] });
const four = (uid: string) => withUid(podOf('4'), uid, { resourceVersion: '10' });
const waiting = (uid: string) => {
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'disk' } }];
  return { ...four(uid), spec: { ...four(uid).spec, volumes } };
};
const viewOf = (uid: string, status: object = {}, version = '10') =>
  podViewOf(
    observedPod.parse({ ...withUid(podOf('4'), uid, { resourceVersion: version }), status }),
    createNeedsReader('all'),
  )!;

function replica() {
  const under = extenderOf({ nodes: { n1: full } });
  const record = createReservationRecord(under.state.reservations, 660, () => under.clock.now, silent);
  const passed = (uid: string) => under.filter(four(uid)).NodeNames;
  return { ...under, record, passed };
}

describe('reservations that one replica hands over to the next', () => {
  it('keep CPUs for a pod that waits for its volumes, for the remaining seconds', () => {
    const [first, second] = [replica(), replica()];
    assert.deepEqual(first.filter(waiting('a')).NodeNames, ['n1']);
    first.clock.now += 100;
    second.clock.now = 5;
    second.record.read(first.record.write());
    second.record.restore(viewOf('a'));
    second.clock.now += 559;
    assert.deepEqual(second.passed('b'), []);
    second.clock.now += 1;
    assert.deepEqual(second.passed('b'), ['n1']);
  });

  it('end if the pod changed in between, and are not restored for a pod that has a node', () => {
    const [first, second] = [replica(), replica()];
    first.filter(waiting('a'));
    second.record.read(first.record.write());
    const failed = viewOf('a', { conditions: [{ type: 'PodScheduled', status: 'False' }] }, '11');
    second.record.restore(failed);
    second.state.podChanged(undefined, failed, true);
    assert.deepEqual(second.passed('b'), ['n1']);
    second.record.restore({ ...viewOf('a'), node: 'elsewhere' });
    assert.equal(second.state.reservations.of('a'), undefined);
  });

  const entry = (...fields: unknown[]) => JSON.stringify([fields]);
  const names = (count: number, length = 2) => Array.from({ length: count }, (_, i) => `${i}`.padEnd(length, 'n'));
  for (const [text, read] of [
    [entry('a', '10', 9, ['n1']), true],
    [entry('a', 'v'.repeat(32), 9, ['n1']), true],
    [entry('a', 'v'.repeat(33), 9, ['n1']), false],
    [entry('a', '10', 0, ['n1']), true],
    [entry('a', '10', 9, ['']), false],
    [entry('a', '10', 9, [...names(1, 253)]), true],
    [entry('a', '10', 9, [...names(1, 254)]), false],
    [entry('a', '10', 9, names(1000, 5)), true],
    [entry('a', '10', 9, names(1001, 5)), false],
  ] as const) {
    it(`${text.slice(0, 40)} of ${text.length} characters is ${read ? 'read' : 'ignored'}`, () => {
      const { record, state } = replica();
      record.read(text);
      record.restore(viewOf('a'));
      assert.equal(state.reservations.size, read ? 1 : 0);
    });
  }

  it('apply only to the pod with this uid, of at most 64 characters', () => {
    for (const [length, read] of [
      [64, 1],
      [65, 0],
    ] as const) {
      const { record, state } = replica();
      const uid = 'u'.repeat(length);
      record.read(entry(uid, '10', 9, ['n1']));
      record.restore(viewOf('a'));
      record.restore(viewOf(uid));
      assert.equal(state.reservations.size, read);
    }
  });

  const TEXTS = [
    undefined,
    '',
    '{',
    '{}',
    'null',
    '7',
    '"a"',
    '[]',
    '[["a"]]',
    '[["a","1",-1,["n1"]]]',
    '[["a","1",9,[]]]',
    'x'.repeat(300_000),
  ];
  it('are empty if the record cannot be read', () => {
    for (const text of TEXTS) {
      const { record, state } = replica();
      record.read(text);
      record.restore(viewOf('a'));
      assert.equal(state.reservations.size, 0, text?.slice(0, 30));
    }
  });

  it('are read from at most 131,074 characters', () => {
    for (const [length, read] of [
      [131_074, 1],
      [131_075, 0],
    ] as const) {
      const { record, state } = replica();
      record.read(entry('a', '10', 9, ['n1']).padEnd(length));
      record.restore(viewOf('a'));
      assert.equal(state.reservations.size, read, `${length}`);
    }
  });

  const LOSSES: readonly [string | undefined, { read: number; lost: unknown } | undefined][] = [
    [undefined, undefined],
    ['[]', undefined],
    [entry('a', '10', 9, ['n1']), undefined],
    ['{}', { read: 0, lost: 'all' }],
    ['[["a","10",9,["n1"]],["b"],7]', { read: 1, lost: 2 }],
  ];
  for (const [text, loss] of LOSSES) {
    it(`${text ?? 'no record'}: ${loss === undefined ? 'nothing is' : `${loss.lost} reservations are`} reported as lost`, () => {
      const { log, lines } = recordingLogger();
      const { state } = extenderOf();
      createReservationRecord(state.reservations, 660, () => 0, log).read(text);
      assert.deepEqual(
        lines.map(({ read, lost }) => ({ read, lost })),
        loss === undefined ? [] : [loss],
      );
    });
  }

  it('are not restored over a reservation that the new replica has made itself', () => {
    const { record, state, passed } = replica();
    record.read(entry('a', '10', 9, ['elsewhere']));
    assert.deepEqual(passed('a'), ['n1']);
    record.restore(viewOf('a'));
    assert.deepEqual([...(state.reservations.of('a')?.places.keys() ?? [])], ['n1']);
  });

  it('have at least 0 remaining seconds, which the next replica can read', () => {
    const { record, clock, passed } = replica();
    passed('a');
    clock.now += 59.5;
    assert.equal(record.write(), '[["a","10",1,["n1"]]]');
    clock.now += 100;
    assert.equal(record.write(), '[["a","10",0,["n1"]]]');
  });

  it('are written longest first, up to 131,072 characters', () => {
    for (const more of [0, 1]) {
      const { record, state, clock } = replica();
      // A record of 127 characters and a comma each: 1,024 of them fill the annotation exactly.
      for (let i = 0; i < 1024; i++) {
        const uid = `pod-${i}`;
        const longer = i === 0 ? more : 0;
        const node = 'n'.repeat(127 - JSON.stringify([uid, '1', 30, ['']]).length + longer);
        const places = new Map([[node, { cpus: undefined, score: 0 }]]);
        const expires = clock.now + (i === 1023 ? 29.5 : 30);
        state.reservations.reserve({ uid, pod: viewOf('c').needs, places, version: '1', expires });
      }
      const text = record.write() ?? '';
      const read = JSON.parse(text) as [string][];
      assert.deepEqual([read.length, text.includes('"pod-1023"')], more === 0 ? [1024, true] : [1023, false]);
      assert.equal(text.length, 2 + read.length * 128 - 1 + more);
    }
  });

  it('last no longer than new reservations, and fit into the annotation', () => {
    const { record, state, clock, passed } = replica();
    record.read('[["a","10",1e9,["n1"]]]');
    record.restore(viewOf('a'));
    clock.now += 660;
    assert.deepEqual(passed('b'), ['n1']);
    const pod = viewOf('c').needs;
    for (let i = 0; i < 5000; i++) {
      const places = new Map([[`node-${i}`, { cpus: undefined, score: 0 }]]);
      state.reservations.reserve({
        uid: `pod-${i}`,
        pod,
        places,
        version: '1',
        expires: clock.now + (i === 4999 ? 600 : 30),
      });
    }
    const text = record.write() ?? '';
    assert.ok(text.length < 256 * 1024 && text.includes('pod-4999'), `${text.length} characters`);
  });
});
