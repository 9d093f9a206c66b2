import assert from 'node:assert/strict';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { installKubeVirt, type KubeVirtStandIn } from './kubevirt-stand-in.ts';
import { launchMasked, type MaskedLauncherOptions, refusalOf } from './masked-launcher.ts';
import { type Replica, report, type Stage, startStage, topologyOf } from './stage.ts';

const MASK = 'plumbline.dev/cpu-mask';
/** Four CPUs of which 2 is offline and 9 exists. */
const GAPS = topologyOf({
  cells: [{ id: 0, cpus: '0,1,3,9' }],
  cores: ['0', '1', '3', '9'],
  reserved: '0',
  physnets: [],
});
const OWNED = [{ podUID: 'other', container: 'compute', cpus: '5-7' }];

describe('CPU masks with a real scheduler', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let stage: Stage;
  let kubeVirt: KubeVirtStandIn;
  let replica: Replica;
  before(async () => {
    stage = await startStage();
    kubeVirt = await installKubeVirt(stage.plane);
    await stage.addNodes([
      { name: 'whole', topology: topologyOf({ assignments: OWNED }), labels: { make: 'whole' } },
      { name: 'gaps', topology: GAPS, labels: { make: 'gaps' } },
    ]);
    replica = await stage.startReplica();
    await until('it to be active', () => replica.isActive());
    await stage.startScheduler();
  });
  after(async () => {
    await kubeVirt?.stop();
    await stage?.stop();
  });

  const launch = (name: string, mask: string, more: MaskedLauncherOptions = {}) =>
    launchMasked(stage.client, name, mask, more);
  const bound = (name: string) =>
    until(`${name} to be bound`, async () => (await stage.podOf(name)).spec.nodeName !== undefined);

  it('bring a VM to a node that has the CPUs, by their ids', async () => {
    await launch('three', '3:9');
    await launch('two', '2');
    await Promise.all([bound('three'), bound('two')]);
    assert.equal((await stage.podOf('two')).spec.nodeName, 'whole');
  });

  it('bring the target of a migration there too', async () => {
    await launch('target', '11', { labels: { 'kubevirt.io/migrationJobUID': 'migration' } });
    await bound('target');
    assert.equal((await stage.podOf('target')).spec.nodeName, 'whole');
  });

  it('have the reason of each node in the pod’s condition if no node can satisfy them', async () => {
    await launch('nowhere', '5');
    await until('the refusal', async () => refusalOf(await stage.podOf('nowhere')) !== '');
    const message = refusalOf(await stage.podOf('nowhere'));
    assert.match(message, /1 node lacks CPUs of the CPU mask/);
    assert.match(message, /1 CPU mask names no CPU that may be used on the node/);
    await report(stage.client, 'whole', topologyOf());
    await bound('nowhere');
    await report(stage.client, 'whole', topologyOf({ assignments: OWNED }));
  });

  it('fall back to all CPUs on request', async () => {
    await launch('fixed', '99', { fix: 'true' });
    await bound('fixed');
  });

  it('are counted by the active replica if no eligible node could satisfy them', async () => {
    const counts = async () =>
      Promise.all(
        ['plumbline_extender_masked_vms', 'plumbline_extender_masked_vms_without_node'].map((name) =>
          replica.metric(name),
        ),
      );
    await kubeVirt.create('fits');
    await kubeVirt.create('nine', { [MASK]: '9' });
    await until('both to be counted', async () => (await counts()).join() === '2,0');
    await kubeVirt.create('ninety', { [MASK]: '90' });
    await until('the one to be counted', async () => (await counts()).join() === '3,1');
    const path = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
    await stage.client.create(path, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name: 'held' },
      spec: {
        template: {
          metadata: { annotations: { [MASK]: '2' } },
          spec: { domain: { cpu: { cores: 1 } }, nodeSelector: { make: 'gaps' } },
        },
      },
    });
    await until('the selector to be heeded', async () => (await counts()).join() === '4,2');
  });
});
