import assert from 'node:assert/strict';
import fc from 'fast-check';
import { demandOf, parseShape } from '../../cli/simulate/demand.ts';
import { inventNodes } from '../../cli/simulate/scene.ts';
import { type Simulation, simulate } from '../../cli/simulate/simulate.ts';
import { CliError } from '../../cli/support/exit-status.ts';
import { hostsOf } from '../../diagnosis/hosts.ts';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { parseOutput } from '../support/output-schema.ts';
import { useCluster } from './cluster-fixture.ts';
import { contradictedPrediction } from './contradicted-prediction-fixture.ts';
import { assertFails, buildCli, plumbline } from './run.ts';

/** The output as JSON: docs/schemas/simulate.json. */
interface SimulateData {
  readonly fits: boolean;
  readonly nodes: number;
  readonly vms: readonly unknown[];
  readonly notes: readonly string[];
}

const GIB = 2 ** 30;
const INVENTION = { physnet: [], topologyManager: 'best-effort', kubelet: 'v1.36.2' };

function run(nodes: number, topology: string, shapes: readonly string[], more: object = {}): Simulation {
  const { hosts } = hostsOf(inventNodes({ ...INVENTION, nodes, topology, ...more }));
  const threadsPerCore = hosts.map(({ host }) => host.host.threadsPerCore);
  return simulate(
    hosts,
    shapes.map((text) => demandOf(parseShape(text), threadsPerCore)),
  );
}

describe('plumbline simulate', () => {
  describe('the number of VMs that fit', () => {
    // Computed by hand: a VM with 4c2t needs 8 vCPUs and one for the emulator, padded to 10, which is 5 cores.
    const ONE_CELL = { topologyManager: 'single-numa-node' };
    const cases: readonly [string, number, string, string[], object, number[]][] = [
      ['15 free cores hold three VMs of 5 cores', 1, '2x8x2', ['4c2t'], {}, [3]],
      ['each VM is on one NUMA node: (8 - 1) / 5 and 8 / 5', 1, '2x8x2', ['4c2t'], ONE_CELL, [2]],
      ['VMs fit near a physnet on one NUMA node', 1, '2x8x2', ['4c2t@physnet0'], { physnet: ['physnet0=1'] }, [1]],
      ['ten nodes hold ten times as many as one', 10, '2x8x2', ['4c2t'], {}, [30]],
      ['at most the requested number is placed', 10, '2x8x2', ['4c2t:7'], {}, [7]],
      ['kinds of VMs are placed in turn', 1, '2x8x2', ['4c2t:2', '2c2t'], {}, [2, 1]],
      ['without SMT, VMs are only padded to an even number', 1, '2x8x1', ['4c1t'], {}, [2]],
      ['a network that no node has fits nowhere', 3, '2x8x2', ['4c2t@nowhere'], {}, [0]],
    ];
    for (const [title, nodes, topology, shapes, more, placed] of cases) {
      it(title, () => {
        const { vms } = run(nodes, topology, shapes, more);
        assert.equal(vms.map((vm) => vm.placed).join(), placed.join());
      });
    }

    it('is limited by GPUs and host devices, on the NUMA nodes that have them', () => {
      const gpu = { deviceName: 'example.com/gpu' };
      const placedWith = (devices: NodeTopologyStatus['devices'], asked: object) => {
        const [node] = inventNodes({ ...INVENTION, ...ONE_CELL, nodes: 1, topology: '2x8x1' });
        const { hosts } = hostsOf([{ ...node!, status: { ...node!.status!, devices } }]);
        const vmi = parseShape('2c').vmi;
        const domain = { ...vmi.spec.domain, devices: asked };
        const shape = { name: 'vm', count: undefined, networks: [], vmi: { ...vmi, spec: { domain } } };
        const [vm] = simulate(hosts, [demandOf(shape, [1])]).vms;
        return [vm?.placed, ...Object.keys(vm?.refusals ?? {})];
      };
      const gpus = (count: number) => [{ resource: gpu.deviceName, groups: [{ cells: '1', total: 4, free: count }] }];
      const none = 'example.com/gpu is not on the node';
      assert.deepEqual(placedWith(gpus(4), {})[0], 3, 'without devices: 7 and 8 CPUs for 4 each');
      assert.deepEqual(placedWith(gpus(4), { gpus: [gpu] })[0], 2, 'on NUMA node 1 only');
      assert.deepEqual(placedWith(gpus(3), { gpus: [gpu], hostDevices: [gpu] })[0], 1, 'two for each VM');
      assert.deepEqual(placedWith(gpus(0), { gpus: [gpu] })[0], 0);
      assert.deepEqual(placedWith([], { gpus: [gpu] }), [0, none]);
      assert.deepEqual(placedWith(undefined, { gpus: [gpu] }), [0, 'not predicted: it may accept or refuse it']);
    });

    it('is limited by huge pages of each NUMA node under a static memory manager', () => {
      const [node] = inventNodes({ ...INVENTION, topologyManager: 'single-numa-node', nodes: 1, topology: '2x8x1' });
      const cells = [0, 1].map((id) => ({
        id,
        memory: 64 * GIB,
        hugePages: { 'hugepages-1Gi': 10 * GIB },
        state: { blocks: 0, group: `${id}`, free: { memory: 50 * GIB, 'hugepages-1Gi': (10 - 4 * id) * GIB } },
      }));
      const status = { ...node!.status!, memoryManager: { policy: 'Static', cells } };
      const { hosts } = hostsOf([{ ...node!, status }]);
      const placedWith = (memory: object, requests = {}) => {
        const { vmi } = parseShape('2c');
        const domain = { ...vmi.spec.domain, memory, resources: { requests } };
        const shape = { name: 'vm', count: undefined, networks: [], vmi: { ...vmi, spec: { domain } } };
        return simulate(hosts, [demandOf(shape, [1])]).vms[0]?.placed;
      };
      const hugepages = { pageSize: '1Gi' };
      assert.equal(placedWith({ guest: '5Gi' }), 3, 'no huge pages: 7 and 8 CPUs for 4 each');
      assert.equal(placedWith({ guest: '5Gi', hugepages }), 2, 'the second NUMA node has 6 GiB for 5 each');
      assert.equal(placedWith({ hugepages }, { memory: '7Gi' }), 1, 'memory in resources');
      assert.equal(placedWith({ guest: '11Gi', hugepages }), 0);
    });

    it('gives the reason for each node if no more fit', () => {
      const { vms } = run(3, '2x8x2', ['4c2t@nowhere']);
      assert.deepEqual(vms[0]?.refusals, { 'physnet nowhere is not on the node': 3 });
    });

    it('counts CPUs as stranded on nodes where no requested VM fits', () => {
      const { cpus } = run(2, '2x8x2', ['4c2t']);
      assert.deepEqual(cpus, { total: 64, reserved: 4, before: 0, padding: 6, free: 0, stranded: 0, used: 60 });
      assert.equal(run(2, '2x8x2', ['6c2t']).cpus.stranded, 4);
    });

    it('for any nodes and VMs, CPUs add up, and no requested VM still fits', () => {
      const number = (min: number, max: number) => fc.integer({ min, max });
      const shape = fc.tuple(number(1, 9), fc.constantFrom('1t', '2t'), fc.constantFrom('', ':1', ':4'));
      const topology = fc.tuple(number(1, 4), number(1, 9), fc.constantFrom(1, 2, 4));
      const shapes = fc.array(shape, { minLength: 1, maxLength: 3 });
      const property = fc.property(shapes, topology, number(1, 6), (list, made, nodes) => {
        const texts = list.map(([cores, threads, count]) => `${cores}c${threads}${count}`);
        const { cpus, vms, placements } = run(nodes, made.join('x'), texts);
        const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);
        assert.equal(cpus.free + cpus.used + cpus.reserved, cpus.total);
        assert.ok(cpus.stranded <= cpus.free);
        assert.equal(Object.values(placements).flat().length, sum(vms.map(({ placed }) => placed)));
        // The last kind had its turn when all others had theirs.
        const last = vms.at(-1);
        if (last?.requested === undefined) assert.equal(sum(Object.values(last?.refusals ?? {})), nodes);
      });
      fc.assert(property, { numRuns: 60 });
    });
  });

  describe('invalid input is refused with the expected form', () => {
    const isUsage = (error: unknown) => error instanceof CliError && error.status === 2;
    for (const text of ['', ...'4 4c2 c2t 0c2t 4c0t 4c3t 4c2t: 4c2t:0 4c2t:x 4c2t:1000000 -1c2t'.split(' ')]) {
      it(`--vm ${JSON.stringify(text)}`, () => assert.throws(parseShape.bind(undefined, text), isUsage));
    }
    for (const more of [
      ...['2x16', '9x1x1', '0x4x2'].map((topology) => ({ topology })),
      ...[0, 1e9].map((nodes) => ({ nodes })),
      ...['physnet0', 'physnet0=7'].map((text) => ({ physnet: [text] })),
      { reserved: '1-' },
    ]) {
      it(JSON.stringify(more), () => {
        const invention = { ...INVENTION, nodes: 1, topology: '2x16x2', ...more };
        assert.throws(inventNodes.bind(undefined, invention), isUsage);
      });
    }
  });

  describe('as a command', function () {
    this.timeout(300_000);
    const cluster = useCluster(async (made) => {
      await made.node('worker-1', {
        report: { assignments: [{ podUID: 'x', container: 'compute', cpus: '1-7,17-23' }] },
      });
      await made.node('worker-2', { unschedulable: true });
    });

    const VMS = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: { name: firewall }
spec:
  template:
    metadata: { annotations: { kubevirt.io/CPUManagerPolicyBetaOptions: full-pcpus-only } }
    spec:
      domain: { cpu: { cores: 2, threads: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true } }
      networks: [{ name: data, multus: { networkName: dataplane } }]
---
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceReplicaSet
metadata: { name: shared }
spec: { replicas: 3, template: { spec: { domain: {} } } }
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: { name: dataplane, namespace: default }
spec: { config: '{"cniVersion":"1.0.0","type":"ovn-k8s-cni-overlay","topology":"localnet","physicalNetworkName":"physnet0","name":"dataplane","netAttachDefName":"default/dataplane"}' }
`;

    it('places VMs of a file on this cluster near their network, except on cordoned nodes', async () => {
      const { stdout, status } = await plumbline(['simulate', '-f', '-', '-o', 'json'], {
        kubeconfig: cluster.kubeconfig,
        input: VMS,
      });
      const { fits, nodes, vms, notes } = parseOutput<SimulateData>('simulate', JSON.parse(stdout));
      assert.deepEqual([status, fits, nodes], [1, false, 1]);
      const refusals = { 'no room on the NUMA nodes of a required network': 1 };
      assert.deepEqual(vms, [{ name: 'firewall', cpus: 6, padding: 1, requested: 1, placed: 0, refusals }]);
      assert.deepEqual(notes, [
        'shared has no dedicated CPUs and is ignored',
        'excluded because it is cordoned: worker-2',
      ]);
    });

    it('does not say that a VM fits whose CPUs come from a claim', async () => {
      const cpu = '{ cores: 4, dedicatedCpuPlacement: true, dra: { claimName: cpus, requestName: guest } }';
      const vm = `{ apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: { name: of-claim }, spec: { template: { spec: { domain: { cpu: ${cpu} } } } } }`;
      const args = ['simulate', '-f', '-', '--nodes', '1', '--topology', '1x4x2', '-o', 'json'];
      const { stdout, status } = await plumbline(args, { input: vm });
      const { fits, vms, notes } = parseOutput<SimulateData>('simulate', JSON.parse(stdout));
      assert.deepEqual([status, fits, vms], [1, false, []]);
      assert.match(notes.join('\n'), /of-claim: the VM gets its CPUs from a claim \(domain\.cpu\.dra\)/);
    });

    it('needs no cluster for simulated nodes', async () => {
      const { stdout, status } = await plumbline(['simulate', '--vm', '4c2t:3', '--nodes', '1', '--topology', '2x8x2']);
      assert.equal(status, 0);
      assert.match(stdout, /4c2t {2}10 \(1 completes a core\) {2}3 {6}3/);
    });

    for (const [args, message] of [
      [['simulate'], /no VMs given/],
      [['simulate', '--vm', '4c2t', '--topology', '1x4x2'], /--topology is for hypothetical nodes/],
      [['simulate', '--vm', '4c2t', '--nodes', 'x', '--topology', '1x1x1'], /expected a whole number/],
      [['simulate', '-f', '/nonexistent'], /cannot read \/nonexistent/],
      [['simulate', '-f', '/dev/zero'], /cannot read \/dev\/zero: it is larger than 16777216 bytes/],
      [['simulate', '-f', '-', '--nodes', '1', '--topology', '1x4x2'], /^plumbline: - is not valid YAML: \S/],
    ] as const) {
      it(`${args.join(' ')}: one line, status 2`, async () => {
        assertFails(await plumbline(args, { input: 'a: [' }), 2, message);
      });
    }
  });

  describe('--replay', function () {
    this.timeout(300_000);
    before(buildCli);

    const replay = (input: unknown) =>
      plumbline(['simulate', '--replay', '-'], { input: typeof input === 'string' ? input : JSON.stringify(input) });

    it('repeats the prediction of a line of the log', async () => {
      const { status, stdout } = await replay(contradictedPrediction('n1'));
      assert.match(stdout, /^n1: version \S+ predicted 1-2,9-10, the kubelet did 4-5,12-13\.\n/);
      assert.match(stdout, /predicts 1-2,9-10: it still differs\.\n$/);
      assert.equal(status, 1);
    });

    it('of the record alone, with status 0 if this version predicts what the kubelet did', async () => {
      const { replay: record } = contradictedPrediction('n1');
      const { status, stdout } = await replay({ ...record, predicted: '6-7', actual: '1-2,9-10' });
      assert.match(stdout, /predicts 1-2,9-10: as the kubelet did\.\n$/);
      assert.equal(status, 0);
    });

    it('takes the CPUs in use from the record', async () => {
      const { replay: record } = contradictedPrediction('n1');
      const { stdout } = await replay({ ...record, assigned: ['1,9', '2,10'] });
      assert.match(stdout, /predicts 4-5,12-13: as the kubelet did\.\n$/);
    });

    const bad: readonly [string, (record: Record<string, unknown>) => unknown, RegExp][] = [
      ['no JSON', () => '{"replay": {', /^plumbline: -: expected one line of the extender’s log with "replay": /],
      ['another line of the log', () => ({ level: 'info', msg: 'listening' }), /version: /],
      [
        'a CPU list that was cut',
        (record) => ({ ...record, assigned: ['1-2,9…'] }),
        /expected one line of the extender’s log with "replay": \S/,
      ],
      ['a file that is too large', () => ' '.repeat(70_000), /larger than 65536 bytes/],
    ];
    for (const [title, change, message] of bad) {
      it(`${title}: one line, status 2`, async () => {
        assertFails(await replay(change(contradictedPrediction('n1').replay)), 2, message);
      });
    }

    it('is refused together with VMs', async () => {
      const ran = await plumbline(['simulate', '--replay', '-', '--vm', '4c2t'], { input: '{}' });
      assertFails(ran, 2, /use it without --vm and -f/);
    });
  });
});
