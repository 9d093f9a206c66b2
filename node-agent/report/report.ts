import type { KubeClient } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import type { Logger } from '../../runtime/log.ts';
import { Backoff, sleep } from '../../runtime/time.ts';
import type { AgentMetrics } from '../metrics.ts';
import { type NodeIdentity, readNode } from '../node-object.ts';
import { createProblemLog } from '../problem-log.ts';
import { buildStatus, type ReportInputs } from './status.ts';
import { createTopologyStore } from './topology-store.ts';

/** Seconds in which changes become one write. */
const WINDOW = 0.2;
/** Seconds, with up to half as much again, after which the object is read to see whether it is still as published. */
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

  /** @throws KubeError */
  const publish = async (node: NodeIdentity, signal: AbortSignal): Promise<void> => {
    const status = buildStatus(
      { ...(await inputs()), kubeletVersion: node.kubeletVersion },
      store.published?.conditions ?? [],
      `${new Date().toISOString().slice(0, 19)}Z`,
    );
    if (status === undefined) return;
    if (!(await store.write(status, signal))) return;
    metrics.reportWrites.inc({ outcome: 'written' });
    const { reserved, assignments } = status;
    log.info({ reserved, assignments: assignments.length }, 'node topology published');
  };

  /** The node and the object that goes with it, which is created where it is missing. @throws KubeError */
  const meet = async (signal: AbortSignal): Promise<NodeIdentity> => {
    const node = await readNode(client, nodeName, signal);
    await store.sync(node, signal);
    return node;
  };

  return {
    /** The duty. */
    async run(signal: AbortSignal): Promise<void> {
      const changes = createBell(signal);
      const unsubscribe = subscribe(changes.ring);
      const backoff = new Backoff();
      let node: NodeIdentity | undefined;
      while (!signal.aborted) {
        try {
          node ??= await meet(signal);
          changes.clear();
          await publish(node, signal);
          backoff.reset();
          problems.gone();
          if (!(await changes.heard(RESYNC * (1 + Math.random() / 2)))) node = undefined;
          await sleep(WINDOW, signal);
        } catch (err) {
          if (signal.aborted) break;
          metrics.reportWrites.inc({ outcome: 'failed' });
          problems.met(err, 'the node topology cannot be published, trying on');
          // The object may have been deleted; a node that is not registered yet has none.
          if (isNotFound(err)) node = undefined;
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
    /** Resolves to true when the bell is or was rung, to false after `seconds` or when the signal aborts. */
    async heard(seconds: number): Promise<boolean> {
      if (rung) return true;
      const waiting = new AbortController();
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      await Promise.race([woken, sleep(seconds, AbortSignal.any([signal, waiting.signal])).catch(() => undefined)]);
      waiting.abort();
      return rung;
    },
  };
}
