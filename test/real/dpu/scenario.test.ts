import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DaemonProcess } from '../../../cli/demo/daemons.ts';
import { type RealOvs, startRealOvs } from '../../node-agent/ovs-stage.ts';
import { eventually } from '../../support/eventually.ts';
import { needs } from '../../support/parts.ts';
import { onControlPlane } from '../control-plane-stage.ts';
import { DURATION, INTERVAL, DPU_WORKER as NODE } from '../install/daemons-stage.ts';
import { createDpuScene, type DpuScene } from './stage.ts';

/** Seconds between two looks at the lease. */
const PERIOD = Math.min(INTERVAL, DURATION / 4);
/** Seconds that writing and reading the condition may take besides, on a machine that does other things as well. */
const SLACK = 4;

describe('a DPU that is missing, starts, dies and starts again, with real daemons, API server, scheduler and Open vSwitch', function () {
  onControlPlane(this);
  needs('root');
  needs('openVswitch');
  needs('musl');
  needs('make');
  let scene: DpuScene;
  let ovs: RealOvs;
  let host: DaemonProcess;
  let dpu: DaemonProcess;
  let runningPod: string;
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-ovs-'));

  before(async () => {
    scene = await createDpuScene();
    ovs = await startRealOvs(directory);
    runningPod = await scene.runningPod('running');
  });
  after(async () => {
    await scene?.stop();
    // Where a test ended early it may still be stopped.
    ovs?.vswitchd.kill('SIGCONT');
    await ovs?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const seconds = async (what: string, check: () => boolean | Promise<boolean>, most: number) => {
    const begun = performance.now();
    await eventually(check, what, most);
    const took = (performance.now() - begun) / 1000;
    console.log(`      ${what}: ${took.toFixed(1)} s`);
    return took;
  };
  const isPlaced = (pod: string) => async () => (await scene.readPod(pod)).spec.nodeName === NODE;
  const isRefused = (pod: string) => async () => {
    const { conditions = [] } = (await scene.readPod(pod)).status;
    const scheduled = conditions.find(({ type }) => type === 'PodScheduled');
    return scheduled?.status === 'False' && /DPU not ready/.test(scheduled.message ?? '');
  };
  const runsOn = async () => {
    const { metadata } = await scene.readPod('running');
    assert.deepEqual([metadata.uid, metadata.deletionTimestamp], [runningPod, undefined]);
  };

  it('the condition is False within duration + one period while dpu-host runs without a DPU', async () => {
    host = await scene.startHost();
    await seconds('condition False', scene.isCondition('False'), DURATION + PERIOD + SLACK);
    assert.equal(await scene.condition(), 'False LeaseExpired');
  });

  it('the extender and the gate refuse new pods and leave the running pod alone', async () => {
    await scene.pod('waits');
    await eventually(isRefused('waits'), 'refused');
    const { conditions = [] } = (await scene.readPod('waits')).status;
    console.log(`      ${conditions.find(({ type }) => type === 'PodScheduled')?.message}`);
    const add = await scene.callGate('ADD');
    console.log(`      the gate answered after ${add.millis.toFixed(0)} ms`);
    // Later than this the shim answers without the agent.
    assert.deepEqual([add.json()['code'], add.millis < 2500], [11, true], `${add.millis} ms`);
    const why = /^DPU Not Ready: .*\bovn-dpu-worker-dpu\b/;
    // The agent began to look a moment after the extender did.
    await eventually(
      async () => why.test(String((await scene.callGate('ADD')).json()['msg'])),
      'it says why',
      PERIOD + SLACK,
    );
    assert.equal(await scene.gateCode('STATUS'), 50);
    assert.equal(await scene.gateCode('DEL'), undefined);
    await runsOn();
  });

  it('pods are placed within 15 s after the DPU’s agent starts', async () => {
    dpu = await scene.startDpu(ovs.rundir);
    await seconds('the waiting pod placed', isPlaced('waits'), 15);
    await eventually(scene.isCondition('True'), 'condition True');
    await eventually(async () => (await scene.gateCode()) === undefined, 'the gate opens');
    assert.equal(await scene.gateCode('STATUS'), undefined);
  });

  it('the DPU’s agent does not renew the Lease while ovs-vswitchd hangs', async () => {
    ovs.vswitchd.kill('SIGSTOP');
    await seconds('the gate closed', async () => (await scene.gateCode()) === 11, DURATION + PERIOD + SLACK + 3);
    const line = dpu.log().findLast(({ msg }) => msg === 'renewing the DPU lease failed');
    assert.match(String(line?.['reason']), /ovs-vswitchd does not answer: .*no answer to version in 2 s/);
    ovs.vswitchd.kill('SIGCONT');
    await seconds('the gate open', async () => (await scene.gateCode()) === undefined, 15);
    await runsOn();
  });

  it('interval 0 opens the gate of a dead DPU, and turning the check on again closes it', async () => {
    await dpu.stop('SIGKILL');
    await seconds('the gate closed', async () => (await scene.gateCode()) === 11, DURATION + PERIOD + SLACK);
    await eventually(scene.isCondition('False'), 'condition False', SLACK + PERIOD);
    await scene.pod('waits-for-off');
    await eventually(isRefused('waits-for-off'), 'refused');
    await host.stop();
    host = await scene.startHost('--dpu-node-lease-renew-interval', '0');
    await eventually(async () => (await scene.gateCode()) === undefined, 'the gate opens');
    assert.equal(await scene.gateCode('STATUS'), undefined);
    await seconds('the waiting pod placed', isPlaced('waits-for-off'), 15);
    await eventually(async () => (await scene.condition()) === undefined, 'the condition is gone');
    // Longer than a Lease counts: silence means nothing any more.
    await new Promise((resolve) => setTimeout(resolve, (DURATION + PERIOD + 1) * 1000));
    assert.equal(await scene.condition(), undefined);
    await scene.pod('comes-while-off');
    await eventually(isPlaced('comes-while-off'), 'placed');
    await runsOn();
    await host.stop();
    host = await scene.startHost();
    await seconds('condition False again', scene.isCondition('False'), DURATION + PERIOD + SLACK);
    await eventually(async () => (await scene.gateCode()) === 11, 'the gate closes', DURATION + PERIOD + SLACK);
  });
});
