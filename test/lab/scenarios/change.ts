import assert from 'node:assert/strict';
import type { HostReport } from '../../../model/kubelet/host-report.ts';
import { binary } from '../../real/control-plane-stage.ts';
import { type AgentReport, agentReport } from '../agent-report.ts';
import { deviceCounts } from '../devices.ts';
import { createGuest, type Guest } from '../guest.ts';
import { type KubeletProgram, kubeletFolders, readKubelets } from '../kubelets.ts';
import { lineOf, mismatchOf, play } from '../play.ts';
import { bundlePlugin, createClock } from '../play-rounds.ts';
import { createRandom } from '../random.ts';
import type { RecordedNode } from '../recording.ts';
import { emptySnapshot, expectedReport } from '../report.ts';
import type { Round } from '../rounds.ts';
import { AGENT_UNIT } from './guest-agent.ts';
import type { Scenario, Scene } from './scenario.ts';

/** Seconds from the kubelet's start until its node is Ready, in the emulation. */
const NODE_READY = 300;
/** Seconds after that within which the agent's report must be that of the new run of the kubelet. */
const REPORTED_WITHIN = 15;
/** Seconds within which the report must say that the kubelet has not seen a change of the kernel. */
const NOTICED_WITHIN = 30;
/** Number of pods after each change, which are predicted from the report alone. */
const PODS = 6;

/** A distribution's older kubelet may already place devices as the newer one does, so pods have none until then. */
const ROUND: Round = {
  name: 'change',
  devices: 'none',
  topologyPolicy: 'best-effort',
  scope: 'container',
  cpuOptions: { 'full-pcpus-only': 'true' },
  reserved: '0-1',
  reservedMemory: [100, 300],
};
const OTHER_SETTINGS: Round = {
  ...ROUND,
  topologyPolicy: 'restricted',
  scope: 'pod',
  cpuOptions: {},
  reserved: '0,4',
  reservedMemory: [300, 0],
};
const { devices: _, ...WITH_DEVICES } = OTHER_SETTINGS;

const setOnline = (value: 0 | 1): string =>
  [6, 7].map((cpu) => `echo ${value} >/sys/devices/system/cpu/cpu${cpu}/online`).join(' && ');
const setPages = (pages: number): string => {
  const file = '/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages';
  return `echo ${pages} >${file} && test "$(cat ${file})" = ${pages}`;
};

/** With the report's words until the kubelet has started again. */
const OF_KERNEL: readonly (readonly [what: string, line: string, unseen: RegExp])[] = [
  ['a core goes offline', setOnline(0), /CPUs 6-7 went offline after the kubelet started/],
  ['the core comes online', setOnline(1), /CPUs 6-7 came online after the kubelet started/],
  [
    'huge pages are reserved on one NUMA node',
    setPages(64),
    /NUMA node 1 has 64 huge pages of 2048 KiB, and had 32 when the kubelet started/,
  ],
];

export const CHANGE: Scenario = {
  name: 'change',
  about:
    'CPUs, huge pages, settings and the version of the kubelet change under one agent; reports and predictions follow',
  missing() {
    const [folder] = kubeletFolders(undefined, process.env);
    return folder === undefined
      ? 'it needs a folder with an older kubelet in KUBELETS, which the machine’s own replaces'
      : undefined;
  },
  async play(scene) {
    const { lab, cluster, agent, signal, holds, undo } = scene;
    const guest = createGuest(lab, signal);
    const own: KubeletProgram = { path: binary('kubelet'), version: await guest.kubeletVersion() };
    const [older] = await readKubelets(kubeletFolders(undefined, process.env));
    const isOlder = older !== undefined && older.version.localeCompare(own.version, 'en', { numeric: true }) < 0;
    assert.ok(isOlder, `${older?.version} is not older than the machine's ${own.version}`);
    undo(() => guest.restore());
    await guest.startPlugin(await bundlePlugin());
    await guest.replaceKubelet(older);
    const start = await nodeOf(guest, ROUND, older.version);
    await guest.configure(ROUND, older.version);
    const node = await cluster.readyNode(NODE_READY, deviceCounts(ROUND), { version: older.version });
    await agent.start();
    const published = agentReport(agent, cluster, node, signal);
    const pid = await pidOf(scene);
    const stage: Stage = { scene, guest, published };
    await holds(`the report is right with kubelet ${older.version}`, () => assertReport(published, start), 180);

    undo(() => lab.run(`${setOnline(1)}; ${setPages(32)}`));
    const reconfigured = async (what: string, round: Round) => {
      const recorded = await nodeOf(guest, round, older.version);
      await guest.configure(round, older.version);
      await follows(stage, what, recorded);
    };
    for (const [what, line, unseen] of OF_KERNEL) {
      await lab.run(line);
      const isReported = async () => assert.match(JSON.stringify((await scene.report()).conditions), unseen);
      await holds(`${what}: the report says that the kubelet has not seen it`, isReported, NOTICED_WITHIN);
      await reconfigured(what, ROUND);
    }
    await reconfigured('reserved CPUs, topology policy and scope are others', OTHER_SETTINGS);
    const recorded = await nodeOf(guest, WITH_DEVICES, own.version);
    await guest.replaceKubelet(own);
    await guest.restart();
    await follows(stage, `kubelet ${own.version} replaces ${older.version}`, recorded);
    await holds('the agent was never started again', async () => assert.equal(await pidOf(scene), pid), 0);
  },
};

interface Stage {
  readonly scene: Scene;
  readonly guest: Guest;
  readonly published: AgentReport;
}

const pidOf = ({ lab }: Scene): Promise<string> => lab.run(`systemctl show -P MainPID ${AGENT_UNIT}`);

async function nodeOf(guest: Guest, round: Round, version: string): Promise<RecordedNode> {
  return { round, version, ...(await guest.hardware()) };
}

/** The report of a new run of the kubelet, and the pods that come next. */
async function follows({ scene, guest, published }: Stage, what: string, recorded: RecordedNode): Promise<void> {
  const { cluster, holds } = scene;
  const { round, version } = recorded;
  const node = await cluster.readyNode(NODE_READY, deviceCounts(round), { version });
  const isRight = () => assertReport(published, recorded);
  await holds(`${what}: the report is that of the kubelet's new run`, isRight, REPORTED_WITHIN);
  const report = await isRight();
  const mismatches: string[] = [];
  const random = createRandom(what.length);
  const clock = createClock();
  const game = { recorded, node, cluster, guest, agent: published, random, pods: PODS, report };
  for await (const outcome of play(game)) {
    console.log(`     ${lineOf(outcome, Number(clock()))}`);
    if (outcome.differences.length > 0) mismatches.push(mismatchOf(outcome));
  }
  await holds(`  the next ${PODS} pods are as predicted`, async () => assert.equal(mismatches.join('\n'), ''), 0);
}

/** @throws AssertionError with the differences between the published report and that of the node without pods */
async function assertReport(published: AgentReport, recorded: RecordedNode): Promise<HostReport> {
  const expected = expectedReport(recorded, emptySnapshot(recorded), new Map());
  assert.deepEqual(await published.current(new Map()), expected);
  return expected;
}
