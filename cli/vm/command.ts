import { Command } from 'commander';
import { EXIT } from '../support/exit-status.ts';
import { type OutputFormat, print, withOutput } from '../support/output.ts';
import { statusLines } from './lines.ts';
import { fetchVmStatus, isInOrder } from './status.ts';

const AGENT = 'http://127.0.0.1:8082';

const EXAMPLES = `
Examples:
  plumbline vm status                # on the node itself
  plumbline vm status -o wide        # a line for each thread

Ends with 0 if every thread is where it should be and no VMs share CPUs, with 1 if not, with 3 if the agent cannot be
asked.`;

interface StatusFlags {
  readonly agent: string;
  readonly output?: OutputFormat;
}

/** `plumbline vm status` */
export function vmCommand(): Command {
  const status = new Command('status')
    .description(
      'Shows the threads of the VMs on this node that have a CPU mask or dedicated CPUs: vCPUs, IO threads and the ' +
        'emulator’s, the CPUs each should be on and those it may run on. Asks the node’s agent, which answers on the ' +
        'node itself.',
    )
    .option('--agent <url>', 'where the agent answers its probes (its --probe-host and --probe-port)', AGENT)
    .addHelpText('after', EXAMPLES)
    .action(async ({ agent, output }: StatusFlags) => {
      const found = await fetchVmStatus(agent);
      await print(output, found, { text: () => statusLines(found), wide: () => statusLines(found, true) });
      process.exitCode = isInOrder(found) ? EXIT.ok : EXIT.findings;
    });
  withOutput(status, ['json', 'yaml', 'wide']);
  return new Command('vm').description('virtual machines on this node').addCommand(status);
}
