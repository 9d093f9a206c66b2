import { type BufferPool, type Lent, lentFree } from '../../runtime/buffer-pool.ts';
import type { FilterOutcome } from '../filter/filter.ts';
import type { NodeItem } from '../wire/wire.ts';

const HEAD = Buffer.from('{"Nodes":null,"NodeNames":["');
const BETWEEN = '","';
const MIDDLE = Buffer.from('],"FailedNodes":{},"FailedAndUnresolvableNodes":{"');
const TAIL = Buffer.from('},"Error":""}');

/**
 * Encodes an outcome as ExtenderFilterResult. It copies names from the request's bytes into a reply of known length,
 * and encodes each text as JSON once.
 *
 * All refusals are in FailedAndUnresolvableNodes: preemption cannot help (docs/adr/0022).
 */
export function encodeFilterReply(
  outcome: FilterOutcome,
  nodes: readonly NodeItem[] | undefined,
  pool: BufferPool,
): Lent {
  return nodes === undefined ? encodeNames(outcome, pool) : lentFree(encodeNodes(outcome, nodes));
}

function encodeNames({ names, refusals, texts, answered }: FilterOutcome, pool: BufferPool): Lent {
  const { bytes, starts, ends } = names;
  const joints = texts.list.map(({ json }) => piece(`":${json},"`));
  let size = HEAD.length + MIDDLE.length + TAIL.length + OVERRUN;
  for (const { position } of answered) size += ends[position]! - starts[position]! + BETWEEN.length;
  for (let i = 0; i < refusals.count; i++) {
    const position = refusals.positions[i]!;
    size += ends[position]! - starts[position]! + joints[refusals.texts[i]! - 1]!.length;
  }
  const reply = pool.take(size);
  const to = new DataView(reply.buffer, reply.byteOffset, size);
  const from = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

  let at = HEAD.copy(reply);
  for (const { position } of answered) {
    at = copyWords(from, starts[position]!, ends[position]! - starts[position]!, to, at);
    at += reply.write(BETWEEN, at);
  }
  // Remove the separator after the last name, or the first name's quote if there is no name.
  at -= answered.length > 0 ? 2 : 1;
  at += MIDDLE.copy(reply, at);
  for (let i = 0; i < refusals.count; i++) {
    const position = refusals.positions[i]!;
    const { view, length } = joints[refusals.texts[i]! - 1]!;
    at = copyWords(from, starts[position]!, ends[position]! - starts[position]!, to, at);
    at = copyWords(view, 0, length, to, at);
  }
  at -= refusals.count > 0 ? 2 : 1;
  at += TAIL.copy(reply, at);
  return { bytes: reply.subarray(0, at), release: () => pool.give(reply) };
}

/** Maximum bytes that `copyWords` may overwrite after the copy. */
const OVERRUN = 3;

interface Piece {
  readonly view: DataView;
  /** In bytes, without the padding for `copyWords`. */
  readonly length: number;
}

function piece(text: string): Piece {
  const bytes = new TextEncoder().encode(text + ' '.repeat(OVERRUN));
  return { view: new DataView(bytes.buffer), length: bytes.length - OVERRUN };
}

/**
 * Copies in words of four bytes and returns the end of the copy; it overwrites up to OVERRUN bytes after it. For names,
 * that is faster than single bytes and than a runtime call for each.
 */
function copyWords(from: DataView, start: number, length: number, to: DataView, at: number): number {
  for (let i = 0; i < length; i += 4) to.setInt32(at + i, from.getInt32(start + i, true), true);
  return at + length;
}

/** A scheduler that sent whole nodes expects whole nodes. */
function encodeNodes({ answered, refusals, texts }: FilterOutcome, nodes: readonly NodeItem[]): Buffer {
  const names = answered.map(({ node }) => node);
  const kept = new Set(names);
  const refused = Array.from(
    { length: refusals.count },
    (_, i) => [nodes[refusals.positions[i]!]!.metadata.name, texts.list[refusals.texts[i]! - 1]!.text] as const,
  );
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

/** The scheduler treats this as a failure of the extender: it retries the pod with backoff, on no node. */
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
  /** An integer from 0 to 10: the scheduler rejects the whole reply if it contains a fraction. */
  readonly score: number;
}

export function encodePriorities(priorities: readonly HostPriority[]): Buffer {
  return Buffer.from(JSON.stringify(priorities.map(({ node, score }) => ({ Host: node, Score: Math.round(score) }))));
}
