import * as z from 'zod';
import { DPU_EXEMPT_NAMESPACES, DPU_LEASE_NAMESPACE, NAMESPACE, SERVICE } from '../../model/names.ts';
import { DEFAULT_RESERVATION_SECONDS } from '../../model/reservations/reservation.ts';
import { API_SERVER_FLAGS, type ConfigDefinition, LOG_FLAGS, PROBE_FLAGS, parseConfig } from '../../runtime/config.ts';
import { LOG_LEVELS } from '../../runtime/log.ts';

const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|::1|localhost)$/;
/** Same form as the agent's --gate-exempt. */
const EXEMPT = /^$|^[a-z0-9][-a-z0-9]{0,62}\*?(?:,[a-z0-9][-a-z0-9]{0,62}\*?){0,127}$/;
const LEASE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\/[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?$/;

const schema = z.object({
  schedulerLease: z.string().regex(LEASE, 'expected <namespace>/<name>').default(`${NAMESPACE}/plumbline-scheduler`),
  host: z.string().regex(LOOPBACK, 'expected a loopback address: the extender serves without TLS').default('127.0.0.1'),
  port: z.coerce.number().int().min(0).max(65_535).default(8082),
  probeHost: z.string().default('0.0.0.0'),
  probePort: z.coerce.number().int().min(0).max(65_535).default(8081),
  kubeconfig: z.string().optional(),
  unpredictable: z.enum(['refuse', 'count-check', 'nearest']).default('count-check'),
  dpuUnknown: z.enum(['ready', 'not-ready']).default('ready'),
  dpuScope: z.enum(['all', 'attached']).default('all'),
  dpuExempt: z
    .string()
    .regex(EXEMPT, 'expected namespaces, separated by commas; `name*` matches by prefix')
    .default(DPU_EXEMPT_NAMESPACES.join())
    .transform((text): readonly string[] => text.split(',').filter((name) => name !== '')),
  dpuLease: z.enum(['own', 'observe']).default('own'),
  dpuLeaseNamespace: z.string().default(DPU_LEASE_NAMESPACE),
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
    dpuUnknown: {
      flag: '--dpu-unknown <policy>',
      help: 'state of a DPU while the API server does not answer: ready, or not-ready where a pod without a network is worse than a pod that waits',
    },
    dpuLease: {
      flag: '--dpu-lease <policy>',
      help: 'same value as the agents’; observe where OVN-Kubernetes writes the leases: a single renewal does not count then',
    },
    dpuExempt: {
      flag: '--dpu-exempt <namespaces>',
      help: 'namespaces whose pods may go to a node with a dead DPU, as the agent’s --gate-exempt; `openshift-*` matches by prefix',
    },
    dpuScope: {
      flag: '--dpu-scope <scope>',
      help: 'pods that need the DPU of their node: all (on the pod network), or attached where the pod network does not use the DPU: those that request a device',
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
    dpuLeaseNamespace: {
      flag: '--dpu-lease-namespace <name>',
      help: 'namespace of the leases that DPUs renew, where OVN-Kubernetes has another',
    },
    ...LOG_FLAGS,
  },
};

/** @throws ConfigError, HelpPrinted */
export function parseSchedulerPluginConfig(argv: readonly string[]): SchedulerPluginConfig {
  return parseConfig(extenderSettings, argv);
}
