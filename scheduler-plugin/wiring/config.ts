import * as z from 'zod';
import { DPU_EXEMPT_NAMESPACES, DPU_LEASE_NAMESPACE, NAMESPACE, SERVICE } from '../../model/names.ts';
import { DEFAULT_RESERVATION } from '../../model/reservations/duration.ts';
import { API_SERVER_FLAGS } from '../../runtime/api-server-flags.ts';
import { type ConfigDefinition, parseConfig } from '../../runtime/config.ts';
import { isLoopback, parseListenAddress } from '../../runtime/listen-address.ts';
import { LOG_LEVELS } from '../../runtime/log.ts';

/** The extender's default address, by mode. */
export const SIDECAR_ADDRESS = { host: '127.0.0.1', port: 8082 } as const;
export const SERVICE_ADDRESS = { host: '0.0.0.0', port: 9443 } as const;

const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|::1|localhost)$/;
/** Same form as the agent's --gate-exempt. */
const EXEMPT = /^$|^[a-z0-9][-a-z0-9]{0,62}\*?(?:,[a-z0-9][-a-z0-9]{0,62}\*?){0,127}$/;
const LEASE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\/[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?$/;

function isLoopbackAddress(text: string): boolean {
  const address = parseListenAddress(text);
  return address !== undefined && isLoopback(address.host);
}

const schema = z.object({
  mode: z.enum(['sidecar', 'service']).default('sidecar'),
  schedulerLease: z.string().regex(LEASE, 'expected <namespace>/<name>').default(`${NAMESPACE}/plumbline-scheduler`),
  host: z.string().optional(),
  port: z.coerce.number().int().min(0).max(65_535).optional(),
  probeHost: z.string().default('0.0.0.0'),
  probePort: z.coerce.number().int().min(0).max(65_535).default(8081),
  certFile: z.string().default('/etc/plumbline/tls/tls.crt'),
  keyFile: z.string().default('/etc/plumbline/tls/tls.key'),
  clientCaFile: z.string().default('/etc/plumbline/tls/ca.crt'),
  clientNames: z.string().default('plumbline-scheduler-client'),
  explainAddress: z
    .string()
    .refine((text) => text === 'off' || isLoopbackAddress(text), 'expected a loopback address, <host>:<port>, or off')
    .default(`${SIDECAR_ADDRESS.host}:${SIDECAR_ADDRESS.port}`),
  kubeconfig: z.string().optional(),
  unpredictable: z.enum(['refuse', 'count-check']).default('count-check'),
  dpuUnknown: z.enum(['ready', 'not-ready']).default('ready'),
  dpuScope: z.enum(['all', 'attached']).default('all'),
  dpuExempt: z
    .string()
    .regex(EXEMPT, 'expected namespaces, separated by commas; `name*` matches by prefix')
    .default(DPU_EXEMPT_NAMESPACES.join())
    .transform((text): readonly string[] => text.split(',').filter((one) => one !== '')),
  dpuLease: z.enum(['own', 'observe']).default('own'),
  dpuLeaseNamespace: z.string().default(DPU_LEASE_NAMESPACE),
  answers: z.coerce.number().int().min(1).max(1000).default(16),
  reservationTimeout: z.coerce.number().min(1).max(3600).default(DEFAULT_RESERVATION),
  eviction: z.enum(['evict', 'hold']).default('evict'),
  namespace: z.string().default(NAMESPACE),
  podIp: z.string().optional(),
  podName: z.string().optional(),
  nodeName: z.string().optional(),
  logLevel: z.enum(LOG_LEVELS).default('info'),
});

export type SchedulerPluginConfig = Readonly<z.infer<typeof schema>>;

export const extenderSettings: ConfigDefinition<typeof schema> = {
  name: SERVICE,
  description:
    'kube-scheduler extender: sends pods only to nodes whose kubelet will admit them, close to their networks.',
  schema,
  flags: {
    mode: {
      flag: '--mode <mode>',
      help: 'sidecar: in the pod of a kube-scheduler, which calls it over loopback and whose Lease decides whether it is active; service: behind a Service with TLS, for other schedulers',
    },
    schedulerLease: {
      flag: '--scheduler-lease <namespace/name>',
      help: 'sidecar: the Lease of the kube-schedulers’ leader election',
    },
    host: {
      flag: '--host <address>',
      help: `address to serve the extender on; default: ${SIDECAR_ADDRESS.host} (sidecar), ${SERVICE_ADDRESS.host} (service)`,
      env: 'PLUMBLINE_HOST',
    },
    port: {
      flag: '--port <number>',
      help: `port to serve the extender on; default: ${SIDECAR_ADDRESS.port} (sidecar, HTTP), ${SERVICE_ADDRESS.port} (service, HTTPS)`,
      env: 'PLUMBLINE_PORT',
    },
    probeHost: { flag: '--probe-host <address>', help: 'address of /healthz, /readyz and /metrics' },
    probePort: { flag: '--probe-port <number>', help: 'port of /healthz, /readyz and /metrics (HTTP)' },
    certFile: { flag: '--cert-file <path>', help: 'service: serving certificate, PEM; reloaded when it is renewed' },
    keyFile: { flag: '--key-file <path>', help: 'its private key, PEM' },
    clientCaFile: {
      flag: '--client-ca-file <path>',
      help: 'service: CA of the certificate that callers must present; "" serves every caller',
    },
    clientNames: {
      flag: '--client-names <names>',
      help: 'with --client-ca-file: allowed common or alternative names of callers, separated by commas; "" allows any (default: plumbline-scheduler-client)',
    },
    explainAddress: {
      flag: '--explain-address <host:port>',
      help: 'service: address of /explain over plain HTTP, for kubectl port-forward to this pod; off: disabled (default: 127.0.0.1:8082)',
    },
    ...API_SERVER_FLAGS,
    unpredictable: {
      flag: '--unpredictable <policy>',
      help: 'nodes whose kubelet cannot be predicted, or that do not report: refuse, or count-check with the lowest score. A VM with a CPU mask needs a node that reports',
    },
    dpuUnknown: {
      flag: '--dpu-unknown <policy>',
      help: 'state of a DPU while the API server does not answer: ready or not-ready',
    },
    dpuLease: {
      flag: '--dpu-lease <policy>',
      help: 'same value as the agents’; observe: OVN-Kubernetes writes the leases, and a single renewal does not count',
    },
    dpuExempt: {
      flag: '--dpu-exempt <namespaces>',
      help: 'namespaces whose pods may go to a node with a dead DPU, as the agent’s --gate-exempt; `openshift-*` matches by prefix',
    },
    dpuScope: {
      flag: '--dpu-scope <scope>',
      help: 'pods that need the DPU of their node: all (on the pod network), or attached (those that request a device)',
    },
    answers: {
      flag: '--answers <number>',
      help: 'maximum number of nodes in an answer for a pod with dedicated CPUs; fewer while others are in flight',
    },
    reservationTimeout: {
      flag: '--reservation-timeout <seconds>',
      help: 'maximum time of a reservation for a pod that is not bound; 60 for a pod without volumes (default: 660)',
    },
    eviction: {
      flag: '--eviction <policy>',
      help: 'pods that cannot start on the node they are bound to: evict, or hold (an Event only)',
    },
    namespace: { flag: '--namespace <name>', help: 'namespace of the lease and the service of the active replica' },
    podIp: {
      flag: '--pod-ip <address>',
      help: 'address to publish as the service’s only endpoint while active; default: none',
      env: 'PLUMBLINE_POD_IP',
    },
    podName: {
      flag: '--pod-name <name>',
      help: 'name of this pod; sidecar: host name of its kube-scheduler in the Lease; default: the host name',
      env: 'PLUMBLINE_POD_NAME',
    },
    nodeName: { flag: '--node-name <name>', help: 'node, for the published endpoint', env: 'PLUMBLINE_NODE_NAME' },
    dpuLeaseNamespace: { flag: '--dpu-lease-namespace <name>', help: 'namespace of the leases that DPUs renew' },
    logLevel: { flag: '--log-level <level>', help: LOG_LEVELS.join(', '), env: 'PLUMBLINE_LOG_LEVEL' },
  },
  check: ({ mode, host }) =>
    mode === 'sidecar' && host !== undefined && !LOOPBACK.test(host)
      ? `--host ${host}: a sidecar serves without TLS and only on a loopback address; give 127.0.0.1, or --mode service`
      : undefined,
};

/** @throws ConfigError, HelpPrinted */
export function parseSchedulerPluginConfig(argv: readonly string[]): SchedulerPluginConfig {
  return parseConfig(extenderSettings, argv);
}
