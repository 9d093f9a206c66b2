import { Command } from 'commander';
import { CliError, EXIT } from '../support/exit-status.ts';
import { type OutputFormat, print, withOutput } from '../support/output.ts';
import { AgentError, fetchOvsStatus } from './fetch.ts';
import { statusLines } from './lines.ts';
import { isInOrder } from './status.ts';

const AGENT = 'http://127.0.0.1:8082';

interface StatusFlags {
  readonly agent: string;
  readonly threads?: true;
  readonly json?: true;
  readonly output?: OutputFormat;
}

const EXAMPLES = `
Examples:
  plumbline ovs status                # on the node itself
  plumbline ovs status -o wide        # a line for each thread

Ends with 0 if every thread is where it should be, with 1 if not, with 3 if the agent cannot be asked.`;

/** `plumbline ovs status` */
export function ovsCommand(): Command {
  const status = new Command('status')
    .description(
      'Shows every thread of Open vSwitch: the CPUs it may run on, those it should be on, and why. Asks the node’s ' +
        'agent, which answers on the node itself.',
    )
    .option('--agent <url>', 'where the agent answers its probes (its --probe-host and --probe-port)', AGENT)
    .option('--threads', 'the same as -o wide')
    .option('--json', 'the same as -o json')
    .addHelpText('after', EXAMPLES)
    .action(async ({ agent, threads, json, output }: StatusFlags) => {
      const found = await fetchOvsStatus(agent).catch((error: unknown) => {
        if (!(error instanceof AgentError)) throw error;
        throw new CliError(EXIT.unreachable, error.message, { cause: error });
      });
      await print(json ? 'json' : (output ?? (threads ? 'wide' : 'text')), found, {
        text: () => statusLines(found).slice(0, -1),
        wide: () => statusLines(found, true).slice(0, -1),
      });
      process.exitCode = isInOrder(found) ? EXIT.ok : EXIT.findings;
    });
  withOutput(status, ['json', 'yaml', 'wide']);
  return new Command('ovs').description('Open vSwitch on this node').addCommand(status);
}
