import * as z from 'zod';
import { NAMESPACE, SERVICE } from '../../model/names.ts';
import { DEFAULT_RESERVATION_SECONDS } from '../../model/reservations/reservation.ts';
import {
  API_SERVER_FLAGS,
  type ConfigDefinition,
  LOG_FLAGS,
  LOG_LEVELS,
  PROBE_FLAGS,
  parseConfig,
} from '../../runtime/config.ts';
import { DPU_FLAGS, dpuSettings } from '../../runtime/dpu-settings.ts';

const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|::1|localhost)$/;
const LEASE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\/[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?$/;

const schema = z.object({
  schedulerLease: z.string().regex(LEASE, 'expected <namespace>/<name>').default(`${NAMESPACE}/plumbline-scheduler`),
  host: z.string().regex(LOOPBACK, 'expected a loopback address: the extender serves without TLS').default('127.0.0.1'),
  port: z.coerce.number().int().min(0).max(65_535).default(8082),
  probeHost: z.string().default('0.0.0.0'),
  probePort: z.coerce.number().int().min(0).max(65_535).default(8081),
  kubeconfig: z.string().optional(),
  unpredictable: z.enum(['refuse', 'count-check', 'nearest']).default('count-check'),
  ...dpuSettings,
  dpuRecovery: z.enum(['report', 'migrate']).default('report'),
  answers: z.coerce.number().int().min(1).max(1000).default(16),
  reservationTimeout: z.coerce.number().min(1).max(3600).default(DEFAULT_RESERVATION_SECONDS),
  eviction: z.enum(['evict', 'hold']).default('evict'),
  podName: z.string().optional(),
  logLevel: z.enum(LOG_LEVELS).default('info'),
});

export type SchedulerPluginConfig = Readonly<z.infer<typeof schema>>;

export const extenderSettings: ConfigDefinition<typeof schema> = {
  name: SERVICE,
  description:
    'kube-scheduler extender: sends pods only to nodes whose kubelet will admit them, close to their networks.',
  schema,
  flags: {
    schedulerLease: {
      flag: '--scheduler-lease <namespace/name>',
      help: 'Lease of the kube-schedulers’ leader election, where it has another name: the extender is active while it names this pod or host',
    },
    host: {
      flag: '--host <address>',
      help: 'loopback address to serve the extender on, for the kube-scheduler in the same pod or on the same host',
      env: 'PLUMBLINE_HOST',
    },
    port: {
      flag: '--port <number>',
      help: 'port to serve the extender on (HTTP), where another program has the port',
      env: 'PLUMBLINE_PORT',
    },
    ...PROBE_FLAGS,
    ...API_SERVER_FLAGS,
    unpredictable: {
      flag: '--unpredictable <policy>',
      help: 'nodes whose kubelet cannot be predicted, or that do not report: refuse, where a rejected VM is worse than a VM that waits, count-check with the lowest score, or nearest, which predicts an unknown version by the nearest known one and else counts. A VM with a CPU mask needs a node that reports',
    },
    ...DPU_FLAGS,
    dpuRecovery: {
      flag: '--dpu-recovery <policy>',
      help: 'VMs that lost their network when their DPU restarted: report, or migrate, which asks KubeVirt to migrate those that can, one at a time in each namespace (component dpu-migrate)',
    },
    answers: {
      flag: '--answers <number>',
      help: 'maximum number of nodes in an answer for a pod with dedicated CPUs, fewer while others are in flight; more leave kube-scheduler’s scores more choice',
    },
    reservationTimeout: {
      flag: '--reservation-timeout <seconds>',
      help: 'maximum time of a reservation for a pod that is not bound; 60 for a pod without volumes (default: 660); longer where kube-scheduler’s bindTimeoutSeconds is',
    },
    eviction: {
      flag: '--eviction <policy>',
      help: 'pods that cannot start on the node they are bound to: evict, or hold (an Event only), where another controller removes them',
    },
    podName: {
      flag: '--pod-name <name>',
      help: 'host name of its kube-scheduler in the Lease, where it differs from the own host name',
      env: 'PLUMBLINE_POD_NAME',
    },
    ...LOG_FLAGS,
  },
};

/** @throws ConfigError, HelpPrinted */
export const parseSchedulerPluginConfig = (argv: readonly string[]) => parseConfig(extenderSettings, argv);
