import type { Command } from 'commander';

/**
 * A subcommand. It is loaded only when the user calls it: loading all of them adds a tenth of a second to every start. Its
 * `command.ts` has the flags, which help and completion need; it imports what it does lazily, from `run.ts`.
 */
export interface CommandEntry {
  readonly name: string;
  /** For the list of commands. */
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

/** In the order of `plumbline --help`. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'explain',
    summary: 'show why a VM or pod does not run, node by node, and what would help',
    load: async () => (await import('./explain/command.ts')).explainCommand(),
  },
  {
    name: 'top',
    summary: 'show the CPUs of each node and who owns them, as a map',
    load: async () => (await import('./top/command.ts')).topCommand(),
  },
  {
    name: 'console',
    summary: 'serve a read-only web page: CPU maps of the nodes, and the VMs that wait',
    load: async () => (await import('./console/command.ts')).consoleCommand(),
  },
  {
    name: 'simulate',
    summary: 'compute how many VMs fit on this cluster, or on hypothetical nodes',
    load: async () => (await import('./simulate/command.ts')).simulateCommand(),
  },
  {
    name: 'doctor',
    summary: 'check the installation, and find what fails silently',
    load: async () => (await import('./doctor/command.ts')).doctorCommand(),
  },
  {
    name: 'topology',
    summary: 'show the NUMA nodes, cores, caches and NICs of this machine',
    load: async () => (await import('./topology/command.ts')).topologyCommand(),
  },
  {
    name: 'ovs',
    summary: 'show where the threads of Open vSwitch run on a node',
    load: async () => (await import('./ovs/command.ts')).ovsCommand(),
  },
  {
    name: 'import',
    summary: 'convert the network and CPU settings of a Nova compute host',
    load: async () => (await import('./import/command.ts')).importCommand(),
  },
  {
    name: 'verify',
    summary: 'show which nodes can host each VM with a CPU mask, and why others cannot',
    load: async () => (await import('./verify/command.ts')).verifyCommand(),
  },
  {
    name: 'cpu-mask',
    summary: 'check CPU masks, and convert them for taskset, Xen and LXC',
    load: async () => (await import('./cpu-mask/command.ts')).cpuMaskCommand(),
  },
  {
    name: 'vm',
    summary: 'show the threads of the VMs on a node, and the CPUs they should run on',
    load: async () => (await import('./vm/command.ts')).vmCommand(),
  },
  {
    name: 'qemu',
    summary: 'pin the vCPUs of a QEMU process that runs without Kubernetes',
    load: async () => (await import('./qemu/command.ts')).qemuCommand(),
  },
  {
    name: 'demo',
    summary: 'run Plumbline in an embedded cluster',
    load: async () => (await import('./demo/command.ts')).demoCommand(),
  },
  {
    name: 'version',
    summary: 'print the version of this command',
    load: async () => (await import('./version/command.ts')).versionCommand(),
  },
  {
    name: 'completion',
    summary: 'print the completion script for bash, zsh or fish',
    load: async () => (await import('./completion/command.ts')).completionCommand(),
  },
];
