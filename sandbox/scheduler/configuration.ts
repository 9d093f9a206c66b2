import { parse } from 'yaml';
import * as z from 'zod';
import { PlumblineError } from '../../model/errors.ts';

/** A duration in Go's notation (`5s`, `1m30s`, `500ms`), converted to milliseconds. */
const duration = z.string().transform((text, context) => {
  const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) {
    context.addIssue({ code: 'custom', message: `${JSON.stringify(text)} is no duration, such as 5s or 500ms` });
    return z.NEVER;
  }
  return parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * units[unit!]!, 0);
});

const extender = z.strictObject({
  urlPrefix: z.url({ protocol: /^http$/ }),
  filterVerb: z.string().optional(),
  preemptVerb: z.string().optional(),
  prioritizeVerb: z.string().optional(),
  weight: z.number().int().optional(),
  httpTimeout: duration.default(5_000),
  nodeCacheCapable: z.literal(true, 'the sandbox supports only extenders with a cache of nodes'),
  managedResources: z
    .array(z.strictObject({ name: z.string(), ignoredByScheduler: z.boolean().default(false) }))
    .default([]),
  /** Not simulated. */
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
  constructor(message: string, options?: ErrorOptions) {
    super('scheduler-configuration', message, options);
  }
}

/** @param source YAML text or an object @throws SchedulerConfigurationError naming every field that is refused */
export function parseSchedulerConfiguration(source: unknown): SchedulerConfiguration {
  const result = configuration.safeParse(typeof source === 'string' ? parse(source) : source);
  if (result.success) return result.data;
  const issues = result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  throw new SchedulerConfigurationError(`KubeSchedulerConfiguration: ${issues.join('; ')}`, { cause: result.error });
}

export const DEFAULT_CONFIGURATION: SchedulerConfiguration = parseSchedulerConfiguration({
  apiVersion: 'kubescheduler.config.k8s.io/v1',
  kind: 'KubeSchedulerConfiguration',
});
