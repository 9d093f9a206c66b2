import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createPodResourcesClient } from '../../kube/kubelet-api/pod-resources-client.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { createHost } from '../../model/host.ts';
import { EVENTS, NETWORK_ATTACHMENT_DEFINITIONS, NODES, PODS } from '../../sandbox/api-server/built-in-types.ts';
import { EmulatedKubelet } from '../../sandbox/kubelet/kubelet.ts';
import type { JsonRecord, KubePod } from '../../sandbox/objects.ts';
import { tempDirectories } from '../support/files.ts';
import { until } from '../support/until.ts';
import { startPlugin, stopPlugins } from './plugin-fixture.ts';
import { definitionOf, podOf, TWO_NODES, useApiServer } from './support.ts';

const PHYSNET = 'physnet.plumbline.dev/physnet1';
type PodResources = ReturnType<typeof createPodResourcesClient>;

function useKubelet(isReady?: (pod: KubePod) => boolean) {
  const suite = useApiServer();
  const temp = tempDirectories();
  let directory: string;
  let kubelet: EmulatedKubelet;
  const faults: unknown[] = [];
  const start = async () => {
    kubelet = new EmulatedKubelet({
      name: 'n1',
      directory,
      client: suite.client,
      retrySeconds: 0.05,
      isReady,
      onFault: (error) => faults.push(error),
      settings: {
        version: 'v1.36.0',
        host: createHost(TWO_NODES),
        reserved: CpuSet.parse('0,8'),
        cpuManagerPolicy: 'static',
        cpuManagerPolicyOptions: { 'full-pcpus-only': 'true' },
        topologyManagerPolicy: 'best-effort',
        topologyManagerScope: 'container',
      },
    });
    await kubelet.start();
  };
  beforeEach(() => {
    directory = temp();
    return start();
  });
  afterEach(async () => {
    const { client } = suite;
    await stopPlugins();
    for (const pod of client.list(PODS)) await client.delete(PODS, pod, { gracePeriodSeconds: 0 });
    await kubelet.stop();
    for (const type of [NODES, EVENTS]) for (const object of client.list(type)) await client.delete(type, object);
    assert.deepEqual(faults.splice(0), []);
  });
  const get = (name: string) => suite.client.get(PODS, 'default', name);
  return {
    start,
    stop: () => kubelet.stop(),
    exit: (uid: string) => kubelet.exit(uid),
    get client() {
      return suite.client;
    },
    get,
    async run(name: string, limits: JsonRecord, extra: JsonRecord = {}, annotations = {}) {
      const template = podOf(name, { limits: { memory: '1Gi', ...limits } }, extra) as KubePod;
      const pod = await suite.client.create(PODS, { ...template, metadata: { ...template.metadata, annotations } });
      await suite.client.bind(pod, 'n1');
      return pod;
    },
    phase: (name: string, phase: string) => until(`${name} is ${phase}`, () => get(name)?.status?.phase === phase),
    state: async () => JSON.parse(await readFile(join(directory, 'cpu_manager_state'), 'utf8')),
    events: () => suite.client.list(EVENTS).map((event) => `${event.reason}: ${event.message}`),
    node: () => suite.client.get(NODES, undefined, 'n1')!,
    /** Starts a plugin of a network near this NUMA node. */
    async plug(cell: number) {
      const plugin = await startPlugin(directory, PHYSNET, [cell]);
      const offered = () => suite.client.get(NODES, undefined, 'n1')?.status?.allocatable?.[PHYSNET];
      await until('the resource is offered', () => offered() === '4');
      return plugin;
    },
    /** As an agent reads the kubelet's gRPC API. */
    async podResources<T>(use: (client: PodResources) => Promise<T>): Promise<T> {
      const connected = createPodResourcesClient(join(directory, 'pod-resources/kubelet.sock'));
      return use(connected).finally(() => connected.close());
    },
  };
}

describe('kubelet stand-in: nodes and admission', () => {
  const at = useKubelet();
  it('registers its Node', () => {
    const { metadata, status } = at.node();
    assert.equal(metadata.labels?.['kubevirt.io/schedulable'], 'true');
    assert.equal(metadata.labels?.cpumanager, 'true');
    assert.deepEqual([status?.capacity?.cpu, status?.allocatable?.cpu], ['16', '14']);
    assert.equal(status?.allocatable?.['devices.kubevirt.io/kvm'], '1k');
    assert.equal(status?.conditions?.[0]?.status, 'True');
  });
  it('assigns whole cores and frees them when the containers have ended', async () => {
    const { metadata } = await at.run('a', { cpu: '4' });
    await at.phase('a', 'Running');
    const { defaultCpuSet, entries } = await at.state();
    assert.deepEqual([defaultCpuSet, entries[metadata.uid!]], ['0,3-8,11-15', { main: '1-2,9-10' }]);
    assert.equal(at.get('a')?.status?.containerStatuses?.[0]?.ready, true);
    await at.exit(metadata.uid!);
    await at.phase('a', 'Succeeded');
    await until('the CPUs are free', async () => (await at.state()).defaultCpuSet === '0-15');
    await at.client.delete(PODS, at.get('a')!);
  });

  const memory = 'memory, requested: 69793218560, used: 0, capacity: 68719476736';
  const odd = 'SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2';
  const rejections: [string, JsonRecord, string, string][] = [
    ['3 CPUs', { cpu: '3' }, 'SMTAlignmentError', odd],
    ['too little memory', { memory: '65Gi' }, 'OutOfmemory', `Node didn't have enough resource: ${memory}`],
  ];
  for (const [what, limits, reason, text] of rejections) {
    it(`${what}: ${reason}, permanently`, async () => {
      await at.run('no', limits);
      await at.phase('no', 'Failed');
      const { status } = at.get('no')!;
      assert.deepEqual([status?.reason, status?.message], [reason, `Pod was rejected: ${text}`]);
      await until('the Event', () => at.events().includes(`${reason}: ${text}`));
      assert.equal((await at.state()).defaultCpuSet, '0-15');
    });
  }
});

describe('kubelet stand-in: networks and probes', () => {
  let ready = true;
  const at = useKubelet(() => ready);
  const readiness = (name: string) => {
    const { conditions = [], containerStatuses = [] } = at.get(name)?.status ?? {};
    const statusOf = (type: string) => conditions.find((condition) => condition.type === type)?.status;
    return [statusOf('ContainersReady'), statusOf('Ready'), containerStatuses[0]?.['ready']];
  };

  it('does not start a pod on an undefined network, and starts it when the network is defined', async () => {
    const annotations = { 'k8s.v1.cni.cncf.io/networks': 'default/blue' };
    await at.run('a', {}, {}, annotations);
    const event = await until('an Event', () => at.events().find((text) => text.startsWith('FailedCreatePodSandBox')));
    assert.match(event, /cannot find a network-attachment-definition \(blue\) in namespace \(default\)$/);
    const { phase, containerStatuses } = at.get('a')?.status ?? {};
    const waiting = { waiting: { reason: 'ContainerCreating' } };
    assert.deepEqual([phase, containerStatuses?.[0]?.['state']], ['Pending', waiting]);
    await at.client.create(NETWORK_ATTACHMENT_DEFINITIONS, definitionOf('blue'));
    await at.phase('a', 'Running');
  });

  it('reports a pod as ready while its probes succeed, and its sidecars in PodResources', async () => {
    ready = true;
    await at.run('b', { cpu: '2' }, { initContainers: [{ name: 'first' }, { name: 'side', restartPolicy: 'Always' }] });
    await at.phase('b', 'Running');
    await at.podResources(async (client) => {
      const names = (await client.list())[0]?.containers.map(({ name }) => name);
      assert.deepEqual(names, ['side', 'main']);
      assert.deepEqual((await client.allocatable()).cpuIds, [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15]);
    });
    assert.deepEqual(readiness('b'), ['True', 'True', true]);
    ready = false;
    await until('the failed probe', () => readiness('b')[1] === 'False');
    assert.deepEqual(readiness('b'), ['False', 'False', false]);
    ready = true;
    await until('the probe', () => readiness('b')[1] === 'True');
  });
});

describe('kubelet stand-in: device plugins', () => {
  const at = useKubelet();

  it('aligns CPUs with the NUMA node of the device', async () => {
    const plugin = await at.plug(1);
    const { metadata } = await at.run('a', { cpu: '2', [PHYSNET]: '1' });
    await at.phase('a', 'Running');
    assert.deepEqual((await at.state()).entries[metadata.uid!], { main: '4,12' });
    assert.deepEqual(plugin.calls, [`allocate ${PHYSNET}-0`, `preStart ${PHYSNET}-0`]);
    const [container] = (await at.podResources((client) => client.list()))[0]!.containers;
    assert.deepEqual(container?.cpuIds, [4, 12]);
    assert.deepEqual(container.devices[0]?.topology?.nodes, [{ ID: 1 }]);
    await at.client.delete(PODS, at.get('a')!);
    await until('the kubelet has removed it', () => at.get('a') === undefined);
  });
  it('keeps a container waiting while PreStartContainer refuses, with the plugin’s message', async () => {
    const plugin = await at.plug(0);
    plugin.refuseStart('OVS is still there');
    const { metadata } = await at.run('a', { cpu: '2', [PHYSNET]: '1' });
    const rpc = 'rpc error: code = FailedPrecondition desc = OVS is still there';
    const text = `device plugin PreStartContainer rpc failed with err: ${rpc}`;
    const waiting = () => (at.get('a')?.status?.containerStatuses?.[0]?.state as JsonRecord | undefined)?.waiting;
    await until('it waits', () => waiting());
    assert.deepEqual(waiting(), { reason: 'CreateContainerConfigError', message: text });
    assert.equal(at.get('a')?.status?.phase, 'Pending');
    assert.equal((await at.state()).entries[metadata.uid!].main, '1,9');
    await until('the Event', () => at.events().includes(`Failed: Error: ${text}`));
    await until('it is retried', () => plugin.calls.length > 3);
    plugin.refuseStart(undefined);
    await at.phase('a', 'Running');
  });
});

describe('kubelet stand-in: restart', () => {
  const at = useKubelet();
  it('refuses a running pod that is larger than the free CPUs (kubernetes #129078)', async () => {
    await at.run('big', { cpu: '8' });
    await at.phase('big', 'Running');
    await at.stop();
    await at.start();
    await at.phase('big', 'Failed');
    assert.equal(at.get('big')?.status?.reason, 'SMTAlignmentError');
  });
});
