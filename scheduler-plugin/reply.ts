import type { FilterOutcome } from './filter.ts';
import type { NodeItem } from './wire.ts';

const QUOTE = 0x22;
const COLON = 0x3a;
const COMMA = 0x2c;

const HEAD = Buffer.from('{"Nodes":null,"NodeNames":[');
const MIDDLE = Buffer.from('],"FailedNodes":{},"FailedAndUnresolvableNodes":{');
const TAIL = Buffer.from('},"Error":""}');

/**
 * The ExtenderFilterResult of an outcome. Names are copied from the request's bytes into a reply whose length is known
 * beforehand, and each text was made JSON once.
 *
 * Every refusal stands in FailedAndUnresolvableNodes: preemption cannot help (docs/adr/0022).
 */
export function encodeFilterReply(outcome: FilterOutcome, nodes: readonly NodeItem[] | undefined): Buffer {
  return nodes === undefined ? encodeNames(outcome) : encodeNodes(outcome, nodes);
}

function encodeNames({ names, codes, texts, answered }: FilterOutcome): Buffer {
  const { bytes, starts, ends, count } = names;
  const json = texts.list.map((text) => text.json);
  let size = HEAD.length + MIDDLE.length + TAIL.length;
  for (const { position } of answered) size += ends[position]! - starts[position]! + 3;
  for (let k = 0; k < count; k++) {
    const code = codes[k]!;
    if (code > 0) size += ends[k]! - starts[k]! + 4 + json[code - 1]!.length;
  }
  const reply = Buffer.allocUnsafe(size);
  let at = HEAD.copy(reply);
  answered.forEach(({ position }, i) => {
    if (i > 0) reply[at++] = COMMA;
    at = copyName(bytes, starts[position]!, ends[position]!, reply, at);
  });
  at += MIDDLE.copy(reply, at);
  let first = true;
  for (let k = 0; k < count; k++) {
    const code = codes[k]!;
    if (code <= 0) continue;
    if (!first) reply[at++] = COMMA;
    first = false;
    at = copyName(bytes, starts[k]!, ends[k]!, reply, at);
    reply[at++] = COLON;
    const text = json[code - 1]!;
    for (let i = 0; i < text.length; i++) reply[at++] = text[i]!;
  }
  at += TAIL.copy(reply, at);
  return reply.subarray(0, at);
}

/** Byte by byte: for some thirty bytes that is quicker than to call for a copy. */
function copyName(from: Uint8Array, start: number, end: number, to: Uint8Array, begin: number): number {
  let at = begin;
  to[at++] = QUOTE;
  for (let i = start; i < end; i++) to[at++] = from[i]!;
  to[at++] = QUOTE;
  return at;
}

/** A scheduler that sent whole nodes wants them back whole. */
function encodeNodes(outcome: FilterOutcome, nodes: readonly NodeItem[]): Buffer {
  const { answered, codes, texts } = outcome;
  const names = answered.map(({ node }) => node);
  const kept = new Set(names);
  const refused = nodes.flatMap(({ metadata }, k) => {
    const text = texts.list[codes[k]! - 1];
    return text === undefined ? [] : [[metadata.name, text.text] as const];
  });
  return Buffer.from(
    JSON.stringify({
      Nodes: { metadata: {}, items: nodes.filter(({ metadata }) => kept.has(metadata.name)) },
      NodeNames: names,
      FailedNodes: {},
      FailedAndUnresolvableNodes: Object.fromEntries(refused),
      Error: '',
    }),
  );
}

/** The scheduler takes this as a failure of the extender: the pod is tried again with backoff, on no node. */
export function encodeFilterError(message: string): Buffer {
  return Buffer.from(
    JSON.stringify({
      Nodes: null,
      NodeNames: null,
      FailedNodes: null,
      FailedAndUnresolvableNodes: null,
      Error: message,
    }),
  );
}

export interface HostPriority {
  readonly node: string;
  /** A whole number from 0 to 10: the scheduler drops the whole reply over a fraction. */
  readonly score: number;
}

export function encodePriorities(priorities: readonly HostPriority[]): Buffer {
  return Buffer.from(JSON.stringify(priorities.map(({ node, score }) => ({ Host: node, Score: Math.round(score) }))));
}
