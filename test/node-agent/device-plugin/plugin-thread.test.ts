import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HostDescription } from '../../../model/host.ts';
import { createPluginThread, pluginProgram } from '../../../node-agent/device-plugin/plugin-thread.ts';
import { keepRunning, untilAborted } from '../../../node-agent/lifecycle/duty.ts';
import { NODES, PODS } from '../../../sandbox/api-server/built-in-types.ts';
import { createSandbox, type Sandbox } from '../../../sandbox/cluster/cluster.ts';
import type { Node, Pod } from '../../../sandbox/objects.ts';
import { eventually, recordingLogger, tempDirectories, testMetrics } from '../support.ts';

const NODE = 'w';
const PHYSNET = 'physnet.plumbline.dev/physnet1';
const HOST: HostDescription = {
  cells: [
    { id: 0, cpus: '0-3' },
    { id: 1, cpus: '4-7' },
  ],
  cores: ['0-1', '2-3', '4-5', '6-7'],
};
const AGENT = join(import.meta.dirname, '../fixtures/blocked-agent.ts');

it('the program of the thread is next to the agent’s program', () => {
  assert.equal(pluginProgram('/x/dist/node-agent.cjs'), '/x/dist/device-plugin-worker.cjs');
  assert.equal(pluginProgram('/x/node-agent/main.ts'), '/x/node-agent/device-plugin/worker-from-source.js');
});

it('a thread that ends fails its duty, which restarts; other duties continue', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-'));
  const program = join(directory, 'ends.mjs');
  writeFileSync(program, 'process.exit(3)');
  const { log, lines } = recordingLogger();
  const stop = new AbortController();
  const thread = createPluginThread({
    program,
    data: async () => ({ kubeletDir: directory, host: HOST, policy: 'enforce', logLevel: 'warn', answerWithin: 1 }),
    advertisement: async () => undefined,
    subscribe: () => () => {},
    beforeStart: async () => undefined,
    log,
    metrics: testMetrics(),
  });
  const failed: string[] = [];
  const observer = { onState: () => {}, onFailure: (duty: string) => void failed.push(duty) };
  const steady = { name: 'steady', run: untilAborted };
  const duties = [{ name: 'device-plugin', run: thread.run }, steady];
  const done = Promise.all(duties.map((duty) => keepRunning(duty, log, observer, stop.signal)));
  await eventually(() => failed.length === 2, 'run twice');
  assert.deepEqual(failed, ['device-plugin', 'device-plugin']);
  assert.match(JSON.stringify(lines), /thread ended with status 3/);
  stop.abort();
  await done;
  rmSync(directory, { recursive: true });
});

it('a thread gets the answer to each request before a container starts, and its outcomes are counted', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-'));
  const program = join(directory, 'asks.mjs');
  writeFileSync(
    program,
    `import { parentPort } from 'node:worker_threads';
    parentPort.on('message', (message) => {
      if (message.kind === 'stop') process.exit(0);
      if (message.kind !== 'answer') return;
      const outcome = message.refusal === 'no' && message.call === 7 ? 'refused' : 'unanswered';
      parentPort.postMessage({ kind: 'pre-start', resource: '${PHYSNET}', outcome });
    });
    const holder = { namespace: 'ns', podName: 'vm', container: 'compute', cpus: '2-3' };
    parentPort.postMessage({ kind: 'before-start', call: 7, resource: '${PHYSNET}', holder });`,
  );
  const metrics = testMetrics();
  const stop = new AbortController();
  const asked: unknown[] = [];
  const done = createPluginThread({
    program,
    data: async () => ({ kubeletDir: directory, host: HOST, policy: 'enforce', logLevel: 'warn', answerWithin: 1 }),
    advertisement: async () => undefined,
    subscribe: () => () => {},
    beforeStart: async (resource, holder) => {
      asked.push([resource, holder?.podName, holder?.cpus.toString()]);
      return 'no';
    },
    log: recordingLogger().log,
    metrics,
  }).run(stop.signal);
  const outcomes = async () =>
    (await metrics.preStarts.get()).values.map(({ labels, value }) => ({ ...labels, value }));
  try {
    await eventually(async () => (await outcomes()).length > 0, 'an outcome is counted');
    assert.deepEqual(asked, [[PHYSNET, 'vm', '2-3']]);
    assert.deepEqual(await outcomes(), [{ resource: PHYSNET, outcome: 'refused', value: 1 }]);
  } finally {
    stop.abort();
    await done;
    rmSync(directory, { recursive: true });
  }
});

it('a thread gets the resources when they change, and again when the kubelet has restarted', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-'));
  const program = join(directory, 'hears.mjs');
  // Answers each list of resources with a registration, whose outcome is the number of resources.
  writeFileSync(
    program,
    `import { parentPort } from 'node:worker_threads';
    let restarts = 0;
    parentPort.on('message', (message) => {
      if (message.kind === 'stop') process.exit(0);
      if (message.kind !== 'resources') return;
      const outcome = String(message.resources.length);
      parentPort.postMessage({ kind: 'registered', resource: '${PHYSNET}', outcome });
      if (message.resources.length === 3 && restarts++ === 0) parentPort.postMessage({ kind: 'kubelet' });
    });`,
  );
  const metrics = testMetrics();
  const stop = new AbortController();
  let changed: (() => void) | undefined;
  let known: number | undefined;
  const { log, lines } = recordingLogger();
  const done = createPluginThread({
    program,
    data: async () => ({ kubeletDir: directory, host: HOST, policy: 'enforce', logLevel: 'warn', answerWithin: 1 }),
    advertisement: async () => {
      if (known === 0) throw new Error('not now');
      return known === undefined ? undefined : { resources: Array(known).fill({}), wholeCoresOnly: false };
    },
    subscribe: (listener) => {
      changed = listener;
      return () => {};
    },
    beforeStart: async () => undefined,
    log,
    metrics,
  }).run(stop.signal);
  const heard = async () =>
    Object.fromEntries((await metrics.registrations.get()).values.map(({ labels, value }) => [labels.outcome, value]));
  const becomes = async (count: number | undefined, expected: object) => {
    known = count;
    changed?.();
    await eventually(async () => JSON.stringify(await heard()) === JSON.stringify(expected), JSON.stringify(expected));
  };
  try {
    await eventually(() => changed !== undefined, 'it runs');
    await becomes(undefined, {});
    await becomes(1, { 1: 1 });
    await becomes(1, { 1: 1 });
    await becomes(0, { 1: 1 });
    await eventually(() => lines.some(({ msg }) => /reading the devices .* failed/.test(String(msg))), 'the warning');
    await becomes(2, { 1: 1, 2: 1 });
    known = 3;
    changed?.();
    await eventually(async () => (await heard())['3'] === 2, 'they are sent again');
  } finally {
    stop.abort();
    await done;
    rmSync(directory, { recursive: true });
  }
});

describe('an agent with a blocked main thread', function () {
  this.timeout(300_000);
  const temp = tempDirectories();
  let sandbox: Sandbox;
  let agent: ChildProcess;

  before(async () => {
    sandbox = createSandbox({ directory: temp(), nodes: [{ name: NODE, host: HOST }] });
    await sandbox.start();
    const args = ['--import', 'tsx', AGENT, sandbox.node(NODE).kubeletDirectory, JSON.stringify(HOST)];
    agent = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    await eventually(() => offered() === '8', 'the device plugin is registered');
  });
  after(async () => {
    agent.kill('SIGKILL');
    await sandbox.stop();
  });

  const offered = () =>
    (sandbox.client.get(NODES, undefined, NODE) as Node | undefined)?.status?.allocatable?.[PHYSNET];
  const podOf = (name: string) => sandbox.client.get(PODS, 'default', name) as Pod | undefined;
  const runs = async (name: string, limits: Record<string, string>): Promise<void> => {
    await sandbox.client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default' },
      spec: { nodeName: NODE, containers: [{ name: 'c', image: 'pause', resources: { limits, requests: limits } }] },
    });
    await eventually(() => podOf(name)?.status?.phase === 'Running', `${name} runs`);
  };

  it('still starts pods with and without a physnet', async () => {
    const release = join(temp(), 'release');
    const said: string[] = [];
    agent.stdout!.setEncoding('utf8').on('data', (text: string) => said.push(text));
    agent.stdin!.write(`block ${release}\n`);
    await eventually(() => said.join('') === 'blocking\n', 'it stands still');
    await runs('unrelated', { cpu: '2', memory: '1Gi' });
    await runs('network', { cpu: '2', memory: '1Gi', [PHYSNET]: '1' });
    assert.equal(said.join(''), 'blocking\n', 'it stands still to the end');
    writeFileSync(release, '');
    await eventually(() => said.join('') === 'blocking\nback\n', 'it continues');
  });
});
