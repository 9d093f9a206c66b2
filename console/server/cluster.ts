import * as z from 'zod';
import {
  dpuRestart,
  type ExplainedMigration,
  explainedMigration,
  hasReadyReplica,
  isDpuHost,
} from '../../diagnosis/objects.ts';
import { name } from '../../kube/bounds.ts';
import type { KubeClient } from '../../kube/client.ts';
import { factsOfNode } from '../../kube/node-facts.ts';
import { cacheProblem, createReflector, type Reflector } from '../../kube/reflector.ts';
import { createReportReflector } from '../../kube/report-reflector.ts';
import { type Lease, lease as leaseSchema, node as nodeSchema, objectMeta } from '../../kube/resources.ts';
import { AGENT_LEASE_PREFIX, AgentHealth } from '../../model/lease/agent-health.ts';
import {
  AGENT_READY_CONDITION,
  DPU_READY_CONDITION,
  NAMESPACE,
  SCHEDULABLE_LABEL,
  SCHEDULER,
} from '../../model/names.ts';
import { TenantBudget } from '../../runtime/tenant-budget.ts';
import { sleep } from '../../runtime/time.ts';
import { KINDS, type Kind, type OptionalKind } from './kinds.ts';
import type { ConsoleLogger } from './log-messages.ts';
import { type ShownPod, shownPod, watchedPod } from './pods.ts';
import { createReports } from './reports.ts';
import { shownInstance, waitingMachine, watchedInstance, watchedMachine } from './vms.ts';
import { createStaleness, noting } from './watch-health.ts';

export type Cluster = ReturnType<typeof createCluster>;

/** What follows the changes of the watched objects. */
interface ChangeListener {
  nodeChanged(name: string): void;
  podChanged(before: ShownPod | undefined, after: ShownPod | undefined): void;
  /** @param key `namespace/name` */
  vmChanged(key: string): void;
  /** @param vm `namespace/name` */
  launchersChanged(vm: string): void;
}

interface ClusterOptions {
  readonly client: KubeClient;
  readonly without: ReadonlySet<OptionalKind>;
  readonly feed: ChangeListener;
  readonly log: ConsoleLogger;
  readonly nowSeconds: () => number;
}

const DRA_CPU_DRIVER = 'dra.cpu';
/** Seconds between two checks for expired Leases of agents. */
const SWEEP_SECONDS = 1;
const MAX_CONDITION_CHARACTERS = 200;
/** Memory for the pods that the page shows, and for the VMs and VMIs that have no launcher or a paused guest. */
const MAX_POD_BYTES = 96 * 1024 * 1024;
const MAX_VM_BYTES = 8 * 1024 * 1024;

export const resourceSlice = z.object({
  metadata: objectMeta,
  spec: z.object({ driver: name, nodeName: name.nullish() }),
});

export const watchedDeployment = z.object({
  metadata: objectMeta,
  status: z.object({ readyReplicas: z.number().nullish() }).nullish(),
});

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
  const silence = new SilentAgents(feed, nowSeconds);
  const leader = new Leader();
  const draCpu = new Set<string>();
  const staleness = createStaleness(problems, nowSeconds);

  const reports = createReports((node) => feed.nodeChanged(node));
  const nodetopologies = createReportReflector(shared('nodetopologies'), reports.take);
  const nodes = createReflector({
    ...shared('nodes'),
    schema: nodeSchema,
    project: shownNode,
    onChange: ({ key }) => feed.nodeChanged(key),
  });
  const pods = createReflector({
    ...shared('pods'),
    schema: watchedPod,
    project: shownPod,
    budget: new TenantBudget(MAX_POD_BYTES),
    onChange: ({ before, after }) => feed.podChanged(before, after),
  });
  const leases = createReflector({
    ...shared('leases'),
    schema: leaseSchema,
    project: ({ spec }): LeaseSpec => spec ?? {},
    onChange({ key, after }) {
      const name = key.slice(NAMESPACE.length + 1);
      if (name === SCHEDULER) leader.changed(after, nowSeconds());
      if (!name.startsWith(AGENT_LEASE_PREFIX)) return;
      silence.leaseChanged(name.slice(AGENT_LEASE_PREFIX.length), after, nodes.items);
    },
  });
  const { instances, machines, deployments } = createStartReflectors(shared, feed);
  const { moves, migrations } = createMigrationReflector(shared, feed);
  const resourceslices = createSliceReflector(shared, feed, draCpu);
  const kinds = {
    nodetopologies,
    nodes,
    pods,
    leases,
    virtualmachineinstances: instances,
    virtualmachineinstancemigrations: migrations,
    virtualmachines: machines,
    deployments,
    resourceslices,
  };
  const all = Object.entries(kinds).filter(([kind]) => !without.has(kind as OptionalKind));
  const readable = () => all.filter(([kind]) => !forbidden.has(kind as OptionalKind));

  return {
    async run(signal: AbortSignal) {
      const sweep = silence.sweep(nodes.items, leases, signal);
      await Promise.all([...all.map(([, reflector]) => reflector.run(signal)), sweep]);
    },
    /** Kinds without a complete or recent list, as text; undefined if there are none: see cacheProblem. */
    get missing() {
      return cacheProblem(Object.fromEntries(readable()), nowSeconds());
    },
    /** Since when the data may be old, RFC 3339, and why; undefined if every watch works. */
    problem: () => staleness.problem(readable()),
    /** The leader's pod; null: no leader; undefined: unknown. */
    get leader() {
      return leases.synced ? leader.pod(nowSeconds(), leases.lastHeard) : undefined;
    },
    nodes: nodes.items,
    reports: reports.byNode,
    instances: instances.items,
    machines: machines.items,
    migrationsOf: (vm: string): readonly ExplainedMigration[] => [...(moves.get(vm)?.values() ?? [])],
    notReady: () => [...deployments.items.values()].filter((name) => name !== undefined).sort(),
    forbidden: forbidden as ReadonlySet<OptionalKind>,
    get stale() {
      return silence.nodes;
    },
    renewTime: (node: string) => leases.items.get(`${NAMESPACE}/${AGENT_LEASE_PREFIX}${node}`)?.renewTime,
    draCpu: draCpu as ReadonlySet<string>,
  };
}

type Shared = (kind: Kind) => Pick<ClusterOptions, 'client' | 'log' | 'nowSeconds'> & { readonly path: string };

/** The watches of what may keep a VM from starting, or its guest from running. */
function createStartReflectors(shared: Shared, feed: ChangeListener) {
  const instances = createReflector({
    ...shared('virtualmachineinstances'),
    schema: watchedInstance,
    project: shownInstance,
    budget: new TenantBudget(MAX_VM_BYTES),
    onChange({ key, before, after }) {
      for (const instance of [before, after])
        if (instance !== undefined && instance.node !== '') feed.nodeChanged(instance.node);
      feed.vmChanged(key);
    },
    optional: true,
  });
  const machines = createReflector({
    ...shared('virtualmachines'),
    schema: watchedMachine,
    project: waitingMachine,
    budget: new TenantBudget(MAX_VM_BYTES),
    onChange: ({ key }) => {
      feed.vmChanged(key);
      feed.launchersChanged(key);
    },
    optional: true,
  });
  const deployments = createReflector({
    ...shared('deployments'),
    schema: watchedDeployment,
    project: (deployment) => (hasReadyReplica(deployment) ? undefined : deployment.metadata.name),
    optional: true,
  });
  return { instances, machines, deployments };
}

/** The migrations of each VMI by their keys. */
function createMigrationReflector(shared: Shared, feed: ChangeListener) {
  const moves = new Map<string, Map<string, ExplainedMigration>>();
  const migrations = createReflector({
    ...shared('virtualmachineinstancemigrations'),
    schema: explainedMigration,
    project: ({ metadata, spec, status }) => ({
      vm: `${metadata.namespace}/${spec.vmiName}`,
      migration: { metadata, spec, status },
    }),
    budget: new TenantBudget(MAX_VM_BYTES),
    onChange({ key, before, after }) {
      for (const change of [before, after].filter((state) => state !== undefined)) {
        const { vm, migration } = change;
        const own = moves.get(vm) ?? new Map<string, ExplainedMigration>();
        if (change === after) own.set(key, migration);
        else own.delete(key);
        if (own.size > 0) moves.set(vm, own);
        else moves.delete(vm);
        feed.launchersChanged(vm);
      }
    },
    optional: true,
  });
  return { moves, migrations };
}

function createSliceReflector(shared: Shared, feed: ChangeListener, draCpu: Set<string>) {
  const resourceslices = createReflector({
    ...shared('resourceslices'),
    schema: resourceSlice,
    project: ({ spec }) => (spec.driver === DRA_CPU_DRIVER ? (spec.nodeName ?? undefined) : undefined),
    onChange({ before, after }) {
      const named = new Set(resourceslices.items.values());
      for (const node of [before, after].filter((name) => name !== undefined)) {
        if (named.has(node)) draCpu.add(node);
        else draCpu.delete(node);
        feed.nodeChanged(node);
      }
    },
    optional: true,
  });
  return resourceslices;
}

function shownNode({ metadata, status }: z.infer<typeof nodeSchema>) {
  const conditionOf = (name: string) => status?.conditions?.find(({ type }) => type === name);
  const condition = conditionOf(DPU_READY_CONDITION);
  return {
    ...factsOfNode({ metadata, status }),
    dpuHost: isDpuHost({ metadata }),
    acceptsVms: metadata.labels?.[SCHEDULABLE_LABEL] === 'true',
    agentReady: conditionOf(AGENT_READY_CONDITION)?.status,
    dpuReady: condition?.status,
    dpuSince: condition?.lastTransitionTime ?? undefined,
    dpuRestart: dpuRestart({ metadata, status: { conditions: status?.conditions ?? [] } }),
    dpuMessage: condition?.message?.slice(0, MAX_CONDITION_CHARACTERS),
  };
}

type LeaseSpec = Partial<NonNullable<Lease['spec']>>;

type ShownNodes = ReadonlyMap<string, ReturnType<typeof shownNode>>;

/**
 * The pod that leads plumbline-scheduler. Owner: its Lease, whose renewals are observed here. Age: as that of an agent's
 * Lease. End: the Lease is deleted.
 */
class Leader {
  readonly #health = new AgentHealth();
  #pod: string | null | undefined;

  changed(lease: LeaseSpec | undefined, now: number): void {
    if (lease === undefined) {
      this.#pod = undefined;
      this.#health.forget(SCHEDULER);
      return;
    }
    const { holderIdentity: holder = '', renewTime, leaseDurationSeconds: duration } = lease;
    this.#pod = holder.slice(0, Math.max(0, holder.lastIndexOf('_'))) || null;
    this.#health.changed({ node: SCHEDULER, renewTime, duration }, now);
  }

  /** @param lastMessage of the watch of Leases @returns null: no leader; undefined: no such Lease */
  pod(now: number, lastMessage: number | undefined): string | null | undefined {
    return this.#pod && this.#health.stale(now, lastMessage).has(SCHEDULER) ? null : this.#pod;
  }
}

/**
 * The nodes whose agent is silent. Owner: the agents' Leases, whose renewals are observed here; until the first one is,
 * the extender's condition decides. Age: checked every second. End: the Lease and the Node are deleted.
 */
class SilentAgents {
  readonly #health = new AgentHealth();
  readonly #feed: Pick<ChangeListener, 'nodeChanged'>;
  readonly #nowSeconds: () => number;
  #nodes: ReadonlySet<string> = new Set();

  constructor(feed: Pick<ChangeListener, 'nodeChanged'>, nowSeconds: () => number) {
    this.#feed = feed;
    this.#nowSeconds = nowSeconds;
  }

  get nodes(): ReadonlySet<string> {
    return this.#nodes;
  }

  leaseChanged(node: string, lease: LeaseSpec | undefined, nodes: ReadonlyMap<string, unknown>): void {
    if (lease) {
      const { renewTime, leaseDurationSeconds: duration } = lease;
      this.#health.changed({ node, renewTime, duration }, this.#nowSeconds());
    } else if (!nodes.has(node)) this.#health.forget(node);
  }

  async sweep(nodes: ShownNodes, leases: Pick<Reflector<LeaseSpec>, 'lastHeard'>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(SWEEP_SECONDS, signal).catch(() => undefined);
      const before = this.#nodes;
      this.#nodes = new Set([
        ...this.#health.stale(this.#nowSeconds(), leases.lastHeard),
        ...this.#silentAtStart(nodes),
      ]);
      for (const node of [...this.#nodes, ...before]) {
        if (this.#nodes.has(node) !== before.has(node)) this.#feed.nodeChanged(node);
      }
    }
  }

  /** Nodes whose agent the extender calls silent, while no renewal of its Lease was observed here. */
  #silentAtStart(nodes: ShownNodes): string[] {
    const silent = [...nodes].filter(
      ([name, { agentReady }]) => agentReady === 'False' && !this.#health.hasRenewed(name),
    );
    return silent.map(([name]) => name);
  }
}
