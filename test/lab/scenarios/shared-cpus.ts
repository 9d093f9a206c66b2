import assert from 'node:assert/strict';
import { preparedHost } from '../../../model/placement/needs.ts';
import { placementNeedsOf } from '../../../model/placement/preferences.ts';
import { judgeHost } from '../../../model/placement/verdict.ts';
import { POLICY_NONE, reconfigureKubelet } from './guest-kubelet.ts';
import { wireSwitch } from './guest-switch.ts';
import { assertRuns, deviceCounts } from './placement.ts';
import type { Scenario, Scene } from './scenario.ts';

/** A kubelet with CPU manager policy `none`, the default, runs Guaranteed pods with whole CPUs on shared ones. */
export const SHARED_CPUS: Scenario = {
  name: 'shared-cpus',
  about: 'CPU manager policy none: Guaranteed pods with whole CPUs run on shared ones, as the model predicts',
  async play(scene) {
    await wireSwitch(scene);
    await scene.agent.start();
    await reconfigureKubelet(scene, POLICY_NONE);
    await sharesCpus(scene);
  },
};

async function sharesCpus(scene: Scene): Promise<void> {
  const { holds, cluster, pods } = scene;
  await holds('the kubelet has CPU manager policy none, and the report shows it', async () => {
    assert.equal((await scene.report()).cpuManager.policy, 'none');
    await cluster.readyNode(0, deviceCounts());
  });
  await holds('a Guaranteed pod of 2 CPUs fits in the model', async () => {
    const resources = { cpu: '2', memory: '16Mi' };
    const containers = [{ name: 'main', resources: { requests: resources, limits: resources } }];
    const needs = placementNeedsOf({ metadata: { uid: 'web' }, spec: { containers } });
    assert.equal(judgeHost(needs, preparedHost(await scene.report()), [], 'refuse').fits, true);
  });
  const web = await pods.create('web', { cpu: '2' });
  await holds('  it runs, and owns no CPU', async () => {
    await assertRuns(scene, web);
    assert.equal(await pods.cpus(web), '');
  });
  await pods.remove(web);
}
