import assert from 'node:assert/strict';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { installKubeVirt, type KubeVirtStandIn } from './kubevirt-stand-in.ts';
import { type Stage, startStage, topologyOf } from './stage.ts';

const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const PODS = '/api/v1/namespaces/default/pods';
const OWNER = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstanceReplicaSet', name: 'web', uid: 'rs-uid' };

describe('a replica set whose launchers a kubelet refuses, on a real control plane', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let stage: Stage;
  let kubeVirt: KubeVirtStandIn;

  before(async function () {
    this.timeout(300_000);
    stage = await startStage();
    kubeVirt = await installKubeVirt(stage.plane);
    await stage.addNodes([{ name: 'n1', topology: topologyOf() }]);
    const replica = await stage.startReplica();
    await until('it to be active', () => replica.isActive());
    await stage.startScheduler();
  });
  after(async () => {
    await kubeVirt?.stop();
    await stage?.stop();
  });

  const heldBack = async (pod: string) =>
    /delayed: .* VirtualMachineInstanceReplicaSet web/.test(
      (await stage.podOf(pod)).status.conditions?.find(({ type }) => type === 'PodScheduled')?.message ?? '',
    );

  /** A VMI of the set with its launcher, as virt-controller creates them. */
  const create = async (name: string): Promise<string> => {
    const vmi = (await stage.client.create(VMIS, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name, ownerReferences: [{ ...OWNER, controller: true }] },
      spec: { domain: { cpu: { cores: 4 } } },
    })) as { metadata: { uid: string } };
    const amounts = { cpu: '4', memory: '64Mi', 'devices.kubevirt.io/kvm': '1' };
    const { uid } = vmi.metadata;
    const pod = `virt-launcher-${name}`;
    await stage.client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: pod,
        labels: { 'kubevirt.io': 'virt-launcher' },
        ownerReferences: [
          { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name, uid, controller: true },
        ],
      },
      spec: { containers: [{ name: 'compute', image: 'none', resources: { requests: amounts, limits: amounts } }] },
    });
    return pod;
  };

  /** The kubelet's verdict, and KubeVirt's reaction. */
  const refuse = async (name: string, pod: string) => {
    const status = { phase: 'Failed', reason: 'SMTAlignmentError', message: 'Pod was rejected' };
    await stage.client.patch(`${PODS}/${pod}/status`, 'application/merge-patch+json', { status });
    await stage.client.delete(`${VMIS}/${name}`);
    await stage.client.delete(`${PODS}/${pod}`, { query: { gracePeriodSeconds: 0 } });
  };

  it('gets no more nodes after the third launcher, even of different VMIs; the Event is on the set', async () => {
    let refused = 0;
    for (const suffix of ['x1', 'x2', 'x3', 'x4', 'x5', 'x6']) {
      const pod = await create(`web${suffix}`);
      let held = false;
      await until(`${pod} to be judged`, async () => {
        held = await heldBack(pod);
        return held || (await stage.podOf(pod)).spec.nodeName !== undefined;
      });
      if (held) break;
      await refuse(`web${suffix}`, pod);
      refused++;
    }
    console.log(`      ${refused} launchers were sent to the node and refused`);
    assert.equal(refused, 3);
    await until('the Event', async () => {
      const { items } = (await stage.client.get('/api/v1/namespaces/default/events')) as {
        items: { reason: string; involvedObject: { kind: string; name: string } }[];
      };
      return items.some(
        ({ reason, involvedObject: { kind, name } }) =>
          reason === 'PlacementHeldBack' && kind === OWNER.kind && name === OWNER.name,
      );
    });
  });
});
