import assert from 'node:assert/strict';
import type { KubeNode, KubePod } from '../../../sandbox/objects.ts';
import { podRequests } from '../../../sandbox/pod-requests.ts';
import { filterNode } from '../../../sandbox/scheduler/decision.ts';

const node = (extra: { metadata?: object; spec?: object; status?: object } = {}): KubeNode =>
  ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n', labels: { zone: 'a', size: '8' }, ...extra.metadata },
    spec: { ...extra.spec },
    status: {
      allocatable: { cpu: '8', pods: '2', 'x.dev/y': '1' },
      conditions: [{ type: 'Ready', status: 'True' }],
      ...extra.status,
    },
  }) as KubeNode;
const pod = (spec: object = {}): KubePod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: { containers: [{ name: 'c' }], ...spec },
  }) as KubePod;
const asking = (requests: Record<string, string>) => ({ name: 'c', resources: { requests } });

describe('scheduler: built-in filters', () => {
  const taint = { spec: { taints: [{ key: 'k', value: 'v', effect: 'NoSchedule' }] } };
  const cases: [what: string, pod: KubePod, node: KubeNode, reason: string | undefined][] = [
    [
      'not ready',
      pod(),
      node({ status: { conditions: [{ type: 'Ready', status: 'False' }] } }),
      'node(s) had untolerated taint {node.kubernetes.io/not-ready: }',
    ],
    ['tainted', pod(), node(taint), 'node(s) had untolerated taint {k: v}'],
    [
      'a failing selector',
      pod({ nodeSelector: { zone: 'b' } }),
      node(),
      "node(s) didn't match Pod's node affinity/selector",
    ],
    ['unschedulable', pod(), node({ spec: { unschedulable: true } }), 'node(s) were unschedulable'],
  ];
  for (const [what, given, on, reason] of cases) {
    it(`${what}: ${reason ?? 'fits'}`, () => {
      const load = { requested: new Map(), pods: 0 };
      const misfit = filterNode(given, podRequests(given), on, load);
      assert.equal(misfit?.reasons.join(), reason);
    });
  }
  it('resources of other pods are subtracted', () => {
    const load = { requested: new Map([['cpu', 7_000_000_000n]]), pods: 2 };
    const given = pod({ containers: [asking({ cpu: '2' })] });
    assert.deepEqual(filterNode(given, podRequests(given), node(), load), {
      reasons: ['Too many pods', 'Insufficient cpu'],
      unresolvable: false,
    });
  });
});
