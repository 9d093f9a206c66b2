import { BoundedMap } from '../../model/bounded-map.ts';
import type { RefusalKind } from '../../model/placement/verdict.ts';
import { monotonicSeconds } from '../../runtime/time.ts';
import { namesOf, type PodView } from '../cluster/pod-view.ts';
import type { ExtenderLogger } from '../telemetry/log-messages.ts';
import type { FilterOutcome, Refusals } from './filter.ts';

const MAX_DECISIONS = 1000;
/** As in the API server. */
const MAX_NAME_CHARACTERS = 317;
const MAX_UID_CHARACTERS = 64;
/** The default of an answer: a pod without CPUs of its own may be placed on any node, which takes too much memory. */
const MAX_NODES = 16;

/** Oldest first. */
export class Decisions {
  readonly #decisions: ReturnType<typeof decisionOn>[] = [];

  add(pod: string, uid: string, outcome: FilterOutcome): void {
    this.#decisions.push(decisionOn(pod, uid, outcome));
    if (this.#decisions.length > MAX_DECISIONS) this.#decisions.shift();
  }

  /** The decisions on one pod, by namespace/name; or all. */
  list(pod?: string) {
    return this.#decisions.filter((decision) => pod === undefined || decision.pod === pod);
  }
}

function decisionOn(pod: string, uid: string, { offered, answers, refusals }: FilterOutcome) {
  return {
    time: new Date().toISOString(),
    pod: pod.slice(0, MAX_NAME_CHARACTERS),
    uid: uid.slice(0, MAX_UID_CHARACTERS),
    offered,
    passed: answers.length,
    answered: answers
      .slice(0, MAX_NODES)
      .map(({ node, score, cpus }) => ({ node, score, cpus: cpus?.toString() ?? '' })),
    refused: Object.fromEntries(refusals.texts.map(({ text, nodes }) => [text, nodes])),
  };
}

/** More pods do not wait at a time. */
const MAX_WAITING_PODS = 5000;

export class DecisionLog {
  readonly #log: ExtenderLogger;
  /** The kinds of refusals that were logged last, and when the first were, by the uid of the pod. */
  readonly #waiting = new BoundedMap<string, { readonly kinds: string; readonly since: number }>(MAX_WAITING_PODS);

  constructor(log: ExtenderLogger) {
    this.#log = log;
  }

  /** Called for each attempt. Texts contain amounts that change, so only another kind is a change. */
  waits(pod: string, uid: string, { texts }: Pick<Refusals, 'texts'>, vmi?: string): void {
    const kinds = [...new Set(texts.map(({ kind }) => kind))].sort().join();
    const last = this.#waiting.get(uid);
    if (last?.kinds === kinds) return;
    this.#waiting.set(uid, { kinds, since: last?.since ?? monotonicSeconds() });
    const refusals: Partial<Record<RefusalKind, number>> = {};
    for (const { kind, nodes } of texts) refusals[kind] = (refusals[kind] ?? 0) + nodes;
    const fields = { pod, vmi, refusals, reasons: texts.map(({ text }) => text) };
    this.#log.info(fields, 'the extender accepts none of the nodes that kube-scheduler asked about');
  }

  /** The scheduler has bound the pod. Pods without CPUs of their own are not worth a line, unless they had to wait. */
  placed(pod: PodView): void {
    const { uid, node, needs } = pod;
    const wait = this.#waiting.get(uid);
    this.#waiting.delete(uid);
    const waitedSeconds = wait && Math.round(monotonicSeconds() - wait.since);
    if (needs.exclusive || needs.mask !== undefined || wait !== undefined)
      this.#log.info({ ...namesOf(pod), node, waitedSeconds }, 'pod placed');
  }
}
