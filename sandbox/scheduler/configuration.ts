import { parse } from 'yaml';
import * as z from 'zod';
import { PlumblineError } from '../../model/errors.ts';

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
