import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Advertisement,
  createPluginThread,
  type PluginThreadDeps,
  pluginProgram,
} from '../../../node-agent/device-plugin/plugin-thread.ts';
import { NODES, PODS } from '../../../sandbox/api-server/built-in-types.ts';
import { createSandbox } from '../../../sandbox/cluster/cluster.ts';
import type { KubeNode, KubePod } from '../../../sandbox/objects.ts';
import { eventually, TWO_CELLS as HOST, recordingLogger, tempDirectories, testMetrics } from '../support.ts';
import { writeRecordedThread } from './recorded-thread.ts';

type Sandbox = ReturnType<typeof createSandbox>;

const NODE = 'w';
const PHYSNET = 'physnet.plumbline.dev/physnet1';
const AGENT = join(import.meta.dirname, '../fixtures/blocked-agent.ts');

it('the program of the thread is next to the agent’s program', () => {
  assert.equal(pluginProgram('/x/dist/node-agent.cjs'), '/x/dist/device-plugin-worker.cjs');
  assert.equal(pluginProgram('/x/node-agent/main.ts'), '/x/node-agent/device-plugin/worker-from-source.js');
});

const temp = tempDirectories();

/** The main thread's side of a thread that records what it is sent and does this at its start. */
function threadOf(script: string, changes: Partial<PluginThreadDeps> = {}) {
  const directory = temp();
  const { program, sent } = writeRecordedThread(directory, script);
  const metrics = testMetrics();
  const logged = recordingLogger();
  const { run } = createPluginThread({
    program,
    data: async () => ({ kubeletDir: directory, host: HOST, policy: 'enforce', logLevel: 'warn', answerWithin: 1 }),
    advertisement: async () => undefined,
    subscribe: () => () => {},
    beforeStart: async () => undefined,
    log: logged.log,
    metrics,
    ...changes,
  });
  return { run, metrics, logged, sent };
}

it('a thread that ends fails its duty', async () => {
  const thread = threadOf('process.exit(3)');
  await assert.rejects(thread.run(new AbortController().signal), /thread ended with status 3/);
});

it('a thread gets the answer to each request before a container starts, and its outcomes are counted', async () => {
  const calls: unknown[] = [];
  const thread = threadOf(
    `parentPort.on('message', (message) => {
      if (message.kind !== 'answer') return;
      const outcome = message.refusal === 'no' && message.call === 7 ? 'refused' : 'unanswered';
      parentPort.postMessage({ kind: 'pre-start', resource: '${PHYSNET}', outcome });
    });
    const holder = { namespace: 'ns', podName: 'vm', container: 'compute', cpus: '2-3' };
    parentPort.postMessage({ kind: 'before-start', call: 7, resource: '${PHYSNET}', holder });`,
    {
      beforeStart: async (resource, holder) => {
        calls.push([resource, holder?.podName, holder?.cpus.toString()]);
        return 'no';
      },
    },
  );
  const stop = new AbortController();
  const done = thread.run(stop.signal);
  const outcomes = async () =>
    (await thread.metrics.preStarts.get()).values.map(({ labels, value }) => ({ ...labels, value }));
  try {
    await eventually(async () => (await outcomes()).length > 0, 'an outcome is counted');
    assert.deepEqual(calls, [[PHYSNET, 'vm', '2-3']]);
    assert.deepEqual(await outcomes(), [{ resource: PHYSNET, outcome: 'refused', value: 1 }]);
  } finally {
    stop.abort();
    await done;
  }
});

/**
 * The main thread's side with a thread that records what it is sent. It answers each advertisement with a registration.
 */
function recordedThread(advertisement: (signal: AbortSignal) => Promise<Advertisement | undefined>) {
  let changed = () => {};
  let isFollowing = false;
  const { run, metrics, logged, sent } = threadOf(
    `parentPort.on('message', (message) => {
      const [{ slots } = {}] = message.resources;
      const outcome = slots === 0 ? 'failed' : 'registered';
      parentPort.postMessage({ kind: 'registered', resource: '${PHYSNET}', outcome });
    });`,
    {
      advertisement,
      subscribe: (listener) => {
        changed = listener;
        isFollowing = true;
        return () => {
          isFollowing = false;
        };
      },
    },
  );
  const stop = new AbortController();
  const done = run(stop.signal);
  return {
    metrics,
    logged,
    changed: () => changed(),
    isFollowing: () => isFollowing,
    /** The slots of each advertisement that the thread got, and `stop`. */
    got: () => sent().map(({ kind, resources }) => resources?.[0]?.slots ?? kind),
    async end() {
      stop.abort();
      await done;
    },
  };
}

const advertised = (slots: number): Advertisement => ({
  resources: [{ name: PHYSNET, cells: [1], slots, preStart: true, healthy: true }],
  wholeCoresOnly: false,
});

it('a thread gets each changed advertisement once, and its registrations are counted', async () => {
  let slots: number | undefined;
  let reads = 0;
  const thread = recordedThread(async () => {
    reads++;
    return slots === undefined ? undefined : advertised(slots);
  });
  try {
    await eventually(() => reads > 0, 'asked at the start');
    const change = async (to: number | undefined) => {
      const before = reads;
      slots = to;
      thread.changed();
      await eventually(() => reads > before, 'read again');
    };
    await change(undefined);
    await change(0);
    await change(0);
    await change(undefined);
    await change(1);
    await eventually(() => thread.got().length === 2, `the second: ${thread.got()}`);
    await change(2);
    await eventually(() => thread.got().includes(2), 'the last');
    assert.deepEqual(thread.got(), [0, 1, 2]);
    const counted = async () =>
      (await thread.metrics.registrations.get()).values.map(({ labels, value }) => `${labels.outcome} ${value}`).join();
    await eventually(async () => (await counted()) === 'failed 1,registered 2', 'its registrations are counted');
    assert.deepEqual((await thread.metrics.preStarts.get()).values, []);
    assert.equal(thread.isFollowing(), true);
    await thread.end();
    assert.deepEqual(thread.got(), [0, 1, 2, 'stop']);
    assert.equal(thread.isFollowing(), false);
  } finally {
    await thread.end();
  }
});

it('a read that a later one has overtaken is not advertised, and a failed read is logged', async () => {
  const answers: ((answer: Advertisement | Promise<never>) => void)[] = [];
  const thread = recordedThread(() => new Promise((resolve) => answers.push(resolve)));
  try {
    await eventually(() => answers.length === 1, 'asked at the start');
    thread.changed();
    thread.changed();
    assert.equal(answers.length, 3);
    answers[1]?.(advertised(3));
    await eventually(() => thread.got().length === 1, 'the second answer');
    answers[0]?.(advertised(2));
    answers[2]?.(Promise.reject(new Error('away')));
    thread.changed();
    answers[3]?.(advertised(4));
    await eventually(() => thread.got().includes(4), 'the fourth answer');
    assert.deepEqual(thread.got(), [3, 4]);
    assert.deepEqual(
      thread.logged.lines.map(({ level, msg }) => [level, msg]),
      [[40, 'reading the devices to advertise failed; keeping the last ones']],
    );
  } finally {
    await thread.end();
  }
});

describe('an agent with a blocked main thread', function () {
  this.timeout(300_000);
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
    (sandbox.client.get(NODES, undefined, NODE) as KubeNode | undefined)?.status?.allocatable?.[PHYSNET];
  const podOf = (name: string) => sandbox.client.get(PODS, 'default', name) as KubePod | undefined;
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
    const outcomes: string[] = [];
    agent.stdout!.setEncoding('utf8').on('data', (text: string) => outcomes.push(text));
    agent.stdin!.write(`block ${release}\n`);
    await eventually(() => outcomes.join('') === 'blocking\n', 'it stands still');
    await runs('unrelated', { cpu: '2', memory: '1Gi' });
    await runs('network', { cpu: '2', memory: '1Gi', [PHYSNET]: '1' });
    assert.equal(outcomes.join(''), 'blocking\n', 'it stands still to the end');
    writeFileSync(release, '');
    await eventually(() => outcomes.join('') === 'blocking\nback\n', 'it continues');
  });
});
