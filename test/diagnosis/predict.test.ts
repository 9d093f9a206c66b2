import assert from 'node:assert/strict';
import fc from 'fast-check';
import { hostsOf } from '../../diagnosis/hosts.ts';
import { explainedNode, explainedPod } from '../../diagnosis/objects.ts';
import { predictOpinions } from '../../diagnosis/predict.ts';
import { type NodeTopologyStatus, nodeTopology } from '../../kube/node-topology.ts';
import { preparedHost, sharesOn } from '../../model/placement/needs.ts';
import { placementNeedsOf } from '../../model/placement/preferences.ts';
import { judgeHost } from '../../model/placement/verdict.ts';
import { REPORT } from '../cli/cluster-fixture.ts';

/** Changes of a report that make another model of node. */
const models = fc.constantFrom<Partial<NodeTopologyStatus>[]>(
  {},
  { reserved: '0' },
  { physnets: [] },
  { kubeletVersion: 'v1.0.0' },
  { cpuManager: { policy: 'none' } },
  { topologyManager: { policy: 'best-effort', scope: 'container' } },
);
/** Few different states, so that some nodes are alike. */
const owners = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'own'), fc.constantFrom('1-4,17-20', '5,21', '8-15')), {
  maxLength: 3,
});

describe('cli explain: predictions that nodes share', () => {
  it('equal a prediction for each node from its own report', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(models, owners), { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 2, max: 16 }),
        fc.boolean(),
        (nodes, cpus, isNear) => {
          const amounts = { cpu: `${cpus}`, memory: '1Gi', ...(isNear && { 'physnet.plumbline.dev/physnet0': '1' }) };
          const pod = explainedPod.parse({
            metadata: { name: 'p', namespace: 'default', uid: 'own' },
            spec: { containers: [{ name: 'compute', resources: { requests: amounts, limits: amounts } }] },
          });
          const topologies = nodes.map(([model, owned], i) =>
            nodeTopology.parse({
              apiVersion: 'plumbline.dev/v1alpha1',
              kind: 'NodeTopology',
              metadata: { name: `n${i}` },
              status: {
                ...REPORT,
                ...model,
                assignments: owned.map(([uid, list], j) => ({ podUID: `${uid}-${i}`, container: `c${j}`, cpus: list })),
              },
            }),
          );
          const { nodes: opinions } = predictOpinions({
            pod,
            nodes: nodes.map((_, i) => explainedNode.parse({ metadata: { name: `n${i}` } })),
            reported: hostsOf(topologies),
            pending: [],
            silent: new Set(),
          });
          assert.equal(opinions.length, nodes.length);
          for (const [i, opinion] of opinions.entries()) {
            const status = topologies[i]?.status;
            assert.ok(status !== undefined);
            const verdict = judgeHost(placementNeedsOf(pod), preparedHost(status), [], 'count-check');
            const { node: _, ...rest } = opinion;
            if (verdict.fits && verdict.cpus === undefined && !sharesOn(placementNeedsOf(pod), preparedHost(status))) {
              assert.deepEqual([rest.fits, rest.fits ? '' : rest.kind], [false, 'not-predicted']);
              continue;
            }
            if (verdict.fits) {
              const { cpus: own = '', cells, warnings } = verdict;
              assert.deepEqual(rest, { fits: true, cpus: `${own}`, numaNodes: cells, warnings });
            } else {
              const { kind, text, detail, missing } = verdict;
              assert.deepEqual(rest, { fits: false, kind, text, detail, missing });
            }
          }
        },
      ),
      { numRuns: 200 },
    );
  });
});
