import { cut } from '../../model/errors.ts';
import type { RefusalKind, Refused } from '../../model/placement/verdict.ts';

/** kube-scheduler counts nodes by text and truncates long lists of texts, so an answer has at most this many. */
const MAX_TEXTS = 8;

/** As JSON, once for each node, perhaps with a tenant's name: 5,000 nodes with names of 63 characters take 1 MiB. */
const MAX_TEXT_BYTES = 140;

const FALLBACK: Partial<Readonly<Record<RefusalKind, string>>> = { dpu: 'DPU not ready for too long' };
const OTHER = 'refused for another reason; see /explain';
/** Texts that replace others: each needs a slot of its own. */
const FALLBACKS = Object.keys(FALLBACK).length + 1;

export interface RefusalText {
  readonly kind: RefusalKind;
  readonly text: string;
  nodes: number;
}

/** Texts with numbers can be many: the text of the kind without a number then replaces them. */
export class Refusals {
  readonly #texts = new Map<string, RefusalText>();
  /** Without a prototype: V8 adds keys to such an object without a hidden class for each, and `__proto__` is a name. */
  readonly #byNode: Record<string, string> = Object.create(null) as Record<string, string>;

  get texts(): readonly RefusalText[] {
    return [...this.#texts.values()];
  }

  /** In the order of refusal. */
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
