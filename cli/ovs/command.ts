import { Command } from 'commander';
import { AgentError, fetchOvsStatus } from './fetch.ts';
import { statusLines } from './lines.ts';
import { isInOrder } from './status.ts';

const AGENT = 'http://127.0.0.1:8082';

interface StatusFlags {
  readonly agent: string;
  readonly threads?: true;
  readonly json?: true;
}

/** `plumbline ovs status` */
export function ovsCommand(): Command {
  const status = new Command('status')
    .description(
      'Shows every thread of Open vSwitch: the CPUs it may run on, those it should be on, and why. Asks the node’s ' +
        'agent, which answers on the node itself. Ends with 0 if every thread is where it should be, with 1 if not, ' +
        'with 2 if the agent cannot be asked.',
    )
    .option('--agent <url>', 'where the agent answers its probes (its --probe-host and --probe-port)', AGENT)
    .option('--threads', 'a line for each thread, also where several are alike')
    .option('--json', 'print the answer as it is')
    .action(async ({ agent, threads, json }: StatusFlags) => {
      const found = await fetchOvsStatus(agent).catch((error: unknown) => {
        if (!(error instanceof AgentError)) throw error;
        process.stderr.write(`plumbline: ${error.message}\n`);
        process.exitCode = 2;
      });
      if (found === undefined) return;
      const text = json === true ? `${JSON.stringify(found, null, 2)}\n` : statusLines(found, threads).join('\n');
      process.stdout.write(text);
      process.exitCode = isInOrder(found) ? 0 : 1;
    });
  return new Command('ovs').description('Open vSwitch on this node').addCommand(status);
}
