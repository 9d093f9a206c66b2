import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import type { NodeKubeletConfig } from '../../../node-agent/host/kubelet-config.ts';
import { createDevicePluginDuty } from '../../../node-agent/wiring/device-plugin.ts';
import type { AgentParts, HostParts } from '../../../node-agent/wiring/parts.ts';
import { writeRecordedThread } from '../device-plugin/recorded-thread.ts';
import { config } from '../report/inputs-fixture.ts';
import {
  TWO_CELLS as description,
  eventually,
  twoCells as host,
  recordingLogger,
  tempDirectories,
  testMetrics,
} from '../support.ts';

const PHYSNET = 'physnet.plumbline.dev/physnet1';
const set = (text: string) => CpuSet.parse(text);
const kubelet = (changes: Partial<NodeKubeletConfig> = {}): NodeKubeletConfig => ({
  ...config,
  cpuManager: { policy: 'static', options: {} },
  maxPods: 7,
  ...changes,
});

describe('the agent’s device plugin duty', () => {
  const temp = tempDirectories();
  /** The capacity of the Node, if the API server answers. */
  let node: Record<string, string> | undefined;
  let kubeletConfig: NodeKubeletConfig | undefined;
  /** Whether the networks are known. */
  let isComplete: boolean;
  let vacated: string[];
  let subscribed: number;
  let changed: () => void;
  let thread: ReturnType<typeof writeRecordedThread>;
  let ended: () => Promise<void>;

  beforeEach(() => {
    node = { pods: '9' };
    kubeletConfig = kubelet();
    isComplete = true;
    vacated = [];
    subscribed = 0;
    changed = () => {};
    ended = async () => {};
  });
  afterEach(async () => {
    await ended();
  });

  /** Runs the duty with a thread that records what it is sent, and asks about the start of a container. */
  const run = (start?: { resource: string; holder?: object }, { ovs = true } = {}) => {
    const directory = temp();
    const message = JSON.stringify({ kind: 'before-start', call: 1, ...start });
    thread = writeRecordedThread(directory, start && `parentPort.postMessage(${message});`);
    const client = {
      get: async (path: string) => {
        if (path.includes('/pods/')) return { metadata: { name: 'vm', namespace: 'ns', uid: 'u' }, spec: {} };
        if (node === undefined) throw new Error('away');
        return { metadata: { name: 'n', uid: 'u' }, status: { capacity: node } };
      },
    };
    const source = {
      subscribe: (listener: () => void) => {
        subscribed++;
        changed = listener;
        return () => void subscribed--;
      },
    };
    const stop = new AbortController();
    const done = createDevicePluginDuty(
      {
        config: { kubeletDir: directory, allocationCheck: 'enforce', logLevel: 'warn', nodeName: 'n' },
        client,
        events: { record: () => undefined },
        pluginProgram: thread.program,
        log: recordingLogger().log,
        metrics: testMetrics(),
      } as unknown as AgentParts,
      {
        facts: { read: async () => ({ host, description }) },
        assignments: { ...source, view: () => ({ reserved: CpuSet.EMPTY, owned: set('2-3') }) },
        networks: {
          ...source,
          get isComplete() {
            return isComplete;
          },
          view: () => ({
            networks: { physnets: new Map([['physnet1', set('1')]]), tunnel: undefined },
            down: new Set(['physnet1']),
            pmdCpus: CpuSet.EMPTY,
          }),
        },
        ovs: ovs
          ? { vacate: async (cpus: CpuSet) => void vacated.push(cpus.toString()), pmdCpus: () => CpuSet.EMPTY }
          : undefined,
        refusals: { add: () => undefined },
        kubeletConfig: async () => ({ config: kubeletConfig, problems: [] }),
      } as unknown as HostParts,
    ).run(stop.signal);
    ended = async () => {
      stop.abort();
      await done;
    };
  };
  const sent = (kind: string) => thread.sent().filter((message) => message.kind === kind);
  const answer = async () => {
    await eventually(() => sent('answer').length === 1, 'an answer');
    return sent('answer')[0]?.refusal;
  };
  const advertised = async (times = 1) => {
    await eventually(() => sent('resources').length === times, `${times} advertisements`);
    const { resources = [], wholeCoresOnly } = sent('resources')[times - 1]!;
    return { wholeCoresOnly, of: (name: string) => resources.find((one) => one.name === name) };
  };
  const holder = (cpus: string) => ({ namespace: 'ns', podName: 'vm', container: 'compute', cpus });

  it('vacates the container’s CPUs if they are where its network is', async () => {
    run({ resource: PHYSNET, holder: holder('4-5') });
    assert.equal(await answer(), undefined);
    assert.deepEqual(vacated, ['4-5']);
  });

  it('refuses a container on another NUMA node than its network, and vacates nothing', async () => {
    run({ resource: PHYSNET, holder: holder('0-1') });
    assert.match((await answer()) ?? '', /physnet1/);
    assert.deepEqual(vacated, []);
  });

  it('vacates all owned CPUs if the container is unknown, without a check', async () => {
    run({ resource: PHYSNET });
    assert.equal(await answer(), undefined);
    assert.deepEqual(vacated, ['2-3']);
  });

  it('vacates nothing without an Open vSwitch', async () => {
    run({ resource: PHYSNET, holder: holder('4-5') }, { ovs: false });
    assert.equal(await answer(), undefined);
    assert.deepEqual(vacated, []);
  });

  const policies: [string, Partial<NodeKubeletConfig>, boolean][] = [
    ['static with full-pcpus-only', { cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } } }, true],
    ['none', { cpuManager: { policy: 'none', options: { 'full-pcpus-only': 'true' } } }, false],
  ];
  for (const [name, changes, whole] of policies) {
    it(`under the policy ${name}, a container with half a core is ${whole ? 'refused' : 'started'}`, async () => {
      kubeletConfig = kubelet(changes);
      run({ resource: PHYSNET, holder: holder('5-6') });
      assert.equal((await answer()) !== undefined, whole);
      assert.equal((await advertised()).wholeCoresOnly, whole);
    });
  }

  it('advertises as many devices as the kubelet’s maxPods, or the Node’s, or else the kubelet’s default', async () => {
    const slots = async () => {
      run();
      const { of } = await advertised();
      await ended();
      return of(PHYSNET)?.slots;
    };
    assert.equal(await slots(), 7);
    kubeletConfig = undefined;
    assert.equal(await slots(), 9);
    node = undefined;
    assert.equal(await slots(), 110);
  });

  it('devices of a network without a carrier are unhealthy', async () => {
    run();
    assert.equal((await advertised()).of(PHYSNET)?.healthy, false);
  });

  it('advertises nothing until the networks are known, then follows changes until its end', async () => {
    isComplete = false;
    run();
    await eventually(() => subscribed === 1, 'it follows the networks');
    changed();
    isComplete = true;
    changed();
    assert.equal((await advertised()).of(PHYSNET)?.cells.join(), '1');
    await ended();
    assert.equal(subscribed, 0);
  });
});
