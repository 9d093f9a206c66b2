import { cut } from '../../model/errors.ts';
import type { RefusalKind, Refused } from '../../model/placement/verdict.ts';
import type { FilterOutcome } from './filter.ts';

/** kube-scheduler counts nodes by text and truncates long lists of texts, so an answer has at most this many. */
export const MAX_TEXTS = 8;

/**
 * Bytes of a text as JSON. It is in the answer once for each node, and may contain the name of a tenant's object: the
 * answer for 5,000 nodes with names of 63 characters has at most 1 MiB.
 */
const MAX_TEXT_BYTES = 140;

const FALLBACK: Partial<Readonly<Record<RefusalKind, string>>> = { dpu: 'DPU not ready for too long' };
const OTHER = 'refused for another reason; see /explain';
/** Texts that replace others: each needs a slot of its own. */
const FALLBACKS = Object.keys(FALLBACK).length + 1;

/** One text of an answer, and the number of nodes with it. */
export interface RefusalText {
  readonly kind: RefusalKind;
  readonly text: string;
  nodes: number;
}

/**
 * The refused nodes of one answer. Texts with numbers can be many; when there are too many, the text of the kind without
 * a number replaces them.
 */
export class Refusals {
  readonly #texts = new Map<string, RefusalText>();
  /** Without a prototype: V8 adds keys to such an object without a hidden class for each, and `__proto__` is a name. */
  readonly #byNode: Record<string, string> = Object.create(null) as Record<string, string>;

  /** The texts of the answer. */
  get texts(): readonly RefusalText[] {
    return [...this.#texts.values()];
  }

  /** The text of each refused node, by name, in the order of refusal. */
  get byNode(): Readonly<Record<string, string>> {
    return this.#byNode;
  }

  add(node: string, { kind, text }: Pick<Refused, 'kind' | 'text'>): void {
    // A name that the call has twice.
    if (this.#byNode[node] !== undefined) return;
    const counted = this.#textOf(kind, text);
    counted.nodes++;
    this.#byNode[node] = counted.text;
  }

  #textOf(kind: RefusalKind, text: string): RefusalText {
    const same = this.#texts.get(text);
    if (same !== undefined) return same;
    const fallback = FALLBACK[kind] ?? OTHER;
    if (text !== fallback && this.#texts.size >= MAX_TEXTS - FALLBACKS) return this.#textOf(kind, fallback);
    const added: RefusalText = { kind, text: bounded(text), nodes: 0 };
    this.#texts.set(text, added);
    return added;
  }
}

function bounded(text: string): string {
  let short = cut(text, MAX_TEXT_BYTES);
  while (Buffer.byteLength(JSON.stringify(short)) > MAX_TEXT_BYTES) short = cut(short, short.length - 1);
  return short;
}

const MAX_DECISIONS = 1000;
/** Maximum characters of namespace/name and of a uid, as in the API server. */
const MAX_NAME_CHARACTERS = 317;
const MAX_UID_CHARACTERS = 64;
/**
 * Nodes in a decision: the default number of nodes in an answer for a pod with CPUs of its own. A pod without any may
 * be placed on any of the cluster's nodes, and a thousand such lists would take more memory than everything else.
 */
const MAX_NODES = 16;

/** The last decisions, oldest first. */
export class Decisions {
  readonly #wallClock: () => number;
  readonly #decisions: ReturnType<typeof decisionOn>[] = [];

  /** @param wallClock milliseconds since 1970 */
  constructor(wallClock: () => number) {
    this.#wallClock = wallClock;
  }

  add(pod: string, uid: string, outcome: FilterOutcome): void {
    this.#decisions.push(decisionOn(new Date(this.#wallClock()), pod, uid, outcome));
    if (this.#decisions.length > MAX_DECISIONS) this.#decisions.shift();
  }

  /** The decisions on one pod, by namespace/name; or all. */
  list(pod?: string) {
    return this.#decisions.filter((decision) => pod === undefined || decision.pod === pod);
  }
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
