import * as z from 'zod';
import { type ConfigDefinition, parseConfig } from '../runtime/config.ts';
import { LOG_LEVELS } from '../runtime/log.ts';
import { checkTiming, leaseDuration, renewInterval } from './dpu-lease/timing.ts';

export const MODES = ['full', 'dpu-host', 'dpu'] as const;

const directory = (path: string) => z.string().startsWith('/', 'expected an absolute path').default(path);

const schema = z.object({
  nodeName: z
    .string('expected the name of the node this runs on')
    .regex(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/, 'expected the name of a Node object'),
  mode: z.enum(MODES).default('full'),
  kubeconfig: z.string().optional(),
  sysfsRoot: directory('/sys'),
  kubeletDir: directory('/var/lib/kubelet'),
  kubeletConfig: z.string().optional(),
  networkMap: z.string().optional(),
  deviceSlots: z.coerce.number().int().min(1).max(10_000).default(110),
  ovsRundir: directory('/var/run/openvswitch'),
  ovsEnabler: directory('/etc/openvswitch/enable_dynamic_cpu_affinity'),
  ovsGrowthDelay: z.coerce.number().min(0).max(3600).default(5),
  dpuLease: z.enum(['own', 'observe']).default('own'),
  dpuLeaseInterval: renewInterval.default(10),
  dpuLeaseDuration: leaseDuration.default(40),
  probeHost: z.string().default('127.0.0.1'),
  probePort: z.coerce.number().int().min(0).max(65_535).default(8082),
  logLevel: z.enum(LOG_LEVELS).default('info'),
});

export type NodeAgentConfig = Readonly<z.infer<typeof schema>>;

const definition: ConfigDefinition<typeof schema> = {
  name: 'plumbline-node-agent',
  description:
    'Node agent: reports what a node is made of and who owns its CPUs, tells the kubelet where networks are, keeps ' +
    'Open vSwitch off owned CPUs, and keeps a DPU’s lease.',
  schema,
  flags: {
    nodeName: { flag: '--node-name <name>', help: 'the node this runs on', env: 'PLUMBLINE_NODE_NAME' },
    mode: { flag: '--mode <mode>', help: 'full, dpu-host (its network runs on a DPU) or dpu (on that DPU)' },
    kubeconfig: { flag: '--kubeconfig <path>', help: 'kubeconfig; default: the pod’s service account' },
    sysfsRoot: { flag: '--sysfs-root <path>', help: 'where sysfs is mounted' },
    kubeletDir: { flag: '--kubelet-dir <path>', help: 'root directory of the kubelet' },
    kubeletConfig: {
      flag: '--kubelet-config <path>',
      help: 'the kubelet’s configuration file; default: config.yaml in --kubelet-dir, then /etc/kubernetes/kubelet.conf',
    },
    networkMap: { flag: '--network-map <path>', help: 'YAML file: NUMA nodes of physnets and tunnel' },
    deviceSlots: {
      flag: '--device-slots <number>',
      help: 'pods that may use a physnet at once (the kubelet’s maxPods)',
    },
    ovsRundir: { flag: '--ovs-rundir <path>', help: 'where Open vSwitch puts its pidfiles' },
    ovsEnabler: { flag: '--ovs-enabler <path>', help: 'file that turns the affinity of OVS on while it is not empty' },
    ovsGrowthDelay: {
      flag: '--ovs-growth-delay <seconds>',
      help: 'how long OVS waits before it takes CPUs that became free; those that are taken it leaves at once',
    },
    dpuLease: {
      flag: '--dpu-lease <policy>',
      help: 'own: keep the DPU’s lease; observe: never write it (OVN-Kubernetes does)',
    },
    dpuLeaseInterval: {
      flag: '--dpu-node-lease-renew-interval <seconds>',
      help: 'how often the DPU renews its lease; 0 turns the health check off',
    },
    dpuLeaseDuration: {
      flag: '--dpu-node-lease-duration <seconds>',
      help: 'after this time without a renewal the DPU counts as dead',
    },
    probeHost: { flag: '--probe-host <address>', help: 'address of /healthz, /readyz and /metrics' },
    probePort: { flag: '--probe-port <number>', help: 'port of /healthz, /readyz and /metrics (HTTP)' },
    logLevel: { flag: '--log-level <level>', help: LOG_LEVELS.join(', '), env: 'PLUMBLINE_LOG_LEVEL' },
  },
  check: ({ dpuLeaseInterval, dpuLeaseDuration }) =>
    checkTiming({ interval: dpuLeaseInterval, duration: dpuLeaseDuration }),
};

/** @throws ConfigError, HelpPrinted */
export function parseNodeAgentConfig(argv: readonly string[]): NodeAgentConfig {
  return parseConfig(definition, argv);
}
