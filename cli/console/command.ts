import { InvalidArgumentError } from 'commander';
import { Subcommand, wholeNumber } from '../support/command.ts';
import type { ConsoleFlags } from './run.ts';

/** The address that the console listens on: of this machine only, since the page has no login. */
const HOST = '127.0.0.1';

const EXAMPLES = `
Examples:
  plumbline console                # prints an address to open in a browser; Ctrl-C stops it
  plumbline console --port 8083    # always the same address
  plumbline console --context lab

The page has no login: anyone who can connect to ${HOST} on this machine sees what you may see. It needs list and watch of
nodetopologies, nodes and pods; docs/reference/console.md has the whole list.
Exit status: 0 after Ctrl-C or SIGTERM, 2 if the port is not available, 3 if the cluster cannot be queried.`;

export const createCommand = () =>
  new Subcommand(
    'console',
    'Serve a read-only web page on this machine: CPU maps of the nodes, and the VMs that wait.',
    EXAMPLES,
  )
    .option(
      '--port <number>',
      `port to listen on at ${HOST}; 0 picks a free one`,
      wholeNumber(0, 65_535, 'a number from 0 to 65535'),
      0,
    )
    .option(
      '--extender <url>',
      'ask the extender at this address, such as a port-forward; default: through the API server',
    )
    .option(
      '--agent <node=url>',
      'ask the agent of a node at this address; default: through the API server; may be repeated',
      agentAddress,
    )
    .withCluster()
    .action(async (flags: ConsoleFlags) => (await import('./run.ts')).run(HOST, flags));

function agentAddress(text: string, before: ConsoleFlags['agent'] = {}): ConsoleFlags['agent'] {
  const [node = '', url = ''] = text.split(/=(.*)/s);
  if (node === '' || !URL.canParse(url))
    throw new InvalidArgumentError('expected NODE=URL, such as worker-1=http://127.0.0.1:8082');
  return { ...before, [node]: url };
}
