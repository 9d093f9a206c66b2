import type { KubeClient } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import type { Logger } from '../../runtime/log.ts';
import { underSignals } from '../../runtime/signals.ts';
import { Backoff, sleep } from '../../runtime/time.ts';
import { type NodeIdentity, readNode } from '../kube-objects/node.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';
import { createProblemLog } from '../telemetry/problem-log.ts';
import { fitReport } from './limits.ts';
import { buildStatus, type ReportInputs } from './status.ts';
import { createTopologyStore } from './topology-store.ts';

/** Seconds between two writes, at least. */
const WINDOW = 0.2;
/**
 * Seconds after a change before it is written: the kubelet writes its state twice for each pod and names the pod a moment
 * later, and each write of ours goes to every extender.
 */
const SETTLE = 0.1;
/**
 * Seconds between looks at what sends no notification, such as the kubelet's configuration; fewer while something is not known,
 * as that may come at any moment. A look costs no request while all is the same.
 */
const LOOK = 60;
const LOOK_AGAIN = 10;
/** Seconds, with up to half as many again, after which the object is read to see whether it is still as published. */
const RESYNC = 600;

export interface ReportDeps {
  readonly client: KubeClient;
  readonly nodeName: string;
  /** What there is to report now. */
  readonly inputs: () => Promise<Omit<ReportInputs, 'kubeletVersion'>>;
  /** Calls back when there may be something new to report. @returns a function that ends that */
  readonly subscribe: (listener: () => void) => () => void;
  readonly log: Logger;
  readonly metrics: AgentMetrics;
}

/**
 * Keeps the NodeTopology status true: written when something changed and at no other time, at most once in 200 ms. A
 * change that comes during a write or a failure is in the next one: each write takes what is true when it is made.
 */
export function createReport({ client, nodeName, inputs, subscribe, log, metrics }: ReportDeps) {
  const store = createTopologyStore(client, nodeName);
  const problems = createProblemLog(log);

  let saidDropped = '';
  const sayDropped = (fields: readonly string[]): void => {
    const dropped = fields.join(', ');
    if (dropped !== '' && dropped !== saidDropped) {
      const advice = 'kubectl apply --server-side -f manifests/base/crd/nodetopologies.yaml';
      log.warn(
        { dropped, advice },
        'the NodeTopology definition is older than this agent; the API server drops parts of the report',
      );
    }
    saidDropped = dropped;
  };

  /** When the last write was sent, in monotonic seconds. */
  let wroteAt = Number.NEGATIVE_INFINITY;

  /** @throws KubeError, ReportLimitError */
  const publish = async (node: NodeIdentity, signal: AbortSignal): Promise<void> => {
    const now = `${new Date().toISOString().slice(0, 19)}Z`;
    const built = buildStatus({ ...(await inputs()), kubeletVersion: node.kubeletVersion }, store.published, now);
    if (built === undefined) return;
    const status = fitReport(built, store.published?.conditions, now);
    if (!store.differs(status)) return;
    wroteAt = performance.now() / 1000;
    await store.write(status, signal);
    metrics.reportWrites.inc({ outcome: 'written' });
    sayDropped(store.dropped);
    const { reserved, assignments } = status;
    log.info({ reserved, assignments: assignments.length }, 'published node topology');
  };

  /** The node and the object that goes with it, which is created where it is missing. @throws KubeError */
  const meet = async (signal: AbortSignal): Promise<NodeIdentity> => {
    const node = await readNode(client, nodeName, signal);
    await store.sync(node, signal);
    return node;
  };

  let gone = false;
  let ring = () => {};
  let node: NodeIdentity | undefined;
  let resyncAt = 0;

  /** One look at everything: written if it differs from what is published. @throws KubeError */
  const look = async (signal: AbortSignal): Promise<void> => {
    const now = performance.now() / 1000;
    if (gone || now >= resyncAt) node = undefined;
    gone = false;
    if (node === undefined) resyncAt = now + RESYNC * (1 + Math.random() / 2);
    node ??= await meet(signal);
    await publish(node, signal);
    problems.gone();
  };

  return {
    /** The object may have been deleted: looks, and creates it again. */
    resync(): void {
      gone = true;
      ring();
    },
    /** The duty. */
    async run(signal: AbortSignal): Promise<void> {
      const changes = createBell(signal);
      ring = changes.ring;
      const unsubscribe = subscribe(changes.ring);
      const backoff = new Backoff();
      while (!signal.aborted) {
        try {
          // What is written is read after the wait, never before it.
          await sleep(Math.max(0, wroteAt + WINDOW - performance.now() / 1000), signal);
          changes.clear();
          await look(signal);
          backoff.reset();
          const isKnown = store.published?.conditions?.every(({ status }) => status === 'True') === true;
          await changes.heard(isKnown ? LOOK : LOOK_AGAIN);
          await sleep(SETTLE, signal);
        } catch (err) {
          if (signal.aborted) break;
          metrics.reportWrites.inc({ outcome: 'failed' });
          problems.met(err, 'publishing the node topology failed; retrying');
          // The object may have been deleted; a node that is not registered yet has none.
          if (isNotFound(err)) gone = true;
          await sleep(backoff.next(), signal).catch(() => undefined);
        }
      }
      unsubscribe();
    },
  };
}

/** A bell that remembers having been rung. */
function createBell(signal: AbortSignal) {
  let rung = false;
  let wake = () => {};
  return {
    ring: () => {
      rung = true;
      wake();
    },
    clear: () => {
      rung = false;
    },
    /** Resolves when the bell is or was rung, after `seconds`, or when the signal aborts. */
    async heard(seconds: number): Promise<void> {
      if (rung) return;
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      await underSignals([signal], undefined, (waiting) =>
        Promise.race([woken, sleep(seconds, waiting).catch(() => undefined)]),
      );
    },
  };
}
