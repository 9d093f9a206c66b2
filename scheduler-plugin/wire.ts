import * as z from 'zod';
import { type Pod, pod } from '../kube/resources.ts';
import { PlumblineError } from '../model/errors.ts';

/**
 * kube-scheduler's extender protocol. Its types have no JSON tags, so keys are the Go field names; the objects embedded
 * in them have their ordinary keys. Source: k8s.io/kube-scheduler/extender/v1/types.go.
 */
const extenderArgs = z.object({
  Pod: pod,
  NodeNames: z.array(z.string()).nullish(),
  Nodes: z.object({ items: z.array(z.object({ metadata: z.object({ name: z.string() }) })).nullish() }).nullish(),
});

export interface ExtenderArgs {
  readonly pod: Pod;
  readonly nodeNames: readonly string[];
}

/** A request that is no ExtenderArgs; answered in the protocol's own Error field. */
export class ArgsError extends PlumblineError {
  constructor(message: string, options?: ErrorOptions) {
    super('extender-args', message, options);
  }
}

/**
 * @throws ArgsError if the body is no ExtenderArgs, carries both or neither of Nodes and NodeNames, or a pod without uid
 */
export function decodeArgs(body: unknown): ExtenderArgs {
  const result = extenderArgs.safeParse(parseJson(body));
  if (!result.success) throw new ArgsError(`the body is no ExtenderArgs: ${firstIssues(result.error)}`);
  const { Pod, NodeNames, Nodes } = result.data;
  if (Pod.metadata.uid === undefined) throw new ArgsError('Pod.metadata.uid is missing: a pod is known by its uid');
  if (NodeNames != null && Nodes?.items != null) throw new ArgsError('both Nodes and NodeNames are set: expected one');
  const nodeNames = NodeNames ?? Nodes?.items?.map((node) => node.metadata.name);
  if (nodeNames === undefined) {
    throw new ArgsError('neither NodeNames nor Nodes is set: give the extender nodeCacheCapable: true');
  }
  return { pod: Pod, nodeNames };
}

/** The verdict on every node of one call. Each offered node is in exactly one of the three. */
export interface FilterVerdict {
  readonly fits: readonly string[];
  /** Preempting other pods could help. Text by node name. */
  readonly failed: Readonly<Record<string, string>>;
  /** Preemption cannot help. Text by node name. */
  readonly unresolvable: Readonly<Record<string, string>>;
}

export function encodeFilterVerdict({ fits, failed, unresolvable }: FilterVerdict): string {
  return JSON.stringify({
    Nodes: null,
    NodeNames: fits,
    FailedNodes: failed,
    FailedAndUnresolvableNodes: unresolvable,
    Error: '',
  });
}

/** The scheduler takes this as a failure of the extender: the pod is tried again with backoff, on no node. */
export function encodeFilterError(message: string): string {
  return JSON.stringify({
    Nodes: null,
    NodeNames: null,
    FailedNodes: null,
    FailedAndUnresolvableNodes: null,
    Error: message,
  });
}

export interface HostPriority {
  readonly node: string;
  /** A whole number from 0 to 10: the scheduler drops the whole reply over a fraction. */
  readonly score: number;
}

export function encodePriorities(priorities: readonly HostPriority[]): string {
  return JSON.stringify(priorities.map(({ node, score }) => ({ Host: node, Score: Math.round(score) })));
}

function parseJson(body: unknown): unknown {
  if (!(body instanceof Uint8Array) || body.length === 0)
    throw new ArgsError('the body is empty: expected ExtenderArgs');
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch (error) {
    throw new ArgsError('the body is not JSON: expected ExtenderArgs', { cause: error });
  }
}

function firstIssues(error: z.ZodError): string {
  return error.issues
    .slice(0, 3)
    .map((issue) => `${issue.path.join('.') || 'the whole'}: ${issue.message}`)
    .join('; ');
}
