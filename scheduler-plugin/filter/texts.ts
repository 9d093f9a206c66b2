import type { RefusalKind } from '../../model/placement/verdict.ts';

/** kube-scheduler counts nodes by text and truncates long lists of texts, so an answer has at most this many. */
export const MOST_TEXTS = 8;

const FALLBACK: Partial<Readonly<Record<RefusalKind, string>>> = { dpu: 'DPU not ready for too long' };
const OTHER = 'refused for another reason; see /explain';
/** Texts that replace others: each needs a slot of its own. */
const FALLBACKS = Object.keys(FALLBACK).length + 1;

/** One text of an answer, and the number of nodes with it. */
export interface Text {
  readonly kind: RefusalKind;
  readonly text: string;
  /** `"text"` as JSON. */
  readonly json: string;
  nodes: number;
}

/**
 * The texts of one answer. Texts with numbers can be many; when there are too many, the text of the kind without a
 * number replaces them.
 */
export class Texts {
  readonly list: Text[] = [];

  /** The number of a text in this answer, from 1. */
  give(kind: RefusalKind, text: string): number {
    const same = this.list.findIndex((one) => one.text === text);
    if (same >= 0) return this.#count(same);
    if (this.list.length < MOST_TEXTS - FALLBACKS) return this.#add(kind, text);
    const fallback = FALLBACK[kind] ?? OTHER;
    if (text !== fallback) return this.give(kind, fallback);
    return this.#add(kind, text);
  }

  again(number: number): number {
    return this.#count(number - 1);
  }

  #add(kind: RefusalKind, text: string): number {
    this.list.push({ kind, text, json: JSON.stringify(text), nodes: 1 });
    return this.list.length;
  }

  #count(at: number): number {
    const text = this.list[at];
    if (text) text.nodes++;
    return at + 1;
  }
}
