import type { FilterOutcome } from './filter.ts';

/** One answered filter call, for later display. */
export interface Decision {
  /** RFC 3339. */
  readonly time: string;
  readonly pod: string;
  readonly uid: string;
  /** Number of nodes that the scheduler offered. */
  readonly offered: number;
  /** Number of them that passed. */
  readonly passed: number;
  /** The first few of these nodes. */
  readonly answered: readonly { readonly node: string; readonly score: number; readonly cpus: string }[];
  /** Number of refused nodes, by text. */
  readonly refused: Readonly<Record<string, number>>;
}

/** The last decisions, oldest first. */
export interface Decisions {
  add(pod: string, uid: string, outcome: FilterOutcome): void;
  /** The decisions on one pod, by namespace/name; or all. */
  list(pod?: string): Decision[];
}

const KEPT = 1000;
/** Maximum characters of namespace/name and of a uid, as in the API server. */
const LONGEST_NAME = 317;
const LONGEST_UID = 64;
/**
 * Nodes in a decision: the default number of nodes in an answer for a pod with CPUs of its own. A pod without any may
 * be placed on any of the cluster's nodes, and a thousand such lists would take more memory than everything else.
 */
const NODES_KEPT = 16;

/** @param wallClock milliseconds since 1970 */
export function createDecisions(wallClock: () => number): Decisions {
  const ring: { readonly at: number; readonly pod: string; readonly uid: string; readonly outcome: Kept }[] = [];
  let count = 0;
  return {
    add(pod, uid, { names, answered, texts }) {
      // Formatted on request, which is rare.
      ring[count % KEPT] = {
        at: wallClock(),
        pod: pod.slice(0, LONGEST_NAME),
        uid: uid.slice(0, LONGEST_UID),
        outcome: {
          offered: names.count,
          passed: answered.length,
          answered: answered.slice(0, NODES_KEPT),
          texts: texts.list,
        },
      };
      count++;
    },
    list(pod) {
      const next = count % KEPT;
      const inOrder = [...ring.slice(next), ...ring.slice(0, next)];
      return inOrder.filter((one) => pod === undefined || one.pod === pod).map(writtenOut);
    },
  };
}

interface Kept {
  readonly offered: number;
  readonly passed: number;
  readonly answered: FilterOutcome['answered'];
  readonly texts: FilterOutcome['texts']['list'];
}

function writtenOut({
  at,
  pod,
  uid,
  outcome,
}: {
  readonly at: number;
  readonly pod: string;
  readonly uid: string;
  readonly outcome: Kept;
}): Decision {
  return {
    time: new Date(at).toISOString(),
    pod,
    uid,
    offered: outcome.offered,
    passed: outcome.passed,
    answered: outcome.answered.map(({ node, score, cpus }) => ({ node, score, cpus: cpus?.toString() ?? '' })),
    refused: Object.fromEntries(outcome.texts.map(({ text, nodes }) => [text, nodes])),
  };
}
