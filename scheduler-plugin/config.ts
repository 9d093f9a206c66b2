import * as z from 'zod';
import { type ConfigDefinition, parseConfig } from '../runtime/config.ts';
import { LOG_LEVELS } from '../runtime/log.ts';

const schema = z.object({
  host: z.string().default('0.0.0.0'),
  port: z.coerce.number().int().min(0).max(65_535).default(9443),
  probeHost: z.string().default('0.0.0.0'),
  probePort: z.coerce.number().int().min(0).max(65_535).default(8081),
  certFile: z.string().default('/etc/plumbline/tls/tls.crt'),
  keyFile: z.string().default('/etc/plumbline/tls/tls.key'),
  clientCaFile: z.string().optional(),
  kubeconfig: z.string().optional(),
  unpredictable: z.enum(['refuse', 'count-check']).default('count-check'),
  dpuUnknown: z.enum(['ready', 'not-ready']).default('ready'),
  dpuLeaseNamespace: z.string().default('ovn-kubernetes'),
  logLevel: z.enum(LOG_LEVELS).default('info'),
});

export type SchedulerPluginConfig = Readonly<z.infer<typeof schema>>;

const definition: ConfigDefinition<typeof schema> = {
  name: 'plumbline-scheduler-plugin',
  description: 'kube-scheduler extender: sends pods only to nodes whose kubelet will take them, beside their networks.',
  schema,
  flags: {
    host: { flag: '--host <address>', help: 'address to serve the extender on', env: 'PLUMBLINE_HOST' },
    port: { flag: '--port <number>', help: 'port to serve the extender on (HTTPS)', env: 'PLUMBLINE_PORT' },
    probeHost: { flag: '--probe-host <address>', help: 'address of /healthz, /readyz and /metrics' },
    probePort: { flag: '--probe-port <number>', help: 'port of /healthz, /readyz and /metrics (HTTP)' },
    certFile: { flag: '--cert-file <path>', help: 'serving certificate, PEM; followed as it is renewed' },
    keyFile: { flag: '--key-file <path>', help: 'its private key, PEM' },
    clientCaFile: {
      flag: '--client-ca-file <path>',
      help: 'CA that callers must present a certificate of; default: none',
    },
    kubeconfig: { flag: '--kubeconfig <path>', help: 'kubeconfig; default: the pod’s service account' },
    unpredictable: {
      flag: '--unpredictable <policy>',
      help: 'nodes whose kubelet cannot be predicted, or that do not report: refuse, or count-check with the lowest score',
    },
    dpuUnknown: {
      flag: '--dpu-unknown <policy>',
      help: 'what a DPU counts as while the API server cannot be asked: ready or not-ready',
    },
    dpuLeaseNamespace: { flag: '--dpu-lease-namespace <name>', help: 'namespace of the leases that DPUs renew' },
    logLevel: { flag: '--log-level <level>', help: LOG_LEVELS.join(', '), env: 'PLUMBLINE_LOG_LEVEL' },
  },
};

/** @throws ConfigError, HelpPrinted */
export function parseSchedulerPluginConfig(argv: readonly string[]): SchedulerPluginConfig {
  return parseConfig(definition, argv);
}
