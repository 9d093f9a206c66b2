import assert from 'node:assert/strict';
import { until } from '../../../cli/demo/until.ts';
import { createKubeClient } from '../../../kube/api-transport.ts';
import { kubeconfigAccess } from '../../../kube/kubeconfig.ts';
import { EVENTS, PODS, VIRTUAL_MACHINES } from '../../../sandbox/api-server/built-in-types.ts';
import { at, type KubeObject, type KubePod } from '../../../sandbox/objects.ts';
import type { PodView } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { removeUnstarted } from '../../../scheduler-plugin/controllers/evictions.ts';
import { plumbline } from '../../cli/run.ts';
import { type Spoken, spoken } from '../../cli/spoken.ts';
import { httpCall } from '../../support/http-call.ts';
import { type Cases, cpusOf, type KubeVirtStage, machine, PATIENCE, WHOLE_CORES } from '../stage.ts';

const PLAIN = 'plain-scheduler';
async function explained({ cluster }: KubeVirtStage, vm: string): Promise<Spoken> {
  const args = ['explain', 'vm', vm, '-n', 'vms', '-o', 'json'];
  const { stdout, stderr } = await plumbline(args, { kubeconfig: cluster.plane.adminKubeconfig });
  assert.notEqual(stdout, '', stderr);
  return spoken(stdout);
}
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
      assert.equal(found, 'failed');
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

  describe('evictions', () => {
    it('an eviction of a launcher that never started is denied for LiveMigrate, and the extender deletes the launcher instead', async () => {
      const { client, cluster, create, launcher, remove } = stage();
      const spec = { evictionStrategy: 'LiveMigrate', nodeSelector: { 'kubernetes.io/hostname': 'nowhere' } };
      const vm = machine('waits', { spec });
      await create(vm);
      const pod = await launcher('waits');
      const kubeconfig = await cluster.plane.accountKubeconfig('evicts', 'plumbline-system', 'plumbline-scheduler');
      const extender = createKubeClient(kubeconfigAccess(kubeconfig), 'evicts');
      const { name, uid = '', namespace = '' } = pod.metadata;
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
      // The policies allow the extender only evictions of pods that have a node, which here does not exist.
      const target = { apiVersion: 'v1', kind: 'Node', name: 'nowhere' };
      const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name, namespace }, target };
      await client.create(`/api/v1/namespaces/vms/pods/${name}/binding`, binding);
      // They read the pod from a cache, which may not have its node yet.
      const answer = await until('an answer from KubeVirt', PATIENCE, async () => {
        const path = `/api/v1/namespaces/vms/pods/${name}/eviction`;
        const text = await extender.create(path, eviction).then(() => 'accepted', String);
        return text.includes('403 Forbidden') ? undefined : text;
      });
      assert.match(
        answer,
        /429 .*virt-launcher-eviction-interceptor.kubevirt.io" denied the request: VMI waits is configured with an eviction strategy but is not live-migratable/,
      );
      // As the extender does: it retries with the new state of the pod if that has changed in the meantime.
      const outcome = await until('the extender to remove it', PATIENCE, async () => {
        const now = (await client.get(`/api/v1/namespaces/vms/pods/${name}`)) as KubePod;
        const version = String(now.metadata.resourceVersion);
        const view = { name, namespace, uid, version, launcher: true, pending: true };
        const removal = await removeUnstarted(extender, view as unknown as PodView);
        return removal.outcome === 'changed' ? undefined : removal.outcome;
      });
      assert.equal(outcome, 'deleted');
      await extender.close();
      await remove(vm);
    });
  });

  describe('features of KubeVirt itself', () => {
    it('AlignCPUs with its annotation: KubeVirt requests an even number, or 5 with a pool, and Plumbline continues from there', async () => {
      const { client, create, launcher, vmi, remove } = stage();
      await client.patch(KUBEVIRT_CR, MERGE, { metadata: { annotations: { [EVEN_PARITY]: '' } } });
      const pool = { domain: { ioThreadsPolicy: 'supplementalPool', ioThreads: { supplementalPoolThreadCount: 1 } } };
      const cases = [
        ['parity', machine('parity', { annotations: {}, cpu: FOUR }), '6'],
        ['pooled', machine('pooled', { annotations: {}, cpu: { ...FOUR, cores: 2 }, spec: pool }), '6'],
      ] as const;
      try {
        for (const [name, vm, cpus] of cases) {
          await until('KubeVirt to have the annotation', PATIENCE, async () => {
            await create(vm);
            const current = await until('the VMI', PATIENCE, () => vmi(name));
            if (current.metadata.annotations?.[EVEN_PARITY] !== undefined) return true;
            await remove(vm);
            return undefined;
          });
          assert.equal(cpusOf(await launcher(name)), cpus);
          await remove(vm);
        }
      } finally {
        await client.patch(KUBEVIRT_CR, MERGE, { metadata: { annotations: { [EVEN_PARITY]: null } } });
      }
    });
  });

  it('a VMI with vCPUs of an instancetype and the annotation of a preference has a padded launcher', async () => {
    const { create, launcher, remove } = stage();
    const instancetype = {
      apiVersion: 'instancetype.kubevirt.io/v1beta1',
      kind: 'VirtualMachineInstancetype',
      metadata: { name: 'five', namespace: 'vms' },
      spec: { cpu: { guest: 4, dedicatedCPUPlacement: true, isolateEmulatorThread: true }, memory: { guest: '1Gi' } },
    };
    const preference = {
      apiVersion: 'instancetype.kubevirt.io/v1beta1',
      kind: 'VirtualMachinePreference',
      metadata: { name: 'whole-cores', namespace: 'vms' },
      spec: { annotations: WHOLE_CORES },
    };
    await create(instancetype);
    await create(preference);
    const vm: KubeObject = {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name: 'typed', namespace: 'vms' },
      spec: {
        runStrategy: 'Always',
        instancetype: { name: 'five', kind: 'VirtualMachineInstancetype' },
        preference: { name: 'whole-cores', kind: 'VirtualMachinePreference' },
        template: { spec: { terminationGracePeriodSeconds: 0, domain: { devices: {} } } },
      },
    };
    await create(vm);
    assert.equal(cpusOf(await launcher('typed')), '6');
    for (const one of [vm, instancetype, preference]) await remove(one);
  });
};
async function unpause({ cluster: { plane } }: KubeVirtStage, vmi: string, accept: string): Promise<number> {
  const token = await plane.serviceAccountToken('plumbline-system', 'plumbline-scheduler');
  const path = `/apis/subresources.kubevirt.io/v1/namespaces/vms/virtualmachineinstances/${vmi}/unpause`;
  const headers = { accept, authorization: `Bearer ${token}` };
  const port = Number(new URL(plane.url).port);
  return (await httpCall({ port, path, method: 'PUT', body: '{}', headers, trust: plane.ca })).status;
}
function launchersLeft({ cluster }: KubeVirtStage, vm: string): number {
  return cluster.client.list(PODS).filter(({ metadata }) => metadata.generateName === `virt-launcher-${vm}-`).length;
}

const FOUR = { cores: 4, dedicatedCpuPlacement: true, isolateEmulatorThread: true };
const EVEN_PARITY = 'alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity';
const KUBEVIRT_CR = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
const MERGE = 'application/merge-patch+json';
