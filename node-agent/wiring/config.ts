import { existsSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { POD_RESOURCES_SOCKET } from '../../kube/kubelet-api/pod-resources-client.ts';
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

/** Bytes of a path to a unix socket, without its last byte. */
const MAX_SOCKET_PATH_BYTES = 107;
const KUBELET_DIR = '/var/lib/kubelet';

const MODES = ['full', 'dpu-host', 'dpu'] as const;

const absolutePath = z.string().startsWith('/', 'expected an absolute path');

const seconds = z.coerce.number().int('expected whole seconds');

const schema = z.object({
  nodeName: z
    .string('expected the name of the node this runs on')
    .regex(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/, 'expected the name of a Node object'),
  mode: z.enum(MODES).default('full'),
  kubeconfig: z.string().optional(),
  hostRoot: absolutePath
    .max(MAX_SOCKET_PATH_BYTES - join(KUBELET_DIR, POD_RESOURCES_SOCKET).length, 'too long for the path of a socket')
    .default('/'),
  kubeletConfig: z.string().optional(),
  kubeletConfigDir: z.string().optional(),
  kubeletEndpoint: z
    .string()
    .regex(/^$|^[^\s/]+:\d{1,5}$/, 'expected an address and a port, or nothing')
    .optional(),
  networkMap: z.string().optional(),
  allocationCheck: z.enum(ALLOCATION_CHECK_POLICIES).default('enforce'),
  ovsEnabler: absolutePath.optional(),
  ovsIsolated: z.enum(['use', 'leave']).default('use'),
  vmPinning: z.enum(['on', 'off']).default('on'),
  interrupts: z.enum(['off', 'measure', 'move']).default('measure'),
  ...dpuSettings,
  dpuLeaseInterval: seconds.default(10),
  dpuLeaseDuration: seconds.default(40),
  ...gateSettings,
  probeHost: z.string().default('127.0.0.1'),
  probePort: z.coerce.number().int().min(0).max(65_535).default(8082),
  logLevel: z.enum(LOG_LEVELS).default('info'),
});

export type NodeAgentConfig = Readonly<z.infer<typeof schema>> & ReturnType<typeof hostPathsOf>;

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
    hostRoot: {
      flag: '--host-root <path>',
      help: 'root of the host’s directories, where the host is emulated or mounted elsewhere',
    },
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
    networkMap: {
      flag: '--network-map <path>',
      help: 'YAML file with the NUMA nodes of physnets and tunnel, for networks that discovery does not find',
    },
    allocationCheck: {
      flag: '--allocation-check <policy>',
      help: 'enforce: a container whose CPUs are not where its network is does not start; warn: it starts, and an Event reports it, for a trial',
    },
    ovsEnabler: {
      flag: '--ovs-enabler <path>',
      help: 'file that turns the affinity of OVS on while it is not empty, where it is not OVN-Kubernetes’ own (default: /etc/openvswitch/enable_dynamic_cpu_affinity)',
    },
    ovsIsolated: {
      flag: '--ovs-isolated <policy>',
      help: 'CPUs without an owner that the kernel isolates (isolcpus): use them for OVS, or leave them to other programs',
    },
    vmPinning: {
      flag: '--vm-pinning <on|off>',
      help: 'off: another program sets the CPUs of virtual machines’ threads',
    },
    interrupts: {
      flag: '--interrupts <mode>',
      help: 'measure: report what interrupts and other work take from VMs with dedicated CPUs; move: also move them off owned CPUs; off: neither',
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
  const config = parseConfig(agentSettings, argv);
  return Object.freeze({ ...config, ...hostPathsOf(config) });
}

/** Where the agent sees the directories of the host. */
function hostPathsOf({ hostRoot, ovsEnabler }: z.infer<typeof schema>) {
  const at = (path: string) => join(hostRoot, path);
  /** A container has one of its own. Manifests mount the host's below /host, where the agent needs that. */
  const kernel = (mount: string, path: string) => (existsSync(at(mount)) ? at(mount) : at(path));
  return {
    sysfsRoot: kernel('/host/sys', '/sys'),
    cgroupRoot: kernel('/host/cgroup', '/sys/fs/cgroup'),
    // Processes are those of this machine, also of an emulated host.
    procRoot: existsSync('/host/proc') ? '/host/proc' : '/proc',
    etcRoot: at('/etc'),
    kubeletDir: at(KUBELET_DIR),
    /** Where dra-driver-cpu writes the CPUs of claims. */
    cdiDir: at('/var/run/cdi'),
    ovsRundir: at('/var/run/openvswitch'),
    ovsEnabler: ovsEnabler ?? at('/etc/openvswitch/enable_dynamic_cpu_affinity'),
    irqbalanceRundir: at('/run/irqbalance'),
    cniConfDir: at('/etc/cni/net.d'),
    cniBinDir: at('/opt/cni/bin'),
    /** The gate's socket and state. The CNI plugin has the path of a real host compiled in. */
    runDir: at('/run/plumbline'),
    /** What the next agent needs to undo changes to threads. */
    stateDir: at('/var/lib/plumbline'),
  };
}
