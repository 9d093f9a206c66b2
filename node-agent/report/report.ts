import { isNotFound } from '../../kube/client.ts';
import { wholeOrNone } from '../../kube/node-facts.ts';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { Backoff, monotonicSeconds, sleep } from '../../runtime/time.ts';
import { type NodeIdentity, readNode } from '../kube-objects/lease.ts';
import { ChangeSignal, type Services } from '../lifecycle/duty.ts';
import { fitReport } from './limits.ts';
import { buildStatus, healthyDevices, type ReportInputs } from './status.ts';
import { createTopologyStore } from './topology-store.ts';

type Assignment = NodeTopologyStatus['assignments'][number];

/** Minimum seconds between two writes. */
const MIN_WRITE_INTERVAL_SECONDS = 0.2;
/** Seconds from a change to its write, which goes to every extender: the kubelet writes twice for each pod. */
const DEBOUNCE_SECONDS = 0.1;
/** Seconds between checks of state without notifications while a condition is not met. */
const RETRY_SECONDS = 10;
/** Seconds, at random up to a quarter less, between reads of the object: it or its definition may have been deleted. */
const READ_SECONDS = 20;
/** Seconds between reads of a Node that does not have the kubelet's devices yet: the kubelet writes it every 10 s. */
const NODE_READ_SECONDS = 3;
/** Seconds, plus up to half as many, between reads of the Node. The report is written as often, which shows its age. */
const RESYNC_SECONDS = 600;

export interface ReportDeps extends Omit<Services, 'events'> {
  readonly inputs: () => Promise<Omit<ReportInputs, 'kubeletVersion' | 'capacity'>>;
  /** Calls the listener when the content may have changed. @returns a function that ends the subscription */
  readonly subscribe: (listener: () => void) => () => void;
}

const MAX_LOGGED_OWNERS = 20;

function newOwners(owners: readonly Assignment[], others: readonly Assignment[]) {
  const keyOf = ({ podUID, container, cpus }: Assignment) => `${podUID} ${container} ${cpus}`;
  const otherKeys = new Set(others.map(keyOf));
  const changed = owners.filter((owner) => !otherKeys.has(keyOf(owner)));
  if (changed.length === 0) return undefined;
  return changed.slice(0, MAX_LOGGED_OWNERS).map(({ namespace, podName, podUID, container, cpus }) => {
    return { pod: podName === undefined ? podUID : `${namespace}/${podName}`, container, cpus };
  });
}

/** Writes only what changed, at most once in 200 ms; a change during a write is part of the next one. */
export function createReport({ client, nodeName, inputs, subscribe, log, metrics }: ReportDeps) {
  const store = createTopologyStore(client, nodeName);
  const problems = new ProblemLog(log);

  const definition = new ProblemLog(log);
  const logDropped = (fields: readonly string[]): void => {
    const dropped = fields.join(', ');
    const hint = 'kubectl apply --server-side -f manifests/base/crd/nodetopologies.yaml';
    if (dropped === '') definition.recovered();
    else
      definition.failed(`it lacks ${dropped}`, 'the NodeTopology definition is older than this agent', {
        dropped,
        hint,
      });
  };

  /** When the last write was sent, in monotonic seconds. */
  let wroteAt = Number.NEGATIVE_INFINITY;
  let reported: string | undefined;
  /** Whether the Node was read before the kubelet counted the devices that it has now. */
  let isNodeOutdated = false;
  let readAt = 0;

  const publish = async (node: NodeIdentity, signal: AbortSignal): Promise<void> => {
    const now = `${new Date().toISOString().slice(0, 19)}Z`;
    const content = await inputs();
    const built = buildStatus({ ...content, ...node }, store.published, now);
    if (built === undefined) return;
    isNodeOutdated = (content.view.devices ?? []).some(
      (devices) => healthyDevices(devices) !== wholeOrNone(node.allocatable[devices.resource] ?? ''),
    );
    if (isNodeOutdated && built.devices === undefined)
      readAt = Math.min(readAt, monotonicSeconds() + NODE_READ_SECONDS);
    const fitted = fitReport(built, store.published?.conditions, now);
    reported ??= store.published?.summary?.reported ?? now;
    const age = Math.min(performance.now() / 1000 - wroteAt, (Date.parse(now) - Date.parse(reported)) / 1000);
    const changed = store.changesTo({ ...fitted, summary: built.summary && { ...built.summary, reported } });
    if (age < RESYNC_SECONDS && changed.length === 0) return;
    const status = { ...fitted, summary: built.summary };
    const before = store.published?.assignments ?? [];
    wroteAt = performance.now() / 1000;
    reported = now;
    await store.write(status, signal);
    metrics.reportWrites.inc({ outcome: 'written' });
    logDropped(store.dropped);
    const { reserved, assignments } = status;
    const owners = { assigned: newOwners(assignments, before), released: newOwners(before, assignments) };
    log.info({ changed, reserved, ...owners, assignments: assignments.length }, 'published node topology');
  };

  /** Reads the node and its NodeTopology, which it creates if missing. @throws KubeError */
  const readNodeAndTopology = async (signal: AbortSignal): Promise<NodeIdentity> => {
    const node = await readNode(client, nodeName, signal);
    const wasPublished = store.published !== undefined;
    if ((await store.sync(node, signal)) && wasPublished) log.warn('the NodeTopology was deleted; publishing it again');
    return node;
  };

  let gone = false;
  const changes = new ChangeSignal();
  let identity: NodeIdentity | undefined;
  let resyncAt = 0;

  /** Checks everything once, and writes the status if it differs from the published one. @throws KubeError */
  const reconcile = async (signal: AbortSignal): Promise<void> => {
    const now = performance.now() / 1000;
    if (identity !== undefined && !gone && now >= readAt) gone = !(await store.read(signal));
    if (gone || now >= resyncAt || (isNodeOutdated && now >= readAt)) identity = undefined;
    gone = false;
    if (identity === undefined) resyncAt = now + RESYNC_SECONDS * (1 + Math.random() / 2);
    identity ??= await readNodeAndTopology(signal);
    if (now >= readAt) readAt = now + READ_SECONDS * (1 - Math.random() / 4);
    await publish(identity, signal);
    problems.recovered();
  };

  return {
    /** Reads the object, which may have been deleted, and creates it again if needed. */
    resync(): void {
      gone = true;
      changes.set();
    },
    async run(signal: AbortSignal): Promise<void> {
      const unsubscribe = subscribe(changes.set);
      const backoff = new Backoff({ most: RETRY_SECONDS });
      while (!signal.aborted) {
        try {
          // Read the content after the wait, never before it.
          await sleep(Math.max(0, wroteAt + MIN_WRITE_INTERVAL_SECONDS - performance.now() / 1000), signal);
          changes.clear();
          await reconcile(signal);
          backoff.reset();
          const isKnown = store.published?.conditions?.every(({ status }) => status === 'True') === true;
          const untilRead = Math.max(0, readAt - performance.now() / 1000);
          const wait = isKnown ? untilRead : Math.min(RETRY_SECONDS, untilRead);
          if (await changes.wait(signal, wait)) await sleep(DEBOUNCE_SECONDS, signal);
        } catch (err) {
          if (signal.aborted) break;
          metrics.reportWrites.inc({ outcome: 'failed' });
          problems.failed(err, 'publishing the node topology failed; retrying');
          // The object may have been deleted. A node that is not registered yet has none.
          if (isNotFound(err)) gone = true;
          await sleep(backoff.next(), signal).catch(() => undefined);
        }
      }
      unsubscribe();
    },
  };
}
