import assert from 'node:assert/strict';
import { staysOffThroughRestarts } from './agent-restarts.ts';
import { wireSwitch } from './guest-switch.ts';
import { deviceCounts } from './placement.ts';
import { followsPodResourcesAlone } from './pod-resources-alone.ts';
import { keepsOffRunningContainers } from './running-containers.ts';
import type { Scenario } from './scenario.ts';
import { assertOff, confineSwitch, disableAffinity, enableAffinity, switchCpus } from './switch-masks.ts';
import { installSampler } from './switch-sampler.ts';

/** The switch's CPUs before the agent, including some that pods will own. */
const OWN_CPUS = '0-3';

/** The agent loses its knowledge of owners, or is stopped itself. */
export const OVS_FAULTS: Scenario = {
  name: 'ovs-faults',
  about: 'Open vSwitch stays off CPUs that containers hold without the agent, the checkpoint, or the kubelet’s word',
  async play(scene) {
    const { agent, holds, cluster } = scene;
    await installSampler(scene);
    await wireSwitch(scene);
    await confineSwitch(scene, OWN_CPUS);
    await enableAffinity(scene);
    await agent.start();
    await holds('the kubelet has the devices', () => cluster.readyNode(0, deviceCounts()));
    await holds('Open vSwitch is on all CPUs, because no container owns any', () => assertOff(scene, ''));
    await staysOffThroughRestarts(scene);
    await followsPodResourcesAlone(scene);
    await keepsOffRunningContainers(scene);
    await disableAffinity(scene);
    await holds('turned off: every thread has its CPUs from before the agent', async () => {
      assert.equal(await switchCpus(scene), OWN_CPUS);
      return OWN_CPUS;
    });
  },
};
