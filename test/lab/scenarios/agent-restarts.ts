import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { sleep } from '../../../runtime/time.ts';
import { assertRuns } from './placement.ts';
import type { Scene } from './scenario.ts';
import type { ScenePod } from './scene-pods.ts';
import { assertOff } from './switch-masks.ts';
import { type Sample, startSampling } from './switch-sampler.ts';

/** Milliseconds between samples, which are also work for the guest. */
export const BETWEEN = 200;
/** Seconds without an agent, during which no thread may return. */
const WITHOUT_AGENT = 5;

/** Open vSwitch stays off the CPUs of a pod, at every sample, while the agent is stopped, killed and replaced. */
export async function staysOffThroughRestarts(scene: Scene): Promise<void> {
  const { agent, pods, holds, signal } = scene;
  const { pod, owned } = await podOffSwitch(scene, 'outlives');
  const watch = await startSampling(scene, BETWEEN);
  await holds('the agent stops with SIGTERM and exits with 0', async () => assert.equal(await agent.stop(), 0));
  await sleep(WITHOUT_AGENT, signal);
  await agent.start();
  await moves(scene, 'started', owned);
  await agent.kill();
  await sleep(WITHOUT_AGENT, signal);
  await agent.start();
  await moves(scene, 'killed with SIGKILL and started', owned);
  await agent.start();
  await moves(scene, 'replaced', owned);
  await holds('meanwhile Open vSwitch was off the pod’s CPUs', async () => {
    return neverOn(await watch(), CpuSet.parse(owned));
  });
  await pods.remove(pod);
}

/** Creates a pod that owns two CPUs, off which Open vSwitch is. */
export async function podOffSwitch(scene: Scene, name: string): Promise<{ pod: ScenePod; owned: string }> {
  const { pods, holds } = scene;
  const pod = await pods.create(name, { cpu: '2' });
  await holds('a pod owns CPUs, and Open vSwitch is off them', async () => {
    await assertRuns(scene, pod);
    await assertOff(scene, await pods.cpus(pod));
    return `CPUs ${await pods.cpus(pod)}`;
  });
  return { pod, owned: await pods.cpus(pod) };
}

/** The agent works: it moves Open vSwitch off the CPUs of a new pod. */
async function moves(scene: Scene, what: string, owned: string): Promise<void> {
  const { pods, holds } = scene;
  const other = await pods.create(`when-${what.split(' ')[0]}`, { cpu: '2' });
  await holds(`${what}: it moves Open vSwitch off the CPUs of another pod, too`, async () => {
    await assertRuns(scene, other);
    await assertOff(scene, `${owned},${await pods.cpus(other)}`);
    return `CPUs ${await pods.cpus(other)}`;
  });
  await pods.remove(other);
}

/** @throws AssertionError if a thread might have run on the CPUs at any sample */
export function neverOn(samples: readonly Sample[], owned: CpuSet): string {
  const last = samples.at(-1);
  assert.ok(last !== undefined, 'no sample was taken');
  for (const { at, allowed } of samples) {
    assert.ok(!allowed.intersects(owned), `${at.toFixed(0)} ms after the first sample it was on ${allowed}`);
  }
  return `${last.samples} samples in ${(last.at / 1000).toFixed(0)} s, none on CPUs ${owned}`;
}
