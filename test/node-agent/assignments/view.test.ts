import assert from 'node:assert/strict';
import fc from 'fast-check';
import { CpuSet, unionOf } from '../../../model/cpu-set.ts';
import { type Checkpoint, parseCheckpoint, type Reading } from '../../../node-agent/assignments/checkpoint.ts';
import { joinNames } from '../../../node-agent/assignments/listed-containers.ts';
import {
  type AssignmentsView,
  type Inputs,
  nextView,
  type PodResourcesAnswer,
  UNKNOWN_VIEW,
} from '../../../node-agent/assignments/view.ts';
import { set } from '../support.ts';

const good = <Value>(value: Value): Reading<Value> => ({ value, problem: undefined });
const failed = <Value>(value: Value | undefined): Reading<Value> => ({ value, problem: 'gone' });

function checkpoint(defaultCpus: string, entries: Record<string, string> = {}, policy = 'static'): Checkpoint {
  const byPod = Object.fromEntries(Object.entries(entries).map(([uid, cpus]) => [uid, { compute: cpus }]));
  return parseCheckpoint(JSON.stringify({ policyName: policy, defaultCpuSet: defaultCpus, entries: byPod }));
}
const container = (podName: string, cpus: string, name = 'compute') => {
  return { namespace: 'ns', podName, container: name, cpus: set(cpus) };
};
function answer(allocatable: string, pods: Record<string, string> = {}): PodResourcesAnswer {
  const listed = Object.entries(pods).map(([podName, cpus]) => container(podName, cpus));
  const none = { devices: [], claimNames: new Map(), memory: { cells: new Map() } };
  return { ...none, allocatable: set(allocatable), listed };
}
const view = (
  online: string,
  checkpointReading: Reading<Checkpoint>,
  podResources: Reading<PodResourcesAnswer>,
  previous: AssignmentsView = UNKNOWN_VIEW,
  confirmed = true,
  without: Partial<Pick<Inputs, 'alone' | 'configuredPolicy' | 'claims'>> = {},
) => {
  const base = { online: set(online), checkpoint: checkpointReading, podResources, claims: good([]), confirmed };
  return nextView(previous, { ...base, alone: false, configuredPolicy: undefined, ...without });
};

describe('owners of CPUs', () => {
  it('keep the known policy while a restarted source has not read a checkpoint', () => {
    const before = view('0-3', good(checkpoint('0-3')), good(answer('2-3')));
    assert.equal(view('0-3', failed<Checkpoint>(undefined), good(answer('2-3')), before).policy, 'static');
  });

  for (const [title, reading, confirmed, isPending, devices, entries] of [
    ['the answer is as new as the checkpoint', good(answer('2-3')), true, false, []],
    ['the kubelet has not answered since a change of the checkpoint', good(answer('2-3')), false, true, []],
    ['the kubelet does not answer', failed(answer('2-3')), false, false, undefined],
    ['a kubelet that has started lists no pods yet', good(answer('2-3')), true, false, undefined, { u: '2' }],
  ] as const) {
    it(`devices, when ${title}`, () => {
      const now = view('0-3', good(checkpoint('0-3', entries)), reading, UNKNOWN_VIEW, confirmed);
      assert.deepEqual([now.isAnswerPending, now.devices], [isPending, devices]);
    });
  }

  // The table of the upstream feature: allocatable CPUs, reserved CPUs, exclusive CPUs in use, CPUs free for OVS.
  const table: [string, string, string[], string][] = [
    ['0-1', '2-3', ['1'], '0,2-3'],
    ['0-1', '2-3', ['0', '1'], '2-3'],
    ['0-1', '2-3', [], '0-3'],
    ['0-2', '3', ['0', '2'], '1,3'],
    ['1-3', '0', ['3'], '0-2'],
  ];
  for (const [allocatable, reserved, used, expected] of table) {
    it(`allocatable ${allocatable}, reserved ${reserved}, used ${used.join(' and ') || 'none'}: ${expected}`, () => {
      const entries = Object.fromEntries(used.map((cpus, i) => [`uid-${i}`, cpus]));
      const owned = used.reduce((all, cpus) => all.union(set(cpus)), CpuSet.EMPTY);
      const pool = set('0-3').minus(owned).toString();
      const now = view('0-3', good(checkpoint(pool, entries)), good(answer(allocatable, entries)));
      assert.equal(now.free?.toString(), expected);
      assert.equal(now.reserved?.toString(), reserved);
      assert.deepEqual(now.problems, []);
    });
  }

  const sources: [string, Checkpoint, PodResourcesAnswer, string][] = [
    ['policy none frees all online CPUs', checkpoint('', {}, 'none'), answer(''), '0-3'],
    ['CPUs that strict-cpu-reservation keeps out of the pool are free', checkpoint('2-3'), answer('2-3'), '0-3'],
    ['the pool alone takes CPUs away', checkpoint('0-1'), answer('0-3'), '0-1'],
    ['the entries alone take CPUs away', checkpoint('0-3', { u: '3' }), answer('0-3'), '0-2'],
    ['the list alone takes CPUs away', checkpoint('0-3'), answer('0-3', { p: '0' }), '1-3'],
  ];
  for (const [label, file, listed, free] of sources) {
    it(label, () => assert.equal(view('0-3', good(file), good(listed)).free?.toString(), free));
  }

  it('nothing is free until every source has answered', () => {
    assert.equal(view('0-3', failed<Checkpoint>(undefined), good(answer('0-3'))).free, undefined);
    assert.equal(view('0-3', good(checkpoint('0-3')), failed<PodResourcesAnswer>(undefined)).free, undefined);
    const early = view('0-3', good(checkpoint('0-3')), good(answer('')));
    assert.equal(early.free, undefined, 'a CPU manager that has not started names no CPUs');
    assert.equal(early.reserved, undefined);
    assert.match(early.problems[0] ?? '', /not started/);
  });

  it('no owned CPU becomes free while a restarted kubelet lists no CPUs, or all CPUs and no pods', () => {
    const state = good(checkpoint('0-1,4-7', { u: '2-3' }));
    const before = view('0-7', state, good(answer('0-7', { pod: '2-3' })));
    const starting = view('0-7', state, good(answer('')), before);
    const empty = view('0-7', state, good(answer('0-7')), starting);
    for (const now of [before, starting, empty]) {
      assert.deepEqual([`${now.free}`, `${now.reserved}`], ['0-1,4-7', '']);
      assert.equal(now.assignments.map(({ name }) => name?.podName).join(), 'pod', 'the name stays, too');
    }
  });

  it('the last good set stays in use while a source is missing: it may shrink but never grows', () => {
    const before = view('0-7', good(checkpoint('0-5', { u: '6-7' })), good(answer('0-7', { pod: '6-7' })));
    const shrunk = view('0-7', good(checkpoint('0-3', { u: '6-7', v: '4-5' })), failed(answer('0-7')), before);
    assert.equal(shrunk.free?.toString(), '0-3');
    const released = view('0-7', good(checkpoint('0-7')), failed(answer('0-7')), shrunk);
    assert.equal(released.free?.toString(), '0-3', 'the kubelet does not answer: held');
    const torn = view('0-7', failed(checkpoint('0-7')), good(answer('0-7', { w: '0' })), released);
    assert.equal(torn.free?.toString(), '1-3', 'the checkpoint is torn: the list still takes away');
    const whole = view('0-7', good(checkpoint('0-7')), good(answer('0-7')), torn);
    assert.equal(whole.free?.toString(), '0-7', 'both are back');
  });

  for (const alone of [false, true]) {
    it(`are one list while the checkpoint is unusable, ${alone ? 'for long' : 'at first'}: it has all that is owned`, () => {
      const before = view('0-7', good(checkpoint('0-5', { u: '6-7' })), good(answer('0-7', { old: '6-7' })));
      const lists = good(answer('0-7', alone ? { new: '2-3' } : { old: '6-7', new: '2-3' }));
      const torn = view('0-7', failed(checkpoint('0-5', { u: '6-7' })), lists, before, true, { alone });
      const owners = torn.assignments.map(({ podUID, name, cpus }) => `${podUID} ${name?.podName} ${cpus}`);
      const added = /\bunknown-[0-9a-f]{16} new 2-3$/;
      assert.equal(owners.join(', ').replace(added, 'new'), alone ? 'new' : 'u old 6-7, new');
      assert.equal(torn.owned.toString(), alone ? '2-3' : '2-3,6-7');
      assert.equal(torn.isComplete, alone, 'PodResources alone counts after the grace period');
    });
  }

  it('keep the uid that the checkpoint had when only PodResources lists them', () => {
    const before = view('0-7', good(checkpoint('0-5', { u: '6-7' })), good(answer('0-7', { vm: '6-7' })));
    const listed = good(answer('0-7', { vm: '6-7' }));
    const now = view('0-7', failed<Checkpoint>(undefined), listed, before, true, { alone: true });
    assert.equal(now.assignments.map(({ podUID }) => podUID).join(), 'u');
  });

  it('CPUs freed by a checkpoint count after the next kubelet answer; CPUs taken by it count at once', () => {
    const listed = good(answer('0-7'));
    const before = view('0-7', good(checkpoint('0-3', { u: '4-7' })), listed);
    assert.equal(view('0-7', good(checkpoint('0-7')), listed, before, false).free?.toString(), '0-3');
    assert.equal(view('0-7', good(checkpoint('0-1', { u: '2-7' })), listed, before, false).free?.toString(), '0-1');
    assert.equal(view('0-7', good(checkpoint('0-7')), listed, before).free?.toString(), '0-7');
  });
});

describe('the PodResources API alone, after a long time without a checkpoint', () => {
  const absent = failed<Checkpoint>(undefined);
  const alone = (reading: Reading<PodResourcesAnswer>, previous = UNKNOWN_VIEW, configuredPolicy?: string) =>
    view('0-7', absent, reading, previous, true, { alone: true, configuredPolicy });

  it('frees allocatable and reserved CPUs that are not listed, and still names the missing source', () => {
    const now = alone(good(answer('2-7', { vm: '4-5' })));
    assert.equal(now.free?.toString(), '0-3,6-7');
    assert.deepEqual([now.holds, now.problems], [[], ['gone']]);
    assert.deepEqual([now.sources.checkpoint, now.sources.podResources], ['gone', undefined]);
  });

  it('ignores the owners of a deleted checkpoint', () => {
    const before = view('0-7', good(checkpoint('0-3', { u: '4-7' })), good(answer('0-7', { vm: '4-7' })));
    const gone = failed(checkpoint('0-3', { u: '4-7' }));
    assert.equal(view('0-7', gone, good(answer('0-7')), before, true, { alone: true }).free?.toString(), '0-7');
    assert.equal(view('0-7', gone, good(answer('0-7')), before).free?.toString(), '0-3', 'not for long yet');
  });

  it('keeps the free CPUs if the kubelet does not answer or lists no allocatable CPUs, unless its policy is none', () => {
    const before = alone(good(answer('2-7', { vm: '4-5' })));
    assert.equal(alone(failed(answer('2-7')), before).free?.toString(), '0-3,6-7');
    const starting = alone(good(answer('')), before);
    assert.equal(starting.free?.toString(), '0-3,6-7');
    assert.match(starting.holds.join(), /not started/);
    assert.equal(alone(good(answer('')), UNKNOWN_VIEW, 'static').free, undefined);
    assert.equal(alone(good(answer('')), UNKNOWN_VIEW, 'none').free?.toString(), '0-7');
  });
});

describe('free CPUs over time', () => {
  it('for any readings, no owned CPU is free, and the free CPUs never grow while a source is missing', () => {
    const cpus = fc.uniqueArray(fc.integer({ min: 0, max: 7 })).map((ids) => CpuSet.of(ids).toString());
    const entries = fc.dictionary(fc.constantFrom('a', 'b', 'c'), cpus, { maxKeys: 3 });
    const sources = { pool: cpus, entries, allocatable: cpus, listed: entries };
    const reading = fc.record({ ...sources, up: fc.boolean(), torn: fc.boolean() });
    fc.assert(
      fc.property(fc.array(reading, { maxLength: 12 }), (steps) => {
        let now = UNKNOWN_VIEW;
        for (const step of steps) {
          const state = checkpoint(step.pool, step.entries);
          const reading = answer(step.allocatable, step.listed);
          const before = now;
          now = view('0-7', step.torn ? failed(state) : good(state), step.up ? good(reading) : failed(reading), before);
          assert.ok(!now.free?.intersects(now.owned), 'free and owned');
          assert.ok(unionOf(now.assignments.map(({ cpus }) => cpus)).equals(now.owned), 'one list of owners');
          const whole = step.up && !step.torn && step.allocatable !== '';
          if (!whole && now.free !== undefined) assert.ok(before.free && now.free.isSubsetOf(before.free), 'grew');
        }
      }),
    );
  });
});

describe('pod names for the uids of the checkpoint', () => {
  const entry = (podUID: string, name: string, cpus: string) => ({ podUID, container: name, cpus: set(cpus) });
  const none = new Map();

  it('match by container and CPUs, and name the whole pod by one matching container', () => {
    const entries = [entry('u', 'init', '3'), entry('u', 'c', '1'), entry('v', 'c', '2')];
    const names = joinNames(entries, [container('q', '2', 'c'), container('p', '1', 'c')], none);
    assert.deepEqual([names.get('u')?.podName, names.get('v')?.podName], ['p', 'q']);
  });

  it('stay unknown with two candidates, and are not kept for another uid', () => {
    const [p, q] = [container('p', '1', 'c'), container('q', '1', 'c')];
    assert.equal(joinNames([entry('u', 'c', '1'), entry('v', 'c', '1')], [p], none).size, 0);
    assert.equal(joinNames([entry('u', 'c', '1')], [p, q], none).size, 0);
    const previousNames = new Map([['old', { namespace: 'ns', podName: 'p' }]]);
    assert.deepEqual([...joinNames([entry('new', 'c', '1')], [p], previousNames).keys()], ['new']);
  });

  it('a pod that takes over CPUs does not get the name of their previous owner from an old answer', () => {
    const first = view('0-3', good(checkpoint('0-1', { u: '2-3' })), good(answer('0-3', { first: '2-3' })));
    const after = good(checkpoint('0-1', { v: '2-3' }));
    const nameOf = ({ assignments }: AssignmentsView) => assignments.map(({ name }) => name?.podName);
    const between = view('0-3', after, good(answer('0-3', { first: '2-3' })), first, false);
    assert.deepEqual(nameOf(between), [undefined]);
    const unanswered = view('0-3', after, failed(answer('0-3', { first: '2-3' })), between);
    assert.deepEqual(nameOf(unanswered), [undefined]);
    assert.deepEqual(nameOf(view('0-3', after, good(answer('0-3', { second: '2-3' })), unanswered)), ['second']);
  });
});
