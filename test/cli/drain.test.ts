import assert from 'node:assert/strict';
import { readDrain } from '../../cli/drain/read.ts';
import { drainData, drainLines } from '../../cli/simulate/without.ts';
import { lineText } from '../../cli/support/terminal.ts';
import { commandText } from '../../diagnosis/remedies.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { launcher } from '../diagnosis/fixture.ts';
import { parseOutput } from '../support/output-schema.ts';
import { vmiOwner } from '../support/vmi-owner.ts';
import { nodeObject, topologyObject } from './cluster-fixture.ts';
import { type ApiObject, createObjectsApi, type Objects } from './objects-api-stand-in.ts';

const NOW = Date.parse('2026-11-01T10:00:00Z');
const NAMESPACE = 'tenants';
const CAN = { type: 'LiveMigratable', status: 'True' };
const CANNOT = { type: 'LiveMigratable', status: 'False', message: 'VMI uses a PCI host devices' };
const PHYSNET0 = { 'physnet.plumbline.dev/physnet0': '1' };
const APART = {
  podAntiAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: [
      { labelSelector: { matchLabels: { group: 'a' } }, topologyKey: 'kubernetes.io/hostname' },
    ],
  },
};

interface VmOptions extends Partial<Record<'node' | 'runStrategy' | 'memory', string>> {
  readonly cpus?: number;
  /** null: its owner has no evictionStrategy. */
  readonly strategy?: string | null;
  readonly condition?: object;
  readonly affinity?: object;
  readonly resources?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly isUnreadable?: true;
}

interface NodeOptions {
  readonly cpus?: string;
  readonly report?: Partial<NodeTopologyStatus>;
  readonly spec?: object;
  readonly memory?: string;
}

interface Cluster {
  readonly nodes: Readonly<Record<string, NodeOptions>>;
  readonly vms: Readonly<Record<string, VmOptions>>;
  readonly defaultStrategy?: string;
}

/** The reports have what the launchers own, two whole cores from CPU 1 on for the first one of a node, and so on. */
function objectsOf({ nodes, vms, defaultStrategy }: Cluster): Objects {
  const entries = Object.entries(vms).map(([name, vm]) => ({ name, node: 'a', cpus: 4, ...vm }));
  const owned = (node: string) => {
    let next = 1;
    return entries
      .filter((vm) => vm.node === node && vm.cpus > 0)
      .map(({ name, cpus }) => {
        const cores = Array.from({ length: cpus / 2 }, () => next++);
        const list = [...cores, ...cores.map((core) => core + 16)].join(',');
        return { podUID: `${name}-pod`, container: 'compute', cpus: list };
      });
  };
  const launchers = entries.map(
    ({ name, node, cpus, resources, labels, affinity, memory = '1Gi', annotations }) =>
      launcher({
        cpus: cpus > 0 ? `${cpus}` : undefined,
        resources: { memory, ...resources },
        metadata: {
          name: `virt-launcher-${name}`,
          uid: `${name}-pod`,
          labels: { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': `${name}-vmi`, ...labels },
          annotations: { 'plumbline.dev/decision': '{"padding":0}', ...annotations },
          ownerReferences: [vmiOwner(name, `${name}-vmi`)],
        },
        spec: { nodeName: node, affinity },
        status: { phase: 'Running' },
      }) as ApiObject,
  );
  const readable = entries.filter(({ isUnreadable }) => isUnreadable !== true);
  return {
    '/api/v1/nodes': Object.entries(nodes).map(([name, { spec, memory = '64Gi' }]) =>
      nodeObject(name, { spec, allocatable: { memory } }),
    ),
    '/api/v1/pods': launchers,
    '/apis/plumbline.dev/v1alpha1/nodetopologies': Object.entries(nodes).map(([name, { cpus, report }]) => {
      const others = cpus === undefined ? [] : [{ podUID: 'other', container: 'c', cpus }];
      return topologyObject(name, { assignments: [...owned(name), ...others], ...report });
    }),
    '/apis/coordination.k8s.io/v1/leases': [],
    '/apis/kubevirt.io/v1/kubevirts':
      defaultStrategy === undefined
        ? []
        : [{ metadata: { name: 'kubevirt' }, spec: { configuration: { evictionStrategy: defaultStrategy } } }],
    '/apis/kubevirt.io/v1/virtualmachines': readable.map(({ name, runStrategy = 'Always' }) => ({
      metadata: { name, namespace: NAMESPACE },
      spec: { runStrategy },
    })),
    '/apis/kubevirt.io/v1/virtualmachineinstances': readable.map(
      ({ name, node, strategy = 'LiveMigrate', condition = CAN }) => ({
        metadata: {
          name,
          namespace: NAMESPACE,
          uid: `${name}-vmi`,
          ownerReferences: [
            { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name, uid: `${name}-vm`, controller: true },
          ],
        },
        spec: { domain: {}, ...(strategy !== null && { evictionStrategy: strategy }) },
        status: { phase: 'Running', nodeName: node, conditions: [condition] },
      }),
    ),
    '/apis/kubevirt.io/v1/virtualmachineinstancemigrations': [],
  };
}

const plan = (cluster: Cluster, ...names: string[]) =>
  readDrain(createObjectsApi(objectsOf(cluster)) as unknown as KubeClient, names.length === 0 ? ['a'] : names, NOW);

const FREE = { a: {}, b: {} } as const;

describe('plumbline simulate --without', () => {
  describe('a VM', () => {
    const fw = (vm: VmOptions, b: NodeOptions = {}, more: Partial<Cluster> = {}): Cluster => ({
      ...more,
      nodes: { a: {}, b },
      vms: { fw: vm, ...more.vms },
    });
    const FULL = { cpus: '1-14,17-30' };
    const MASKED = { cpus: 0, annotations: { 'plumbline.dev/cpu-mask': '2' } };
    const GROUP = { labels: { group: 'a' } };
    /** What happens, where, why, and the ids of the remedies. */
    const rows: readonly [title: string, cluster: Cluster, expected: RegExp][] = [
      ['migrates to free cores', fw({}), /^migrates b 1-2,17-18; ; $/],
      [
        'migrates near its network',
        fw({ resources: PHYSNET0 }, { report: { physnets: [{ name: 'physnet0', cells: '1' }] } }),
        /^migrates b 8-9,24-25; ; $/,
      ],
      [
        'has a strategy of KubeVirt’s configuration',
        fw({ strategy: null }, {}, { defaultStrategy: 'LiveMigrate' }),
        /^migrates b 1-2,17-18; ; $/,
      ],
      [
        'cannot migrate',
        fw({ condition: CANNOT }),
        /^blocks ; KubeVirt cannot migrate it: VMI uses a PCI.*; stop-first$/,
      ],
      [
        'has not started',
        fw({ condition: { type: 'Ready', status: 'False' } }),
        /^blocks ; .*it does not run yet.*; stop-first$/,
      ],
      [
        'migrates if possible, which it is not',
        fw({ strategy: 'LiveMigrateIfPossible', condition: CANNOT }),
        /^restarts b 1-2,17-18; .*VMI uses a PCI.*; stop-first$/,
      ],
      [
        'is left to another controller',
        fw({ strategy: 'External' }),
        /^blocks ; .*External leaves it to another controller.*; migrate-first$/,
      ],
      [
        'has no strategy',
        fw({ strategy: null }),
        /^restarts b 1-2,17-18; .*its evictionStrategy is None: the drain shuts it down.*; migrate-first,set-eviction-strategy$/,
      ],
      [
        'has no strategy and is not started again',
        fw({ strategy: 'None', runStrategy: 'Manual' }),
        /^stops ; .*evictionStrategy is None.*; migrate-first,set-eviction-strategy$/,
      ],
      ['cannot be read', fw({ isUnreadable: true }), /^unknown ; .*cannot be read.*; $/],
      ['finds no whole cores', fw({}, FULL), /^blocks ; .*no node can take it: .*\(b\).*; free-whole-cores$/],
      [
        'finds no memory',
        fw({ memory: '4Gi' }, { memory: '2Gi' }),
        /^blocks ; .*more memory requested than the node has \(b\).*; ask-for-less$/,
      ],
      [
        'finds only a cordoned node',
        fw({}, { spec: { unschedulable: true } }),
        /^blocks ; .*cordoned \(b\).*; uncordon$/,
      ],
      [
        'finds its network nowhere',
        fw({ resources: PHYSNET0 }, { report: { physnets: [] } }),
        /^blocks ; .*physnet physnet0 is not on the node \(b\).*; check-network-name$/,
      ],
      [
        'is kept off by its own anti-affinity',
        fw({ affinity: APART }, {}, { vms: { other: { node: 'b', ...GROUP } } }),
        /^blocks ; .*excluded by its required pod anti-affinity.*; $/,
      ],
      [
        'is kept off by the anti-affinity of a pod there',
        fw(GROUP, {}, { vms: { other: { node: 'b', affinity: APART } } }),
        /^blocks ; .*excluded by the required anti-affinity of a pod there.*; $/,
      ],
      [
        'has a CPU mask that no other node can keep',
        fw(MASKED, { cpus: '2,18' }),
        /^blocks ; .*CPU mask names no CPU.*; correct-mask$/,
      ],
    ];
    for (const [title, cluster, expected] of rows) {
      it(`${title}: ${expected.source.match(/\w+/)}`, async () => {
        const [vm, ...others] = (await plan(cluster)).vms;
        assert.deepEqual(others, []);
        const { outcome, place, text, remedies } = vm!;
        const where = place === undefined ? '' : `${place.node} ${place.cpus}`;
        assert.match(`${outcome} ${where}; ${text}; ${remedies.map(({ id }) => id)}`, expected);
      });
    }
  });

  it('each counts for those after it, and two nodes at a time are both left', async () => {
    const vms = { one: { cpus: 8 }, two: { cpus: 8 }, three: { node: 'b', cpus: 8 } };
    const drain = await plan({ nodes: { a: {}, b: {}, c: {} }, vms }, 'a', 'b');
    const places = drain.vms.map(({ place }) => `${place?.node} ${place?.cpus}`);
    assert.deepEqual(places, ['c 1-4,17-20', 'c 8-11,24-27', 'c 12-15,28-31']);
  });

  it('finds the order in which the large one has a place, and says that the order matters', async () => {
    // Only c has room for the large one, and the small one would go there first: its cores are near no NIC.
    const nodes = { a: {}, b: { cpus: '3-15,19-31' }, c: { cpus: '5-15,21-31', report: { physnets: [] } } };
    const { vms, orderMatters } = await plan({ nodes, vms: { small: { cpus: 4 }, large: { cpus: 8 } } });
    assert.equal(vms.map(({ name, place }) => `${name} ${place?.node}`).join(), 'large c,small b');
    assert.equal(orderMatters, true);
  });

  it('matches its schema, and is written for people', async () => {
    const cluster = { nodes: FREE, vms: { fw: {}, gpu: { condition: CANNOT } } };
    const drain = await plan(cluster);
    parseOutput('simulate-without', drainData(drain));
    const lines = drainLines(drain, 100).map((line) => lineText(line));
    assert.deepEqual(lines, [
      'without a: 1 of 2 VMs would migrate',
      '',
      'VM          FROM  TO  CPUS       NUMA',
      'tenants/fw  a     b   1-2,17-18  0',
      '',
      'tenants/gpu blocks the drain: KubeVirt cannot migrate it: VMI uses a PCI host devices',
      '  - stop it at a suitable time, before the drain:',
      '      virtctl stop gpu -n tenants',
    ]);
    assert.equal(drainData(drain).allMigrate, false);
    const [help] = drain.vms[1]?.remedies ?? [];
    assert.deepEqual(help?.commands.map(commandText), ['virtctl stop gpu -n tenants']);
  });

  it('refuses a node that does not exist', async () => {
    await assert.rejects(plan({ nodes: FREE, vms: {} }, 'missing'), /there is no node missing/);
  });
});
