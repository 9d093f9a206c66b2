import assert from 'node:assert/strict';
import { PodOwners } from '../../../scheduler-plugin/cluster/pod-owners.ts';

const KUBEVIRT = 'kubevirt.io/v1';
const vmi = (name: string, uid: string) => ({ apiVersion: KUBEVIRT, kind: 'VirtualMachineInstance', name, uid });
const machine = { apiVersion: KUBEVIRT, kind: 'VirtualMachine', name: 'vm', uid: 'vm-uid' };
const set = { apiVersion: KUBEVIRT, kind: 'VirtualMachineInstanceReplicaSet', name: 'web', uid: 'rs-uid' };

describe('the owner that recreates a pod', () => {
  const owners = new PodOwners();
  owners.learn('ns', 'of-vm', machine);
  owners.learn('ns', 'of-set', set);
  const foreign = { ...vmi('vm', 'of-vm'), apiVersion: 'example.com/v1' };
  const rs = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid: 'r-uid' };
  const CASES: readonly [string, Parameters<PodOwners['makerOf']>[1], ReturnType<PodOwners['makerOf']>][] = [
    ['a controller', rs, { key: 'ns/r-uid', owner: rs }],
    ['the VM of a VMI', vmi('vm', 'of-vm'), { key: 'ns/VirtualMachineInstance/vm', owner: machine }],
    ['the replica set of a VMI', vmi('web1', 'of-set'), { key: 'ns/rs-uid', owner: set }],
    ['an unknown VMI', vmi('x', 'new'), { key: 'ns/VirtualMachineInstance/x', owner: vmi('x', 'new') }],
    ['a kind with that name in another group', foreign, { key: 'ns/of-vm', owner: foreign }],
    ['another kind of KubeVirt', machine, { key: 'ns/vm-uid', owner: machine }],
  ];
  for (const [what, controller, maker] of CASES) {
    it(what, () => assert.deepEqual(owners.makerOf('ns', controller), maker));
  }

  it('is not learned for a VMI without a controller', () => {
    const before = owners.size;
    owners.learn('ns', 'alone', undefined);
    assert.equal(owners.size, before);
  });

  it('is kept for 5,000 VMIs; the least recently learned is forgotten first', () => {
    const many = new PodOwners();
    for (let i = 0; i < 5000; i++) many.learn('ns', `vmi-${i}`, set);
    const isKnown = (i: number) => many.makerOf('ns', vmi('x', `vmi-${i}`)).owner === set;
    assert.deepEqual([many.size, isKnown(0)], [5000, true]);
    many.learn('ns', 'vmi-0', set);
    assert.equal(many.size, 5000);
    many.learn('ns', 'vmi-5000', set);
    assert.deepEqual([many.size, isKnown(0), isKnown(1), isKnown(2), isKnown(5000)], [5000, true, false, true, true]);
  });

  it('is forgotten first for the namespace with the most VMIs: a tenant cannot push out another', () => {
    const many = new PodOwners();
    many.learn('victim', 'vmi', set);
    for (let i = 0; i < 20_000; i++) many.learn('greedy', `vmi-${i}`, set);
    assert.deepEqual([many.size, many.makerOf('victim', vmi('x', 'vmi')).owner], [5000, set]);
  });
});
