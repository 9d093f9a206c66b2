import assert from 'node:assert/strict';
import { UNHEALTHY } from '../../../kube/kubelet-api/device-plugin-client.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import type { NodeKubeletConfig } from '../../../node-agent/host/kubelet-config.ts';
import { createDevicePluginDuty } from '../../../node-agent/wiring/device-plugin.ts';
import type { AgentParts, HostParts } from '../../../node-agent/wiring/parts.ts';
import { FakeKubelet } from '../kubelet-stand-in.ts';
import { config } from '../report/inputs-fixture.ts';
import {
  eventually,
  twoCells as host,
  recordingLogger,
  set,
  tempDirectories,
  testMetrics,
  turns,
  useDuties,
} from '../support.ts';

const PHYSNET = 'physnet.plumbline.dev/physnet1';
const kubelet = (changes: Partial<NodeKubeletConfig> = {}): NodeKubeletConfig => ({
  ...config,
  cpuManager: { policy: 'static', options: {} },
  maxPods: 7,
  ...changes,
});

describe('the agent’s device plugin duty', () => {
  const temp = tempDirectories();
  const start = useDuties();
  /** The capacity of the Node, if the API server answers. */
  let node: Record<string, string> | undefined;
  let kubeletConfig: NodeKubeletConfig | undefined;
  /** Whether the networks are known. */
  let isComplete: boolean;
  let vacated: string[];
  let vacating: Promise<void>;
  let subscribed: number;
  let changed: () => void;
  let fake: FakeKubelet;
  let metrics: ReturnType<typeof testMetrics>;
  let end: () => Promise<void>;

  beforeEach(() => {
    node = { pods: '9' };
    kubeletConfig = kubelet();
    [isComplete, vacated, vacating, subscribed, changed] = [true, [], Promise.resolve(), 0, () => {}];
  });
  afterEach(() => fake.stop());

  /** Runs the duty with a kubelet whose only pod has a device of the network and these CPUs. */
  const run = async (cpus?: string) => {
    fake = new FakeKubelet(temp());
    metrics = testMetrics();
    if (cpus !== undefined) fake.pods = { 'ns/vm': { compute: cpus } };
    fake.devices = { 'ns/vm': { [PHYSNET]: ['physnet1-0'] } };
    await fake.start();
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
    const duty = createDevicePluginDuty(
      {
        config: { kubeletDir: fake.directory, allocationCheck: 'enforce', nodeName: 'n' },
        client,
        events: { record: () => undefined },
        log: recordingLogger().log,
        metrics,
      } as unknown as AgentParts,
      {
        runs: { read: async () => ({ host }) },
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
        vacate: async (cpus: CpuSet) => {
          vacated.push(cpus.toString());
          await vacating;
        },
        refusals: { add: () => undefined },
        kubeletConfig: async () => ({ config: kubeletConfig, problems: [] }),
      } as unknown as HostParts,
    );
    end = start(duty);
  };
  const plugin = async () => {
    const registration = () => fake.registrations.find(({ resourceName }) => resourceName === PHYSNET);
    await eventually(() => registration() !== undefined, 'registered');
    return fake.plugin(registration()!.endpoint);
  };
  /** Why the container does not start. */
  const refusal = async (): Promise<string | undefined> => {
    const client = await plugin();
    const answer = client.preStartContainer(['physnet1-0']).catch((error: Error) => error.message);
    return answer.then((text) => text ?? undefined).finally(client.close);
  };
  const devices = async () => {
    const client = await plugin();
    for await (const list of client.listAndWatch(new AbortController().signal)) {
      client.close();
      return list;
    }
    return [];
  };

  for (const [what, cpus, expected] of [
    ['the container’s CPUs if they are where its network is', '4-5', ['4-5']],
    ['all owned CPUs if the container is unknown, without a check', undefined, ['2-3']],
  ] as const) {
    it(`vacates ${what}`, async () => {
      await run(cpus);
      assert.equal(await refusal(), undefined);
      assert.deepEqual(vacated, expected);
    });
  }

  it('a container does not start before its CPUs are clear, and not if they cannot be cleared', async () => {
    await run('4-5');
    let fail = (_: Error) => {};
    vacating = new Promise((_, reject) => {
      fail = reject;
    });
    let message: string | undefined;
    const answer = refusal().then((text) => {
      message = text ?? 'started';
    });
    await eventually(() => vacated.length === 1, 'the CPUs are being vacated');
    await turns();
    assert.equal(message, undefined, 'no answer yet');
    fail(new Error('interrupts do not leave CPUs 4-5'));
    await answer;
    assert.match(message ?? '', /interrupts do not leave CPUs 4-5/);
  });

  it('refuses a container on another NUMA node than its network, counts it, and vacates nothing', async () => {
    await run('0-1');
    assert.match((await refusal()) ?? '', /physnet1/);
    assert.deepEqual(vacated, []);
    const [starts] = (await metrics.preStarts.get()).values;
    assert.deepEqual([starts?.labels, starts?.value], [{ resource: PHYSNET, outcome: 'refused' }, 1]);
    const [registration] = (await metrics.registrations.get()).values;
    assert.deepEqual(registration?.labels, { resource: PHYSNET, outcome: 'registered' });
  });

  for (const policy of ['static', 'none']) {
    const refused = policy === 'static';
    it(`${policy} with full-pcpus-only: a container with half a core is ${refused ? 'refused' : 'started'}`, async () => {
      kubeletConfig = kubelet({ cpuManager: { policy, options: { 'full-pcpus-only': 'true' } } });
      await run('5-6');
      assert.equal((await refusal()) !== undefined, refused);
    });
  }

  it('advertises as many devices as the kubelet’s maxPods, or the Node’s, or else the kubelet’s default', async () => {
    const slots = async () => {
      await run();
      const { length } = await devices();
      await end();
      await fake.stop();
      return length;
    };
    assert.equal(await slots(), 7);
    kubeletConfig = undefined;
    assert.equal(await slots(), 9);
    node = undefined;
    assert.equal(await slots(), 110);
  });

  it('advertises nothing until the networks are known, then follows changes until its end', async () => {
    isComplete = false;
    await run();
    await eventually(() => subscribed === 1, 'it follows the networks');
    changed();
    isComplete = true;
    changed();
    const [first] = await devices();
    assert.deepEqual(first?.topology?.nodes, [{ ID: 1 }]);
    assert.equal(first?.health, UNHEALTHY, 'its network has no carrier');
    await end();
    assert.equal(subscribed, 0);
  });
});
