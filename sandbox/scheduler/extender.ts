import * as z from 'zod';
import { PlumblineError } from '../../model/errors.ts';
import type { JsonValue, KubeNode, KubePod } from '../objects.ts';
import type { ExtenderConfiguration } from './configuration.ts';

export type Extender = ReturnType<typeof createExtender>;

/** kube-scheduler's MaxNodeScore / MaxExtenderPriority. */
const SCORE_SCALE = 10;

/** A client of one extender with a cache of nodes, equivalent to kube-scheduler's HTTPExtender without TLS. */
export function createExtender(config: ExtenderConfiguration) {
  const name = config.urlPrefix;
  const offer = (pod: KubePod, nodes: readonly KubeNode[]): JsonValue => ({
    Pod: pod,
    Nodes: null,
    NodeNames: nodes.map(({ metadata }) => metadata.name),
  });
  return {
    filters: Boolean(config.filterVerb),
    /** The nodes that pass, and why others do not. @throws ExtenderError */
    async filter(pod: KubePod, nodes: readonly KubeNode[]) {
      const reply = await post(config, config.filterVerb ?? '', offer(pod, nodes));
      return readFilterReply(name, reply, new Set(nodes.map(({ metadata }) => metadata.name)));
    },
    /** Scores, multiplied by weight x 10 and not clamped. Empty without a prioritizeVerb. @throws ExtenderError */
    async prioritize(pod: KubePod, nodes: readonly KubeNode[]) {
      if (!config.prioritizeVerb) return new Map();
      const scores = readPrioritizeReply(name, await post(config, config.prioritizeVerb, offer(pod, nodes)));
      return new Map([...scores].map(([host, score]) => [host, score * (config.weight ?? 1) * SCORE_SCALE]));
    },
  };
}

async function post(
  { urlPrefix, httpTimeout }: ExtenderConfiguration,
  verb: string,
  body: JsonValue,
): Promise<unknown> {
  const url = `${urlPrefix.replace(/\/+$/, '')}/${verb}`;
  const fail = (message: string, cause?: unknown) => new ExtenderError(urlPrefix, message, { cause });
  try {
    const headers = { 'content-type': 'application/json' };
    const signal = AbortSignal.timeout(httpTimeout);
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body), signal });
    if (response.status !== 200) throw fail(`failed ${verb} with extender at URL ${url}, code ${response.status}`);
    return await response.json();
  } catch (error) {
    if (error instanceof ExtenderError) throw error;
    const { name, message, cause } = error as Error;
    if (name === 'TimeoutError') throw fail(`${verb}: no answer within ${httpTimeout} ms`, error);
    throw fail(`${verb}: ${cause instanceof Error ? cause.message : message}`, error);
  }
}

/** Go types without JSON tags, so keys are the Go names. Source: k8s.io/kube-scheduler/extender/v1/types.go. */

class ExtenderError extends PlumblineError {
  constructor(extender: string, message: string, options?: ErrorOptions) {
    super('extender', `extender ${extender}: ${message}`, options);
  }
}

const failed = z.record(z.string(), z.string()).nullish();

const filterResult = z.object({
  NodeNames: z.array(z.string()).nullish(),
  FailedNodes: failed,
  FailedAndUnresolvableNodes: failed,
  Error: z.string().nullish(),
});

/** Go decodes the score into an int64: a fraction invalidates the whole response. */
const priorities = z.array(z.object({ Host: z.string(), Score: z.number().int() })).nullable();

/** @throws ExtenderError if it is no ExtenderFilterResult, has an Error, or names a node that was not in the request */
export function readFilterReply(extender: string, reply: unknown, offered: ReadonlySet<string>) {
  const result = filterResult.safeParse(reply);
  if (!result.success)
    throw new ExtenderError(extender, `filter reply: ${z.prettifyError(result.error)}`, { cause: result.error });
  const { Error: error, NodeNames, FailedNodes, FailedAndUnresolvableNodes } = result.data;
  if (error) throw new ExtenderError(extender, error);
  const names = NodeNames ?? [];
  for (const name of names) {
    if (offered.has(name)) continue;
    throw new ExtenderError(extender, `claims a filtered node "${name}" which is not found in the input node list`);
  }
  return {
    names,
    failed: new Map(Object.entries(FailedNodes ?? {})),
    unresolvable: new Map(Object.entries(FailedAndUnresolvableNodes ?? {})),
  };
}

/** Scores by node name. @throws ExtenderError if it is not an array of hosts with integer scores */
export function readPrioritizeReply(extender: string, reply: unknown): ReadonlyMap<string, number> {
  const result = priorities.safeParse(reply);
  if (!result.success)
    throw new ExtenderError(extender, `prioritize reply: ${z.prettifyError(result.error)}`, { cause: result.error });
  return new Map((result.data ?? []).map(({ Host, Score }) => [Host, Score]));
}
