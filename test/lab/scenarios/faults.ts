import assert from 'node:assert/strict';
import { assertOff, enableAffinity, RUNDIR, wireSwitch } from './guest-switch.ts';
import { assertRuns, cellsOf, deviceCounts, PHYSNET0, PHYSNET1 } from './placement.ts';
import { keepsOffRunningContainers } from './running-containers.ts';
import type { Scenario, Scene } from './scenario.ts';
import type { ScenePod } from './scene-pods.ts';

/** Seconds after a fault until everything must be as before, in the emulation. */
const RECOVERED_WITHIN = 900;

const AGENT_PID = "pgrep -f '^/nodejs/bin/node /plumbline/node-agent.cjs'";
const mainPid = (unit: string) => `systemctl show -P MainPID ${unit}`;

/** The last one is a command whose output changes when the fault has happened. */
const FAULTS: readonly (readonly [what: string, line: string, witness: string])[] = [
  ['the kubelet is restarted', 'systemctl restart kubelet', mainPid('kubelet')],
  ['containerd is restarted', 'systemctl restart containerd', mainPid('containerd')],
  [
    'ovs-vswitchd is killed and comes back',
    `kill -KILL $(cat ${RUNDIR}/ovs-vswitchd.pid)`,
    `cat /proc/$(cat ${RUNDIR}/ovs-vswitchd.pid)/stat | cut -d" " -f1`,
  ],
  ['the kubelet is killed', 'systemctl kill -s KILL kubelet', mainPid('kubelet')],
  ['the agent is killed', `kill -KILL $(${AGENT_PID})`, AGENT_PID],
];

export const FAULTS_SCENARIO: Scenario = {
  name: 'faults',
  about: 'kubelet, containerd, Open vSwitch and agent are killed or started again; the promises hold',
  daemonSet: true,
  async play(scene) {
    const { holds, agent, pods } = scene;
    await wireSwitch(scene);
    await enableAffinity(scene);
    await agent.start();
    await holds('the agent has registered its devices', () => scene.cluster.readyNode(0, deviceCounts()), 180);
    const stays = await pods.create('stays', { cpu: '2', [PHYSNET0]: '1' });
    await holds('a pod owns CPUs near physnet0, and Open vSwitch is off them', async () => {
      await assertRuns(scene, stays);
      await assertOff(scene, await pods.cpus(stays));
    });
    const owned = await pods.cpus(stays);
    for (const fault of FAULTS) await undergo(scene, fault, stays, owned);
    await frozen(scene, stays, owned);
    await pods.remove(stays);
    await keepsOffRunningContainers(scene);
    await holds('at the end Open vSwitch has all CPUs again', () => assertOff(scene, ''));
  },
};

async function undergo(
  scene: Scene,
  [what, line, witness]: (typeof FAULTS)[number],
  stays: ScenePod,
  owned: string,
): Promise<void> {
  const { holds, lab, pods, cluster } = scene;
  const before = await lab.run(witness);
  await lab.run(line);
  await holds(
    what,
    async () => {
      const now = await lab.run(witness);
      assert.match(now, /^[1-9]\d*\n$/);
      assert.notEqual(now, before);
    },
    RECOVERED_WITHIN,
  );
  await holds(
    '  the pod keeps its CPUs, Open vSwitch is off them, the devices exist',
    async () => {
      await assertRuns(scene, stays);
      assert.equal(await pods.cpus(stays), owned);
      await assertOff(scene, owned);
      await cluster.readyNode(0, deviceCounts());
    },
    RECOVERED_WITHIN,
  );
  // The node's status shows the devices of a restarted kubelet late; a pod that is created too early is refused.
  let pod: ScenePod | undefined;
  await holds(
    '  a new pod gets CPUs near physnet1, and Open vSwitch leaves them',
    async () => {
      pod ??= await pods.create(`after-${what.replaceAll(/[^a-z]+/g, '-')}`, { cpu: '2', [PHYSNET1]: '1' });
      if ((await pods.state(pod)).startsWith('Failed')) {
        await pods.remove(pod);
        pod = undefined;
        assert.fail('refused');
      }
      await assertRuns(scene, pod);
      assert.equal(await cellsOf(scene, pod), '1');
      await assertOff(scene, `${owned},${await pods.cpus(pod)}`);
    },
    RECOVERED_WITHIN,
  );
  if (pod) await pods.remove(pod);
}

/**
 * A kubelet waits for a device plugin without a timeout, and does nothing else meanwhile: no probe can end the agent
 * then. No pod may start without a check, and everything continues when the process has ended.
 */
async function frozen(scene: Scene, stays: ScenePod, owned: string): Promise<void> {
  const { holds, lab, pods, cluster } = scene;
  await lab.run(`kill -STOP $(${AGENT_PID})`);
  const waits = await pods.create('waits', { cpu: '2', [PHYSNET1]: '1' });
  await holds(
    'the agent is frozen while a pod is created, then killed: the pod is refused, and never started unchecked',
    async () => {
      assert.equal(await pods.cpus(waits), '');
      const state = await pods.state(waits);
      if (state === 'Pending') await lab.run(`kill -KILL $(${AGENT_PID})`);
      assert.match(state, /^Failed: UnexpectedAdmissionError: .*Allocate failed/);
      return state;
    },
  );
  await pods.remove(waits);
  await holds(
    '  the agent runs again, and the running pod was not interrupted',
    async () => {
      await cluster.readyNode(0, deviceCounts());
      await assertRuns(scene, stays);
      await assertOff(scene, owned);
    },
    RECOVERED_WITHIN,
  );
}
