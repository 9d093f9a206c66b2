import assert from 'node:assert/strict';
import { commandText } from '../../../diagnosis/remedy.ts';
import { commandsOfTable, shell } from '../../cli/remedy-commands.ts';
import { NODE } from '../../cli/state-table.ts';
import { needs } from '../../support/parts.ts';
import { type ControlPlane, startControlPlane } from '../control-plane.ts';
import { FOREIGN_DEFINITIONS } from '../webhook/crds.ts';

describe('the kubectl commands that remedies suggest, on a real API server', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let plane: ControlPlane;

  before(async () => {
    plane = await startControlPlane();
    await plane.create(...FOREIGN_DEFINITIONS);
    for (const name of ['tenants', 'kubevirt', 'plumbline-system', 'ovn-kubernetes']) {
      await plane.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
    await plane.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } });
    await plane.create({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: `ovn-dpu-${NODE}`, namespace: 'ovn-kubernetes' },
      spec: {},
    });
    const vm = {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name: 'fw', namespace: 'tenants' },
      spec: { runStrategy: 'Halted', template: { spec: { domain: {} } } },
    };
    await plane.create(vm);
  });
  after(() => plane?.stop());

  it('each one runs unchanged in a shell', async () => {
    const texts = (await commandsOfTable()).filter(({ program }) => program === 'kubectl').map(commandText);
    const failed: string[] = [];
    for (const text of texts) {
      const { status, output } = await shell(text, plane.adminKubeconfig);
      if (status !== 0) failed.push(`${text}: ${output}`);
    }
    assert.deepEqual(failed, []);
  });
});
