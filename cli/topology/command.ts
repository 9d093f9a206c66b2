import { Subcommand } from '../support/command.ts';

const EXAMPLES = `
Examples:
  plumbline topology               # this machine as a diagram
  plumbline topology -o wide       # with shared caches and NUMA distances
  plumbline topology -o json
  plumbline topology --sysfs-root /host/sys`;

export const createCommand = () =>
  new Subcommand('topology', 'Show the NUMA nodes, cores, threads, caches, memory and NICs of this machine.', EXAMPLES)
    .option('--sysfs-root <directory>', 'path of sysfs', '/sys')
    .withOutput('json', 'yaml', 'wide')
    .runs(() => import('./run.ts'));
