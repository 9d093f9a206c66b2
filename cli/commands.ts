import type { Command } from 'commander';

/** A subcommand. It is loaded only when it is meant: the others' libraries would cost every start a tenth of a second. */
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
    summary: 'why a VM or pod does not run, node by node, and what would help',
    load: async () => (await import('./explain/command.ts')).explainCommand(),
  },
  {
    name: 'top',
    summary: 'nodes as maps of their CPUs, with who owns which',
    load: async () => (await import('./top/command.ts')).topCommand(),
  },
  {
    name: 'console',
    summary: 'a read-only web page: nodes as maps of their CPUs, and the VMs that wait',
    load: async () => (await import('./console/command.ts')).consoleCommand(),
  },
  {
    name: 'simulate',
    summary: 'how many of these VMs fit on this cluster, or on invented nodes',
    load: async () => (await import('./simulate/command.ts')).simulateCommand(),
  },
  {
    name: 'doctor',
    summary: 'whether Plumbline is installed right, and what is wrong without a word',
    load: async () => (await import('./doctor/command.ts')).doctorCommand(),
  },
  {
    name: 'topology',
    summary: 'what this machine is made of',
    load: async () => (await import('./topology/command.ts')).topologyCommand(),
  },
  {
    name: 'ovs',
    summary: 'Open vSwitch on a node',
    load: async () => (await import('./ovs/command.ts')).ovsCommand(),
  },
  {
    name: 'import',
    summary: 'takes over what Nova was told of its hosts',
    load: async () => (await import('./import/command.ts')).importCommand(),
  },
  {
    name: 'verify',
    summary: 'which nodes could not host which VMs for their CPU masks',
    load: async () => (await import('./verify/command.ts')).verifyCommand(),
  },
  {
    name: 'cpu-mask',
    summary: 'reads CPU masks, and writes them for taskset, Xen and LXC',
    load: async () => (await import('./cpu-mask/command.ts')).cpuMaskCommand(),
  },
  {
    name: 'vm',
    summary: 'the threads of the VMs on a node, and the CPUs they should be on',
    load: async () => (await import('./vm/command.ts')).vmCommand(),
  },
  {
    name: 'qemu',
    summary: 'pins the vCPUs of a QEMU that runs without Kubernetes',
    load: async () => (await import('./qemu/command.ts')).qemuCommand(),
  },
  {
    name: 'demo',
    summary: 'an embedded cluster, and Plumbline at work in it',
    load: async () => (await import('./demo/command.ts')).demoCommand(),
  },
  {
    name: 'version',
    summary: 'the version of this command',
    load: async () => (await import('./version/command.ts')).versionCommand(),
  },
  {
    name: 'completion',
    summary: 'completion for bash, zsh or fish',
    load: async () => (await import('./completion/command.ts')).completionCommand(),
  },
];
