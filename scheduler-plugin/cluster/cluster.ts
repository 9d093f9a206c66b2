import { EventEmitter } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import { leasesPath, type NodeLease, nodeLease } from '../../kube/cluster-view/leases.ts';
import { createReportReflector } from '../../kube/cluster-view/node-topologies.ts';
import {
  factsOfNode,
  isDpuHost,
  labelsOf,
  NODES_PATH,
  nodeCondition,
  writtenConditions,
} from '../../kube/cluster-view/nodes.ts';
import { PODS_PATH } from '../../kube/cluster-view/pods.ts';
import { createResourceSliceReflector } from '../../kube/cluster-view/resource-slices.ts';
import { SilentAgents } from '../../kube/cluster-view/silent-agents.ts';
import { pagesOf } from '../../kube/list-pages.ts';
import { nodeTopologyStatus, type PinningState } from '../../kube/node-topology.ts';
import { type Change, cacheProblem, createReflector, type Reflector, type Watches } from '../../kube/reflector.ts';
import { type Lease, lease, type Node, node as nodeSchema } from '../../kube/resources.ts';
import { parseDpuRun, restartOf } from '../../model/lease/dpu-run.ts';
import { isReleased } from '../../model/lease/repair.ts';
import {
  AGENT_LEASE_PREFIX,
  DPU_LEASE_PREFIX,
  DPU_RESTARTED_CONDITION,
  DPU_RUN_ANNOTATION,
  FULL_PCPUS_LABEL,
  NAMESPACE,
  THREADS_PER_CORE_LABEL,
} from '../../model/names.ts';
import { TenantBudget } from '../../runtime/tenant-budget.ts';
import { createSlices } from '../../runtime/time.ts';
import type { ExtenderContext } from '../telemetry/context.ts';
import type { ClusterState } from './cluster-state.ts';
import type { LeaseView } from './dpu-health.ts';
import { trustedShape } from './fleet.ts';
import type { NeedsReader } from './pod-needs.ts';
import { type ObservedPod, observedPod, type PodView, podViewOf, unreadablePodView } from './pod-view.ts';

interface ClusterOptions extends Pick<ExtenderContext, 'client' | 'log' | 'nowSeconds'> {
  readonly state: ClusterState;
  readonly reader: NeedsReader;
  readonly dpuLeaseNamespace: string;
}

interface ClusterEvents {
  /** Each state of each pod. */
  readonly pod: [pod: ObservedPod];
  /** Undefined if it was deleted. */
  readonly dpuLease: [node: string, lease: LeaseView | undefined];
  readonly pinnings: [node: string, pinnings: readonly PinningState[]];
}

const CATCH_UP_PAGE_PODS = 500;
/** More than 24,000 launchers, of which one namespace can have half. */
const MAX_POD_BYTES = 64 * 1024 * 1024;

export class Cluster extends EventEmitter<ClusterEvents> {
  readonly state: ClusterState;
  readonly nodes: ReadonlyMap<string, WrittenFacts>;
  readonly pods: ReadonlyMap<string, PodView | undefined>;
  readonly #options: ClusterOptions;
  readonly #agents: SilentAgents;
  readonly #pods: Reflector<PodView | undefined>;
  readonly #agentLeases: Reflector<NodeLease | undefined>;
  readonly #reflectors: Watches;

  constructor(options: ClusterOptions) {
    super();
    const { client, state, reader, dpuLeaseNamespace, log, nowSeconds } = options;
    const shared = { client, log, nowSeconds };
    this.state = state;
    this.#options = options;
    this.#agents = new SilentAgents({
      onSilent: (node, isSilent) => state.setFlag(node, 'stale', isSilent),
      onRenewed: (node, hasRenewed) => state.setFlag(node, 'agentRenewed', hasRenewed),
      nowSeconds,
    });
    const nodes = createReflector({
      ...shared,
      path: NODES_PATH,
      schema: nodeSchema,
      project: writtenFacts,
      onChange: (change) => this.#nodeChanged(change),
    });
    this.nodes = nodes.items;
    this.#pods = createReflector({
      ...shared,
      path: PODS_PATH,
      schema: observedPod,
      project: (pod): PodView | undefined => {
        this.emit('pod', pod);
        return podViewOf(pod, reader);
      },
      whenUnreadable: unreadablePodView,
      budget: new TenantBudget(MAX_POD_BYTES),
      onChange: ({ before, after }) => state.podChanged(before, after, this.#pods.synced),
    });
    this.pods = this.#pods.items;
    const dpus = createReflector({
      ...shared,
      path: leasesPath(dpuLeaseNamespace),
      schema: lease,
      project: dpuLease,
      onChange: ({ before, after }) => void this.emit('dpuLease', (after ?? before)?.node ?? '', after),
    });
    this.#agentLeases = createReflector({
      ...shared,
      path: leasesPath(NAMESPACE),
      schema: lease,
      project: (object) => nodeLease(object, AGENT_LEASE_PREFIX),
      onChange: (change) => this.#agents.leaseChanged(change, nodes.items),
    });
    this.#reflectors = {
      reports: createReportReflector(shared, (node, raw) => this.#reportChanged(node, raw)),
      nodes,
      pods: this.#pods,
      'DPU leases': dpus,
      'agents’ leases': this.#agentLeases,
      'resource slices': createResourceSliceReflector(shared, (node, hasDraCpu) =>
        state.setFlag(node, 'draCpu', hasDraCpu),
      ),
    };
  }

  async run(signal: AbortSignal): Promise<void> {
    const running = Object.values(this.#reflectors).map((reflector) => reflector.run(signal));
    await Promise.all([...running, this.#agents.run(this.#agentLeases, signal)]);
  }

  /** Why no promise may be made from the watches: see cacheProblem. */
  get missing(): string | undefined {
    return cacheProblem(this.#reflectors, this.#options.nowSeconds());
  }

  get silentAgents(): number {
    return this.#agents.nodes.size;
  }

  /** Monotonic seconds until which every binding of a pod is known here. */
  get bindingsKnownUntil(): number {
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
    for await (const { items } of pagesOf({ client, path: PODS_PATH, query, page: CATCH_UP_PAGE_PODS, signal })) {
      for (const item of items ?? []) {
        await slices.run(() => {
          const { data: pod } = observedPod.safeParse(item);
          const view = pod ? podViewOf(pod, reader) : unreadablePodView(item, undefined);
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
    if (!after) this.#agents.nodeDeleted(key);
  }

  #reportChanged(node: string, raw: unknown): void {
    const { data: status, error } = nodeTopologyStatus.nullish().safeParse(raw);
    this.state.reportChanged(node, status ?? undefined, error);
    this.emit('pinnings', node, status?.pinning ?? []);
  }
}

/** The facts that the extender writes on a Node, as the Node has them now. */
export type WrittenFacts = ReturnType<typeof writtenFacts>;

function writtenFacts(node: Node) {
  const { uid, labels } = node.metadata;
  const dpuRestarted = nodeCondition(node, DPU_RESTARTED_CONDITION);
  return {
    uid,
    dpuHost: isDpuHost(node),
    threadsPerCore: labels?.[THREADS_PER_CORE_LABEL],
    fullPcpus: labels?.[FULL_PCPUS_LABEL],
    labels: labelsOf(node),
    /** Since when the condition DPURestarted is True, RFC 3339; undefined: there is no such condition. */
    dpuRestarted: dpuRestarted && (dpuRestarted.lastTransitionTime ?? ''),
    ...writtenConditions(node),
    ...factsOfNode(node),
  };
}

/** Whether the facts that a decision about other objects depends on are equal. Labels are only looked up. */
function sameView(a: WrittenFacts, b: WrittenFacts): boolean {
  if (a.uid !== b.uid || a.dpuHost !== b.dpuHost || a.cpus !== b.cpus || a.arch !== b.arch) return false;
  return isDeepStrictEqual(a.capacity, b.capacity);
}

function dpuLease(object: Lease): LeaseView | undefined {
  const view = nodeLease(object, DPU_LEASE_PREFIX);
  const released = isReleased(object.spec);
  const run = object.metadata.annotations?.[DPU_RUN_ANNOTATION];
  return view && { ...view, released, restart: released ? undefined : restartOf(parseDpuRun(run)) };
}
