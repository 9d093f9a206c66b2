import * as z from 'zod';
import { dpuRestart, type ExplainedMigration, explainedMigration, hasReadyReplica } from '../../diagnosis/objects.ts';
import type { KubeClient } from '../../kube/client.ts';
import {
  type ElectionLease,
  electionLease,
  hostOfHolder,
  Leader,
  type NodeLease,
  nodeLease,
} from '../../kube/cluster-view/leases.ts';
import { createReportReflector } from '../../kube/cluster-view/node-topologies.ts';
import { factsOfNode, isDpuHost, nodeCondition, writtenConditions } from '../../kube/cluster-view/nodes.ts';
import { createResourceSliceReflector } from '../../kube/cluster-view/resource-slices.ts';
import { agentLeaseKey, SilentAgents } from '../../kube/cluster-view/silent-agents.ts';
import { cacheProblem, createReflector } from '../../kube/reflector.ts';
import { type Lease, lease as leaseSchema, type Node, node as nodeSchema, objectMeta } from '../../kube/resources.ts';
import { AGENT_LEASE_PREFIX, DPU_READY_CONDITION, SCHEDULABLE_LABEL, SCHEDULER } from '../../model/names.ts';
import { TenantBudget } from '../../runtime/tenant-budget.ts';
import type { ConsoleLogger } from './config.ts';
import { KINDS, type Kind, type OptionalKind } from './kinds.ts';
import { type ShownPod, shownPod, watchedPod } from './pods.ts';
import { createReports } from './reports.ts';
import { shownInstance, waitingMachine, watchedInstance, watchedMachine } from './vms.ts';
import { createStaleness, noting } from './watch-health.ts';

export type Cluster = ReturnType<typeof createCluster>;

/** What follows the changes of the watched objects. A VM has the name `namespace/name`. */
interface ChangeListener {
  nodeChanged(name: string): void;
  podChanged(before: ShownPod | undefined, after: ShownPod | undefined): void;
  vmChanged(vm: string): void;
  launchersChanged(vm: string): void;
}

interface ClusterOptions {
  readonly client: KubeClient;
  readonly without: ReadonlySet<OptionalKind>;
  readonly feed: ChangeListener;
  readonly log: ConsoleLogger;
  readonly nowSeconds: () => number;
}

const MAX_CONDITION_CHARACTERS = 200;
/** Memory for the pods that the page shows, and for the VMs and VMIs that have no launcher or a paused guest. */
const MAX_POD_BYTES = 96 * 1024 * 1024;
const MAX_VM_BYTES = 8 * 1024 * 1024;

export const watchedDeployment = z.object({
  metadata: objectMeta,
  status: z.object({ readyReplicas: z.number().nullish() }).nullish(),
});

type WatchedLease = ElectionLease | NodeLease | undefined;

const watchedLease = (lease: Lease): WatchedLease =>
  lease.metadata.name === SCHEDULER ? electionLease(lease) : nodeLease(lease, AGENT_LEASE_PREFIX);

const isElection = (lease: WatchedLease): lease is ElectionLease => lease !== undefined && 'holder' in lease;

/** Creates the watches for the page. They send no request before `run`. */
export function createCluster({ client, without, feed, log, nowSeconds }: ClusterOptions) {
  const problems = new Map<Kind, string>();
  const forbidden = new Set<OptionalKind>(without);
  const shared = (kind: Kind) => ({
    client: noting(client, kind, problems, forbidden),
    path: KINDS[kind].path,
    log,
    nowSeconds,
  });
  const agents = new SilentAgents({ onSilent: (node) => feed.nodeChanged(node), nowSeconds });
  const leader = new Leader();
  const draCpu = new Set<string>();
  const staleness = createStaleness(problems, nowSeconds);
  const reports = createReports((node) => feed.nodeChanged(node));
  const nodes = createReflector({
    ...shared('nodes'),
    schema: nodeSchema,
    project: shownNode,
    onChange: ({ key, after }) => {
      feed.nodeChanged(key);
      if (after === undefined) agents.nodeDeleted(key);
    },
  });
  const leases = createReflector({
    ...shared('leases'),
    schema: leaseSchema,
    project: watchedLease,
    onChange({ before, after }) {
      if (isElection(after)) leader.leaseChanged(after, nowSeconds());
      else if (isElection(before)) leader.leaseChanged(undefined, nowSeconds());
      else agents.leaseChanged({ before, after }, nodes.items);
    },
  });
  const vms = createVmReflectors(shared, feed);
  const deployments = createReflector({
    ...shared('deployments'),
    schema: watchedDeployment,
    project: (deployment) => (hasReadyReplica(deployment) ? undefined : deployment.metadata.name),
    optional: true,
  });
  const reflectors = {
    nodetopologies: createReportReflector(shared('nodetopologies'), reports.take),
    nodes,
    pods: createReflector({
      ...shared('pods'),
      schema: watchedPod,
      project: shownPod,
      budget: new TenantBudget(MAX_POD_BYTES),
      onChange: ({ before, after }) => feed.podChanged(before, after),
    }),
    leases,
    ...vms.reflectors,
    deployments,
    resourceslices: createResourceSliceReflector(shared('resourceslices'), (node, hasDraCpu) => {
      if (hasDraCpu) draCpu.add(node);
      else draCpu.delete(node);
      feed.nodeChanged(node);
    }),
  };
  const all = Object.entries(reflectors).filter(([kind]) => !without.has(kind as OptionalKind));
  const readable = () => all.filter(([kind]) => !forbidden.has(kind as OptionalKind));

  return {
    async run(signal: AbortSignal) {
      // Until a renewal of an agent's Lease is observed here, the extender's condition decides.
      const reported = () => [...nodes.items].flatMap(([name, { agentReady }]) => (agentReady === 'False' ? name : []));
      await Promise.all([...all.map(([, reflector]) => reflector.run(signal)), agents.run(leases, signal, reported)]);
    },
    /** Kinds without a complete or recent list, as text; undefined if there are none: see cacheProblem. */
    get missing() {
      return cacheProblem(Object.fromEntries(readable()), nowSeconds());
    },
    /** Since when the data may be old, RFC 3339, and why; undefined if every watch works. */
    problem: () => staleness.problem(readable()),
    /** The leader's pod; null: no leader; undefined: unknown. */
    get leader() {
      if (!leases.synced || leader.holder === undefined) return undefined;
      return leader.hasExpired(nowSeconds(), leases.lastHeard) ? null : hostOfHolder(leader.holder) || null;
    },
    nodes: nodes.items,
    reports: reports.byNode,
    instances: vms.reflectors.virtualmachineinstances.items,
    machines: vms.reflectors.virtualmachines.items,
    migrationsOf: (vm: string): readonly ExplainedMigration[] => [...(vms.moves.get(vm)?.values() ?? [])],
    notReady: () => [...deployments.items.values()].filter((name) => name !== undefined).sort(),
    forbidden: forbidden as ReadonlySet<OptionalKind>,
    get stale() {
      return agents.nodes;
    },
    renewTime: (node: string) => leases.items.get(agentLeaseKey(node))?.renewTime,
    draCpu: draCpu as ReadonlySet<string>,
  };
}

type Shared = (kind: Kind) => Pick<ClusterOptions, 'client' | 'log' | 'nowSeconds'> & { readonly path: string };

/** The watches of VMs and their migrations, each with a limited memory. */
function createVmReflectors(shared: Shared, feed: ChangeListener) {
  /** The migrations of each VMI by their keys. */
  const moves = new Map<string, Map<string, ExplainedMigration>>();
  const bounded = (kind: Kind) => ({ ...shared(kind), budget: new TenantBudget(MAX_VM_BYTES), optional: true });
  const virtualmachineinstances = createReflector({
    ...bounded('virtualmachineinstances'),
    schema: watchedInstance,
    project: shownInstance,
    onChange({ key, before, after }) {
      for (const node of [before?.node, after?.node]) if (node) feed.nodeChanged(node);
      feed.vmChanged(key);
    },
  });
  const virtualmachines = createReflector({
    ...bounded('virtualmachines'),
    schema: watchedMachine,
    project: waitingMachine,
    onChange: ({ key }) => {
      feed.vmChanged(key);
      feed.launchersChanged(key);
    },
  });
  const virtualmachineinstancemigrations = createReflector({
    ...bounded('virtualmachineinstancemigrations'),
    schema: explainedMigration,
    project: ({ metadata, spec, status }) => ({
      vm: `${metadata.namespace}/${spec.vmiName}`,
      migration: { metadata, spec, status },
    }),
    onChange({ key, before, after }) {
      for (const change of [before, after].filter((one) => one !== undefined)) {
        const { vm, migration } = change;
        const vmMigrations = moves.get(vm) ?? new Map<string, ExplainedMigration>();
        if (change === after) vmMigrations.set(key, migration);
        else vmMigrations.delete(key);
        if (vmMigrations.size > 0) moves.set(vm, vmMigrations);
        else moves.delete(vm);
        feed.launchersChanged(vm);
      }
    },
  });
  return { moves, reflectors: { virtualmachineinstances, virtualmachineinstancemigrations, virtualmachines } };
}

function shownNode(node: Node) {
  const condition = nodeCondition(node, DPU_READY_CONDITION);
  return {
    ...factsOfNode(node),
    ...writtenConditions(node),
    dpuHost: isDpuHost(node),
    acceptsVms: node.metadata.labels?.[SCHEDULABLE_LABEL] === 'true',
    dpuSince: condition?.lastTransitionTime ?? undefined,
    dpuRestart: dpuRestart(node),
    dpuMessage: condition?.message?.slice(0, MAX_CONDITION_CHARACTERS),
  };
}
