import * as z from 'zod';
import { assertBoundedJson } from '../../runtime/json-bounds.ts';
import { ArgsError } from './args-error.ts';
import { type AskedPod, askedPod } from './asked-pod.ts';
import type { NameIndex } from './name-index.ts';
import { RecentPods } from './recent-pods.ts';
import { NameScanner, type ScannedNames } from './scanned-names.ts';

/**
 * kube-scheduler's extender protocol. Its types have no JSON tags, so keys are the Go field names; the embedded objects
 * have their usual keys. Source: k8s.io/kube-scheduler/extender/v1/types.go.
 */
const nodeItem = z.looseObject({ metadata: z.looseObject({ name: z.string() }) });
export const extenderArgs = z.object({
  Pod: askedPod,
  NodeNames: z.array(z.string()).nullish(),
  Nodes: z.object({ items: z.array(nodeItem).nullish() }).nullish(),
});

export type NodeItem = z.infer<typeof nodeItem>;

export interface ExtenderArgs {
  readonly pod: AskedPod;
  readonly names: ScannedNames;
  /** The whole objects, from a scheduler that expects the extender to cache no nodes (nodeCacheCapable: false). */
  readonly nodes: readonly NodeItem[] | undefined;
}

/** Maximum characters of a validation error, which contains the caller's keys. */
const LONGEST_ISSUES = 300;
const KEY = Buffer.from('"NodeNames":');
const OPEN = 0x5b;
const ENDING = Buffer.from('}');
const NO_NAMES = '"NodeNames":[]}';

/** Decodes requests. Names stay bytes: a decoded request is valid until the next one. */
export class ArgsDecoder {
  readonly #index: NameIndex;
  readonly #scanner = new NameScanner();
  readonly #recent = new RecentPods();

  constructor(index: NameIndex) {
    this.#index = index;
  }

  /**
   * @throws ArgsError if the body is not ExtenderArgs, has both or neither of Nodes and NodeNames, or a pod without uid
   */
  decode(body: Buffer): ExtenderArgs {
    if (body.length === 0) throw new ArgsError('the body is empty: expected ExtenderArgs');
    return this.#decodeGo(body) ?? this.#decodeAny(body);
  }

  /** Go writes NodeNames last: everything before is parsed, and the names are not. */
  #decodeGo(body: Buffer): ExtenderArgs | undefined {
    const key = body.lastIndexOf(KEY);
    if (key < 0 || body[key + KEY.length] !== OPEN) return undefined;
    const names = this.#scanner.scan(body, key + KEY.length, this.#index);
    const rest = body.subarray(this.#scanner.end).toString().trim();
    if (rest !== ENDING.toString()) return undefined;
    const before = body.subarray(0, key);
    const known = this.#recent.find(before);
    if (known !== undefined) return { pod: known, names, nodes: undefined };
    const { Pod, Nodes } = check(parseJson(before, NO_NAMES));
    if (Nodes?.items != null) throw bothGiven();
    const pod = withUid(Pod);
    this.#recent.add(before, pod);
    return { pod, names, nodes: undefined };
  }

  #decodeAny(body: Buffer): ExtenderArgs {
    const { Pod, NodeNames, Nodes } = check(parseJson(body));
    if (NodeNames != null && Nodes?.items != null) throw bothGiven();
    const nodes = Nodes?.items ?? undefined;
    const list = NodeNames ?? nodes?.map(({ metadata }) => metadata.name);
    if (list === undefined) {
      throw new ArgsError(
        'neither NodeNames nor Nodes is set: set nodeCacheCapable: true in the extender’s configuration',
      );
    }
    return { pod: withUid(Pod), names: this.namesOf(list), nodes };
  }

  /** Scans names that did not arrive as bytes. */
  namesOf(names: readonly string[]): ScannedNames {
    return this.#scanner.scan(Buffer.from(`${JSON.stringify(names)}\n`), 0, this.#index);
  }
}

function check(body: unknown): z.infer<typeof extenderArgs> {
  const result = extenderArgs.safeParse(body);
  if (!result.success) throw new ArgsError(`the body is not ExtenderArgs: ${firstIssues(result.error)}`);
  return result.data;
}

function withUid(given: AskedPod): AskedPod {
  if (given.metadata.uid === undefined || given.metadata.uid === '') {
    throw new ArgsError('Pod.metadata.uid is missing: the extender identifies pods by uid');
  }
  return given;
}

function bothGiven(): ArgsError {
  return new ArgsError('both Nodes and NodeNames are set: expected one');
}

/**
 * @param more text to append to the body
 * @throws ArgsError if it is not JSON; JsonTooLarge
 */
export function parseJson(body: Buffer, more = ''): unknown {
  assertBoundedJson(body);
  try {
    return JSON.parse(body.toString() + more);
  } catch (error) {
    throw new ArgsError('the body is not JSON: expected ExtenderArgs', { cause: error });
  }
}

export function firstIssues(error: z.ZodError): string {
  return error.issues
    .slice(0, 3)
    .map((issue) => `${issue.path.join('.') || 'the whole'}: ${issue.message}`)
    .join('; ')
    .slice(0, LONGEST_ISSUES);
}
