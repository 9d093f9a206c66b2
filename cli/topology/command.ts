import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { PlumblineError } from '../../model/errors.ts';
import { CliError, EXIT, usageError } from '../support/exit-status.ts';
import { type OutputFormat, print, withOutput } from '../support/output.ts';
import { terminalOf } from '../support/terminal.ts';
import { machineLines } from './lines.ts';
import { topologyData } from './output.ts';
import { readMachine } from './read.ts';

interface TopologyFlags {
  readonly sysfsRoot: string;
  readonly output?: OutputFormat;
}

const EXAMPLES = `
Examples:
  plumbline topology               # this machine as a diagram
  plumbline topology -o wide       # with shared caches and NUMA distances
  plumbline topology -o json
  plumbline topology --sysfs-root /host/sys`;

/** `plumbline topology` */
export function topologyCommand(): Command {
  const command = new Command('topology')
    .description('Show the NUMA nodes, cores, threads, caches, memory and NICs of this machine.')
    .option('--sysfs-root <directory>', 'path of sysfs', '/sys')
    .addHelpText('after', EXAMPLES)
    .action(async ({ sysfsRoot, output }: TopologyFlags) => {
      if (!existsSync(join(sysfsRoot, 'devices/system/cpu'))) {
        throw usageError(
          `${sysfsRoot} is not sysfs: this command needs Linux; give the path of sysfs with --sysfs-root`,
        );
      }
      const machine = await readMachine(sysfsRoot).catch((error: unknown) => {
        if (!(error instanceof PlumblineError)) throw error;
        throw new CliError(EXIT.findings, `cannot describe this machine: ${error.message}`, { cause: error });
      });
      const terminal = terminalOf(process.stdout);
      await print(output, topologyData(machine), {
        text: () => machineLines(machine, terminal),
        wide: () => machineLines(machine, terminal, true),
      });
    });
  return withOutput(command, ['json', 'yaml', 'wide']);
}
