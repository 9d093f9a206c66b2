import type { FilterOutcome } from './filter.ts';

/** One answered filter call, as people want to read it later. */
export interface Decision {
  /** RFC 3339. */
  readonly time: string;
  readonly pod: string;
  readonly uid: string;
  /** How many nodes the scheduler offered. */
  readonly offered: number;
  /** How many of them may have the pod. */
  readonly passed: number;
  /** The first of those, a few. */
  readonly answered: readonly { readonly node: string; readonly score: number; readonly cpus: string }[];
  /** How many nodes were refused, by text. */
  readonly refused: Readonly<Record<string, number>>;
}

/** The last decisions, oldest first. */
export interface Decisions {
  add(pod: string, uid: string, outcome: FilterOutcome): void;
  /** Of one pod, by namespace/name; or all. */
  list(pod?: string): Decision[];
}

const KEPT = 1000;
/** Characters of namespace/name and of a uid, as the API server has them. */
const LONGEST_NAME = 317;
const LONGEST_UID = 64;
/**
 * Nodes that a decision keeps: as many as a pod with CPUs of its own is answered by default. One without may have any of
 * the cluster's nodes, and a thousand times those would be more memory than all else.
 */
const NODES_KEPT = 16;

/** @param wallClock milliseconds since 1970 */
export function createDecisions(wallClock: () => number): Decisions {
  const ring: { readonly at: number; readonly pod: string; readonly uid: string; readonly outcome: Kept }[] = [];
  let count = 0;
  return {
    add(pod, uid, { names, answered, texts }) {
      // Written out on request, which is rare.
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
