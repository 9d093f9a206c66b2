import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { renewalWriter } from '../../../model/lease/diagnose.ts';
import { DPU_RUN_ANNOTATION } from '../../../model/names.ts';
import { eventually } from '../../support/eventually.ts';
import { needs, pathOf } from '../../support/parts.ts';
import { type Program, startProgram } from '../../support/processes.ts';
import { onControlPlane } from '../control-plane-stage.ts';
import { DURATION, INTERVAL, DPU_WORKER as NODE } from '../install/daemons-stage.ts';
import { createDpuScene, type DpuScene } from './stage.ts';

/** Seconds between two looks at the lease. */
const PERIOD = Math.min(INTERVAL, DURATION / 4);
/** Seconds that a busy machine may take besides; what is waited for mostly comes at once. */
const SLACK = 60;
const LEASE = `/apis/coordination.k8s.io/v1/namespaces/ovn-kubernetes/leases/ovn-dpu-${NODE}`;

interface Lease {
  readonly metadata: {
    readonly resourceVersion: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly managedFields: readonly { readonly manager: string; readonly fieldsV1: unknown }[];
    readonly ownerReferences: readonly { readonly kind: string; readonly name: string }[];
  };
  readonly spec: { readonly holderIdentity: string; readonly leaseDurationSeconds: number };
}

describe('--dpu-lease observe, with a Lease that OVN-Kubernetes’ own code writes', function () {
  onControlPlane(this);
  needs('root');
  needs('musl');
  needs('make');
  needs('ovnKubernetes');
  this.timeout(600_000);
  let scene: DpuScene;
  let dpu: Program;
  let monitor: Program;

  before(async () => {
    scene = await createDpuScene();
    await scene.startHost('--dpu-lease', 'observe');
  });
  after(async () => {
    await monitor?.stop();
    await dpu?.stop();
    await scene?.stop();
  });

  const run = (name: string, ...more: readonly string[]) => {
    const { plane } = scene;
    const args = ['--kubeconfig', plane.adminKubeconfig, '--node', NODE, '--namespace', 'ovn-kubernetes'];
    const timing = ['--renew-interval', `${INTERVAL}s`, '--lease-duration', `${DURATION}s`];
    const log = join(plane.directory, `${name}.log`);
    return startProgram(name, pathOf('ovnKubernetes'), [...args, ...timing, ...more], log);
  };
  const itsOpinion = () =>
    readFileSync(monitor.logFile, 'utf8')
      .match(/^ready=.*$/gm)
      ?.at(-1) ?? '';
  const lease = async () => (await scene.plane.client.get(LEASE)) as Lease;

  it('the gate is closed without a Lease, and OVN-Kubernetes’ own host side is not ready either', async () => {
    monitor = run('ovn-kubernetes-monitor', '--monitor');
    await eventually(async () => (await scene.gateCode()) === 11, 'the gate is closed', DURATION + PERIOD + SLACK);
    // Without a lease nothing tells the extender that the check is on: its policy for the unknown decides.
    await eventually(async () => (await scene.condition()) === 'Unknown LeaseUnknown', 'condition Unknown', SLACK);
    await eventually(() => itsOpinion() === 'ready=false DPU node lease not found', 'its opinion', SLACK);
  });

  it('the gate opens and pods are placed when the writer starts', async () => {
    await scene.pod('waits');
    dpu = run('ovn-kubernetes-dpu');
    await eventually(scene.isCondition('True'), 'condition True', DURATION + SLACK);
    await eventually(async () => (await scene.gateCode()) === undefined, 'the gate opens', SLACK);
    await eventually(async () => (await scene.readPod('waits')).spec.nodeName === NODE, 'placed', SLACK);
    const { metadata, spec } = await lease();
    assert.deepEqual([spec.holderIdentity, spec.leaseDurationSeconds], ['ovnkube-dpu-node', DURATION]);
    assert.deepEqual(
      metadata.ownerReferences.map(({ kind, name }) => `${kind} ${name}`),
      [`Node ${NODE}`],
    );
  });

  it('Plumbline and OVN-Kubernetes’ host side consider a killed DPU dead and do not write its Lease', async () => {
    await dpu.stop('SIGKILL');
    const { metadata } = await lease();
    await eventually(async () => (await scene.gateCode()) === 11, 'the gate closes', DURATION + PERIOD + SLACK);
    await eventually(scene.isCondition('False'), 'condition False', SLACK);
    await eventually(() => itsOpinion().startsWith('ready=false DPU node lease expired'), 'its opinion', SLACK);
    const after = await lease();
    assert.equal(after.metadata.resourceVersion, metadata.resourceVersion);
    assert.deepEqual([...new Set(after.metadata.managedFields.map(({ manager }) => manager))].length, 1);
  });

  it('its writer keeps the record of the DPU’s runs, and its field manager shows who renews', async () => {
    const annotations = { [DPU_RUN_ANNOTATION]: '{"bootId":"a","pid":1}' };
    await scene.plane.client.patch(LEASE, 'application/merge-patch+json', { metadata: { annotations } });
    const { metadata } = await lease();
    dpu = run('ovn-kubernetes-dpu');
    await eventually(
      async () => (await lease()).metadata.resourceVersion !== metadata.resourceVersion,
      'a renewal',
      SLACK,
    );
    assert.deepEqual((await lease()).metadata.annotations, annotations);
    const writer = renewalWriter({ renewTime: '', managedFields: (await lease()).metadata.managedFields });
    assert.equal(writer, 'ovn-kubernetes-dpu-lease');
    await dpu.stop('SIGKILL');
  });

  it('both consider the DPU alive after its writer starts again', async () => {
    dpu = run('ovn-kubernetes-dpu');
    await eventually(async () => (await scene.gateCode()) === undefined, 'the gate opens', DURATION + SLACK);
    await eventually(() => itsOpinion().startsWith('ready=true'), 'its opinion', DURATION + SLACK);
  });
});
