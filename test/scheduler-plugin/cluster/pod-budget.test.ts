import assert from 'node:assert/strict';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod, PodBudget, type PodView, podViewOf } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { podOf, withUid } from '../extender-fixture.ts';

const MIB = 1024 * 1024;

describe('the memory of pods', () => {
  const reader = new NeedsReader('all');
  const view = (uid: string, cpus: string, resources: readonly string[] = []): PodView => {
    const found = podViewOf(observedPod.parse(withUid(podOf(cpus, resources), uid)), reader);
    assert.ok(found);
    return found;
  };
  const MANY = Array.from({ length: 60 }, (_, i) => `example.com/${i}`.padEnd(75, 'x'));

  it('counts needs once for all pods of a namespace that share them', () => {
    const budget = new PodBudget(64 * MIB);
    budget.put('a', 'a/0', view('0', '4', MANY));
    const first = budget.bytes;
    for (let i = 1; i < 100; i++) assert.ok(budget.put('a', `a/${i}`, view(`${i}`, '4', MANY)));
    assert.ok(budget.bytes < 100 * 2000 + first, `${budget.bytes} bytes`);
    budget.put('b', 'b/0', view('b', '4', MANY));
    assert.ok(budget.bytes > first + 100 * 500, 'another namespace counts them, too');
  });

  it('counts different needs of each pod, and one namespace gets half', () => {
    const budget = new PodBudget(4 * MIB);
    let pods = 0;
    while (budget.put('a', `a/${pods}`, view(`${pods}`, `${pods + 1}`, MANY))) pods++;
    assert.ok(pods > 50 && pods < 300, `${pods} pods`);
    assert.ok(budget.bytes <= 2 * MIB);
    assert.ok(budget.put('b', 'b/0', view('b', '4')), 'others have room');
  });

  it('keeps a pod that changes and does not grow, and is empty when all pods have gone', () => {
    const budget = new PodBudget(MIB);
    for (let i = 0; i < 200; i++) budget.put('a', `a/${i}`, view(`${i}`, '4'));
    const full = budget.bytes;
    for (let i = 0; i < 3; i++) assert.ok(budget.put('a', 'a/0', view('0', '4')));
    assert.equal(budget.bytes, full);
    assert.ok(budget.put('a', 'a/0', view('0', '6')), 'other needs');
    for (let i = 0; i < 200; i++) budget.delete('a', `a/${i}`);
    assert.equal(budget.bytes, 0);
  });
});
