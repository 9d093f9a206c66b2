import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { sidecarConfiguration } from '../../../cli/demo/cluster.ts';
import { startDaemon } from '../../../cli/demo/daemons.ts';
import type { KubeClient } from '../../../kube/client.ts';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { formatMicroTime } from '../../../model/lease/timing.ts';
import { kubeconfig as kubeconfigText } from '../../../sandbox/cluster/identities.ts';
import { statusOf } from '../../scheduler-plugin/extender-fixture.ts';
import { buildOnce, dist, root } from '../../support/bundles.ts';
import { readMetric } from '../../support/daemon-metrics.ts';
import { freePort, type Program } from '../../support/processes.ts';
import { shippedNodeOptions } from '../../support/shipped.ts';
import { until } from '../../support/until.ts';
import { type KubernetesObject, namespaceOf, podOf, startControlPlane } from '../control-plane-stage.ts';
import { objectsOf, render } from '../install/rendered-fixture.ts';

const SYSTEM = 'plumbline-system';
const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${SYSTEM}/leases`;
/** The Lease that the extenders follow, unless they have a kube-scheduler that takes part in an election. */
const LEASE = 'test-scheduler';
const BACKOFF = { podInitialBackoffSeconds: 1, podMaxBackoffSeconds: 10 };
/** Seconds that a renewal counts, and between two of them. */
const [DURATION, INTERVAL] = [600, 60];

export type Replica = Awaited<ReturnType<typeof startReplica>>;

interface ReplicaOptions {
  readonly args?: readonly string[];
  /** The host name of its kube-scheduler, which is in an election. Default: the stage's Lease names this replica. */
  readonly hostName?: string;
  readonly api?: { readonly url: string; readonly ca: string };
}

export type Stage = Awaited<ReturnType<typeof startStage>>;

export type ExtenderSettings = Readonly<Record<string, unknown>>;

/** How the extender is installed: in the pod of Plumbline's own kube-scheduler, or next to the cluster's. */
export type Way = 'sidecar' | 'loopback';

/** The account of the extender; in the pod of Plumbline's own kube-scheduler, that one has it, too. */
const ACCOUNTS: Readonly<Record<Way, string>> = {
  sidecar: 'plumbline-scheduler',
  loopback: 'plumbline-scheduler-plugin',
};

export interface Pair {
  readonly extender: Replica;
  readonly scheduler: Program;
}

export async function configurationAt(way: Way, port: number) {
  if (way === 'sidecar') return (await sidecarConfiguration(root, port)) as unknown as SchedulerConfiguration;
  const configuration = loopbackFile('kube-scheduler-config.yaml') as SchedulerConfiguration;
  const urlPrefix = `http://127.0.0.1:${port}`;
  return { ...configuration, extenders: configuration.extenders.map((extender) => ({ ...extender, urlPrefix })) };
}

interface SchedulerConfiguration {
  readonly extenders: readonly ExtenderSettings[];
  readonly [key: string]: unknown;
}

const loopbackFile = (file: string): unknown =>
  parse(readFileSync(join(root, 'manifests/scheduler/loopback', file), 'utf8'));

function shippedArgs(way: Way): readonly string[] {
  if (way === 'sidecar') return ['--scheduler-lease', `${SYSTEM}/plumbline-scheduler`];
  const pod = loopbackFile('plumbline-scheduler-plugin.yaml') as { spec: { containers: { args: string[] }[] } };
  return pod.spec.containers[0]?.args ?? [];
}

export interface SchedulerOptions {
  readonly name?: string;
  readonly percentageOfNodesToScore?: number;
  readonly extenders?: readonly ExtenderSettings[];
  readonly flags?: readonly string[];
}

export interface StageNode {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Undefined: its agent has not reported. */
  readonly topology?: NodeTopologyStatus | undefined;
}

export interface StagePod {
  readonly name: string;
  readonly cpu: string;
  readonly devices?: readonly string[];
  readonly more?: Readonly<Record<string, unknown>>;
}

export interface SeenPod {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string };
  readonly spec: { readonly nodeName?: string };
  readonly status: {
    readonly phase?: string;
    readonly nominatedNodeName?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[];
  };
}

/** A node of two sockets with four cores of two threads each, CPUs 0 and 8 reserved. physnet0 is on the first socket. */
export function topologyOf(changes: Partial<NodeTopologyStatus> = {}): NodeTopologyStatus {
  const { tunnel: _, ...status } = statusOf({
    topologyManager: { policy: 'best-effort' },
    physnets: [{ name: 'physnet0', cells: '0' }],
  });
  return { ...status, ...changes };
}

/** The same node with no free CPU. */
export function fullTopology(): NodeTopologyStatus {
  return topologyOf({ assignments: [{ podUID: 'full', container: 'compute', cpus: '1-7,9-15' }] });
}

interface StageOptions {
  readonly way?: Way;
  readonly apiServerArgs?: readonly string[];
}

export async function startStage({ way = 'sidecar', apiServerArgs = [] }: StageOptions = {}) {
  buildOnce();
  // Controllers that do not run here would have to remove the taint.
  const plane = await startControlPlane({
    apiServerArgs: ['--disable-admission-plugins=TaintNodesByCondition', ...apiServerArgs],
  });
  const replicas: Replica[] = [];
  try {
    await plane.create(...baseObjects(way));
    await plane.create(namespaceOf('ovn-kubernetes'));
  } catch (error) {
    await plane.stop();
    throw error;
  }
  const { client } = plane;
  const leader = createLeader(client);
  const readPod = async (name: string) => (await client.get(`/api/v1/namespaces/default/pods/${name}`)) as SeenPod;

  const start = async ({ args = [], api = plane, hostName }: ReplicaOptions = {}): Promise<Replica> => {
    const number = replicas.length + 1;
    const token = await plane.serviceAccountToken(SYSTEM, ACCOUNTS[way]);
    const kubeconfig = join(plane.directory, `extender-${number}.kubeconfig`);
    await writeFile(kubeconfig, kubeconfigText({ server: api.url, ca: api.ca, token }));
    const name = hostName ?? `replica-${number}`;
    const lease = ['--scheduler-lease', `${SYSTEM}/${LEASE}`];
    const own = ['--kubeconfig', kubeconfig, '--pod-name', name];
    const replica = await startReplica(plane.directory, number, [...lease, ...args, ...own]);
    replicas.push(replica);
    if (hostName === undefined) await leader.is(name);
    await replica.ready();
    if (hostName === undefined) await until('it to be active', () => replica.isActive());
    return replica;
  };
  return {
    plane,
    client,
    startReplica: start,
    async startPair(hostName: string): Promise<Pair> {
      const extender = await start({ args: shippedArgs(way), hostName });
      const configuration = await configurationAt(way, extender.port);
      const ownAccount = () => plane.accountKubeconfig(hostName, SYSTEM, ACCOUNTS.sidecar);
      const identity = { kubeconfig: way === 'sidecar' ? await ownAccount() : plane.adminKubeconfig, hostName };
      return { extender, scheduler: await plane.startScheduler({ ...configuration, ...BACKOFF }, identity) };
    },
    /** @param options in addition to the extender */
    async startScheduler(options: SchedulerOptions = {}): Promise<Program> {
      const { name = 'default-scheduler', percentageOfNodesToScore } = options;
      const profile = {
        schedulerName: name,
        ...(percentageOfNodesToScore !== undefined && { percentageOfNodesToScore }),
      };
      const { extenders = (await configurationAt('sidecar', replicas.at(-1)?.port ?? 0)).extenders } = options;
      return plane.startScheduler({ ...BACKOFF, profiles: [profile], extenders }, undefined, options.flags);
    },
    async addNodes(nodes: readonly StageNode[]) {
      await inParallel(nodes, async ({ name, labels = {}, topology }) => {
        await client.create('/api/v1/nodes', nodeObject(name, labels, topology));
        if (topology) await report(client, name, topology);
      });
    },
    async addPod({ name, cpu, devices = ['devices.kubevirt.io/kvm'], more = {} }: StagePod) {
      const amounts = { cpu, memory: '64Mi', ...Object.fromEntries(devices.map((device) => [device, '1'])) };
      const container = { name: 'compute', image: 'none', resources: { requests: amounts, limits: amounts } };
      const spec = { terminationGracePeriodSeconds: 0, ...more, containers: [container] };
      await client.create('/api/v1/namespaces/default/pods', podOf({ name }, spec));
    },
    podOf: readPod,
    bound: (name: string) => until(`${name} to be bound`, async () => (await readPod(name)).spec.nodeName),
    async waitsFor(name: string) {
      const { status } = await readPod(name);
      return status.conditions?.find(({ type }) => type === 'PodScheduled')?.message ?? '';
    },
    pods: async () => ((await client.get('/api/v1/namespaces/default/pods')) as { items: SeenPod[] }).items,
    async stop() {
      await Promise.all(replicas.map((replica) => replica.stop('SIGKILL')));
      leader.stop();
      await plane.stop();
    },
  };
}

function createLeader(client: KubeClient) {
  let holder: string | undefined;
  const renew = async () => {
    const spec = {
      holderIdentity: `${holder}_test`,
      leaseDurationSeconds: DURATION,
      renewTime: formatMicroTime(BigInt(Date.now()) * 1000n),
    };
    const object = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: LEASE }, spec };
    await client.patch(`${LEASES}/${LEASE}`, 'application/apply-patch+yaml', object, {
      query: { fieldManager: 'test', force: true },
    });
  };
  const timer = setInterval(() => void (holder && renew().catch(() => undefined)), INTERVAL * 1000);
  return {
    async is(name: string) {
      holder = name;
      await renew();
    },
    stop: () => clearInterval(timer),
  };
}

export async function nodeCondition(client: KubeClient, node: string, wanted: string) {
  const { status } = (await client.get(`/api/v1/nodes/${node}`)) as {
    status: { conditions?: { type: string; status: string; reason: string }[] };
  };
  return status.conditions?.find(({ type }) => type === wanted);
}

/** A report as the node's agent would write it, new or changed. */
export async function report(client: KubeClient, name: string, status: NodeTopologyStatus): Promise<void> {
  const path = '/apis/plumbline.dev/v1alpha1/nodetopologies';
  const object = { apiVersion: 'plumbline.dev/v1alpha1', kind: 'NodeTopology', metadata: { name } };
  await client.create(path, object).catch((error: unknown) => {
    if (!(error instanceof Error && 'reason' in error && error.reason === 'AlreadyExists')) throw error;
  });
  await client.patch(`${path}/${name}/status`, 'application/merge-patch+json', { status });
}

/** CPUs of a Node at least: enough room for kube-scheduler's own checks, so that only the extender refuses. */
const CPUS = 64;

/** As many CPUs as the report has: a report with more than its Node would be in quarantine. */
function nodeObject(
  name: string,
  labels: Readonly<Record<string, string>>,
  topology: NodeTopologyStatus | undefined,
): KubernetesObject {
  const reported = (topology?.cells ?? []).reduce((sum, { cpus }) => sum + CpuSet.parse(cpus).size, 0);
  const amounts = {
    cpu: String(Math.max(CPUS, reported)),
    memory: '256Gi',
    pods: '500',
    'devices.kubevirt.io/kvm': '1k',
    'physnet.plumbline.dev/physnet0': '1k',
    'plumbline.dev/placed': '1k',
  };
  return readyNode(name, amounts, { labels });
}

export function readyNode(
  name: string,
  amounts: Readonly<Record<string, string>>,
  { labels = {}, status = {} }: { readonly labels?: object; readonly status?: object } = {},
): KubernetesObject {
  const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' }];
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } },
    status: { capacity: amounts, allocatable: amounts, conditions, ...status },
  };
}

function baseObjects(way: Way): KubernetesObject[] {
  const left = ['PodDisruptionBudget', 'NetworkPolicy', 'PriorityClass'];
  return objectsOf(render('base', way === 'loopback' ? ['scheduler/loopback'] : [])).filter(
    ({ kind, metadata: { name } }) =>
      ['Namespace', 'CustomResourceDefinition'].includes(kind) ||
      (name.startsWith('plumbline-scheduler') && !left.includes(kind)),
  );
}

async function startReplica(directory: string, number: number, args: readonly string[]) {
  const daemon = startDaemon({
    name: `extender-${number}`,
    program: join(dist, 'scheduler-plugin.cjs'),
    args: [...args, '--port', String(await freePort()), '--probe-host', '127.0.0.1', '--probe-port', '0'],
    directory,
    env: shippedNodeOptions('scheduler-plugin'),
  });
  const { port, probePort } = await daemon.ports();
  const metric = (name: string, labels?: Readonly<Record<string, string>>) => readMetric(probePort, name, labels);
  return {
    ...daemon,
    port,
    isActive: async () => (await metric('plumbline_extender_active')) === 1,
    metric,
  };
}

export async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>, most = 32): Promise<void> {
  const left = [...items];
  const worker = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: most }, worker));
}
