import assert from 'node:assert/strict';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { KubeletApiError } from '../../kube/kubelet-api/errors.ts';
import type { Device } from '../../kube/kubelet-api/gen/device-plugin.ts';
import { PodResources } from '../../kube/kubelet-api/gen/pod-resources.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { cpusOfDevices, createBeforeStart } from '../../node-agent/device-plugin/before-start.ts';
import { createDevicePlugin } from '../../node-agent/device-plugin/device-plugin.ts';
import type { BeforeStart } from '../../node-agent/device-plugin/plugin-server.ts';
import { advertisedResources } from '../../node-agent/device-plugin/resources.ts';
import { silent } from '../support/logger.ts';
import { createFakeKubelet, type FakeKubelet } from './fake-kubelet.ts';
import { eventually, tempDirectories, testMetrics } from './support.ts';

const resources = advertisedResources({ physnets: [{ name: 'physnet1', cells: [1] }], tunnel: { cells: [0, 1] } }, 4);
const NAMES = ['physnet.plumbline.dev/physnet1', 'plumbline.dev/tunnel', 'plumbline.dev/placed'];

let kubelet: FakeKubelet;
let stop: AbortController;
let done: Promise<void>;
let beforeStart: BeforeStart;

/** A kubelet that does not run yet, and a device plugin that does. */
function setUp(): void {
  const temp = tempDirectories();
  beforeEach(() => {
    kubelet = createFakeKubelet(temp());
    stop = new AbortController();
    beforeStart = async () => {};
    const plugin = createDevicePlugin({
      kubeletDir: kubelet.directory,
      resources,
      beforeStart: (...args) => beforeStart(...args),
      log: silent,
      metrics: testMetrics(),
    });
    done = plugin.run(stop.signal);
  });
  afterEach(async () => {
    stop.abort();
    await done;
    await kubelet.stop();
  });
}

const registered = (times = 1) =>
  eventually(() => kubelet.registrations.length === NAMES.length * times, `${times} rounds of registration`);
const pluginOf = (name: string) =>
  kubelet.plugin(kubelet.registrations.findLast(({ resourceName }) => resourceName === name)!.endpoint);

describe('device plugin and a kubelet', () => {
  setUp();

  it('registers each resource; physnets and tunnel ask for PreStartContainer', async () => {
    await kubelet.start();
    await registered();
    assert.deepEqual(
      kubelet.registrations.map(({ version, resourceName, options }) => [
        version,
        resourceName,
        options?.preStartRequired,
      ]),
      [
        ['v1beta1', NAMES[0], true],
        ['v1beta1', NAMES[1], true],
        ['v1beta1', NAMES[2], false],
      ],
    );
    const plugin = pluginOf(NAMES[0]!);
    assert.deepEqual(await plugin.options(), { preStartRequired: true, getPreferredAllocationAvailable: false });
    plugin.close();
  });

  it('lists its devices with their NUMA nodes, and keeps the stream open', async () => {
    await kubelet.start();
    await registered();
    const plugin = pluginOf(NAMES[0]!);
    const watching = new AbortController();
    const lists: (readonly Device[])[] = [];
    const watch = (async () => {
      for await (const devices of plugin.listAndWatch(watching.signal)) lists.push(devices);
    })();
    await eventually(() => lists.length === 1, 'the list');
    assert.deepEqual(
      lists[0]?.map(({ ID, health, topology }) => [ID, health, topology?.nodes.map((node) => node.ID)]),
      [0, 1, 2, 3].map((i) => [`physnet1-${i}`, 'Healthy', [1]]),
    );
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(lists.length, 1);
    watching.abort();
    await watch;
    plugin.close();
  });

  it('Allocate answers for each container and gives nothing to mount; unknown devices are refused', async () => {
    await kubelet.start();
    await registered();
    const plugin = pluginOf(NAMES[1]!);
    const answers = await plugin.allocate([['tunnel-0'], ['tunnel-1']]);
    assert.equal(answers.length, 2);
    assert.deepEqual(answers[0]?.devices, []);
    await assert.rejects(plugin.allocate([['tunnel-99']]), /no device tunnel-99/);
    plugin.close();
  });

  it('Allocate is not held up by a container that waits for its start', async () => {
    beforeStart = () => new Promise(() => {});
    await kubelet.start();
    await registered();
    const plugin = pluginOf(NAMES[1]!);
    const waiting = plugin
      .preStartContainer(['tunnel-0'], { deadlineSeconds: 1 })
      .catch((error: KubeletApiError) => error.code);
    await plugin.allocate([['tunnel-1']], { deadlineSeconds: 5 });
    assert.equal(await waiting, 'deadline');
    plugin.close();
  });
});

describe('device plugin over time', () => {
  setUp();

  it('PreStartContainer waits for the hook; its refusal reaches the kubelet as text', async () => {
    const asked: unknown[] = [];
    beforeStart = async (resource, ids) => {
      asked.push([resource, ids]);
    };
    await kubelet.start();
    await registered();
    const plugin = pluginOf(NAMES[0]!);
    await plugin.preStartContainer(['physnet1-3']);
    assert.deepEqual(asked, [[NAMES[0], ['physnet1-3']]]);
    beforeStart = () => Promise.reject(new Error('CPUs 2-3 are not where physnet1 is'));
    await assert.rejects(plugin.preStartContainer(['physnet1-3']), (error) => {
      return error instanceof KubeletApiError && error.code === 'refused' && /CPUs 2-3 are not/.test(error.message);
    });
    plugin.close();
  });

  it('a kubelet that comes later, and one that restarts and clears the directory', async () => {
    await new Promise((resolve) => setTimeout(resolve, 100));
    await kubelet.start();
    await registered(1);
    await kubelet.stop();
    const directory = join(kubelet.directory, 'device-plugins');
    for (const name of readdirSync(directory)) rmSync(join(directory, name));
    await kubelet.start();
    await registered(2);
    const plugin = pluginOf(NAMES[2]!);
    assert.equal((await plugin.allocate([['placed-0']])).length, 1);
    plugin.close();
  });

  it('stopping removes the sockets', async () => {
    await kubelet.start();
    await registered();
    stop.abort();
    await done;
    assert.deepEqual(readdirSync(join(kubelet.directory, 'device-plugins')), ['kubelet.sock']);
  });
});

describe('before a container with our devices starts', () => {
  const pods = [
    PodResources.fromPartial({
      name: 'other',
      containers: [
        { name: 'c', cpuIds: [8], devices: [{ resourceName: 'plumbline.dev/tunnel', deviceIds: ['tunnel-1'] }] },
      ],
    }),
    PodResources.fromPartial({
      name: 'vm',
      containers: [
        { name: 'sidecar', cpuIds: [] },
        {
          name: 'compute',
          cpuIds: [3, 2],
          devices: [
            { resourceName: 'physnet.plumbline.dev/a', deviceIds: ['a-0'] },
            { resourceName: 'plumbline.dev/tunnel', deviceIds: ['tunnel-0'] },
          ],
        },
      ],
    }),
  ];

  const lookups: [string, string, string[], string | undefined][] = [
    ['by the device', 'plumbline.dev/tunnel', ['tunnel-0'], '2-3'],
    ['of that resource', 'physnet.plumbline.dev/a', ['tunnel-0'], undefined],
    ['nobody holds it', 'plumbline.dev/tunnel', ['tunnel-7'], undefined],
  ];
  for (const [name, resource, ids, expected] of lookups) {
    it(`finds the container’s CPUs: ${name}`, () =>
      assert.equal(cpusOfDevices(pods, resource, ids)?.toString(), expected));
  }

  const outcomes: [string, () => Promise<PodResources[]>, string][] = [
    ['vacates the container’s CPUs', async () => pods, '2-3'],
    ['vacates all owned CPUs when the container is not listed', async () => [], '2-5'],
    ['and when the kubelet does not answer', () => Promise.reject(new Error('down')), '2-5'],
  ];
  for (const [name, list, expected] of outcomes) {
    it(name, async () => {
      const vacated: string[] = [];
      const hook = createBeforeStart({
        podResources: { list },
        owned: () => CpuSet.parse('2-5'),
        vacate: async (cpus) => void vacated.push(cpus.toString()),
      });
      await hook('plumbline.dev/tunnel', ['tunnel-0'], new AbortController().signal);
      assert.deepEqual(vacated, [expected]);
    });
  }
});
