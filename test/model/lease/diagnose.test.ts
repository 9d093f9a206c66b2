import assert from 'node:assert/strict';
import {
  type DpuSighting,
  diagnoseDpu,
  type LeaseLook,
  renewalWriter,
  renewalWriters,
} from '../../../model/lease/diagnose.ts';
import { leaseForm, RELEASED_HOLDER } from '../../../model/lease/repair.ts';

const NODE = { nodeName: 'n1', nodeUid: 'u1', duration: 40 };
const { ownerReferences, ...spec } = leaseForm(NODE);
const START = Date.UTC(2026, 0, 1);
const field = { 'f:spec': { 'f:renewTime': {} } };

/** One read every 5 s; the writers renew in turn. */
const looksOf = (writers: readonly string[], more: Partial<LeaseLook> = {}): LeaseLook[] =>
  [0, 5, 10, 15, 20, 25].map((second, i) => ({
    at: START + second * 1000,
    renewTime: new Date(START + second * 1000).toISOString(),
    managedFields: [
      { manager: 'kubectl', fieldsV1: { 'f:metadata': {} } },
      { manager: writers[i % writers.length], fieldsV1: field },
    ],
    lease: { metadata: { ownerReferences }, spec },
    ...more,
  }));
const sighting = (more: Partial<DpuSighting> = {}): DpuSighting => ({
  node: 'n1',
  uid: 'u1',
  dpuHost: true,
  looks: looksOf(['plumbline-node-agent']),
  waiting: [],
  ...more,
});
const problems = (more: Partial<DpuSighting>) => diagnoseDpu('ovn-dpu-n1', sighting(more)).problems.join('\n');

describe('the doctor’s view of a DPU Lease', () => {
  it('reports no problem with one writer that renews', () => {
    assert.deepEqual(diagnoseDpu('ovn-dpu-n1', sighting()), {
      node: 'n1',
      renewals: 5,
      writers: ['plumbline-node-agent'],
      problems: [],
      notes: [],
    });
  });

  const cases: [string, Partial<DpuSighting>, RegExp][] = [
    [
      'reports two writers by name, and what to do',
      { looks: looksOf(['plumbline-node-agent', 'ovnkube']) },
      /2 writers, ovnkube and plumbline-node-agent.*--dpu-lease observe/,
    ],
    ['reports a DPU host without a Lease', { looks: [] }, /lease ovn-dpu-n1 does not exist.*--mode dpu-host/],
    ['reports a Lease without a Node', { uid: undefined }, /node n1 does not; delete the lease/],
    [
      'reports a Lease that is no longer renewed',
      { looks: looksOf(['a'], { renewTime: '2025-12-31T00:00:00Z' }) },
      /was not renewed in 25 s/,
    ],
    [
      'reports the number of many waiting pods',
      {
        waiting: Array.from({ length: 7 }, (_, i) => ({
          pod: `p/${i}`,
          network: 'x',
          state: 'not ready',
          reason: 'VF gone',
        })),
      },
      /p\/4 \(x: VF gone\) and 2 more/,
    ],
  ];
  for (const [what, more, expected] of cases) it(what, () => assert.match(problems(more), expected));

  it('needs no renewal of a Lease that its host has released', () => {
    const lease = { metadata: { ownerReferences }, spec: { ...spec, holderIdentity: RELEASED_HOLDER } };
    const { problems: released, notes } = diagnoseDpu(
      'ovn-dpu-n1',
      sighting({ looks: looksOf(['a'], { renewTime: undefined, lease }) }),
    );
    assert.deepEqual([released, notes], [[], ['its host has turned the health check off']]);
  });

  it('names the writer of a renewal', () => {
    const fields = (manager: string, fieldsV1: unknown) => ({ manager, fieldsV1 });
    const sample = (...managedFields: object[]) => ({ renewTime: undefined, managedFields });
    const odd = [null, undefined, 7, { 'f:spec': null }, { 'f:spec': 7 }, { 'f:spec': {} }, { 'f:renewTime': {} }];
    const first = sample(...odd.map((value) => fields('odd', value)), fields('b', field), fields('c', field));
    assert.equal(renewalWriter(first), 'b');
    assert.equal(renewalWriter(sample()), undefined);
    assert.deepEqual(renewalWriters([first, sample(), sample(fields('a', field)), first]), ['a', 'b']);
  });
});
