import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { CpuSet } from '../../../model/cpu-set.ts';
import { root } from '../../support/bundles.ts';
import { KUBELET_ROOT } from '../guest.ts';
import { wireSwitch } from './guest-switch.ts';
import { deviceCounts, PHYSNET0 } from './placement.ts';
import type { Scenario, Scene } from './scenario.ts';
import { confineSwitch, disableAffinity, enableAffinity, RUNDIR, switchCpus, switchStatus } from './switch-masks.ts';
import { installSampler, startSampling } from './switch-sampler.ts';

const HOME = '/opt/plumbline-lab/ovs';
const LOOP = 'plumbline-lab-loop';
/** The threads' CPUs before the agent, including some that pods will own. */
const OWN_CPUS = '0-3';
/** Pods without a device for each measurement: the loop's delay depends on when in its second a pod is created. */
const PODS = 3;

/** Open vSwitch with the kernel datapath leaves the CPUs that a real kubelet assigns. */
export const OVS: Scenario = {
  name: 'ovs',
  about: 'Open vSwitch is off a pod’s CPUs before its container is created, and has its own back once turned off',
  async play(scene) {
    const { agent, holds, cluster } = scene;
    await install(scene);
    await installSampler(scene);
    await wireSwitch(scene);
    const before = await switchCpus(scene);
    await confineSwitch(scene, OWN_CPUS);
    await enableAffinity(scene);
    await agent.start();
    await holds('every thread of Open vSwitch is on CPUs without an owner', async () => inPlace(scene, before));
    await holds('the kubelet has the devices', () => cluster.readyNode(0, deviceCounts()));
    await vacated(scene, before);
    const ours = await exposure(scene, 'plain');
    await holds('released CPUs are used again after the growth delay', async () => inPlace(scene, before));
    await disableAffinity(scene);
    await holds('turned off: every thread has its own CPUs again', async () => {
      assert.equal(await switchCpus(scene), OWN_CPUS);
      return OWN_CPUS;
    });
    assert.equal(await agent.stop(), 0);
    await startLoop(scene);
    const theirs = await exposure(scene, 'loop');
    await holds('a pod without a device: how long threads stay on its CPUs, compared with the loop', async () => {
      const both = `${shown(ours)} ms, the loop ${shown(theirs)} ms`;
      assert.ok(longest(ours) < longest(theirs), both);
      return both;
    });
  },
};

async function install({ lab, undo }: Scene): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-lab-'));
  try {
    const outfile = join(directory, 'upstream-loop.cjs');
    await build({
      entryPoints: [join(root, 'bench/node-agent/upstream-loop.ts')],
      outfile,
      bundle: true,
      platform: 'node',
      target: 'node20',
      format: 'cjs',
      external: ['koffi'],
      logLevel: 'warning',
    });
    await lab.run(`rm -rf ${HOME} && mkdir -p ${HOME} && ln -s ../agent/node_modules ${HOME}/node_modules`);
    await lab.run(`ln -s ${KUBELET_ROOT} ${HOME}/kubelet && ln -s ${RUNDIR} ${HOME}/run`);
    await lab.copy(outfile, `${HOME}/upstream-loop.cjs`);
  } finally {
    await rm(directory, { recursive: true });
  }
  undo(() => lab.run(`systemctl stop ${LOOP} 2>/dev/null; rm -rf ${HOME}`));
}

/** The agent's status, which must match the kernel. */
async function inPlace(scene: Scene, expected: string): Promise<string> {
  const { desired, problems, processes } = await switchStatus(scene);
  assert.deepEqual(problems, []);
  const threads = processes.flatMap((process) => process.threads);
  assert.ok(threads.length > 4 && desired !== null, `${threads.length} threads, wanted ${desired}`);
  assert.equal(desired, expected);
  for (const { allowed } of threads) assert.equal(allowed, desired);
  assert.equal(await switchCpus(scene), expected);
  return `${threads.length} threads on ${desired}`;
}

async function vacated(scene: Scene, before: string): Promise<void> {
  const { pods, holds } = scene;
  const watch = await startSampling(scene);
  const pod = await pods.create('vacated', { cpu: '2', [PHYSNET0]: '1' });
  await holds('a pod with a physnet’s device runs', async () => assert.equal(await pods.state(pod), 'Running'));
  const owned = CpuSet.parse(await pods.cpus(pod));
  const lines = await watch();
  await holds('Open vSwitch was off its CPUs before its container was created', async () => {
    const created = lines.find(({ made }, i) => i > 0 && made > lines[i - 1]!.made);
    assert.ok(created !== undefined, 'no container was seen');
    for (const { at, allowed } of lines) {
      if (at >= created.at) assert.ok(!allowed.intersects(owned), `at ${at} still on ${allowed}`);
    }
    const off = lines.findLast(({ allowed }) => allowed.intersects(owned))!;
    const after = lines[lines.indexOf(off) + 1]!;
    assert.ok(after.at < created.at, 'not before the very sample that saw the container');
    return `CPUs ${owned}: off ${(created.at - after.at).toFixed(0)} ms before, ${created.samples} samples until then`;
  });
  await pods.remove(pod);
  await holds('and uses them again later', async () => inPlace(scene, before));
}

/**
 * Milliseconds from the kubelet's write until the last thread has left the pod's CPUs: both are between two samples.
 */
interface Exposure {
  readonly least: number;
  readonly most: number;
}

/** How long threads stay on the CPUs of some pods without a device. */
async function exposure(scene: Scene, name: string): Promise<readonly Exposure[]> {
  const { pods, holds } = scene;
  const found: Exposure[] = [];
  for (let i = 0; i < PODS; i++) {
    const watch = await startSampling(scene);
    const pod = await pods.create(`${name}-${i}`, { cpu: '2' });
    await holds(`pod ${name}-${i} runs`, async () => assert.equal(await pods.state(pod), 'Running'));
    const owned = CpuSet.parse(await pods.cpus(pod));
    await holds(`Open vSwitch is off its CPUs ${owned}`, async () => {
      const now = await switchCpus(scene);
      assert.ok(!CpuSet.parse(now).intersects(owned), now);
    });
    const lines = await watch();
    const assigned = lines.find(({ pool }) => !pool.intersects(owned));
    const off = lines.find(({ at, allowed }) => at >= (assigned?.at ?? 0) && !allowed.intersects(owned));
    assert.ok(assigned !== undefined && off !== undefined, 'the sampler saw no assignment');
    found.push({ least: Math.max(0, off.since - assigned.at), most: off.at - assigned.since });
    await pods.remove(pod);
    await holds('and uses them again', async () => {
      const now = await switchCpus(scene);
      assert.ok(owned.isSubsetOf(CpuSet.parse(now)), now);
    });
  }
  return found;
}

async function startLoop({ lab }: Scene): Promise<void> {
  await lab.run(`systemd-run --quiet --collect --unit=${LOOP} node ${HOME}/upstream-loop.cjs ${HOME}`);
}

const longest = (found: readonly Exposure[]): number => Math.max(...found.map(({ least }) => least));

const shown = (found: readonly Exposure[]): string =>
  found.map(({ least, most }) => `${least.toFixed(0)} to ${most.toFixed(0)}`).join(', ');
