import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NodeTopology } from '../../kube/node-topology.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { writeMachine } from '../hardware/machine-fixture.ts';
import { type DaemonProcess, startDaemonProcess } from '../support/daemon-process.ts';
import { needs, skipWithout } from '../support/parts.ts';
import { createFakeApi, type FakeApi } from './api-stand-in.ts';
import { FakeKubelet } from './kubelet-stand-in.ts';
import { allowedLists, eventually, type StandIn, startStandIn, tempDirectories, writeTree } from './support.ts';
import { FROM_SOURCE, writeKubeconfig } from './wiring/agent-stage.ts';

const NODE = 'worker-1';

const startAgent = (flags: readonly string[], nodeFlags: readonly string[] = []) =>
  startDaemonProcess([...nodeFlags, ...FROM_SOURCE, '--probe-port', '0', ...flags]);

const temp = tempDirectories();
const machine = () => CpuSet.parse(readFileSync('/sys/devices/system/cpu/online', 'utf8'));
let root: string;
let api: FakeApi;
let kubelet: FakeKubelet;
let agent: DaemonProcess;
let standIns: StandIn[];
let flags: string[];

/** A node with eight CPUs in two NUMA nodes, as files; an API server; a kubelet that does not run yet. */
function setUp(suite: Mocha.Suite): void {
  needs('linux');
  suite.timeout(300_000);
  beforeEach(async () => {
    root = temp();
    api = createFakeApi(NODE);
    const server = await api.listen();
    kubelet = new FakeKubelet(join(root, 'var/lib/kubelet'), { cdiDir: join(root, 'var/run/cdi') });
    standIns = [];
    const kubeconfig = writeKubeconfig(root, server);
    for (const name of ['etc', 'var/run']) mkdirSync(join(root, name, 'openvswitch'), { recursive: true });
    writeTree(root, {
      'map.yaml': 'physnets: {physnet1: {numaNodes: [1]}}\ntunnel: {numaNodes: [0]}',
      'var/lib/kubelet/config.yaml':
        'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncpuManagerPolicy: static\ncpuManagerPolicyOptions: {full-pcpus-only: "true"}\n' +
        'topologyManagerPolicy: single-numa-node\nreservedSystemCPUs: "0-1"\n',
    });
    writeMachine(join(root, 'sys'), {
      name: NODE,
      cpus: '0-7',
      core: [0, 0, 1, 1, 2, 2, 3, 3],
      package: Array(8).fill(0),
      siblings: ['0-1', '2-3', '4-5', '6-7'],
      nodes: { 0: '0-3', 1: '4-7' },
    });
    flags = ['--node-name', NODE, '--kubeconfig', kubeconfig, '--host-root', root];
    flags.push('--kubelet-config', join(kubelet.directory, 'config.yaml'), '--kubelet-endpoint', '');
    flags.push('--network-map', join(root, 'map.yaml'));
  });
  afterEach(async function () {
    if (this.currentTest?.state === 'failed') console.error(agent.lines, agent.text);
    agent.process.kill('SIGKILL');
    await Promise.all(standIns.map((standIn) => standIn.stop()));
    await kubelet.stop();
    await api.close();
  });
}

const status = () =>
  (api.objects.get(`/apis/plumbline.dev/v1alpha1/nodetopologies/${NODE}`) as unknown as NodeTopology | undefined)
    ?.status;
const masks = () => [...new Set(standIns.flatMap(({ pid }) => allowedLists(pid)))];

describe('the node agent as a process', function () {
  setUp(this);

  it('reports, registers, moves Open vSwitch, and leaves the threads there when it ends', async function () {
    skipWithout('twoCpus', this);
    const first = String(machine().first);
    for (const name of ['ovs-vswitchd', 'ovsdb-server']) {
      standIns.push(await startStandIn(name, 4, join(root, `var/run/openvswitch/${name}.pid`)));
    }
    writeFileSync(join(root, 'etc/openvswitch/enable_dynamic_cpu_affinity'), '1');
    kubelet.allocatable = '2-7';
    kubelet.writeCheckpoint('0-7');
    await kubelet.start();
    agent = startAgent(flags);
    await eventually(() => status() !== undefined, 'a report', 15);
    await eventually(() => kubelet.registrations.length === 3, 'the device plugin registers');
    await eventually(async () => (await agent.probe('/readyz')).status === 200, 'ready');

    const { cells, cores, reserved, cpuManager, topologyManager, physnets, tunnel, conditions } = status()!;
    assert.deepEqual([cells.length, cores.length, reserved], [2, 4, '0-1']);
    assert.deepEqual(cpuManager, { policy: 'static', options: { 'full-pcpus-only': 'true' } });
    assert.equal(topologyManager?.policy, 'single-numa-node');
    assert.deepEqual([physnets, tunnel], [[{ name: 'physnet1', cells: '1' }], { cells: '0' }]);
    assert.deepEqual(
      conditions?.filter(({ status }) => status !== 'True'),
      [],
    );

    // Every CPU of this machine except the first belongs to a container.
    const taken = machine().minus(CpuSet.parse(first));
    kubelet.pods = { 'ns/vm': { compute: taken.toString() } };
    kubelet.writeCheckpoint(CpuSet.parse('0-7').minus(taken).toString(), { 'uid-1': { compute: taken.toString() } });
    await eventually(() => masks().join() === first, `all threads on ${first}; ${masks()}`);
    await eventually(() => status()?.assignments[0]?.podName === 'vm', 'the report names the pod');
    assert.match((await agent.probe('/metrics')).body, /plumbline_exclusive_cpus \d/);

    assert.equal(await agent.stop(), 0);
    assert.deepEqual(masks(), [first], 'the container still owns its CPUs');
    assert.deepEqual(readdirSync(join(kubelet.directory, 'device-plugins')), ['kubelet.sock']);
    assert.ok([...api.objects.keys()].some((path) => path.endsWith(`/leases/plumbline-agent-${NODE}`)));
  });

  it('a typo in the network map leaves the networks unchanged; a condition and an Event on the Node name it', async () => {
    kubelet.allocatable = '2-7';
    kubelet.writeCheckpoint('0-7');
    await kubelet.start();
    agent = startAgent(flags);
    await eventually(() => status() !== undefined, 'a report');
    const valid = () => status()?.conditions?.find(({ type }) => type === 'NetworkMapValid');
    writeFileSync(join(root, 'map.yaml'), 'physnets: {physnet1: {numaNodes: [7]}}');
    await eventually(() => valid()?.status === 'False', 'the condition');
    const typo = /NUMA node 7 of physnet physnet1 is not on this host, which has 0-1; the last good map stays in use/;
    assert.match(valid()?.message ?? '', typo);
    assert.deepEqual(status()?.physnets, [{ name: 'physnet1', cells: '1' }]);
    assert.deepEqual(status()?.tunnel, { cells: '0' });
    assert.match((await agent.probe('/metrics')).body, /plumbline_networks_problems 1\n/);
    const events = () => [...api.objects].filter(([path]) => path.includes('/events/')).map(([, event]) => event);
    const named = () => events().find(({ reason }) => reason === 'InvalidNetworkMap');
    await eventually(() => named() !== undefined, 'the Event');
    assert.match(String(named()?.message ?? named()?.note), typo);
    assert.equal(await agent.stop(), 0);
  });

  it('exits with status 0 and a message on a system other than Linux', async () => {
    const elsewhere = "data:text/javascript,Object.defineProperty(process,'platform',{value:'darwin'})";
    agent = startAgent(flags, ['--import', elsewhere]);
    await once(agent.process, 'close');
    assert.equal(agent.process.exitCode, 0);
    assert.equal(agent.lines.map(({ msg }) => msg).join(), 'node agent needs Linux; nothing to do');
  });

  it('exits with status 2 and one line for invalid settings', async () => {
    agent = startAgent([...flags, '--dpu-node-lease-duration', '10']);
    await once(agent.process, 'close');
    assert.equal(agent.process.exitCode, 2);
    assert.match(agent.text.join('\n'), /--dpu-node-lease-duration 10 must be greater than/);
  });
});
