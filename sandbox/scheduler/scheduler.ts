import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { NODES, PODS } from '../api-server/built-in-types.ts';
import { timestamp } from '../api-server/preparation.ts';
import { type LocalChange, type LocalClient, unlessNotFound } from '../clients/local-client.ts';
import { RenewedLease, type RenewedLeaseOptions } from '../clients/renewed-lease.ts';
import { conditionsOf, type KubeNode, type KubePod, setCondition } from '../objects.ts';
import { plus, podRequests } from '../pod-requests.ts';
import { DEFAULT_CONFIGURATION, type SchedulerConfiguration } from './configuration.ts';
import { chooseNode, fitErrorMessage } from './decision.ts';
import { createExtender } from './extender.ts';
import { createSchedulingQueue, nodeWakes, podChangedItself, podWakes } from './scheduling-queue.ts';

const COMPONENT = 'default-scheduler';

async function reportFailure(
  client: LocalClient,
  pod: KubePod,
  reason: 'Unschedulable' | 'SchedulerError',
  message: string,
): Promise<void> {
  const change = (draft: KubePod) => {
    const condition = { type: 'PodScheduled', status: 'False', reason, message };
    setCondition(conditionsOf(draft), condition, timestamp(Date.now()));
  };
  await client.edit(PODS, pod, change, 'status').catch(unlessNotFound);
  await client.record(COMPONENT, pod, { type: 'Warning', reason: 'FailedScheduling', message });
}

interface SchedulerOptions {
  readonly client: LocalClient;
  readonly configuration?: SchedulerConfiguration;
  /** Its name in the Lease of its election. Default: this machine's. */
  readonly hostName?: string | undefined;
  readonly onFault?: (error: unknown) => void;
}

export type Scheduler = ReturnType<typeof createScheduler>;

/** As in the real scheduler's informer, a pod that has ended counts as deleted. */
const hasEnded = ({ status }: KubePod) => status?.phase === 'Failed' || status?.phase === 'Succeeded';

/** One pod at a time, with concurrent bindings. A pod counts on its node from the decision (assumed) on. */
export function createScheduler(options: SchedulerOptions) {
  const { client, configuration = DEFAULT_CONFIGURATION, onFault = () => {} } = options;
  const extenders = configuration.extenders.map((extender) => createExtender(extender));
  const names = schedulerNames(configuration);
  const queue = createSchedulingQueue({
    now: () => performance.now(),
    initialBackoffSeconds: configuration.podInitialBackoffSeconds,
    maxBackoffSeconds: configuration.podMaxBackoffSeconds,
  });
  const nodes = new Map<string, KubeNode>();
  const pods = new Map<string, KubePod>();
  /** The chosen nodes of pods, until the API server reports them there. */
  const assumed = new Map<string, string>();
  const nodeOf = (pod: KubePod) => pod.spec.nodeName || assumed.get(pod.metadata.uid ?? '');
  const loadOf = (nodeName: string) => {
    const there = [...pods.values()].filter((pod) => nodeOf(pod) === nodeName);
    return { pods: there.length, requested: there.map(podRequests).reduce(plus, new Map()) };
  };
  const bindings = new Set<Promise<void>>();
  const ends: (() => void)[] = [];
  const lease = leaseOf(configuration, options.hostName ?? hostname(), { client, onFault });
  let timer: NodeJS.Timeout | undefined;
  let loop: Promise<void> | undefined;
  let running = false;

  const failed = async (pod: KubePod, error: unknown) => {
    onFault(error);
    queue.failed(pod.metadata.uid ?? '');
    await reportFailure(client, pod, 'SchedulerError', (error as Error).message);
  };

  const bind = async (pod: KubePod, nodeName: string) => {
    try {
      await client.bind(pod, nodeName);
      const message = `Successfully assigned ${pod.metadata.namespace}/${pod.metadata.name} to ${nodeName}`;
      await client.record(COMPONENT, pod, { type: 'Normal', reason: 'Scheduled', message });
    } catch (error) {
      assumed.delete(pod.metadata.uid ?? '');
      await failed(pod, error);
    }
  };

  const attempt = async (uid: string): Promise<void> => {
    const pod = pods.get(uid);
    if (!pod || !isWaiting(pod, names)) return queue.remove(uid);
    try {
      const decision = await chooseNode(pod, [...nodes.values()], loadOf, extenders);
      if ('node' in decision) {
        assumed.set(uid, decision.node);
        const binding = bind(pod, decision.node).finally(() => {
          bindings.delete(binding);
          pump();
        });
        bindings.add(binding);
        return;
      }
      queue.unschedulable(uid);
      await reportFailure(client, pod, 'Unschedulable', fitErrorMessage(nodes.size, decision.misfits));
    } catch (error) {
      await failed(pod, error);
    }
  };

  const run = async () => {
    for (let uid = queue.pop(); uid !== undefined; uid = running ? queue.pop() : undefined) await attempt(uid);
  };

  function pump() {
    clearTimeout(timer);
    if (!running || loop !== undefined) return;
    loop = run()
      .catch(onFault)
      .finally(() => {
        loop = undefined;
        const due = queue.nextDue();
        if (running && due !== undefined) timer = setTimeout(pump, due);
      });
  }

  const onPod = ({ type, object: pod, previous }: LocalChange<KubePod>) => {
    const uid = pod.metadata.uid ?? '';
    if (type === 'DELETED' || hasEnded(pod)) {
      pods.delete(uid);
      assumed.delete(uid);
      queue.remove(uid);
    } else {
      pods.set(uid, pod);
      if (pod.spec.nodeName) {
        assumed.delete(uid);
        queue.remove(uid);
      } else if (isWaiting(pod, names) && (!previous || podChangedItself(pod, previous))) queue.add(uid);
    }
    if (podWakes(pod, previous)) queue.wake();
    pump();
  };

  const onNode = ({ type, object: node, previous }: LocalChange<KubeNode>) => {
    if (type === 'DELETED') nodes.delete(node.metadata.name);
    else nodes.set(node.metadata.name, node);
    if (type !== 'DELETED' && nodeWakes(node, previous)) queue.wake();
    pump();
  };

  return {
    /** Resolves when the scheduler leads, if it uses leader election. */
    async start() {
      await lease?.start();
      running = true;
      ends.push(client.follow(NODES, onNode), client.follow(PODS, onPod));
    },
    async stop() {
      running = false;
      clearTimeout(timer);
      for (const end of ends.splice(0)) end();
      await loop;
      await Promise.all(bindings);
      await lease?.release();
    },
  };
}

function leaseOf(
  { leaderElection }: SchedulerConfiguration,
  hostName: string,
  deps: Pick<RenewedLeaseOptions, 'client' | 'onFault'>,
): RenewedLease | undefined {
  if (!leaderElection?.leaderElect) return undefined;
  return new RenewedLease({
    ...deps,
    metadata: { name: leaderElection.resourceName, namespace: leaderElection.resourceNamespace },
    // In the format of kube-scheduler's identity: cmd/kube-scheduler/app/options.
    holder: `${hostName}_${randomUUID()}`,
    durationSeconds: leaderElection.leaseDuration / 1000,
    intervalSeconds: leaderElection.retryPeriod / 1000,
  });
}

function schedulerNames({ profiles }: SchedulerConfiguration): ReadonlySet<string> {
  return new Set(profiles?.map(({ schedulerName }) => schedulerName) ?? [COMPONENT]);
}

function isWaiting({ spec, metadata }: KubePod, names: ReadonlySet<string>): boolean {
  return (
    !spec.nodeName &&
    metadata.deletionTimestamp === undefined &&
    (spec.schedulingGates ?? []).length === 0 &&
    names.has(spec.schedulerName ?? COMPONENT)
  );
}
