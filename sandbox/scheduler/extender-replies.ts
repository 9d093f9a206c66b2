import * as z from 'zod';
import { PlumblineError } from '../../model/errors.ts';

/** Go types without JSON tags, so keys are the Go names. Source: k8s.io/kube-scheduler/extender/v1/types.go. */

export class ExtenderError extends PlumblineError {
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
