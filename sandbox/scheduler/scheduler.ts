import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { isFinalPhase } from '../../kube/cluster-view/pods.ts';
import { formatTime } from '../../model/lease/timing.ts';
import { groupBy } from '../../model/lists.ts';
import { monotonicSeconds } from '../../runtime/time.ts';
import { NAMESPACES, NODES, PODS } from '../api-server/built-in-types.ts';
import { unlessNotFound } from '../api-server/errors.ts';
import { type LocalChange, type LocalClient, RenewedLease, type RenewedLeaseOptions } from '../clients/local-client.ts';
import { conditionsOf, type KubeNode, type KubePod, setCondition } from '../objects.ts';
import { plus, podRequests } from '../pod-requests.ts';
import { chooseNode, fitErrorMessage, type Snapshot } from './decision.ts';
import { createExtender, DEFAULT_CONFIGURATION, type SchedulerConfiguration } from './extender.ts';
import { RequiredPodAffinity } from './pod-affinity.ts';
import { createSchedulingQueue, nodeWakes, podChangedItself, podWakes } from './scheduling-queue.ts';

const COMPONENT = 'default-scheduler';

interface SchedulerOptions {
  readonly client: LocalClient;
  readonly configuration?: SchedulerConfiguration;
  /** Its name in the Lease of its election. Default: this machine's. */
  readonly hostName?: string | undefined;
  readonly onFault?: (error: unknown) => void;
}

/** As in the real scheduler's informer, a pod that has ended counts as deleted. */
const hasEnded = ({ status }: KubePod) => isFinalPhase(status?.phase);

/**
 * One pod at a time, with concurrent bindings. Nodes and pods are those of the API server. A pod counts on its node from
 * the decision (assumed) on, until the pod's binding is seen, has failed, or the pod has ended.
 */
export class Scheduler {
  readonly #client: LocalClient;
  readonly #onFault: (error: unknown) => void;
  readonly #extenders: ReturnType<typeof createExtender>[];
  readonly #names: ReadonlySet<string>;
  readonly #queue: ReturnType<typeof createSchedulingQueue>;
  readonly #lease: RenewedLease | undefined;
  /** The chosen nodes of pods, until the API server reports them there. */
  readonly #assumed = new Map<string, string>();
  readonly #bindings = new Set<Promise<void>>();
  readonly #unfollow: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;
  #loop: Promise<void> | undefined;
  #isRunning = false;

  constructor(options: SchedulerOptions) {
    const { client, configuration = DEFAULT_CONFIGURATION, onFault = () => {} } = options;
    this.#client = client;
    this.#onFault = onFault;
    this.#extenders = configuration.extenders.map((extender) => createExtender(extender));
    this.#names = new Set(configuration.profiles?.map(({ schedulerName }) => schedulerName) ?? [COMPONENT]);
    const { podInitialBackoffSeconds, podMaxBackoffSeconds } = configuration;
    this.#queue = createSchedulingQueue(monotonicSeconds, podInitialBackoffSeconds, podMaxBackoffSeconds);
    this.#lease = leaseOf(configuration, options.hostName ?? hostname(), { client, onFault });
  }

  /** Resolves when the scheduler leads, if it uses leader election. */
  async start(): Promise<void> {
    await this.#lease?.start();
    this.#isRunning = true;
    this.#unfollow.push(
      this.#client.follow(NODES, (change) => this.#nodeChanged(change)),
      this.#client.follow(PODS, (change) => this.#podChanged(change)),
    );
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    clearTimeout(this.#timer);
    for (const unfollow of this.#unfollow.splice(0)) unfollow();
    await this.#loop;
    await Promise.all(this.#bindings);
    await this.#lease?.release();
  }

  #podChanged({ type, object: pod, previous }: LocalChange<KubePod>): void {
    const uid = pod.metadata.uid ?? '';
    if (type === 'DELETED' || hasEnded(pod) || pod.spec.nodeName) {
      this.#assumed.delete(uid);
      this.#queue.remove(uid);
    } else if (isWaiting(pod, this.#names) && (!previous || podChangedItself(pod, previous))) this.#queue.add(uid);
    if (podWakes(pod, previous)) this.#queue.wake();
    this.#schedule();
  }

  #nodeChanged({ type, object: node, previous }: LocalChange<KubeNode>): void {
    if (type !== 'DELETED' && nodeWakes(node, previous)) this.#queue.wake();
    this.#schedule();
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (!this.#isRunning || this.#loop !== undefined) return;
    this.#loop = this.#attemptAll()
      .catch(this.#onFault)
      .finally(() => {
        this.#loop = undefined;
        const due = this.#queue.nextDue();
        if (this.#isRunning && due !== undefined) this.#timer = setTimeout(() => this.#schedule(), due * 1000);
      });
  }

  async #attemptAll(): Promise<void> {
    const next = () => (this.#isRunning ? this.#queue.pop() : undefined);
    for (let uid = next(); uid !== undefined; uid = next()) await this.#attempt(uid);
  }

  async #attempt(uid: string): Promise<void> {
    const pods = this.#client.list(PODS).filter((candidate) => !hasEnded(candidate));
    const pod = pods.find(({ metadata }) => metadata.uid === uid);
    if (!pod || !isWaiting(pod, this.#names)) return this.#queue.remove(uid);
    try {
      const snapshot = this.#snapshotFor(pod, pods);
      const decision = await chooseNode(pod, snapshot, this.#extenders);
      if ('node' in decision) {
        this.#assumed.set(uid, decision.node);
        const binding = this.#bind(pod, decision.node).finally(() => {
          this.#bindings.delete(binding);
          this.#schedule();
        });
        this.#bindings.add(binding);
        return;
      }
      this.#queue.unschedulable(uid);
      const message = fitErrorMessage(snapshot.nodes.length, decision.misfits);
      await this.#report(pod, 'Unschedulable', message);
    } catch (error) {
      await this.#fail(pod, error);
    }
  }

  async #bind(pod: KubePod, nodeName: string): Promise<void> {
    try {
      await this.#client.bind(pod, nodeName);
      const message = `Successfully assigned ${pod.metadata.namespace}/${pod.metadata.name} to ${nodeName}`;
      await this.#client.record(COMPONENT, pod, { type: 'Normal', reason: 'Scheduled', message });
    } catch (error) {
      this.#assumed.delete(pod.metadata.uid ?? '');
      await this.#fail(pod, error);
    }
  }

  async #fail(pod: KubePod, error: unknown): Promise<void> {
    this.#onFault(error);
    this.#queue.failed(pod.metadata.uid ?? '');
    await this.#report(pod, 'SchedulerError', (error as Error).message);
  }

  /** Why a pod waits, in a condition and an Event. */
  async #report(pod: KubePod, reason: 'Unschedulable' | 'SchedulerError', message: string): Promise<void> {
    const condition = { type: 'PodScheduled', status: 'False', reason, message };
    const change = (draft: KubePod) => setCondition(conditionsOf(draft), condition, formatTime(Date.now()));
    await this.#client.edit(PODS, pod, change, 'status').catch(unlessNotFound);
    await this.#client.record(COMPONENT, pod, { type: 'Warning', reason: 'FailedScheduling', message });
  }

  #snapshotFor(pod: KubePod, pods: readonly KubePod[]): Snapshot {
    const nodeOf = ({ spec, metadata }: KubePod) => spec.nodeName || this.#assumed.get(metadata.uid ?? '') || '';
    const byNode = groupBy(pods, nodeOf);
    const nodes = this.#client.list(NODES);
    const placed = nodes.flatMap((node) =>
      (byNode.get(node.metadata.name) ?? []).map((other) => ({ pod: other, node })),
    );
    const labelsOf = (name: string) => this.#client.get(NAMESPACES, undefined, name)?.metadata.labels ?? {};
    return {
      nodes,
      loadOf(nodeName) {
        const there = byNode.get(nodeName) ?? [];
        return { pods: there.length, requested: there.map(podRequests).reduce(plus, new Map()) };
      },
      podAffinity: new RequiredPodAffinity(pod, placed, labelsOf),
    };
  }
}

type LeaseDeps = Pick<RenewedLeaseOptions, 'client' | 'onFault'>;

function leaseOf({ leaderElection }: SchedulerConfiguration, hostName: string, deps: LeaseDeps) {
  if (!leaderElection?.leaderElect) return undefined;
  const { resourceName: name, resourceNamespace: namespace, leaseDuration, retryPeriod } = leaderElection;
  return new RenewedLease({
    ...deps,
    metadata: { name, namespace },
    // In the format of kube-scheduler's identity: cmd/kube-scheduler/app/options.
    holder: `${hostName}_${randomUUID()}`,
    durationSeconds: leaseDuration / 1000,
    intervalSeconds: retryPeriod / 1000,
  });
}

function isWaiting({ spec, metadata }: KubePod, names: ReadonlySet<string>): boolean {
  return (
    !spec.nodeName &&
    metadata.deletionTimestamp === undefined &&
    (spec.schedulingGates ?? []).length === 0 &&
    names.has(spec.schedulerName ?? COMPONENT)
  );
}
