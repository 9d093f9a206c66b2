import assert from 'node:assert/strict';
import { type LeaseShape, leaseForm, repairLease } from '../../../model/lease/repair.ts';
import type { OwnerReference } from '../../../model/shapes.ts';

const subject = { nodeName: 'n1', nodeUid: 'u1', duration: 40 };
const good = leaseForm(subject);
const [owner] = good.ownerReferences;
const lease = (ownerReferences: readonly OwnerReference[] | null, spec: LeaseShape['spec'] = {}): LeaseShape => ({
  metadata: { ownerReferences },
  spec: { holderIdentity: good.holderIdentity, leaseDurationSeconds: 40, ...spec },
});
const { blockOwnerDeletion: _, ...unblocked } = owner;

describe('the host’s repair of its DPU Lease', () => {
  it('D1: creates it with owner, holder and duration, and without a renewTime', () => {
    assert.deepEqual(repairLease(undefined, subject), { kind: 'create', form: good });
    assert.deepEqual(good, {
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u1', controller: true, blockOwnerDeletion: false },
      ],
      holderIdentity: 'ovnkube-dpu-node',
      leaseDurationSeconds: 40,
    });
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
      assert.deepEqual(repairLease(before, subject), expected);
    });
  }
});
