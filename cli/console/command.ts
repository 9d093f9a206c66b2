import { Command, InvalidArgumentError } from 'commander';
import { createConsole } from '../../console/server/console.ts';
import type { AskExtender } from '../../console/server/questions.ts';
import type { AskSwitch } from '../../console/server/switch.ts';
import { agentAt, agentOf } from '../agent/ask.ts';
import { fetchOvsStatus } from '../agent/fetch-ovs.ts';
import { switchPicture } from '../agent/ovs-groups.ts';
import { askInCluster } from '../extender/ask.ts';
import { askAddress, explainUrl } from '../extender/ask-address.ts';
import { type ClusterAccess, type ClusterFlags, usingCluster, withCluster } from '../support/cluster.ts';
import { usageError } from '../support/exit-status.ts';
import { withPage } from '../support/program-files.ts';
import { createTerminalLog } from './log.ts';
import { unreadableKinds } from './permissions.ts';

interface ConsoleFlags extends ClusterFlags {
  readonly port: number;
  readonly extender?: string;
  readonly extenderCa?: string;
  readonly agent: Readonly<Record<string, string>>;
}

const HOST = '127.0.0.1';
/** Seconds that browsers get to receive pending data when the command ends. */
const DRAIN = 1;

const EXAMPLES = `
Examples:
  plumbline console                # prints an address to open in a browser; Ctrl-C stops it
  plumbline console --port 8083    # always the same address
  plumbline console --context lab

The page has no login: anyone who can connect to ${HOST} on this machine sees what you may see. It needs list and watch of
nodetopologies, nodes and pods; docs/reference/console.md has the whole list.
Exit status: 0 after Ctrl-C or SIGTERM, 2 if the port is not available, 3 if the cluster cannot be queried.`;

/** `plumbline console` */
export function consoleCommand(): Command {
  const command = new Command('console')
    .description('Serve a read-only web page on this machine: CPU maps of the nodes, and the VMs that wait.')
    .option('--port <number>', `port to listen on at ${HOST}; 0 picks a free one`, port, 0)
    .option(
      '--extender <url>',
      'ask the extender at this address, such as a port-forward; default: through the API server',
    )
    .option('--extender-ca <file>', 'verify the extender’s certificate with this CA; default: no verification')
    .option(
      '--agent <node=url>',
      'ask the agent of a node at this address; default: through the API server; may be repeated',
      agentAddress,
      {},
    )
    .addHelpText('after', EXAMPLES)
    .action((flags: ConsoleFlags) =>
      usingCluster(flags, (cluster) => withPage((assets) => serve(cluster, flags, assets))),
    );
  return withCluster(command);
}

async function serve(cluster: ClusterAccess, flags: ConsoleFlags, assets: string): Promise<void> {
  const { client } = cluster;
  const ask = askerOf(cluster, flags);
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  process.once('SIGINT', stop).once('SIGTERM', stop);
  try {
    const page = createConsole({
      client,
      address: { host: HOST, port: flags.port },
      assets,
      ask,
      askSwitch: switchAskerOf(cluster, flags),
      without: await unreadableKinds(client),
      log: createTerminalLog(process.stderr),
    });
    await page.server.start().catch((error: NodeJS.ErrnoException) => {
      throw usageError(`--port ${flags.port}: ${error.message}; choose another port, or omit --port for a free one`);
    });
    process.stdout.write(`console: http://${HOST}:${page.server.port}/\n`);
    await page.run(stopping.signal);
    page.closeStreams();
    await page.server.stop(DRAIN);
  } finally {
    process.removeListener('SIGINT', stop).removeListener('SIGTERM', stop);
  }
}

/** Selects how to query the extender. @throws CliError if --extender is not a URL */
function askerOf(cluster: ClusterAccess, { extender: url, extenderCa: caFile }: ConsoleFlags): AskExtender {
  if (url !== undefined) explainUrl(url);
  return async (pod) => {
    try {
      if (url !== undefined) return { answer: await askAddress({ url, caFile }, pod) };
      return await askInCluster(cluster, { pod });
    } catch (error) {
      return { why: (error as Error).message };
    }
  };
}

/** The agent's probe port on its node. */
const AGENT_PORT = 8082;

function switchAskerOf(cluster: ClusterAccess, { agent }: ConsoleFlags): AskSwitch {
  return async (node) => {
    try {
      const url = agent[node];
      const ask = url === undefined ? agentOf(cluster, node, AGENT_PORT) : agentAt(url);
      return { answer: switchPicture(await fetchOvsStatus(ask)) };
    } catch (error) {
      return { why: (error as Error).message };
    }
  };
}

function agentAddress(text: string, before: ConsoleFlags['agent']): ConsoleFlags['agent'] {
  const [node = '', url = ''] = text.split(/=(.*)/s);
  if (node === '' || !URL.canParse(url))
    throw new InvalidArgumentError('expected NODE=URL, such as worker-1=http://127.0.0.1:8082');
  return { ...before, [node]: url };
}

function port(text: string): number {
  const value = Number(text);
  if (!/^\d{1,5}$/.test(text) || value > 65_535) throw new InvalidArgumentError('expected a number from 0 to 65535');
  return value;
}
