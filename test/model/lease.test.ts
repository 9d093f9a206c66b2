import assert from 'node:assert/strict';
import { type DpuSighting, diagnoseDpu, type LeaseLook, renewalWriter } from '../../model/lease/diagnose.ts';
import { type LeaseShape, RELEASED_HOLDER, repairLease } from '../../model/lease/repair.ts';
import type { OwnerReference } from '../../model/shapes.ts';

const NODE = { nodeName: 'n1', nodeUid: 'u1', duration: 40 };
const { form: good } = repairLease(undefined, NODE) as Extract<ReturnType<typeof repairLease>, { kind: 'create' }>;
const { ownerReferences, ...spec } = good;
const START = Date.UTC(2026, 0, 1);
const RESTARTED = JSON.stringify({
  bootId: 'b',
  pid: 2,
  restart: { previous: { bootId: 'a', pid: 1 }, at: '2026-11-29T10:00:00Z' },
});
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
  podsWithoutNetwork: [],
  waiting: [],
  ...more,
});
const problems = (more: Partial<DpuSighting>) => diagnoseDpu('ovn-dpu-n1', sighting(more)).problems.join('\n');
describe('the doctor’s view of a DPU Lease', () => {
  it('reports no problem with one writer that renews', () => {
    const expected = { node: 'n1', renewals: 5, writers: ['plumbline-node-agent'], problems: [], notes: [] };
    assert.deepEqual(diagnoseDpu('ovn-dpu-n1', sighting()), expected);
  });

  const restarted = { metadata: { ownerReferences, annotations: { 'plumbline.dev/dpu-run': RESTARTED } }, spec };
  const about = { network: 'x', state: 'not ready', reason: 'VF gone' } as const;
  const cases: [string, Partial<DpuSighting>, RegExp][] = [
    [
      'reports two writers by name, and what to do',
      { looks: looksOf(['plumbline-node-agent', 'ovnkube']) },
      /2 writers, ovnkube and plumbline-node-agent.*--dpu-lease observe/,
    ],
    [
      'reports pods that lost their network, by name',
      {
        podsWithoutNetwork: ['default/a', 'default/b'],
        looks: looksOf(['plumbline-node-agent'], { lease: restarted }),
      },
      /^2 pods have lost the network since its DPU’s reboot at 2026-11-29T10:00:00Z: default\/a, default\/b; migrate or restart/,
    ],
    ['reports a DPU host without a Lease', { looks: [] }, /lease ovn-dpu-n1 does not exist.*--mode dpu-host/],
    ['reports a Lease without a Node', { uid: undefined }, /node n1 does not; delete the lease/],
    [
      'reports a Lease that is no longer renewed',
      { looks: looksOf(['a'], { renewTime: '2025-12-31T23:59:50.000000Z' }) },
      /was not renewed in 25 s/,
    ],
    [
      'reports a Lease that expired long ago without a longer watch, and that it may be left over',
      { looks: looksOf(['a'], { renewTime: '2025-12-31T00:00:00Z' }).slice(0, 1) },
      /expired after its last renewal, 2025-12-31T00:00:00Z; .*; if its health check was turned off, delete the lease/,
    ],
    [
      'reports the number of many waiting pods',
      { waiting: Array.from({ length: 7 }, (_, i) => ({ pod: `p/${i}`, ...about })) },
      /p\/4 \(x: VF gone\) and 2 more/,
    ],
  ];
  for (const [what, more, expected] of cases) it(what, () => assert.match(problems(more), expected));

  it('needs no renewal of a Lease that its host has released', () => {
    const lease = { metadata: { ownerReferences }, spec: { ...spec, holderIdentity: RELEASED_HOLDER } };
    const looks = looksOf(['a'], { renewTime: undefined, lease });
    const { problems: released, notes } = diagnoseDpu('ovn-dpu-n1', sighting({ looks }));
    assert.deepEqual([released, notes], [[], ['its host has turned the health check off']]);
  });

  it('names the writer of a renewal', () => {
    const fields = (manager: string, fieldsV1: unknown) => ({ manager, fieldsV1 });
    const sample = (...managedFields: object[]) => ({ renewTime: undefined, managedFields });
    const odd = [null, undefined, 7, { 'f:spec': null }, { 'f:spec': 7 }, { 'f:spec': {} }, { 'f:renewTime': {} }];
    const first = sample(...odd.map((value) => fields('odd', value)), fields('b', field), fields('c', field));
    assert.equal(renewalWriter(first), 'b');
    assert.equal(renewalWriter(sample()), undefined);
    const looks = [first, sample(), sample(fields('a', field)), first].flatMap(({ managedFields }) =>
      looksOf(['c'], { managedFields }).slice(0, 1),
    );
    assert.deepEqual(diagnoseDpu('ovn-dpu-n1', sighting({ looks })).writers, ['a', 'b']);
  });
});

const [owner] = good.ownerReferences;
const lease = (ownerReferences: readonly OwnerReference[] | null, spec: LeaseShape['spec'] = {}): LeaseShape => ({
  metadata: { ownerReferences },
  spec: { holderIdentity: good.holderIdentity, leaseDurationSeconds: 40, ...spec },
});
const { blockOwnerDeletion: _, ...unblocked } = owner;
describe('the host’s repair of its DPU Lease', () => {
  it('D1: creates it with owner, holder and duration, and without a renewTime', () => {
    assert.deepEqual(repairLease(undefined, NODE), { kind: 'create', form: good });
    const node = { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u1' };
    assert.deepEqual(good.ownerReferences, [{ ...node, controller: true, blockOwnerDeletion: false }]);
    assert.deepEqual(spec, { holderIdentity: 'ovnkube-dpu-node', leaseDurationSeconds: 40 });
  });

  const cases: [what: string, lease: LeaseShape, faults: string[]][] = [
    ['leaves a good Lease unchanged', lease([owner]), []],
    ['treats an absent boolean as false', lease([unblocked]), []],
    ['corrects the owner’s API version', lease([{ ...owner, apiVersion: 'v2' }]), ['owner-fields']],
    ['D1: stops blocking the deletion of the Node', lease([{ ...owner, blockOwnerDeletion: true }]), ['owner-fields']],
    ['D5: replaces the old uid of the Node with the new one', lease([{ ...owner, uid: 'old' }]), ['foreign-owner']],
    ['D5: leaves only one owner', lease([{ ...owner, uid: 'old' }, owner]), ['foreign-owner']],
    ['D1: corrects a foreign holder', lease([owner], { holderIdentity: 'another' }), ['holder']],
    ['follows a changed duration', lease([owner], { leaseDurationSeconds: 30 }), ['duration']],
    ['does all of this at once', { metadata: {} }, ['no-owner', 'holder', 'duration']],
  ];
  for (const [what, before, faults] of cases) {
    it(what, () => {
      const expected = faults.length === 0 ? { kind: 'none' } : { kind: 'repair', form: good, faults };
      assert.deepEqual(repairLease(before, NODE), expected);
    });
  }
});
