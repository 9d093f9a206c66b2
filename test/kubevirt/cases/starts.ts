import assert from 'node:assert/strict';
import { request } from 'node:https';
import { until } from '../../../cli/demo/until.ts';
import { EVENTS, PODS, VIRTUAL_MACHINES } from '../../../sandbox/api-server/built-in-types.ts';
import { at } from '../../../sandbox/objects.ts';
import { plumbline } from '../../cli/run.ts';
import { type Spoken, spoken } from '../../cli/spoken.ts';
import { machine, PATIENCE } from '../machines.ts';
import type { Cases, KubeVirtStage } from '../stage.ts';

/** A kube-scheduler without an extender, as in a cluster without Plumbline. */
const PLAIN = 'plain-scheduler';
async function explained({ cluster }: KubeVirtStage, vm: string): Promise<Spoken> {
  const args = ['explain', 'vm', vm, '-n', 'vms', '-o', 'json'];
  const { stdout, stderr } = await plumbline(args, { kubeconfig: cluster.plane.adminKubeconfig });
  assert.notEqual(stdout, '', stderr);
  return spoken(stdout);
}

/** How VMs start, and what happens if they cannot. */
export const startCases: Cases = (stage) => {
  describe('VMs that start or fail to', () => {
    it('KubeVirt deletes the VMI of a rejected launcher and creates another after ten seconds or more, and explain gives the reason', async () => {
      const { cluster, create, vmi, remove } = stage();
      await cluster.plane.startScheduler({ profiles: [{ schedulerName: PLAIN }] });
      const spec = { schedulerName: PLAIN, nodeSelector: { 'kubernetes.io/hostname': 'smt2-a' } };
      const vm = machine('odd', { annotations: {}, spec });
      await create(vm);
      const first = await until('the first VMI', PATIENCE, () => vmi('odd')?.metadata.uid);
      await until('the rejection', PATIENCE, () =>
        cluster.client.list(EVENTS).find((event) => event['reason'] === 'SMTAlignmentError'),
      );
      await until('the VMI to be deleted', PATIENCE, () => vmi('odd') === undefined || undefined);
      const status = () => cluster.client.get(VIRTUAL_MACHINES, 'vms', 'odd')?.status;
      await until(
        'KubeVirt to count the failure',
        PATIENCE,
        () => at(status(), 'startFailure', 'consecutiveFailCount') === 1 || undefined,
      );
      const began = performance.now();
      assert.equal(launchersLeft(stage(), 'odd'), 0);
      const { stage: found, why, help } = await explained(stage(), 'odd');
      assert.equal(found, 'rejected');
      assert.match(why, /kubelet.* rejected its launcher \(SMTAlignmentError\): .*requested 9 cpus/);
      assert.match(help.join(), /full-pcpus-only/);
      const doctor = await plumbline(['doctor', 'pods'], { kubeconfig: cluster.plane.adminKubeconfig });
      assert.match(doctor.stdout, /kubelets have rejected .*SMTAlignmentError.*vms\/virt-launcher-odd-/);
      const second = await until('the second VMI', PATIENCE, () => vmi('odd')?.metadata.uid);
      assert.notEqual(second, first);
      assert.ok(performance.now() - began > 5000, 'the first pause is ten seconds');
      await until(
        'KubeVirt to count the second',
        PATIENCE,
        () => at(status(), 'startFailure', 'consecutiveFailCount') === 2 || undefined,
      );
      await remove(vm);
    });

    it('a VMI is Scheduling, without a node, until its launcher is ready', async () => {
      const { create, launcher, vmi, untilPhase, remove } = stage();
      const vm = machine('late', { spec: { nodeSelector: { 'kubernetes.io/hostname': 'nowhere' } } });
      await create(vm);
      await launcher('late');
      await untilPhase('late', 'Scheduling');
      assert.equal(vmi('late')?.status?.nodeName, undefined);
      for (const [accept, status] of [
        ['application/json', 406],
        ['application/json, */*', 409],
      ] as const) {
        assert.equal(await unpause(stage(), 'late', accept), status, accept);
      }
      await remove(vm);
    });
  });
};

/** The status of the answer to a PUT of `unpause` for a client that accepts these types. */
async function unpause({ cluster: { plane } }: KubeVirtStage, vmi: string, accept: string): Promise<number> {
  const token = await plane.serviceAccountToken('plumbline-system', 'plumbline-scheduler');
  const path = `/apis/subresources.kubevirt.io/v1/namespaces/vms/virtualmachineinstances/${vmi}/unpause`;
  return new Promise((resolve, reject) => {
    const headers = { accept, authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const sent = request(`${plane.url}${path}`, { method: 'PUT', ca: plane.ca, headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.once('error', reject);
    sent.end('{}');
  });
}

function launchersLeft({ cluster }: KubeVirtStage, vm: string): number {
  return cluster.client.list(PODS).filter(({ metadata }) => metadata.generateName === `virt-launcher-${vm}-`).length;
}
