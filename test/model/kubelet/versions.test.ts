import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createKubelet } from '../../../model/kubelet/kubelet.ts';
import { behaviourOf, CHANGES, isIn, nearestBehaviour, unpredictedGates } from '../../../model/kubelet/versions.ts';
import { simpleHost } from './fixture.ts';

describe('model/kubelet: behaviour by version', () => {
  const OLD = 'all-nodes by-id any cpus ignored any first-container';
  const OF_36 = OLD.replace('all-nodes', 'device-nodes');
  const OF_37 = 'device-nodes by-id any cpus ignored not-predicted first-container';
  const OF_38 = 'device-nodes by-core one-with-room groups minimum not-predicted all-containers';
  const cases: readonly [version: string, behaviour: string | undefined][] = [
    ['v1.33.1', OLD],
    ['v1.34.0-eks-1', OLD],
    ['v1.35.4', OLD],
    ['v1.35.99', OLD],
    ['1.36.0-rc.1+abc', OF_36],
    ['v1.36.2', OF_36],
    ['v1.36.3+k3s1', OF_36],
    ['v1.37', OF_37],
    ['v1.37.1', OF_37],
    ['v1.38.0-alpha.1', OF_38],
    ['v1.38.1', OF_38],
    ['v1.39.0', undefined],
    ['v1.32.13', undefined],
    ['v1.360.0', undefined],
    ['v2.36.0', undefined],
    ['v1.36.x', OF_36],
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

  const BACKPORTED = '>=1.36.3 <1.37.0 || >=1.37.1';
  const ranges: readonly [version: readonly [number, number], ranges: string, isIn: boolean][] = [
    [[36, 0], '>=1.36.0', true],
    [[35, 9], '>=1.36.0', false],
    [[36, 2], BACKPORTED, false],
    [[36, 3], BACKPORTED, true],
    [[36, 10], BACKPORTED, true],
    [[37, 0], BACKPORTED, false],
    [[37, 1], BACKPORTED, true],
    [[38, 0], BACKPORTED, true],
    [[36, 0], '', false],
  ];
  for (const [[minor, patch], text, expected] of ranges) {
    it(`1.${minor}.${patch} is ${expected ? '' : 'not '}in ${text || 'no range'}`, () => {
      assert.equal(isIn({ minor, patch }, text), expected);
    });
  }

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

  it('a predicted version is no approximation', () => {
    const kubelet = createKubelet({
      version: 'v1.36.2',
      host: simpleHost(2, 4),
      cpuManager: { policy: 'static' },
      reserved: CpuSet.of([0]),
      nearest: true,
    });
    assert.ok(!('unpredictable' in kubelet));
    assert.equal(kubelet.approximation, undefined);
  });

  const GATE = 'PodLevelResourceManagers';
  const gates: readonly [version: string, configured: Record<string, boolean>, on: readonly string[]][] = [
    ['v1.36.2', {}, []],
    ['v1.37.0', {}, []],
    ['v1.38.0-alpha.1', {}, []],
    ['v1.37.0', { [GATE]: false }, []],
    ['v1.37.0', { [GATE]: true }, [GATE]],
    ['v1.37.0', { Another: true }, []],
  ];
  for (const [version, configured, on] of gates) {
    it(`${version} with ${JSON.stringify(configured)}: ${on.join() || 'no gate that is not predicted'}`, () => {
      assert.deepEqual(unpredictedGates(version, configured), on);
    });
  }

  it('the page lists every change, with its versions and what was read', () => {
    const page = readFileSync(new URL('../../../docs/reference/compatibility.md', import.meta.url), 'utf8');
    const rows = CHANGES.map(({ change, versions, what, file, basis }) => {
      return `| \`${versions}\` | [#${change}](https://github.com/kubernetes/kubernetes/pull/${change}), \`${file}\` | ${what} | ${basis} |`;
    });
    for (const row of rows) assert.ok(page.includes(row), row);
  });
});
