import * as z from 'zod';
import { checkLeaseTiming, LeaseTimingError } from '../../model/lease/timing.ts';
import { DPU_LEASE_NAMESPACE } from '../../model/names.ts';
import { API_SERVER_FLAGS } from '../../runtime/api-server-flags.ts';
import { type ConfigDefinition, parseConfig } from '../../runtime/config.ts';
import { LOG_LEVELS } from '../../runtime/log.ts';
import { ALLOCATION_CHECK_POLICIES } from '../device-plugin/allocation-checker.ts';
import { gateFlags, gateSettings } from '../gate/settings.ts';

export const MODES = ['full', 'dpu-host', 'dpu'] as const;

const directory = (path: string) => z.string().startsWith('/', 'expected an absolute path').default(path);

const seconds = z.coerce.number().int('expected whole seconds');
const slots = z.coerce.number().int().min(1).max(10_000);

const schema = z.object({
  nodeName: z
    .string('expected the name of the node this runs on')
    .regex(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/, 'expected the name of a Node object'),
  mode: z.enum(MODES).default('full'),
  kubeconfig: z.string().optional(),
  apiHost: z.string().optional(),
  apiPort: z.coerce.number().int().min(1).max(65_535).default(443),
  sysfsRoot: directory('/sys'),
  kubeletDir: directory('/var/lib/kubelet'),
  kubeletConfig: z.string().optional(),
  kubeletConfigDir: z.string().optional(),
  kubeletEndpoint: z
    .string()
    .regex(/^$|^[^\s/]+:\d{1,5}$/, 'expected an address and a port, or nothing')
    .default('127.0.0.1:10250'),
  networkMap: z.string().optional(),
  deviceSlots: slots.optional(),
  uplinkCarrier: z.enum(['follow', 'ignore']).default('follow'),
  allocationCheck: z.enum(ALLOCATION_CHECK_POLICIES).default('enforce'),
  ovsRundir: directory('/var/run/openvswitch'),
  ovsEnabler: directory('/etc/openvswitch/enable_dynamic_cpu_affinity'),
  ovsGrowthDelay: z.coerce.number().min(0).max(3600).default(5),
  ovsCheckInterval: z.coerce.number().min(0.01).max(3600).default(12),
  ovsIsolated: z.enum(['use', 'leave']).default('use'),
  ovsMasksAtEnd: z.enum(['restore', 'leave']).default('leave'),
  stateDir: directory('/var/lib/plumbline'),
  vmPinning: z.enum(['on', 'off']).default('on'),
  vmCheckInterval: z.coerce.number().min(0.01).max(60).default(1),
  vmPinsAtEnd: z.enum(['restore', 'leave']).default('leave'),
  cgroupRoot: directory('/sys/fs/cgroup'),
  dpuLease: z.enum(['own', 'observe']).default('own'),
  dpuLeaseNamespace: z.string().min(1).default(DPU_LEASE_NAMESPACE),
  dpuLeaseInterval: seconds.default(10),
  dpuLeaseDuration: seconds.default(40),
  dpuUnknown: z.enum(['ready', 'not-ready']).default('ready'),
  ...gateSettings,
  probeHost: z.string().default('127.0.0.1'),
  probePort: z.coerce.number().int().min(0).max(65_535).default(8082),
  logLevel: z.enum(LOG_LEVELS).default('info'),
});

export type NodeAgentConfig = Readonly<z.infer<typeof schema>>;

export const agentSettings: ConfigDefinition<typeof schema> = {
  name: 'plumbline-node-agent',
  description:
    'Node agent: reports the topology of a node and the owners of its CPUs, reports the NUMA nodes of networks to the kubelet, keeps ' +
    'Open vSwitch off owned CPUs, and keeps a DPU’s lease.',
  schema,
  flags: {
    nodeName: { flag: '--node-name <name>', help: 'the node this runs on', env: 'PLUMBLINE_NODE_NAME' },
    mode: { flag: '--mode <mode>', help: 'full, dpu-host (its network runs on a DPU) or dpu (on that DPU)' },
    ...API_SERVER_FLAGS,
    sysfsRoot: { flag: '--sysfs-root <path>', help: 'mount point of sysfs' },
    kubeletDir: { flag: '--kubelet-dir <path>', help: 'root directory of the kubelet' },
    kubeletConfig: {
      flag: '--kubelet-config <path>',
      help: 'the kubelet’s configuration file; default: config.yaml in --kubelet-dir, then /etc/kubernetes/kubelet.conf',
    },
    kubeletConfigDir: {
      flag: '--kubelet-config-dir <path>',
      help: 'the kubelet’s directory of drop-ins (its --config-dir)',
    },
    kubeletEndpoint: {
      flag: '--kubelet-endpoint <address>',
      help: 'address of the kubelet’s /configz; empty: read files only',
    },
    networkMap: {
      flag: '--network-map <path>',
      help: 'YAML file with the NUMA nodes of physnets and tunnel; overrides discovery',
    },
    deviceSlots: {
      flag: '--device-slots <number>',
      help: 'pods that may use a physnet at once; default and least: the kubelet’s maxPods',
    },
    uplinkCarrier: {
      flag: '--uplink-carrier <policy>',
      help: 'follow: a network without a carrier on any uplink takes no new pods; ignore',
    },
    allocationCheck: {
      flag: '--allocation-check <policy>',
      help: 'enforce: a container whose CPUs are not where its network is does not start; warn: it starts, and an Event reports it',
    },
    ovsRundir: { flag: '--ovs-rundir <path>', help: 'directory of Open vSwitch’s pidfiles' },
    ovsEnabler: { flag: '--ovs-enabler <path>', help: 'file that turns the affinity of OVS on while it is not empty' },
    ovsGrowthDelay: {
      flag: '--ovs-growth-delay <seconds>',
      help: 'time before OVS takes CPUs that became free; it leaves CPUs with a new owner at once',
    },
    ovsCheckInterval: {
      flag: '--ovs-check-interval <seconds>',
      help: 'interval of checks of OVS’s threads without an event; each checks a quarter of them',
    },
    ovsIsolated: {
      flag: '--ovs-isolated <policy>',
      help: 'CPUs without an owner that the kernel isolates (isolcpus): use them for OVS, or leave them alone',
    },
    ovsMasksAtEnd: {
      flag: '--ovs-masks-at-end <policy>',
      help: 'OVS’s threads when the agent stops: leave them, or restore their original CPUs except those with an owner',
    },
    stateDir: {
      flag: '--state-dir <path>',
      help: 'directory for the original masks of OVS’s threads and the list of pinned VMs, so that the next agent can undo them',
    },
    vmPinning: {
      flag: '--vm-pinning <on|off>',
      help: 'keep the CPU masks of virtual machines, and the CPUs of their emulators',
    },
    vmCheckInterval: {
      flag: '--vm-check-interval <seconds>',
      help: 'interval of checks of these VMs’ threads; each check corrects changes by other processes',
    },
    vmPinsAtEnd: {
      flag: '--vm-pins-at-end <policy>',
      help: 'VMs’ pinned threads when the agent stops: restore their container’s CPUs, or leave them',
    },
    cgroupRoot: { flag: '--cgroup-root <path>', help: 'mount point of the host’s cgroups' },
    dpuLease: {
      flag: '--dpu-lease <policy>',
      help: 'own: keep the DPU’s lease; observe: never write it (OVN-Kubernetes does)',
    },
    dpuLeaseNamespace: { flag: '--dpu-lease-namespace <name>', help: 'namespace of the lease that the DPU renews' },
    dpuLeaseInterval: {
      flag: '--dpu-node-lease-renew-interval <seconds>',
      help: 'interval at which the DPU renews its lease; 0 turns the health check off',
    },
    dpuLeaseDuration: {
      flag: '--dpu-node-lease-duration <seconds>',
      help: 'time without a renewal after which the DPU counts as dead',
    },
    dpuUnknown: {
      flag: '--dpu-unknown <policy>',
      help: 'state of a DPU while the API server does not answer: ready, or not-ready where a pod without a network is worse than a pod that waits',
    },
    ...gateFlags,
    probeHost: { flag: '--probe-host <address>', help: 'address of /healthz, /readyz and /metrics' },
    probePort: { flag: '--probe-port <number>', help: 'port of /healthz, /readyz and /metrics (HTTP)' },
    logLevel: { flag: '--log-level <level>', help: LOG_LEVELS.join(', '), env: 'PLUMBLINE_LOG_LEVEL' },
  },
  check: ({ dpuLeaseInterval: renewInterval, dpuLeaseDuration: duration }) => {
    try {
      checkLeaseTiming({ renewInterval, duration });
      return undefined;
    } catch (error) {
      if (error instanceof LeaseTimingError) return error.message;
      throw error;
    }
  },
};

/** @throws ConfigError, HelpPrinted */
export function parseNodeAgentConfig(argv: readonly string[]): NodeAgentConfig {
  return parseConfig(agentSettings, argv);
}
