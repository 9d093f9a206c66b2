import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createKubelet } from '../../../model/kubelet/kubelet.ts';
import { behaviourOf, CHANGES, nearestBehaviour } from '../../../model/kubelet/versions.ts';
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
    const withGates = (featureGates: Readonly<Record<string, boolean>>) => {
      const cpuManager = { policy: 'static' };
      const config = { version: 'v1.37.0', host: simpleHost(2, 4), cpuManager, reserved: CpuSet.of([0]), featureGates };
      const kubelet = createKubelet(config);
      return 'unpredictable' in kubelet ? kubelet.unpredictable : undefined;
    };
    for (const gates of [{}, { [GATE]: false, Another: true }]) assert.equal(withGates(gates), undefined);
    assert.match(withGates({ [GATE]: true }) ?? '', /feature gate PodLevelResourceManagers is on/);
  });

  it('the page lists every change, with its versions and what was read', () => {
    const page = readFileSync(new URL('../../../docs/reference/compatibility.md', import.meta.url), 'utf8');
    const rows = CHANGES.map(({ change, since, what, file, basis }) => {
      return `| \`>=1.${since}.0\` | [#${change}](https://github.com/kubernetes/kubernetes/pull/${change}), \`${file}\` | ${what} | ${basis} |`;
    });
    for (const row of rows) assert.ok(page.includes(row), row);
  });
});
