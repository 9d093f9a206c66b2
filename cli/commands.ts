import type { Command } from 'commander';

/**
 * A subcommand. It is loaded only when the user calls it: loading all of them adds a tenth of a second to every start. Its
 * `command.ts` has the flags, which help and completion need; it imports what it does lazily, from `run.ts`.
 */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

/** @param file its `command.ts` */
const entry = (name: string, summary: string, file: () => Promise<{ createCommand(): Command }>): CommandEntry => {
  return { name, summary, load: async () => (await file()).createCommand() };
};

/** In the order of `plumbline --help`. */
export const COMMANDS: readonly CommandEntry[] = [
  entry(
    'explain',
    'show why a VM or pod does not run, node by node, and what would help',
    () => import('./explain/command.ts'),
  ),
  entry(
    'status',
    'show the VMs that do not run and why, silent agents, dead DPUs, and wrong predictions',
    () => import('./status/command.ts'),
  ),
  entry('top', 'show the CPUs of each node and who owns them, as a map', () => import('./top/command.ts')),
  entry(
    'console',
    'serve a read-only web page: CPU maps of the nodes, and the VMs that wait',
    () => import('./console/command.ts'),
  ),
  entry(
    'simulate',
    'compute how many VMs fit on this cluster, or on hypothetical nodes',
    () => import('./simulate/command.ts'),
  ),
  entry('doctor', 'check the installation, and find what fails silently', () => import('./doctor/command.ts')),
  entry(
    'topology',
    'show the NUMA nodes, cores, caches and NICs of this machine',
    () => import('./topology/command.ts'),
  ),
  entry('ovs', 'show where the threads of Open vSwitch run on a node', () => import('./ovs/command.ts')),
  entry('import', 'convert the network and CPU settings of a Nova compute host', () => import('./import/command.ts')),
  entry(
    'verify',
    'show which nodes can host each VM with a CPU mask, and why others cannot',
    () => import('./verify/command.ts'),
  ),
  entry(
    'cpu-mask',
    'check CPU masks, and convert them for taskset, Xen and LXC',
    () => import('./cpu-mask/command.ts'),
  ),
  entry(
    'vm',
    'show the threads of the VMs on a node, and the CPUs they should run on',
    () => import('./vm/command.ts'),
  ),
  entry('qemu', 'pin the vCPUs of a QEMU process that runs without Kubernetes', () => import('./qemu/command.ts')),
  entry(
    'bug-report',
    'write one archive for a bug report, without secrets and data of tenants',
    () => import('./bug-report/command.ts'),
  ),
  entry('demo', 'run Plumbline in an embedded cluster', () => import('./demo/command.ts')),
  entry(
    'version',
    'print the versions of this command and of the cluster’s parts',
    () => import('./version/command.ts'),
  ),
  entry('completion', 'print the completion script for bash, zsh or fish', () => import('./completion/command.ts')),
];
