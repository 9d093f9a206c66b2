import assert from 'node:assert/strict';
import { nodeLauncherOf } from '../../../node-agent/vm-pinning/launchers.ts';

const pod = (containerID: string, labels: Record<string, string> = {}) => ({
  metadata: {
    name: 'virt-launcher-vm-x',
    namespace: 'team-a',
    uid: 'uid',
    labels: { 'kubevirt.io': 'virt-launcher', ...labels },
    ownerReferences: [
      { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'vm', uid: 'vmi', controller: true },
    ],
  },
  spec: { containers: [{ name: 'compute', resources: undefined }] },
  status: { containerStatuses: [{ name: 'compute', containerID }] },
});

describe('a launcher of the node', () => {
  it('has the id of its container, and the label of a migration’s target', () => {
    const launcher = nodeLauncherOf(pod('containerd://plain'));
    assert.deepEqual([launcher?.containerId, launcher?.migrated], ['plain', false]);
    assert.equal(nodeLauncherOf(pod('x', { 'kubevirt.io/migrationJobUID': 'job' }))?.migrated, true);
  });

  for (const id of ['containerd://../../init.scope', 'containerd://', 'x', `cri-o://${'a'.repeat(200)}`, 'a://b/c']) {
    it(`cannot point to another cgroup with its container id: ${id.slice(0, 30)}`, () =>
      assert.equal(nodeLauncherOf(pod(id))?.containerId, undefined));
  }
});
