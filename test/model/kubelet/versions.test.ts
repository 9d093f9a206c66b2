import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createKubelet } from '../../../model/kubelet/kubelet.ts';
import { behaviourOf, CHANGES, isIn, nearestBehaviour, unpredictedGates } from '../../../model/kubelet/versions.ts';
import { simpleHost } from './fixture.ts';

describe('behaviour by version', () => {
  const OLD = 'all-nodes by-id any cpus ignored any first-container';
  const OF_36 = OLD.replace('all-nodes', 'device-nodes');
  const OF_37 = 'device-nodes by-id any cpus ignored not-predicted first-container';
  const OF_38 = 'device-nodes by-core one-with-room groups minimum not-predicted all-containers';
  const cases: readonly [version: string, behaviour: string | undefined][] = [
    ['v1.33.1', OLD],
    ['1.36.0-rc.1+abc', OF_36],
    ['v1.36.3+k3s1', OF_36],
    ['v1.37', OF_37],
    ['v1.38.0-alpha.1', OF_38],
    ['v1.39.0', undefined],
    ['v1.32.13', undefined],
    ['v1.360.0', undefined],
    ['', undefined],
  ];
  for (const [version, expected] of cases) {
    it(`${version || 'no version'}: ${expected ?? 'not predicted'}`, () => {
      const of = behaviourOf(version);
      const values = of && [
        of.deviceHints,
        of.spread,
        of.spreadSockets,
        of.remainder,
        of.hintedNodes,
        of.distributionSockets,
        of.restoredPodMemory,
      ];
      assert.equal(values?.join(' '), expected);
    });
  }

  it('is that of the versions that have a change, also if it was backported', () => {
    const backported = '>=1.36.3 <1.37.0 || >=1.37.1';
    const has = (minor: number, patch: number, ranges = backported) => isIn({ minor, patch }, ranges);
    assert.deepEqual([has(36, 3), has(36, 10), has(37, 1), has(38, 0)], [true, true, true, true]);
    assert.deepEqual([has(36, 2), has(37, 0), has(36, 0, '')], [false, false, false]);
  });

  const nearest: readonly [version: string, nearest: string | undefined][] = [
    ['v1.39.2', '1.38'],
    ['v1.32.13', '1.33'],
    ['v2.0.0', undefined],
    ['unknown', undefined],
  ];
  for (const [version, expected] of nearest) {
    it(`${version} is nearest to ${expected ?? 'no version'}, and predicted as that only if asked to`, () => {
      assert.equal(nearestBehaviour(version)?.version, expected);
      const kubelet = createKubelet({
        version,
        host: simpleHost(2, 4),
        cpuManager: { policy: 'static' },
        reserved: CpuSet.of([0]),
        nearest: true,
      });
      const text = 'unpredictable' in kubelet ? undefined : kubelet.approximation;
      assert.equal(text, expected && `kubelet ${version} is predicted as ${expected}`);
    });
  }

  const GATE = 'PodLevelResourceManagers';
  it('is not predicted with a gate that is on', () => {
    for (const version of ['v1.36.2', 'v1.38.0-alpha.1']) assert.deepEqual(unpredictedGates(version, {}), []);
    assert.deepEqual(unpredictedGates('v1.37.0', { [GATE]: false, Another: true }), []);
    assert.deepEqual(unpredictedGates('v1.37.0', { [GATE]: true }), [GATE]);
  });

  it('the page lists every change, with its versions and what was read', () => {
    const page = readFileSync(new URL('../../../docs/reference/compatibility.md', import.meta.url), 'utf8');
    const rows = CHANGES.map(({ change, versions, what, file, basis }) => {
      return `| \`${versions}\` | [#${change}](https://github.com/kubernetes/kubernetes/pull/${change}), \`${file}\` | ${what} | ${basis} |`;
    });
    for (const row of rows) assert.ok(page.includes(row), row);
  });
});
