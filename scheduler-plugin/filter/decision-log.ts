import { BoundedMap } from '../../model/bounded-map.ts';
import type { PodView } from '../cluster/pod-view.ts';
import type { ExtenderLogger } from '../telemetry/log-messages.ts';
import type { Refusals } from './refusals.ts';

/** More pods do not wait at a time. */
const MAX_WAITING_PODS = 5000;

/** Logs which pods wait and why, and where pods are placed. */
export class DecisionLog {
  readonly #log: ExtenderLogger;
  /** The kinds of refusals that were logged last, by the uid of the pod. */
  readonly #waiting = new BoundedMap<string, string>(MAX_WAITING_PODS);

  constructor(log: ExtenderLogger) {
    this.#log = log;
  }

  /** Called for each attempt of the scheduler. Texts contain amounts that change, so only another kind is a change. */
  waits(pod: string, uid: string, { texts }: Pick<Refusals, 'texts'>): void {
    const kinds = [...new Set(texts.map(({ kind }) => kind))].sort().join();
    if (this.#waiting.get(uid) === kinds) return;
    this.#waiting.set(uid, kinds);
    const nodes = Object.fromEntries(texts.map(({ text, nodes: count }) => [text, count]));
    this.#log.info({ pod, nodes }, 'no node accepts the pod');
  }

  /** The scheduler has bound the pod. Pods without CPUs of their own are not worth a line, unless they had to wait. */
  placed({ uid, namespace, name, node, needs }: PodView): void {
    const hasWaited = this.#waiting.delete(uid);
    if (needs.exclusive || needs.mask !== undefined || hasWaited)
      this.#log.info({ pod: `${namespace}/${name}`, node }, 'pod placed');
  }
}
