import type { FilterOutcome } from './filter.ts';

export type Decisions = ReturnType<typeof createDecisions>;

const MAX_DECISIONS = 1000;
/** Maximum characters of namespace/name and of a uid, as in the API server. */
const MAX_NAME_CHARACTERS = 317;
const MAX_UID_CHARACTERS = 64;
/**
 * Nodes in a decision: the default number of nodes in an answer for a pod with CPUs of its own. A pod without any may
 * be placed on any of the cluster's nodes, and a thousand such lists would take more memory than everything else.
 */
const MAX_NODES = 16;

/**
 * The last decisions, oldest first.
 * @param wallClock milliseconds since 1970
 */
export function createDecisions(wallClock: () => number) {
  const decisions: ReturnType<typeof decisionOn>[] = [];
  return {
    add(pod: string, uid: string, outcome: FilterOutcome): void {
      decisions.push(decisionOn(new Date(wallClock()), pod, uid, outcome));
      if (decisions.length > MAX_DECISIONS) decisions.shift();
    },
    /** The decisions on one pod, by namespace/name; or all. */
    list: (pod?: string) => decisions.filter((one) => pod === undefined || one.pod === pod),
  };
}

function decisionOn(time: Date, pod: string, uid: string, { offered, answers, refusals }: FilterOutcome) {
  return {
    time: time.toISOString(),
    pod: pod.slice(0, MAX_NAME_CHARACTERS),
    uid: uid.slice(0, MAX_UID_CHARACTERS),
    offered,
    passed: answers.length,
    answered: answers
      .slice(0, MAX_NODES)
      .map(({ node, score, cpus }) => ({ node, score, cpus: cpus?.toString() ?? '' })),
    /** Number of nodes by text. */
    refused: Object.fromEntries(refusals.texts.map(({ text, nodes }) => [text, nodes])),
  };
}
