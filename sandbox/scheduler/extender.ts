import { parse } from 'yaml';
import * as z from 'zod';
import { PlumblineError } from '../../model/errors.ts';
import type { JsonValue, KubeNode, KubePod } from '../objects.ts';

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

async function post({ urlPrefix, httpTimeout }: ExtenderConfiguration, verb: string, body: JsonValue) {
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

const malformed = (extender: string, verb: string, cause: z.ZodError) =>
  new ExtenderError(extender, `${verb} reply: ${z.prettifyError(cause)}`, { cause });

/** @throws ExtenderError if it is no ExtenderFilterResult, has an Error, or names a node that was not in the request */
export function readFilterReply(extender: string, reply: unknown, offered: ReadonlySet<string>) {
  const result = filterResult.safeParse(reply);
  if (!result.success) throw malformed(extender, 'filter', result.error);
  const { Error: error, NodeNames, FailedNodes, FailedAndUnresolvableNodes } = result.data;
  if (error) throw new ExtenderError(extender, error);
  const names = NodeNames ?? [];
  const foreign = names.find((name) => !offered.has(name));
  if (foreign !== undefined) {
    throw new ExtenderError(extender, `claims a filtered node "${foreign}" which is not found in the input node list`);
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
  if (!result.success) throw malformed(extender, 'prioritize', result.error);
  return new Map((result.data ?? []).map(({ Host, Score }) => [Host, Score]));
}

/** Go's notation with a single unit (`5s`, `500ms`), converted to milliseconds. */
const duration = z
  .string()
  .regex(/^\d+(ms|s)$/)
  .transform((text) => Number.parseInt(text, 10) * (text.endsWith('ms') ? 1 : 1000));

const extender = z.strictObject({
  urlPrefix: z.url({ protocol: /^http$/ }),
  filterVerb: z.string().optional(),
  preemptVerb: z.string().optional(),
  prioritizeVerb: z.string().optional(),
  weight: z.number().int().optional(),
  httpTimeout: duration.default(5_000),
  nodeCacheCapable: z.literal(true, 'the sandbox supports only extenders with a cache of nodes'),
  /** Not simulated, like `ignorable`: the extender is called for every pod. */
  managedResources: z
    .array(z.strictObject({ name: z.string(), ignoredByScheduler: z.boolean().default(false) }))
    .default([]),
  ignorable: z.boolean().default(false),
});

const leaderElection = z.strictObject({
  leaderElect: z.boolean().default(true),
  resourceNamespace: z.string().default('kube-system'),
  resourceName: z.string().default('kube-scheduler'),
  resourceLock: z.literal('leases').default('leases'),
  leaseDuration: duration.default(15_000),
  renewDeadline: duration.default(10_000),
  retryPeriod: duration.default(2000),
});

/** Strict, like the real scheduler: it does not start with an unknown field in an extender. */
const configuration = z.object({
  apiVersion: z.literal('kubescheduler.config.k8s.io/v1'),
  kind: z.literal('KubeSchedulerConfiguration'),
  leaderElection: leaderElection.optional(),
  profiles: z.array(z.looseObject({ schedulerName: z.string().default('default-scheduler') })).optional(),
  extenders: z
    .array(
      extender.refine(
        (settings) => !settings.prioritizeVerb || (settings.weight ?? 0) > 0,
        'a prioritizeVerb needs a positive weight',
      ),
    )
    .default([]),
  podInitialBackoffSeconds: z.number().int().min(1).default(1),
  podMaxBackoffSeconds: z.number().int().min(1).default(10),
});

export type SchedulerConfiguration = Readonly<z.infer<typeof configuration>>;
export type ExtenderConfiguration = Readonly<z.infer<typeof extender>>;

class SchedulerConfigurationError extends PlumblineError {
  constructor(message: string, cause: z.ZodError) {
    super('scheduler-configuration', message, { cause });
  }
}

/** @param source YAML text or an object @throws SchedulerConfigurationError naming every field that is refused */
export function parseSchedulerConfiguration(source: unknown): SchedulerConfiguration {
  const result = configuration.safeParse(typeof source === 'string' ? parse(source) : source);
  if (result.success) return result.data;
  const issues = result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  throw new SchedulerConfigurationError(`KubeSchedulerConfiguration: ${issues.join('; ')}`, result.error);
}

export const DEFAULT_CONFIGURATION: SchedulerConfiguration = parseSchedulerConfiguration({
  apiVersion: 'kubescheduler.config.k8s.io/v1',
  kind: 'KubeSchedulerConfiguration',
});
