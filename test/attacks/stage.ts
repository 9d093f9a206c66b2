import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { demoMachine } from '../../cli/demo/vms.ts';
import { createKubeClient } from '../../kube/api-transport.ts';
import type { KubeClient } from '../../kube/client.ts';
import { kubeconfigAccess } from '../../kube/kubeconfig.ts';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { startWorld } from '../faults/world/world.ts';
import { DPU_WORKER, DPUS, SYSTEM, WORKER } from '../real/install/daemons-stage.ts';
import { install } from '../real/install/installation-stage.ts';
import { type CreatedPod, cpusOf, sceneOf, WHOLE_CORES } from '../real/webhook/objects-fixture.ts';
import { buildOnce } from '../support/bundles.ts';
import { readMetric } from '../support/daemon-metrics.ts';
import { httpCall } from '../support/http-call.ts';
import { isInstalled } from '../support/parts.ts';
import { processorWaitMs } from '../support/processor-time.ts';
import { until } from '../support/until.ts';
import { vmiOwner } from '../support/vmi-owner.ts';

/** A daemon under attack. */
export interface Victim {
  readonly name: string;
  readonly pid: number;
  readonly port: number;
  readonly probePort: number;
}

/** The attacker. */
export type Attacker =
  /** The token of a node's agent. */
  | { readonly kind: 'node'; readonly node: string }
  /** The account of a node's DPU. */
  | { readonly kind: 'dpu'; readonly node: string }
  /** May create VMs and pods in the namespace `mallory`. */
  | { readonly kind: 'tenant' };

/** An agent that serves the gate. */
export const GATE = {
  name: 'a node agent with a gate, which the sandbox has none of',
  install: 'as root, put kube-apiserver, kube-scheduler and etcd into KUBEBUILDER_ASSETS or /usr/local/kubebuilder/bin',
};

/** A cluster with Plumbline, its daemons as processes, and VMs of other tenants that must be served meanwhile. */
export interface Stage {
  /** `real`: a real API server with the shipped permissions and policies. The sandbox enforces neither. */
  readonly ground: 'real' | 'sandbox';
  readonly admin: KubeClient;
  readonly webhook: Victim;
  readonly extender: Victim;
  /** The honest node's agent with the socket of its gate; undefined on the sandbox. */
  readonly agent: (Victim & { readonly gateSocket: string }) | undefined;
  /** The authority of the webhook's certificate, PEM. */
  readonly ca: string;
  /** A node with an honest agent, and one whose agent does not run. */
  readonly honest: string;
  readonly rogue: string;
  /** The report of the rogue's agent. */
  readonly truth: NodeTopologyStatus;
  as(attacker: Attacker): Promise<KubeClient>;
  /**
   * A VM of another tenant: its launcher is created, padded and bound to a node.
   * @throws if it is not padded as before the attack, or not bound within 20 s
   */
  serve(): Promise<void>;
  stop(): Promise<void>;
}

const AMOUNTS = { cpu: '9', memory: '1Gi' };

/** A pod that looks like the launcher of the VMI `vm` with this uid. */
export const launcherOf = (uid: string, metadata: object) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    labels: { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': uid },
    ownerReferences: [{ ...vmiOwner('vm', uid), blockOwnerDeletion: true }],
    ...metadata,
  },
  spec: { containers: [{ name: 'compute', image: 'none', resources: { requests: AMOUNTS, limits: AMOUNTS } }] },
});

export const MERGE = 'application/merge-patch+json';
export const TOPOLOGIES = '/apis/plumbline.dev/v1alpha1/nodetopologies';
export const MALLORY = 'mallory';

export function startStage(): Promise<Stage> {
  return isInstalled('controlPlane') ? onRealApiServer() : onSandbox();
}

/** Clients of the attackers, which end with the stage. */
function attackerClients() {
  const clients: KubeClient[] = [];
  return {
    async open(kubeconfig: Promise<string>): Promise<KubeClient> {
      const client = createKubeClient(kubeconfigAccess(await kubeconfig), 'attacker');
      clients.push(client);
      return client;
    },
    close: () => Promise.all(clients.map((client) => client.close())),
  };
}

async function onRealApiServer(): Promise<Stage> {
  const installed = await install();
  const { plane } = installed;
  const clients = attackerClients();
  try {
    const webhook = await installed.startWebhook();
    const { extender } = await installed.startPair('pair-1');
    const agent = await installed.startAgent(WORKER);
    await Promise.all([webhook, extender, agent].map((daemon) => daemon.ready()));
    await plane.create(...TENANT);
    const read = async (node: string) =>
      ((await plane.client.get(`${TOPOLOGIES}/${node}`)) as { status?: NodeTopologyStatus }).status;
    let [count, attackers] = [0, 0];
    const stage: Stage = {
      ground: 'real',
      admin: plane.client,
      webhook: { name: 'webhook', pid: webhook.pid, ...(await webhook.ports()) },
      extender: { name: 'extender', pid: extender.pid, ...(await extender.ports()) },
      agent: {
        name: 'agent',
        pid: agent.pid,
        ...(await agent.ports()),
        gateSocket: join(installed.nodes.get(WORKER)!.kubelet.directory, '../gate.sock'),
      },
      ca: installed.ca(),
      honest: WORKER,
      rogue: DPU_WORKER,
      truth: await until('the report of the honest node', () => read(WORKER)),
      as: (attacker) => clients.open(kubeconfigOf(plane, attacker, `attacker-${++attackers}`)),
      async serve() {
        const name = `innocent-${++count}`;
        const pod = await sceneOf(plane.client).launcher(name, WHOLE_CORES);
        try {
          await untilServed(plane.client, pod, '6');
        } finally {
          const grace = { body: { gracePeriodSeconds: 0 } };
          await plane.client.delete(`/api/v1/namespaces/tenant/pods/${pod.metadata.name}`, grace);
          await plane.client.delete(`/apis/kubevirt.io/v1/namespaces/tenant/virtualmachineinstances/${name}`);
        }
      },
      async stop() {
        await clients.close();
        await installed.stop();
      },
    };
    await stage.serve();
    return stage;
  } catch (error) {
    await installed.stop();
    throw error;
  }
}

async function onSandbox(): Promise<Stage> {
  buildOnce();
  const world = await startWorld('sandbox');
  const { cluster, daemons } = world;
  // It expands every reported list, which is attacked here.
  world.observer.stop();
  const clients = attackerClients();
  const clientOf = (identity: Parameters<typeof cluster.kubeconfig>[0]) => clients.open(cluster.kubeconfig(identity));
  const admin = await clientOf({ kind: 'admin' });
  await admin.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: MALLORY } });
  const victim = (name: string): Victim => daemons.get(name);
  const truth = await until('the report of the honest node', async () => {
    const { status } = (await admin.get(`${TOPOLOGIES}/two-b`)) as { status?: NodeTopologyStatus };
    return status;
  });
  await daemons.get('agent-two-b').stop();
  let count = 0;
  const stage: Stage = {
    ground: 'sandbox',
    admin,
    webhook: victim('webhook-1'),
    extender: victim('extender-1'),
    agent: undefined,
    ca: cluster.authority.cert,
    honest: 'one',
    rogue: 'two-b',
    truth,
    as(attacker) {
      if (attacker.kind === 'node') return clientOf({ kind: 'node-agent', node: attacker.node });
      if (attacker.kind === 'dpu') return clientOf({ kind: 'dpu', node: attacker.node });
      return clientOf({ kind: 'admin' });
    },
    async serve() {
      const name = `innocent-${++count}`;
      const vms = '/apis/kubevirt.io/v1/namespaces/demo/virtualmachines';
      await admin.create(vms, demoMachine({ name, annotated: true }));
      try {
        const pod = await until(`the launcher of ${name}`, async () => {
          const { items } = (await admin.get('/api/v1/namespaces/demo/pods')) as { items: CreatedPod[] };
          return items.find(({ metadata }) => metadata.name.startsWith(`virt-launcher-${name}-`));
        });
        await untilServed(admin, pod, '10');
      } finally {
        await admin.delete(`${vms}/${name}`);
      }
    },
    async stop() {
      await clients.close();
      await world.stop(false);
    },
  };
  await stage.serve();
  return stage;
}

/** Until a launcher is bound, which must be padded to these CPUs. */
async function untilServed(client: KubeClient, pod: CreatedPod, cpus: string): Promise<void> {
  const { name, namespace } = pod.metadata;
  const [limit] = cpusOf(pod);
  if (limit !== cpus) throw new Error(`${name} has ${limit} CPUs: expected ${cpus}, as before the attack`);
  await until(`${name} to be bound`, async () => {
    const { spec } = (await client.get(`/api/v1/namespaces/${namespace}/pods/${name}`)) as CreatedPod;
    return spec.nodeName;
  });
}

const TENANT = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: MALLORY } },
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'mallory', namespace: MALLORY } },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'tenants' },
    rules: [
      { apiGroups: ['kubevirt.io', 'pool.kubevirt.io', 'instancetype.kubevirt.io'], resources: ['*'], verbs: ['*'] },
      { apiGroups: ['snapshot.kubevirt.io', 'clone.kubevirt.io'], resources: ['*'], verbs: ['*'] },
      { apiGroups: ['k8s.cni.cncf.io'], resources: ['*'], verbs: ['*'] },
      { apiGroups: [''], resources: ['pods', 'configmaps', 'events'], verbs: ['*'] },
    ],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'mallory', namespace: MALLORY },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'tenants' },
    subjects: [{ kind: 'ServiceAccount', name: 'mallory', namespace: MALLORY }],
  },
];

type Plane = Awaited<ReturnType<typeof install>>['plane'];

async function kubeconfigOf(plane: Plane, attacker: Attacker, file: string): Promise<string> {
  switch (attacker.kind) {
    case 'node':
      return plane.accountKubeconfig(file, SYSTEM, 'plumbline-node-agent', `agent-${attacker.node}`);
    case 'dpu': {
      const metadata = { name: attacker.node, namespace: DPUS };
      await plane.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata });
      return plane.accountKubeconfig(file, DPUS, attacker.node);
    }
    case 'tenant':
      return plane.accountKubeconfig(file, MALLORY, 'mallory');
  }
}

/** The extender serves plain HTTP, on loopback. */
export const servesTls = ({ name }: Victim) => name.startsWith('webhook');

/** The answer of a daemon to one POST on a connection of its own. */
export const postTo = (victim: Victim, path: string, body: string) =>
  httpCall({ port: victim.port, path, body, ...(servesTls(victim) && { trust: 'any' }) });

/** Milliseconds of CPU time of a process. */
export function processorMs({ pid }: Victim): number {
  // After the name in brackets, which may contain anything: fields 14 and 15, in ticks of 10 ms.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** The highest resident memory so far, in MiB. */
export function peakMiB({ pid }: Victim): number {
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** By process: what its thread had waited for a processor at the last call. */
const waited = new Map<number, number>();

/**
 * The longest time that a daemon's event loop was busy since the last call, in milliseconds, without what its thread waited
 * for a processor since then: that is other processes' work.
 */
export async function longestDelay(victim: Victim): Promise<number> {
  const longest = (await readMetric(victim.probePort, 'nodejs_eventloop_lag_max_seconds')) * 1000;
  const now = processorWaitMs(victim.pid);
  const before = waited.get(victim.pid) ?? now;
  waited.set(victim.pid, now);
  return Math.max(0, longest - (now - before));
}
