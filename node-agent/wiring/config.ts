import * as z from 'zod';
import { leaseTimingFault } from '../../model/lease/timing.ts';
import { AGENT } from '../../model/names.ts';
import {
  API_SERVER_FLAGS,
  type ConfigDefinition,
  LOG_FLAGS,
  LOG_LEVELS,
  PROBE_FLAGS,
  parseConfig,
} from '../../runtime/config.ts';
import { DPU_FLAGS, dpuSettings } from '../../runtime/dpu-settings.ts';
import { ALLOCATION_CHECK_POLICIES } from '../device-plugin/allocation-checker.ts';
import { gateFlags, gateSettings } from '../gate/settings.ts';

const MODES = ['full', 'dpu-host', 'dpu'] as const;

const directory = (path: string) => z.string().startsWith('/', 'expected an absolute path').default(path);

const seconds = z.coerce.number().int('expected whole seconds');

const schema = z.object({
  nodeName: z
    .string('expected the name of the node this runs on')
    .regex(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/, 'expected the name of a Node object'),
  mode: z.enum(MODES).default('full'),
  kubeconfig: z.string().optional(),
  sysfsRoot: directory('/sys'),
  kubeletDir: directory('/var/lib/kubelet'),
  kubeletConfig: z.string().optional(),
  kubeletConfigDir: z.string().optional(),
  kubeletEndpoint: z
    .string()
    .regex(/^$|^[^\s/]+:\d{1,5}$/, 'expected an address and a port, or nothing')
    .optional(),
  cdiDir: directory('/var/run/cdi'),
  networkMap: z.string().optional(),
  allocationCheck: z.enum(ALLOCATION_CHECK_POLICIES).default('enforce'),
  ovsRundir: directory('/var/run/openvswitch'),
  ovsEnabler: directory('/etc/openvswitch/enable_dynamic_cpu_affinity'),
  ovsIsolated: z.enum(['use', 'leave']).default('use'),
  stateDir: directory('/var/lib/plumbline'),
  vmPinning: z.enum(['on', 'off']).default('on'),
  interrupts: z.enum(['off', 'measure', 'move']).default('measure'),
  procRoot: directory('/proc'),
  etcRoot: directory('/etc'),
  irqbalanceRundir: directory('/run/irqbalance'),
  cgroupRoot: directory('/sys/fs/cgroup'),
  ...dpuSettings,
  dpuLeaseInterval: seconds.default(10),
  dpuLeaseDuration: seconds.default(40),
  ...gateSettings,
  probeHost: z.string().default('127.0.0.1'),
  probePort: z.coerce.number().int().min(0).max(65_535).default(8082),
  logLevel: z.enum(LOG_LEVELS).default('info'),
});

export type NodeAgentConfig = Readonly<z.infer<typeof schema>>;

export const agentSettings: ConfigDefinition<typeof schema> = {
  name: AGENT,
  description:
    'Node agent: reports the topology of a node and the owners of its CPUs, reports the NUMA nodes of networks to the kubelet, keeps ' +
    'Open vSwitch off owned CPUs, and keeps a DPU’s lease.',
  schema,
  flags: {
    nodeName: {
      flag: '--node-name <name>',
      help: 'the Node object of this machine, where the agent does not run in its own pod',
      env: 'PLUMBLINE_NODE_NAME',
    },
    mode: { flag: '--mode <mode>', help: 'full; dpu-host where the network runs on a DPU; dpu on that DPU' },
    ...API_SERVER_FLAGS,
    sysfsRoot: { flag: '--sysfs-root <path>', help: 'mount point of sysfs, where the host’s is mounted elsewhere' },
    kubeletDir: { flag: '--kubelet-dir <path>', help: 'root directory of the kubelet, where a distribution moved it' },
    kubeletConfig: {
      flag: '--kubelet-config <path>',
      help: 'the kubelet’s configuration file, where its command line does not name it or the agent sees it elsewhere',
    },
    kubeletConfigDir: {
      flag: '--kubelet-config-dir <path>',
      help: 'the kubelet’s directory of drop-ins, where its command line does not name it or the agent sees it elsewhere',
    },
    kubeletEndpoint: {
      flag: '--kubelet-endpoint <address>',
      help: 'address of the kubelet’s /configz, instead of the configured one; empty: read files and flags only',
    },
    cdiDir: {
      flag: '--cdi-dir <path>',
      help: 'directory where dra-driver-cpu writes the CPUs of claims, where the agent sees it elsewhere',
    },
    networkMap: {
      flag: '--network-map <path>',
      help: 'YAML file with the NUMA nodes of physnets and tunnel, for networks that discovery does not find',
    },
    allocationCheck: {
      flag: '--allocation-check <policy>',
      help: 'enforce: a container whose CPUs are not where its network is does not start; warn: it starts, and an Event reports it, for a trial',
    },
    ovsRundir: {
      flag: '--ovs-rundir <path>',
      help: 'directory of Open vSwitch’s pidfiles, where a distribution moved it',
    },
    ovsEnabler: {
      flag: '--ovs-enabler <path>',
      help: 'file that turns the affinity of OVS on while it is not empty, where it is not OVN-Kubernetes’ own',
    },
    ovsIsolated: {
      flag: '--ovs-isolated <policy>',
      help: 'CPUs without an owner that the kernel isolates (isolcpus): use them for OVS, or leave them to other programs',
    },
    stateDir: {
      flag: '--state-dir <path>',
      help: 'directory of what the next agent needs to undo changes to threads; on a disk that survives restarts',
    },
    vmPinning: {
      flag: '--vm-pinning <on|off>',
      help: 'off: another program sets the CPUs of virtual machines’ threads',
    },
    interrupts: {
      flag: '--interrupts <mode>',
      help: 'measure: report what interrupts and other work take from VMs with dedicated CPUs; move: also move them off owned CPUs; off: neither',
    },
    procRoot: {
      flag: '--proc-root <path>',
      help: 'mount point of the host’s procfs, where the runtime masks files of the container’s own',
    },
    etcRoot: {
      flag: '--etc-root <path>',
      help: 'the host’s /etc, where mounted elsewhere: tuned and CRI-O name there what they manage',
    },
    irqbalanceRundir: {
      flag: '--irqbalance-rundir <path>',
      help: 'directory of irqbalance’s socket, where the agent sees it elsewhere',
    },
    cgroupRoot: {
      flag: '--cgroup-root <path>',
      help: 'mount point of the host’s cgroups, where it is mounted elsewhere',
    },
    ...DPU_FLAGS,
    dpuLeaseInterval: {
      flag: '--dpu-node-lease-renew-interval <seconds>',
      help: 'interval at which the DPU renews its lease, the same as OVN-Kubernetes’; 0 turns the health check off',
    },
    dpuLeaseDuration: {
      flag: '--dpu-node-lease-duration <seconds>',
      help: 'time without a renewal after which the DPU counts as dead; longer where its network to the API server is slow',
    },
    ...gateFlags,
    probeHost: {
      flag: '--probe-host <address>',
      help: 'address of /healthz, /readyz and /metrics; 0.0.0.0 lets Prometheus scrape them',
    },
    probePort: PROBE_FLAGS.probePort,
    ...LOG_FLAGS,
  },
  check: ({ dpuLeaseInterval: renewInterval, dpuLeaseDuration: duration }) =>
    leaseTimingFault({ renewInterval, duration }),
};

/** @throws ConfigError, HelpPrinted */
export function parseNodeAgentConfig(argv: readonly string[]): NodeAgentConfig {
  return parseConfig(agentSettings, argv);
}
