import assert from 'node:assert/strict';
import { instancesPath, isOfMachine, pausedCondition } from '../../../kube/cluster-view/vmis.ts';

describe('an instance', () => {
  it('is in the list of its namespace', () => {
    assert.equal(instancesPath(), '/apis/kubevirt.io/v1/virtualmachineinstances');
    assert.equal(instancesPath('a/b'), '/apis/kubevirt.io/v1/namespaces/a%2Fb/virtualmachineinstances');
  });

  it('is paused only while its condition is True', () => {
    const condition = (status: string) => ({ type: 'Paused', status });
    const paused = (...conditions: object[]) => pausedCondition({ status: { conditions: conditions as never } });
    assert.deepEqual(paused({ type: 'Ready', status: 'True' }, condition('True')), condition('True'));
    assert.deepEqual([paused(condition('False')), pausedCondition({})], [undefined, undefined]);
  });

  it('belongs to a VM that owns it', () => {
    const owner = (kind: string) => ({ apiVersion: 'kubevirt.io/v1', kind, name: 'a', uid: 'a' });
    const replicaSet = owner('VirtualMachineInstanceReplicaSet');
    assert.equal(isOfMachine({ ownerReferences: [replicaSet, owner('VirtualMachine')] }), true);
    assert.deepEqual([isOfMachine({ ownerReferences: [replicaSet] }), isOfMachine({})], [false, false]);
  });
});
