import assert from 'node:assert/strict';
import { schedulingPod, softTopologyKeys, waitsToBind } from '../../../scheduler-plugin/extender/args.ts';
import { podOf } from '../extender-fixture.ts';

const pod = (spec: object) => schedulingPod.parse({ ...podOf('4'), spec: { ...podOf('4').spec, ...spec } });
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';
const podTerm = (topologyKey: string) => ({ weight: 1, podAffinityTerm: { topologyKey } });
const nodeTerm = (...keys: string[]) => ({
  weight: 1,
  preference: { matchExpressions: keys.map((key) => ({ key, operator: 'Exists' })) },
});

describe('the topology keys of soft constraints', () => {
  const CASES: readonly [string, object, readonly string[]][] = [
    ['null', { affinity: null, topologySpreadConstraints: null }, []],
    [
      'a spread that may be violated, and one that may not',
      {
        topologySpreadConstraints: [
          { topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway' },
          { topologyKey: 'rack', whenUnsatisfiable: 'DoNotSchedule' },
        ],
      },
      ['zone'],
    ],
    [
      'preferred nodes, by several labels, by none and by null',
      {
        affinity: {
          nodeAffinity: {
            [PREFERRED]: [
              nodeTerm('a', 'b'),
              { weight: 1, preference: {} },
              { weight: 1, preference: { matchExpressions: null } },
            ],
          },
        },
      },
      ['a', 'b'],
    ],
    [
      'each key once, and at most four, spreads first',
      {
        topologySpreadConstraints: [{ topologyKey: 'one', whenUnsatisfiable: 'ScheduleAnyway' }],
        affinity: {
          podAffinity: { [PREFERRED]: [podTerm('two'), podTerm('one')] },
          podAntiAffinity: { [PREFERRED]: [podTerm('three')] },
          nodeAffinity: { [PREFERRED]: [nodeTerm('four', 'five')] },
        },
      },
      ['one', 'two', 'three', 'four'],
    ],
    ['constraints in an unknown form', { topologySpreadConstraints: [7], affinity: { podAffinity: 7 } }, []],
  ];
  for (const [what, spec, keys] of CASES) {
    it(`${what}: ${keys.join() || 'none'}`, () => assert.deepEqual(softTopologyKeys(pod(spec)), keys));
  }
});

describe('a pod that the scheduler may bind later', () => {
  const CASES: readonly [string, object, boolean][] = [
    ['null', { volumes: null, resourceClaims: null }, false],
    [
      'a claim among other volumes',
      { volumes: [{ emptyDir: {} }, { persistentVolumeClaim: { claimName: 'c' } }] },
      true,
    ],
    ['a resource claim', { resourceClaims: [{ name: 'gpu' }] }, true],
    ['volumes in an unknown form', { volumes: 7, resourceClaims: 7 }, false],
  ];
  for (const [what, spec, waits] of CASES) {
    it(`${what}: ${waits ? 'yes' : 'no'}`, () => assert.equal(waitsToBind(pod(spec)), waits));
  }
});
