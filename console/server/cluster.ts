import * as z from 'zod';
import { isDpuHost } from '../../diagnosis/objects.ts';
import { name } from '../../kube/bounds.ts';
import { type KubeClient, KubeError } from '../../kube/client.ts';
import { factsOfNode } from '../../kube/node-facts.ts';
import { cacheProblem, createReflector, type Reflector } from '../../kube/reflector.ts';
import { type Lease, lease as leaseSchema, node as nodeSchema, objectMeta } from '../../kube/resources.ts';
import { AGENT_LEASE_PREFIX, AgentHealth } from '../../model/lease/agent-health.ts';
import { DPU_READY_CONDITION, NAMESPACE, SCHEDULABLE_LABEL, SCHEDULER } from '../../model/names.ts';
import { createFairIntake } from '../../runtime/fair-intake.ts';
import { TenantBudget } from '../../runtime/tenant-budget.ts';
import { sleep } from '../../runtime/time.ts';
import type { Status } from '../data/wire.ts';
import type { Feed } from './feed.ts';
import { isOptional, KINDS, type Kind, type OptionalKind } from './kinds.ts';
import type { ConsoleLogger } from './log-messages.ts';
import { pausedInstance, shownPod, watchedInstance, watchedPod } from './pods.ts';
import { createReports } from './reports.ts';

export type Cluster = ReturnType<typeof createCluster>;

interface ClusterOptions {
  readonly client: KubeClient;
  readonly without: ReadonlySet<OptionalKind>;
  readonly feed: Pick<Feed, 'nodeChanged' | 'podChanged'>;
  readonly log: ConsoleLogger;
  /** Monotonic seconds. */
  readonly now: () => number;
}

const DRA_CPU_DRIVER = 'dra.cpu';
/** Seconds between two checks for expired Leases of agents. */
const SWEEP_SECONDS = 1;
const MAX_PROBLEM_CHARACTERS = 200;
/** Memory for the pods that the page shows, and for the VMIs with a paused guest. */
const MAX_POD_BYTES = 96 * 1024 * 1024;
const MAX_INSTANCE_BYTES = 8 * 1024 * 1024;

const rawReport = z.object({ metadata: objectMeta, status: z.unknown().optional() });
export const resourceSlice = z.object({
  metadata: objectMeta,
  spec: z.object({ driver: name, nodeName: name.nullish() }),
});

/** Creates the watches for the page. They send no request before `run`. */
export function createCluster({ client, without, feed, log, now }: ClusterOptions) {
  const problems = new Map<Kind, string>();
  const forbidden = new Set<OptionalKind>(without);
  const shared = (kind: Kind) => ({
    client: noting(client, kind, problems, forbidden),
    path: KINDS[kind].path,
    log,
    now,
  });
  const agents = new AgentHealth();
  const leader = createLeader();
  const draCpu = new Set<string>();
  let stale: ReadonlySet<string> = new Set();
  const staleness = createStaleness(problems, now);

  const taken = createReports((node) => feed.nodeChanged(node));
  const intake = createFairIntake(taken.take);
  const nodetopologies = createReflector({
    ...shared('nodetopologies'),
    schema: rawReport,
    project: ({ metadata, status }) => {
      intake.offer(metadata.name ?? '', status);
      return true;
    },
    onChange: ({ key, after }) => {
      if (after === undefined) intake.offer(key, undefined);
    },
  });
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
      if (name === SCHEDULER) leader.changed(after, now());
      if (!name.startsWith(AGENT_LEASE_PREFIX)) return;
      const node = name.slice(AGENT_LEASE_PREFIX.length);
      if (after) agents.changed({ node, renewTime: after.renewTime, duration: after.leaseDurationSeconds }, now());
      else if (!nodes.items.has(node)) agents.forget(node);
    },
  });
  const instances = createReflector({
    ...shared('virtualmachineinstances'),
    schema: watchedInstance,
    project: pausedInstance,
    budget: new TenantBudget(MAX_INSTANCE_BYTES),
    onChange({ before, after }) {
      for (const instance of [before, after]) if (instance !== undefined) feed.nodeChanged(instance.node);
    },
    optional: true,
  });
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
  const kinds = { nodetopologies, nodes, pods, leases, virtualmachineinstances: instances, resourceslices };
  const all = Object.entries(kinds).filter(([kind]) => !without.has(kind as OptionalKind));

  const readable = () => all.filter(([kind]) => !forbidden.has(kind as OptionalKind));

  const sweep = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      await sleep(SWEEP_SECONDS, signal).catch(() => undefined);
      const before = stale;
      stale = agents.stale(now(), leases.lastHeard);
      for (const node of stale) if (!before.has(node)) feed.nodeChanged(node);
      for (const node of before) if (!stale.has(node)) feed.nodeChanged(node);
    }
  };

  return {
    async run(signal: AbortSignal) {
      await Promise.all([...all.map(([, reflector]) => reflector.run(signal)), sweep(signal)]);
      intake.stop();
    },
    /** Kinds without a complete or recent list, as text; undefined if there are none: see cacheProblem. */
    get missing() {
      return cacheProblem(Object.fromEntries(readable()), now());
    },
    /** Since when the data may be old, RFC 3339, and why; undefined if every watch works. */
    problem: () => staleness.problem(readable()),
    /** The leader's pod; null: no leader; undefined: unknown. */
    get leader() {
      return leases.synced ? leader.pod(now(), leases.lastHeard) : undefined;
    },
    nodes: nodes.items,
    reports: taken.byNode,
    /** VMIs with a paused guest, by `namespace/name`. */
    paused: instances.items,
    /** Optional kinds without read permission, whose data is missing. */
    forbidden: forbidden as ReadonlySet<OptionalKind>,
    /** Nodes with an expired agent Lease. */
    get stale() {
      return stale;
    },
    /** The last renewal of the Lease of a node's agent, RFC 3339. */
    renewTime: (node: string) => leases.items.get(`${NAMESPACE}/${AGENT_LEASE_PREFIX}${node}`)?.renewTime,
    /** Nodes whose CPUs the dra.cpu driver assigns as well. */
    draCpu: draCpu as ReadonlySet<string>,
  };
}

type Watch = readonly [kind: string, reflector: Pick<Reflector<unknown>, 'synced' | 'lastHeard'>];

/** Since when the data of the watches may be old. @param problems the failed request of each kind */
function createStaleness(problems: ReadonlyMap<Kind, string>, now: () => number) {
  /** When the API server was last heard before the current problem, RFC 3339. */
  let since: string | undefined;
  return {
    problem(watches: readonly Watch[]): Status['problem'] {
      const isComplete = watches.every(([, { synced }]) => synced);
      const late = isComplete ? cacheProblem(Object.fromEntries(watches), now()) : undefined;
      const why = [...problems.values()].at(0) ?? late;
      if (why === undefined) {
        since = undefined;
        return undefined;
      }
      const oldestMessage = Math.min(...watches.map(([, { lastHeard = now() }]) => lastHeard));
      // Computed once, so that the record of the status does not change while the problem lasts.
      since ??= new Date(Date.now() - (now() - oldestMessage) * 1000).toISOString();
      return [since, why];
    },
  };
}

function shownNode({ metadata, status }: z.infer<typeof nodeSchema>) {
  const condition = status?.conditions?.find(({ type }) => type === DPU_READY_CONDITION);
  return {
    ...factsOfNode({ metadata, status }),
    dpuHost: isDpuHost({ metadata }),
    /** Whether KubeVirt starts VMs there, so that it needs an agent. */
    acceptsVms: metadata.labels?.[SCHEDULABLE_LABEL] === 'true',
    /** Status of the condition plumbline.dev/DPUReady, which the extender writes. */
    dpuReady: condition?.status,
    /** Last transition of that condition, RFC 3339, and its message. */
    dpuSince: condition?.lastTransitionTime ?? undefined,
    dpuMessage: condition?.message?.slice(0, MAX_PROBLEM_CHARACTERS),
  };
}

/**
 * The same client, which also records the last failed request for a kind until a request succeeds: a 403 for an
 * optional kind in `forbidden`, any other failure in `problems`.
 */
function noting(client: KubeClient, kind: Kind, problems: Map<Kind, string>, forbidden: Set<OptionalKind>): KubeClient {
  const noted = async <T>(call: Promise<T>): Promise<T> => {
    try {
      const answer = await call;
      problems.delete(kind);
      if (isOptional(kind)) forbidden.delete(kind);
      return answer;
    } catch (error) {
      if (isOptional(kind) && error instanceof KubeError && [403, 404].includes(error.status)) {
        problems.delete(kind);
        // A kind that this cluster does not have counts as a kind without objects.
        if (error.status === 403) forbidden.add(kind);
        else forbidden.delete(kind);
        throw error;
      }
      problems.set(kind, `${kind}: ${(error as Error).message}`.slice(0, MAX_PROBLEM_CHARACTERS));
      throw error;
    }
  };
  return {
    ...client,
    get: (path, options) => noted(client.get(path, options)),
    watch: (path, options) => noted(client.watch(path, options)),
  };
}

type LeaseSpec = Partial<NonNullable<Lease['spec']>>;

/** The pod with the leading one of Plumbline's kube-schedulers, from their Lease. */
function createLeader() {
  const health = new AgentHealth();
  let pod: string | null | undefined;
  return {
    changed(lease: LeaseSpec | undefined, now: number) {
      if (lease === undefined) {
        pod = undefined;
        health.forget(SCHEDULER);
        return;
      }
      const { holderIdentity: holder = '', renewTime, leaseDurationSeconds: duration } = lease;
      pod = holder.slice(0, Math.max(0, holder.lastIndexOf('_'))) || null;
      health.changed({ node: SCHEDULER, renewTime, duration }, now);
    },
    /**
     * @param lastMessage when the watch of Leases last received anything
     * @returns the name of the pod; null: no leader; undefined: the cluster has no such Lease
     */
    pod: (now: number, lastMessage: number | undefined) =>
      pod && health.stale(now, lastMessage).has(SCHEDULER) ? null : pod,
  };
}
