import type { KubeClient } from '../kube/client.ts';
import { isNotFound } from '../kube/errors.ts';
import { RECHECK_ANNOTATION } from '../model/names.ts';
import type { Logger } from '../runtime/log.ts';

/**
 * Makes kube-scheduler look again at pods that were refused here. A change of a lease or of a custom resource wakes no
 * waiting pod, but a change of a Node's annotation does; so when a node turns better in this process's own view, and
 * only then, its recheck annotation is touched. In a quiet cluster nothing waits and nothing is written.
 */
export interface Recheck {
  /** A pod was refused on every node it was offered. */
  refused(uid: string): void;
  /** A pod found a node, or is gone. */
  settled(uid: string): void;
  /** A node may take pods now that it refused before. */
  improved(node: string): void;
  stop(): void;
}

export interface RecheckOptions {
  readonly client: KubeClient;
  readonly log: Logger;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/** Seconds between two writes to one node. */
const INTERVAL = 1;
/** A pod that has not been seen for so many seconds no longer counts as waiting: it was deleted unnoticed. */
const FORGET = 900;

export function createRecheck({ client, log, now }: RecheckOptions): Recheck {
  const waiting = new Map<string, number>();
  const last = new Map<string, number>();
  const timers = new Map<string, NodeJS.Timeout>();

  const write = async (node: string): Promise<void> => {
    const body = { metadata: { annotations: { [RECHECK_ANNOTATION]: new Date().toISOString() } } };
    try {
      await client.patch(`/api/v1/nodes/${node}`, 'application/merge-patch+json', body);
      log.info({ node, waiting: waiting.size }, 'asked the scheduler to look at a node again');
    } catch (err) {
      if (!isNotFound(err))
        log.warn(
          { err, node },
          'could not touch the recheck annotation; waiting pods stay until the scheduler’s own retry',
        );
    }
  };

  const anybodyWaits = (): boolean => {
    for (const [uid, seen] of waiting) if (now() - seen > FORGET) waiting.delete(uid);
    return waiting.size > 0;
  };

  return {
    refused: (uid) => void waiting.set(uid, now()),
    settled: (uid) => void waiting.delete(uid),
    improved(node) {
      if (!anybodyWaits() || timers.has(node)) return;
      const due = (last.get(node) ?? Number.NEGATIVE_INFINITY) + INTERVAL;
      const timer = setTimeout(
        () => {
          timers.delete(node);
          last.set(node, now());
          void write(node);
        },
        Math.max(0, due - now()) * 1000,
      );
      timers.set(node, timer);
    },
    stop() {
      for (const timer of timers.values()) clearTimeout(timer);
      timers.clear();
    },
  };
}
