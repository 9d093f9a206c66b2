import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { LEASES, NAMESPACES, NODE_TOPOLOGIES, NODES, PODS } from '../../sandbox/api-server/built-in-types.ts';
import { createSandbox } from '../../sandbox/cluster/cluster.ts';
import type { JsonRecord, KubeObject, KubePod } from '../../sandbox/objects.ts';
import { buildCli, plumbline, type Ran } from './run.ts';

type Sandbox = ReturnType<typeof createSandbox>;

/** An embedded cluster whose nodes exist only as objects: reports as agents write them, no kubelets. */
export interface FixtureCluster {
  readonly sandbox: Sandbox;
  /** The administrator's kubeconfig. */
  readonly kubeconfig: string;
  node(name: string, options?: NodeOptions): Promise<void>;
  pod(name: string, options?: PodOptions): Promise<KubePod>;
  namespace(name: string): Promise<void>;
  /** The Lease of a component. */
  lease(namespace: string, name: string, spec: JsonRecord): Promise<KubeObject>;
  stop(): Promise<void>;
}

/** A cluster for one suite. */
export interface SuiteCluster extends Omit<FixtureCluster, 'stop'> {
  /** Runs the bundled command on it. */
  run(...args: string[]): Promise<Ran>;
}

export interface NodeOptions extends Omit<NodeParts, 'spec'> {
  readonly unschedulable?: boolean;
  readonly taints?: readonly { readonly key: string; readonly effect: string }[];
  /** Undefined for a node without a report. */
  readonly report?: Partial<NodeTopologyStatus> | undefined;
}

export interface PodOptions {
  /** Default: default. */
  readonly namespace?: string;
  readonly cpus?: number;
  readonly node?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Additional requests and limits of its container. */
  readonly resources?: Readonly<Record<string, string>>;
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
  readonly ownerReferences?: KubeObject['metadata']['ownerReferences'];
}

/** Two NUMA nodes of 8 cores of 2 threads; physnet0 on NUMA node 0; the first core reserved. */
export const REPORT: NodeTopologyStatus = {
  kubeletVersion: 'v1.36.2',
  cells: [
    { id: 0, cpus: '0-7,16-23' },
    { id: 1, cpus: '8-15,24-31' },
  ],
  cores: Array.from({ length: 16 }, (_, i) => `${i},${i + 16}`),
  reserved: '0,16',
  cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
  topologyManager: { policy: 'single-numa-node', scope: 'container' },
  assignments: [],
  physnets: [{ name: 'physnet0', cells: '0' }],
};

const ALLOCATABLE = {
  cpu: '30',
  memory: '64Gi',
  pods: '110',
  'devices.kubevirt.io/kvm': '1k',
  'devices.kubevirt.io/tun': '1k',
  'physnet.plumbline.dev/physnet0': '110',
};

/** @param report differences from REPORT */
export function topologyObject(name: string, report: Partial<NodeTopologyStatus> = {}) {
  const status = { ...REPORT, ...report };
  return { apiVersion: 'plumbline.dev/v1alpha1', kind: 'NodeTopology', metadata: { name }, status } as const;
}

interface NodeParts {
  readonly labels?: object | undefined;
  readonly spec?: object | undefined;
  readonly conditions?: readonly object[] | undefined;
  readonly allocatable?: Readonly<Record<string, string>> | undefined;
}

/** A node for VMs, with room for the CPUs of REPORT. */
export function nodeObject(name: string, { labels, spec = {}, conditions = [], allocatable }: NodeParts = {}) {
  return {
    metadata: { name, labels: { 'kubevirt.io/schedulable': 'true', 'kubernetes.io/hostname': name, ...labels } },
    spec,
    status: { allocatable: { ...ALLOCATABLE, ...allocatable }, conditions },
  };
}

/** A Lease of plumbline-system for 40 s. @param renewed milliseconds since 1970 */
export function leaseObject(name: string, renewed: number, holderIdentity = name) {
  const renewTime = new Date(renewed).toISOString().replace('Z', '000Z');
  return {
    metadata: { name, namespace: 'plumbline-system' },
    spec: { holderIdentity, leaseDurationSeconds: 40, renewTime },
  };
}

/** No scheduler of the sandbox has this name, so the pod stays unscheduled. */
const UNKNOWN = 'unknown';

export async function createFixtureCluster(): Promise<FixtureCluster> {
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-cli-'));
  const sandbox = createSandbox({ directory, nodes: [] });
  await sandbox.start();
  const { client } = sandbox;
  return {
    sandbox,
    kubeconfig: await sandbox.kubeconfig({ kind: 'admin' }),
    async node(name, { labels, unschedulable, taints, conditions = [], allocatable, report } = {}) {
      const spec = { ...(unschedulable && { unschedulable }), ...(taints && { taints: structuredClone(taints) }) };
      const ready = [{ type: 'Ready', status: 'True' }, ...conditions];
      const node = nodeObject(name, { labels, spec, conditions: ready, allocatable });
      await client.create(NODES, { apiVersion: 'v1', kind: 'Node', ...node } as unknown as KubeObject);
      const { status, ...empty } = topologyObject(name, report);
      const made = await client.create(NODE_TOPOLOGIES, empty);
      const change = (draft: KubeObject) => Object.assign(draft, { status: structuredClone(status) });
      await client.edit(NODE_TOPOLOGIES, made, change, 'status');
    },
    async pod(name, options = {}) {
      const made = await client.create(PODS, podObject(name, options));
      const { status } = options;
      const change = (draft: KubePod) => Object.assign(draft, { status: { ...draft.status, ...status } });
      return status === undefined ? made : client.edit(PODS, made, change, 'status');
    },
    async namespace(name) {
      await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    },
    lease(namespace, name, spec) {
      const metadata = { name, namespace };
      return client.create(LEASES, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec });
    },
    async stop() {
      await sandbox.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** The cluster of a suite, with the bundled command; `prepare` adds its objects. */
export function useCluster(prepare?: (cluster: FixtureCluster) => Promise<unknown>): SuiteCluster {
  let cluster: FixtureCluster;
  before(async () => {
    buildCli();
    cluster = await createFixtureCluster();
    await prepare?.(cluster);
  });
  after(() => cluster?.stop());
  const run: SuiteCluster['run'] = (...args) => plumbline(args, { kubeconfig: cluster.kubeconfig });
  // The cluster exists when a test uses it.
  return new Proxy({} as SuiteCluster, { get: (_, key) => (key === 'run' ? run : Reflect.get(cluster, key)) });
}

function podObject(name: string, options: PodOptions): KubePod {
  const { cpus = 2, node, labels = {}, annotations = {}, resources, spec, ownerReferences } = options;
  const amounts = { cpu: String(cpus), memory: '1Gi', 'devices.kubevirt.io/kvm': '1', ...resources };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: options.namespace ?? 'default',
      labels: { ...labels },
      annotations: { ...annotations },
      ...(ownerReferences && { ownerReferences }),
    },
    spec: {
      schedulerName: UNKNOWN,
      containers: [{ name: 'compute', image: 'x', resources: { requests: amounts, limits: amounts } }],
      ...(node !== undefined && { nodeName: node }),
      ...(spec as object),
    },
  } as KubePod;
}
