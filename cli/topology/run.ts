import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { PlumblineError } from '../../model/errors.ts';
import { CliError, EXIT, usageError } from '../support/exit-status.ts';
import { type OutputFormat, print } from '../support/output.ts';
import { machineLines } from './lines.ts';
import { topologyData } from './output.ts';
import { readMachine } from './read.ts';

export interface TopologyFlags {
  readonly sysfsRoot: string;
  readonly output?: OutputFormat;
}

/** Prints the topology of this machine. @throws CliError if this is not sysfs, or it describes no machine */
export async function run({ sysfsRoot, output }: TopologyFlags): Promise<void> {
  if (!existsSync(join(sysfsRoot, 'devices/system/cpu'))) {
    throw usageError(`${sysfsRoot} is not sysfs: this command needs Linux; give the path of sysfs with --sysfs-root`);
  }
  const machine = await readMachine(sysfsRoot).catch((error: unknown) => {
    if (!(error instanceof PlumblineError)) throw error;
    throw new CliError(EXIT.findings, `cannot describe this machine: ${error.message}`, { cause: error });
  });
  await print(output, topologyData(machine), {
    text: ({ width }) => machineLines(machine, width),
    wide: ({ width }) => machineLines(machine, width, true),
  });
}
