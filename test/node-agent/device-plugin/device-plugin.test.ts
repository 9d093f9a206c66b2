import assert from 'node:assert/strict';
import { setMaxListeners } from 'node:events';
import { readdirSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { KubeletApiError } from '../../../kube/kubelet-api/transport.ts';
import type { CpuSet } from '../../../model/cpu-set.ts';
import { DevicePlugin } from '../../../node-agent/device-plugin/device-plugin.ts';
import type { BeforeStart } from '../../../node-agent/device-plugin/plugin-server.ts';
import { advertisedResources, devicesOf, slotOf, socketName } from '../../../node-agent/device-plugin/plugin-server.ts';
import { FakeKubelet } from '../kubelet-stand-in.ts';
import { eventually, recordingLogger, replaceFile, set, tempDirectories, useDuties } from '../support.ts';

const networks = { physnets: new Map([['physnet1', set('1')]]), tunnel: set('0-1') };
const resources = advertisedResources(networks, 4);
const NAMES = ['physnet.plumbline.dev/physnet1', 'plumbline.dev/tunnel', 'plumbline.dev/placed'];

let kubelet: FakeKubelet;
let stop: () => Promise<void>;
let beforeStart: BeforeStart;
let plugin: DevicePlugin;
let logged: ReturnType<typeof recordingLogger>;
let outcomes: string[];

function createPlugin(): DevicePlugin {
  const created = new DevicePlugin({
    kubeletDir: kubelet.directory,
    beforeStart: (...args) => beforeStart(...args),
    log: logged.log,
    onRegistration: (resource, outcome) => outcomes.push(`${resource} ${outcome}`),
  });
  created.advertise(resources);
  return created;
}

/** Starts a device plugin; the kubelet does not run yet. */
function setUp() {
  const temp = tempDirectories();
  const start = useDuties();
  beforeEach(() => {
    logged = recordingLogger();
    outcomes = [];
    kubelet = new FakeKubelet(temp());
    beforeStart = async () => {};
    plugin = createPlugin();
    stop = start(plugin);
  });
  afterEach(() => kubelet.stop());
  return start;
}

const registered = (times = 1) =>
  eventually(() => kubelet.registrations.length === NAMES.length * times, `${times} rounds of registration`);
const pluginOf = (name: string) =>
  kubelet.plugin(kubelet.registrations.findLast(({ resourceName }) => resourceName === name)!.endpoint);

describe('device plugin with a kubelet', () => {
  setUp();

  it('registers each resource; physnets and the tunnel require PreStartContainer', async () => {
    await kubelet.start();
    await registered();
    const texts = kubelet.registrations.map(({ version, resourceName, options }) => {
      return `${version} ${resourceName} ${options?.preStartRequired}`;
    });
    assert.deepEqual(texts, [`v1beta1 ${NAMES[0]} true`, `v1beta1 ${NAMES[1]} true`, `v1beta1 ${NAMES[2]} false`]);
    const counted = NAMES.map((name) => `${name} registered`);
    await eventually(() => outcomes.join() === counted.join(), 'each is counted');
    const plugin = pluginOf(NAMES[0]!);
    assert.deepEqual(await plugin.options(), { preStartRequired: true, getPreferredAllocationAvailable: false });
    plugin.close();
  });

  it('refuses requests of thousands of devices, long names and too many watchers, with short messages', async () => {
    await kubelet.start();
    await registered();
    const plugin = pluginOf(NAMES[0]!);
    let calls = 0;
    beforeStart = async () => void calls++;
    const many = Array.from({ length: 2000 }, (_, i) => `physnet1-${i}`);
    const isShort = (says: RegExp) => (error: unknown) =>
      error instanceof KubeletApiError && says.test(error.message) && error.message.length < 400;
    await assert.rejects(plugin.preStartContainer(many), isShort(/2000 devices in one request; the limit is 1024/));
    await assert.rejects(plugin.allocate([many]), isShort(/2000 devices in one request/));
    await assert.rejects(plugin.allocate([['x'.repeat(5000)]]), isShort(/has no device "x{80}"…/));
    assert.equal(calls, 0);

    const watching = new AbortController();
    setMaxListeners(0, watching.signal);
    const outcomes = { lists: 0, refused: 0 };
    const watch = async () => {
      try {
        for await (const _devices of plugin.listAndWatch(watching.signal)) outcomes.lists++;
      } catch {
        outcomes.refused++;
      }
    };
    const watches = Array.from({ length: 20 }, watch);
    await eventually(() => outcomes.lists === 16 && outcomes.refused === 4, 'sixteen watch, the others are refused');
    watching.abort();
    await Promise.all(watches);
    plugin.close();
  });
});

describe('device plugin over time', () => {
  const start = setUp();

  it('registers with a kubelet that starts later, and again after a restart that clears the directory', async () => {
    await eventually(() => logged.said('waiting for the kubelet'), 'it waits');
    await kubelet.start();
    await registered(1);
    await kubelet.stop();
    const directory = join(kubelet.directory, 'device-plugins');
    for (const name of readdirSync(directory)) rmSync(join(directory, name));
    await kubelet.start();
    await registered(2);
    const plugin = pluginOf(NAMES[2]!);
    const answers = await plugin.allocate([['placed-0'], ['placed-1']]);
    assert.deepEqual([answers.length, answers[0]?.devices], [2, []]);
    plugin.close();
  });

  it('reports a failed uplink and a removed network on the open stream, and registers a new network', async () => {
    await kubelet.start();
    await registered();
    const tunnel = pluginOf(NAMES[1]!);
    const watching = new AbortController();
    const health: string[] = [];
    const lists: unknown[] = [];
    const watch = (async () => {
      for await (const devices of tunnel.listAndWatch(watching.signal)) {
        lists.push(devices.map(({ ID, topology }) => [ID, topology?.nodes.map((node) => node.ID)]));
        health.push(devices[0]?.health ?? 'none');
      }
    })();
    await eventually(() => health.length === 1, 'the first list');
    const all = [0, 1, 2, 3].map((i) => [`tunnel-${i}`, [0, 1]]);
    assert.deepEqual(lists[0], all);
    const changed = { physnets: new Map([['physnet2', set('0')]]), tunnel: set('0-1') };
    plugin.advertise(advertisedResources(changed, 4, new Set([undefined])));
    await eventually(() => health.length === 2, 'the second');
    assert.deepEqual(health, ['Healthy', 'Unhealthy']);
    await eventually(() => kubelet.registrations.length === NAMES.length + 1, 'the new one is registered');
    assert.equal(kubelet.registrations.at(-1)?.resourceName, 'physnet.plumbline.dev/physnet2');
    const sockets = readdirSync(join(kubelet.directory, 'device-plugins'));
    assert.ok(!sockets.includes('plumbline-physnet-physnet1.sock'), sockets.join());
    watching.abort();
    await watch;
    tunnel.close();
  });

  it('hands its socket and devices over to the next plugin, also if it ends while a pod is admitted', async () => {
    await kubelet.start();
    await registered();
    const before = pluginOf(NAMES[0]!);
    let calls = 0;
    beforeStart = () => {
      calls++;
      return new Promise(() => {});
    };
    const starting = before.preStartContainer(['physnet1-2']).catch((error: KubeletApiError) => error.code);
    await eventually(() => calls === 1, 'the start waits');
    await stop();
    assert.notEqual(await starting, undefined, 'the kubelet gets the change, and asks again');
    before.close();
    beforeStart = async () => {};
    start(createPlugin());
    await registered(2);
    const after = pluginOf(NAMES[0]!);
    assert.equal((await after.allocate([['physnet1-2']])).length, 1);
    await after.preStartContainer(['physnet1-2']);
    after.close();
  });

  const socketOf = (i: number) => join(kubelet.directory, 'device-plugins', kubelet.registrations[i]!.endpoint);
  const inodes = () => NAMES.map((_, i) => statSync(socketOf(i)).ino);
  const endWatch = async () => {
    const watching = new AbortController();
    const client = pluginOf(NAMES[0]!);
    for await (const _devices of client.listAndWatch(watching.signal)) watching.abort();
    client.close();
  };
  const losses: [what: string, why: string, act: () => unknown][] = [
    ['its socket is replaced', 'its socket was removed or replaced', () => replaceFile(socketOf(0), '')],
    ['the kubelet ends its watch', 'the kubelet ended its watch', endWatch],
  ];
  for (const [what, why, act] of losses) {
    it(`registers a resource again within five seconds when ${what}, and leaves the others as they are`, async () => {
      await kubelet.start();
      await registered();
      const before = inodes();
      const begun = performance.now();
      await act();
      await eventually(() => kubelet.registrations.length === NAMES.length + 1, 'registered again');
      assert.ok(performance.now() - begun < 5000);
      assert.equal(kubelet.registrations.at(-1)?.resourceName, NAMES[0]);
      assert.deepEqual(inodes().slice(1), before.slice(1));
      const next = pluginOf(NAMES[0]!);
      assert.equal((await next.allocate([['physnet1-0']])).length, 1);
      next.close();
      const { resources } = logged.lines.find(({ msg }) => msg === 'registration lost; registering again') ?? {};
      assert.deepEqual(resources, { [NAMES[0]!]: why });
    });
  }

  it('keeps its sockets while it is unknown which kubelet runs, says why, and continues', async () => {
    await kubelet.start();
    await registered();
    const before = inodes();
    const socket = join(kubelet.directory, 'device-plugins/kubelet.sock');
    renameSync(socket, `${socket}.away`);
    symlinkSync(socket, socket);
    const saysWhy = () => logged.lines.some(({ reason }) => /ELOOP.*kubelet\.sock/.test(String(reason)));
    await eventually(saysWhy, 'it says why');
    assert.deepEqual(inodes(), before);
    renameSync(`${socket}.away`, socket);
    await eventually(() => logged.said('recovered'), 'recovered');
    assert.deepEqual([inodes(), kubelet.registrations.length], [before, NAMES.length], 'the same kubelet');
  });

  it('tries again after a failed registration, which it counts and logs', async () => {
    const server = createServer((socket) => socket.destroy());
    const socket = join(kubelet.directory, 'device-plugins/kubelet.sock');
    server.listen(socket);
    await eventually(() => outcomes.length >= 2, 'two attempts');
    assert.deepEqual([...new Set(outcomes)], [`${NAMES[0]} failed`]);
    assert.ok(logged.said('registering the device plugin failed; retrying'));
    server.close();
    rmSync(socket, { force: true });
    const isAbsent = () => /does not exist/.test(String(logged.lines.at(-1)?.['reason']));
    await eventually(isAbsent, 'it waits for the kubelet, which is no recovery');
    assert.equal(logged.said('recovered'), false);
    await kubelet.start();
    await registered();
    await eventually(() => logged.said('recovered'), 'recovered');
  });
});

const PHYSNET = 'physnet.plumbline.dev/a';

describe('the resources of a node', () => {
  it('are its physnets, its tunnel if it has one, and the one that opts pods into placement', () => {
    const physnets = new Map(Object.entries({ a: set('1'), b: set('') }));
    const displayed = (tunnel: CpuSet | undefined, down?: Set<string | undefined>) =>
      advertisedResources({ physnets, tunnel }, 3, down).map(
        ({ name, cells, slots, preStart, healthy }) => `${name} ${cells} ${slots} ${preStart} ${healthy}`,
      );
    const placed = 'plumbline.dev/placed  3 false true';
    assert.deepEqual(displayed(set('0-1')), [
      `${PHYSNET} 1 3 true true`,
      'physnet.plumbline.dev/b  3 true true',
      'plumbline.dev/tunnel 0,1 3 true true',
      placed,
    ]);
    assert.equal(displayed(undefined).length, 3);
    const down = displayed(set('0'), new Set(['b', undefined])).filter((text) => text.endsWith('false'));
    assert.deepEqual(down, ['physnet.plumbline.dev/b  3 true false', 'plumbline.dev/tunnel 0 3 true false']);
  });

  it('have at most 10,000 slots', () =>
    assert.equal(advertisedResources({ physnets: new Map(), tunnel: undefined }, 10_001)[0]?.slots, 10_000));

  it('have equal devices on their NUMA nodes, with ids that name the resource', () => {
    const resource = { name: PHYSNET, cells: [0, 1], slots: 2, preStart: true, healthy: false };
    const topology = { nodes: [{ ID: 0 }, { ID: 1 }] };
    assert.deepEqual(devicesOf(resource)[1], { ID: 'a-1', health: 'Unhealthy', topology });
    assert.deepEqual(devicesOf({ ...resource, cells: [], slots: 1, healthy: true }), [
      { ID: 'a-0', health: 'Healthy', topology: undefined },
    ]);
  });

  it('find the index of their own devices only', () => {
    assert.deepEqual([slotOf(PHYSNET, 'a-0'), slotOf(PHYSNET, 'a-12')], [0, 12]);
    for (const id of ['a-1000000000', 'a-01', 'a-1x', 'b-1']) assert.equal(slotOf(PHYSNET, id), undefined, id);
  });

  it('have short socket names that differ', () => {
    assert.equal(socketName('plumbline.dev/tunnel'), 'plumbline-tunnel.sock');
    assert.equal(socketName('physnet.plumbline.dev/a'), 'plumbline-physnet-a.sock');
    const fits = 'x'.repeat(32);
    assert.equal(socketName(`physnet.plumbline.dev/${fits}`), `plumbline-physnet-${fits}.sock`);
    const [first, other] = ['1', '2'].map((end) => socketName(`physnet.plumbline.dev/${fits}${end}`));
    assert.notEqual(first, other);
    for (const name of [first, other]) {
      assert.ok((name?.length ?? 0) <= 'plumbline-.sock'.length + 40 && !name?.includes('xxx'), name);
    }
  });
});
