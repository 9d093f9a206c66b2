import assert from 'node:assert/strict';
import { until } from '../../../cli/demo/until.ts';
import { EVENTS, NODE_TOPOLOGIES } from '../../../sandbox/api-server/built-in-types.ts';
import { machineCpus } from '../../../sandbox/qemu/guests.ts';
import { plumbline } from '../../cli/run.ts';
import { cpusOf, machine } from '../machines.ts';
import { PATIENCE } from '../patience.ts';
import { PINNING_NODE } from '../stage.ts';
import type { Cases } from './case.ts';

const THREE = { cores: 3, dedicatedCpuPlacement: true, isolateEmulatorThread: true };

/** VMs that run: resumed, or left alone. */
export const runningCases: Cases = (stage) => {
  describe('VMs that run', () => {
    it('a VM with a CPU mask starts paused, is pinned, and the extender resumes it through the real virt-api', async () => {
      const { client, cluster, create, untilPhase, vmi, remove } = stage();
      const report = cluster.client.get(NODE_TOPOLOGIES, undefined, PINNING_NODE);
      assert.ok(report !== undefined);
      const [cpu = 0] = await machineCpus();
      const spec = { nodeSelector: { 'kubernetes.io/hostname': PINNING_NODE } };
      const vm = machine('masked', { annotations: { 'plumbline.dev/cpu-mask': String(cpu) }, cpu: { cores: 1 }, spec });
      await create(vm);
      await untilPhase('masked', 'Running');
      await until('the extender to resume it', PATIENCE, () =>
        cluster.client.list(EVENTS).find(({ reason }) => reason === 'ResumedAfterPinning'),
      );
      const paused = () => vmi('masked')?.status?.conditions?.some(({ type }) => type === 'Paused');
      await until('the guest to run', PATIENCE, () => paused() === false || undefined);
      // A second time it is refused: it is not paused any more. What is asked is the accepted type, so 409 and not 406.
      const path = '/apis/subresources.kubevirt.io/v1/namespaces/vms/virtualmachineinstances/masked/unpause';
      await assert.rejects(client.replace(path, {}), /409 Conflict: .*VMI is not paused/);
      await remove(vm);
    });

    it('a VM that needs no padding: explain and doctor find nothing wrong', async () => {
      const { cluster, create, launcher, untilPhase, remove } = stage();
      const vms = [
        machine('even', { cpu: THREE }),
        machine('loose', { cpu: { cores: 4, dedicatedCpuPlacement: true } }),
      ];
      for (const vm of vms) {
        await create(vm);
        assert.equal(cpusOf(await launcher(vm.metadata.name)), '4');
        await untilPhase(vm.metadata.name, 'Running');
        const args = ['explain', 'vm', vm.metadata.name, '-n', 'vms', '-o', 'json'];
        const { stdout } = await plumbline(args, { kubeconfig: cluster.plane.adminKubeconfig });
        assert.doesNotMatch(stdout, /did not see/, vm.metadata.name);
      }
      const doctor = await plumbline(['doctor', 'pods'], { kubeconfig: cluster.plane.adminKubeconfig });
      assert.doesNotMatch(doctor.stdout, /did not see/);
      for (const vm of vms) await remove(vm);
    });
  });
};
