import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import * as z from 'zod';
import { ALIGNMENT_POLICIES, OVERSIZED_POLICIES } from '../model/launcher/annotation.ts';
import { SCHEDULER, WEBHOOK } from '../model/names.ts';
import { type ConfiguredContext, parseConfiguredContext } from '../model/networks/context.ts';
import {
  API_SERVER_FLAGS,
  type ConfigDefinition,
  ConfigError,
  LOG_FLAGS,
  LOG_LEVELS,
  PROBE_FLAGS,
  parseConfig,
} from '../runtime/config.ts';

/** An object's name, because the scheduler's Lease has it too. Empty: none. */
const SCHEDULER_NAME = /^(?:[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)?$/;

const schema = z.object({
  host: z.string().default('0.0.0.0'),
  port: z.coerce.number().int().min(0).max(65_535).default(8443),
  probeHost: z.string().default('0.0.0.0'),
  probePort: z.coerce.number().int().min(0).max(65_535).default(8081),
  certFile: z.string().default('/etc/plumbline/tls/tls.crt'),
  keyFile: z.string().default('/etc/plumbline/tls/tls.key'),
  kubeconfig: z.string().optional(),
  clientCaFile: z.string().optional(),
  clientNames: z.string().default('kube-apiserver'),
  alignment: z.enum(ALIGNMENT_POLICIES).default('annotated'),
  schedulerName: z.string().regex(SCHEDULER_NAME, 'expected the name of a scheduler, or nothing').default(SCHEDULER),
  oversized: z.enum(OVERSIZED_POLICIES).default('refuse'),
  globalNetworkNamespaces: z.string().default('default'),
  networkContext: z.string().optional(),
  fullPcpusOnly: z.stringbool('expected true or false').default(true),
  logLevel: z.enum(LOG_LEVELS).default('info'),
});

export type WebhookConfig = Readonly<z.infer<typeof schema>>;

export const webhookSettings: ConfigDefinition<typeof schema> = {
  name: WEBHOOK,
  description:
    'Admission webhook: pads virt-launcher pods to whole cores, requests the devices of their networks, checks VMs.',
  schema,
  flags: {
    host: {
      flag: '--host <address>',
      help: 'address to serve admission on, where the pod has several',
      env: 'PLUMBLINE_HOST',
    },
    port: {
      flag: '--port <number>',
      help: 'port to serve admission on (HTTPS), where another program has the port',
      env: 'PLUMBLINE_PORT',
    },
    ...PROBE_FLAGS,
    certFile: {
      flag: '--cert-file <path>',
      help: 'serving certificate, PEM, where it is mounted elsewhere; reloaded when it is renewed',
    },
    keyFile: { flag: '--key-file <path>', help: 'its private key, PEM, where it is mounted elsewhere' },
    clientCaFile: {
      flag: '--client-ca-file <path>',
      help: 'CA of the clients that may call, PEM, where only the API server may; default: any',
    },
    clientNames: {
      flag: '--client-names <names>',
      help: 'with --client-ca-file: allowed common or alternative names of callers, separated by commas; "" allows any (default: kube-apiserver)',
    },
    ...API_SERVER_FLAGS,
    alignment: {
      flag: '--alignment <policy>',
      help: 'launchers that get whole cores: annotated; always; auto, where nodes differ: all, by the core size of their nodes',
      env: 'PLUMBLINE_ALIGNMENT',
    },
    schedulerName: {
      flag: '--scheduler-name <name>',
      help: 'scheduler for launchers and opted-in pods that name none; "": they keep theirs, where the default scheduler calls the extender (default: plumbline-scheduler)',
      env: 'PLUMBLINE_SCHEDULER_NAME',
    },
    oversized: {
      flag: '--oversized <policy>',
      help: 'policy for a VM larger than the NUMA nodes of its networks on every node: refuse, or warn (where larger nodes may be added)',
    },
    globalNetworkNamespaces: {
      flag: '--global-network-namespaces <names>',
      help: 'namespaces whose network definitions pods of every namespace may use, as globalNamespaces of multus; "*": all, where multus has no namespaceIsolation',
    },
    networkContext: {
      flag: '--network-context <path>',
      help: 'YAML with bridgeMappings and interfacePhysnets, for bridges and host interfaces whose physnets network definitions do not name',
    },
    fullPcpusOnly: {
      flag: '--full-pcpus-only <boolean>',
      help: 'feature gate FullPCPUsOnly; false: the VM annotation of that name has no effect, where tenants may not waste CPUs',
      env: 'PLUMBLINE_FULL_PCPUS_ONLY',
    },
    ...LOG_FLAGS,
  },
};

export const parseWebhookConfig = (argv: readonly string[]): WebhookConfig => parseConfig(webhookSettings, argv);

/** Empty without the flag. @throws ConfigError naming the file, if it cannot be read or is malformed */
export async function readNetworkContext(path: string | undefined): Promise<ConfiguredContext> {
  if (path === undefined) return parseConfiguredContext(undefined);
  try {
    return parseConfiguredContext(parse(await readFile(path, 'utf8')));
  } catch (error) {
    throw new ConfigError(`--network-context ${path}: ${(error as Error).message}`);
  }
}
