import { EventEmitter } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import { name } from '../../kube/bounds.ts';
import type { KubeClient } from '../../kube/client.ts';
import { pagesOf } from '../../kube/list-pages.ts';
import { factsOfNode } from '../../kube/node-facts.ts';
import { nodeTopologyStatus, type PinningState } from '../../kube/node-topology.ts';
import { type Change, cacheProblem, createReflector, type Reflector, type Watches } from '../../kube/reflector.ts';
import { createReportReflector } from '../../kube/report-reflector.ts';
import { lease, node as nodeSchema, objectMeta } from '../../kube/resources.ts';
import { AGENT_LEASE_PREFIX, AgentHealth } from '../../model/lease/agent-health.ts';
import { parseDpuRun, restartOf } from '../../model/lease/dpu-run.ts';
import { isReleased } from '../../model/lease/repair.ts';
import {
  AGENT_READY_CONDITION,
  DPU_HOST_LABEL,
  DPU_LEASE_PREFIX,
  DPU_READY_CONDITION,
  DPU_RESTARTED_CONDITION,
  DPU_RUN_ANNOTATION,
  FULL_PCPUS_LABEL,
  NAMESPACE,
  THREADS_PER_CORE_LABEL,
} from '../../model/names.ts';
import type { NodeFacts } from '../../model/report/check.ts';
import { TenantBudget } from '../../runtime/tenant-budget.ts';
import { createSlices, sleep } from '../../runtime/time.ts';
import type { ExtenderLogger } from '../telemetry/log-messages.ts';
import type { ClusterState } from './cluster-state.ts';
import type { DpuNode, LeaseView } from './dpu-health.ts';
import { trustedShape } from './fleet.ts';
import type { NeedsReader } from './pod-needs.ts';
import { type ObservedPod, observedPod, type PodView, podViewOf, unreadablePodView } from './pod-view.ts';

/** The facts that the extender writes on a Node, as the Node has them now. */
export interface WrittenFacts extends NodeFacts, DpuNode {
  readonly threadsPerCore: string | undefined;
  readonly fullPcpus: string | undefined;
  readonly labels: ReadonlyMap<string, string>;
  readonly agentReady: string | undefined;
  /** Since when the condition DPURestarted is True, RFC 3339; undefined: there is no such condition. */
  readonly dpuRestarted: string | undefined;
}

export interface ClusterOptions {
  readonly client: KubeClient;
  readonly state: ClusterState;
  readonly reader: NeedsReader;
  readonly dpuLeaseNamespace: string;
  readonly log: ExtenderLogger;
  readonly nowSeconds: () => number;
}

export interface ClusterEvents {
  /** Each state of each pod. */
  readonly pod: [pod: ObservedPod];
  /** Undefined if it was deleted. */
  readonly dpuLease: [node: string, lease: LeaseView | undefined];
  readonly pinnings: [node: string, pinnings: readonly PinningState[]];
}

export const resourceSlice = z.object({
  metadata: objectMeta,
  spec: z.object({ driver: name, nodeName: name.nullish() }),
});
/** https://github.com/kubernetes-sigs/dra-driver-cpu: it gives CPUs to claims. */
const DRA_CPU_DRIVER = 'dra.cpu';
const AGENT_CHECK_SECONDS = 1;
const CATCH_UP_PAGE_PODS = 500;
/** More than 24,000 launchers, of which one namespace can have half. */
const MAX_POD_BYTES = 64 * 1024 * 1024;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces';

export class Cluster extends EventEmitter<ClusterEvents> {
  readonly state: ClusterState;
  readonly #options: ClusterOptions;
  readonly #agents = new AgentHealth();
  #stale: ReadonlySet<string> = new Set();
  readonly #nodes: Reflector<WrittenFacts>;
  readonly #pods: Reflector<PodView | undefined>;
  readonly #agentLeases: Reflector<LeaseView | undefined>;
  readonly #reflectors: Watches;

  constructor(options: ClusterOptions) {
    super();
    const { client, state, reader, dpuLeaseNamespace, log, nowSeconds } = options;
    const shared = { client, log, nowSeconds };
    this.state = state;
    this.#options = options;
    this.#nodes = createReflector({
      ...shared,
      path: '/api/v1/nodes',
      schema: nodeSchema,
      project: writtenFacts,
      onChange: (change) => this.#nodeChanged(change),
    });
    this.#pods = createReflector({
      ...shared,
      path: '/api/v1/pods',
      schema: observedPod,
      project: (pod): PodView | undefined => {
        this.emit('pod', pod);
        return podViewOf(pod, reader);
      },
      whenUnreadable: unreadablePodView,
      budget: new TenantBudget(MAX_POD_BYTES),
      onChange: ({ before, after }) => state.podChanged(before, after, this.#pods.synced),
    });
    const dpus = createReflector({
      ...shared,
      path: `${LEASES}/${dpuLeaseNamespace}/leases`,
      schema: lease,
      project: (object) => leaseView(object, DPU_LEASE_PREFIX),
      onChange: ({ before, after }) => void this.emit('dpuLease', (after ?? before)?.node ?? '', after),
    });
    this.#agentLeases = createReflector({
      ...shared,
      path: `${LEASES}/${NAMESPACE}/leases`,
      schema: lease,
      project: (object) => leaseView(object, AGENT_LEASE_PREFIX),
      onChange: (change) => this.#agentLeaseChanged(change),
    });
    const slices = createReflector({
      ...shared,
      path: '/apis/resource.k8s.io/v1/resourceslices',
      schema: resourceSlice,
      project: ({ spec }) => (spec.driver === DRA_CPU_DRIVER ? (spec.nodeName ?? undefined) : undefined),
      onChange: ({ before, after }) => {
        for (const node of [before, after]) {
          if (node !== undefined) state.setFlag(node, 'draCpu', [...slices.items.values()].includes(node));
        }
      },
      optional: true,
    });
    this.#reflectors = {
      reports: createReportReflector(shared, (node, raw) => this.#reportChanged(node, raw)),
      nodes: this.#nodes,
      pods: this.#pods,
      'DPU leases': dpus,
      'agents’ leases': this.#agentLeases,
      'resource slices': slices,
    };
  }

  async run(signal: AbortSignal): Promise<void> {
    const running = Object.values(this.#reflectors).map((reflector) => reflector.run(signal));
    await Promise.all([...running, this.#checkAgents(signal)]);
  }

  /** Why no promise may be made from the watches: see cacheProblem. */
  get missing(): string | undefined {
    return cacheProblem(this.#reflectors, this.#options.nowSeconds());
  }

  get silentAgents(): number {
    return this.#stale.size;
  }

  get nodes(): ReadonlyMap<string, WrittenFacts> {
    return this.#nodes.items;
  }

  get pods(): ReadonlyMap<string, PodView | undefined> {
    return this.#pods.items;
  }

  /** Monotonic seconds until which every binding of a pod is known here. */
  get podsSeenUntil(): number {
    return this.#pods.lastHeard ?? Number.NEGATIVE_INFINITY;
  }

  /** Whether the node's report is current. */
  isReporting(name: string): boolean {
    const node = this.state.fleet.get(name);
    return node?.agentRenewed === true && trustedShape(node) !== undefined;
  }

  /** Bypasses the watch: pods that another kube-scheduler bound a moment ago are then known. @throws KubeError */
  async catchUp(signal: AbortSignal): Promise<void> {
    const { client, reader } = this.#options;
    const query = { fieldSelector: 'status.phase=Pending,spec.nodeName!=' };
    const slices = createSlices();
    const listed = new Set<string>();
    for await (const { items } of pagesOf({ client, path: '/api/v1/pods', query, page: CATCH_UP_PAGE_PODS, signal })) {
      for (const item of items ?? []) {
        await slices.run(() => {
          const pod = observedPod.safeParse(item);
          const view = pod.success ? podViewOf(pod.data, reader) : unreadablePodView(item, undefined);
          if (!view?.needs.exclusive) return;
          listed.add(view.kubeletUid);
          this.state.reservations.observe({ ...view, uid: view.kubeletUid, pod: view.needs });
        });
      }
    }
    const watched = new Set([...this.pods.values()].map((pod) => pod?.kubeletUid));
    this.state.reservations.listed(listed, (uid) => watched.has(uid));
  }

  #nodeChanged({ key, before, after }: Change<WrittenFacts>): void {
    if (!before || !after || !sameView(before, after)) this.state.nodeChanged(key, after);
    else this.state.fleet.setLabels(key, after.labels);
    if (!after && !this.#agentLeases.items.has(`${NAMESPACE}/${AGENT_LEASE_PREFIX}${key}`)) this.#forgetAgent(key);
  }

  #agentLeaseChanged({ before, after }: Change<LeaseView | undefined>): void {
    if (before && !after && !this.#nodes.items.has(before.node)) this.#forgetAgent(before.node);
    if (!after) return;
    const hadRenewed = this.#agents.hasRenewed(after.node);
    this.#agents.changed(after, this.#options.nowSeconds());
    if (this.#agents.hasRenewed(after.node) !== hadRenewed) this.state.setFlag(after.node, 'agentRenewed', true);
  }

  #forgetAgent(node: string): void {
    this.#agents.forget(node);
    this.state.setFlag(node, 'agentRenewed', false);
  }

  async #checkAgents(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(AGENT_CHECK_SECONDS, signal).catch(() => undefined);
      const stale = this.#agents.stale(this.#options.nowSeconds(), this.#agentLeases.lastHeard);
      for (const node of stale) if (!this.#stale.has(node)) this.state.setFlag(node, 'stale', true);
      for (const node of this.#stale) if (!stale.has(node)) this.state.setFlag(node, 'stale', false);
      this.#stale = stale;
    }
  }

  #reportChanged(node: string, raw: unknown): void {
    const { data: status, error } = nodeTopologyStatus.nullish().safeParse(raw);
    this.state.reportChanged(node, status ?? undefined, error);
    this.emit('pinnings', node, status?.pinning ?? []);
  }
}

function writtenFacts({ metadata, status }: z.infer<typeof nodeSchema>): WrittenFacts {
  const dpuRestarted = status?.conditions?.find(({ type }) => type === DPU_RESTARTED_CONDITION);
  return {
    uid: metadata.uid,
    dpuHost: metadata.labels?.[DPU_HOST_LABEL] !== undefined,
    threadsPerCore: metadata.labels?.[THREADS_PER_CORE_LABEL],
    fullPcpus: metadata.labels?.[FULL_PCPUS_LABEL],
    labels: new Map(Object.entries(metadata.labels ?? {})),
    dpuReady: status?.conditions?.find(({ type }) => type === DPU_READY_CONDITION)?.status,
    agentReady: status?.conditions?.find(({ type }) => type === AGENT_READY_CONDITION)?.status,
    dpuRestarted: dpuRestarted && (dpuRestarted.lastTransitionTime ?? ''),
    ...factsOfNode({ metadata, status }),
  };
}

/** Whether the facts that a decision about other objects depends on are equal. Labels are only looked up. */
function sameView(a: WrittenFacts, b: WrittenFacts): boolean {
  if (a.uid !== b.uid || a.dpuHost !== b.dpuHost || a.cpus !== b.cpus || a.arch !== b.arch) return false;
  return isDeepStrictEqual(a.capacity, b.capacity);
}

function leaseView({ metadata, spec }: z.infer<typeof lease>, prefix: string): LeaseView | undefined {
  if (!metadata.name?.startsWith(prefix)) return undefined;
  const node = metadata.name.slice(prefix.length);
  const released = isReleased(spec);
  const restart = released ? undefined : restartOf(parseDpuRun(metadata.annotations?.[DPU_RUN_ANNOTATION]));
  return { node, renewTime: spec?.renewTime, duration: spec?.leaseDurationSeconds, released, restart };
}
