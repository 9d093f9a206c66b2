import { Command } from 'commander';
import { withOutput } from '../support/output.ts';
import type { TopologyFlags } from './run.ts';

const EXAMPLES = `
Examples:
  plumbline topology               # this machine as a diagram
  plumbline topology -o wide       # with shared caches and NUMA distances
  plumbline topology -o json
  plumbline topology --sysfs-root /host/sys`;

export function createCommand(): Command {
  const command = new Command('topology')
    .description('Show the NUMA nodes, cores, threads, caches, memory and NICs of this machine.')
    .option('--sysfs-root <directory>', 'path of sysfs', '/sys')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: TopologyFlags) => (await import('./run.ts')).run(flags));
  return withOutput(command, ['json', 'yaml', 'wide']);
}
